#include <algorithm>
#include <bit>

#include "compiler/export_file.h"
#include "compiler/export_record.h"
#include "graph/builder.h"
#include "loops/parse_expr.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::compiler {

using capture::Captured;
using capture::CapturedInput;
using capture::CapturedOutput;
using graph::Node;
using graph::NodeKind;
using graph::TensorMeta;
using graph::Value;

namespace {

int32_t index_of(const Json& json, size_t size, int32_t least, const char* what) {
  const int64_t value = json.as_int();
  STAX_CHECK(value >= least && value < static_cast<int64_t>(size), "{} {} is out of range, there are {}",
             what, value, size);
  return static_cast<int32_t>(value);
}

DType dtype_of(const Json& json) {
  for (int k = 0; k < kDTypeCount; ++k) {
    if (name(static_cast<DType>(k)) == json.as_string()) return static_cast<DType>(k);
  }
  throw_user_error(fmt::format("there is no dtype '{}'", json.as_string()));
}

class Reader {
 public:
  Reader(const Json& program, std::string_view data) : program_(program), data_(data) {}

  std::shared_ptr<const detail::ExportedState> state() {
    read_contract();
    late_allowed_ = true;
    read_late();
    read_graph();
    read_results();
    graph::verify(captured_.graph);
    return verified();
  }

 private:
  const Json::Array& items(const char* key) const { return program_.at(key).as_array(); }

  Expr expr(const Json& json) const {
    const Expr e = loops::parse_expr(json.as_string());
    for (const Symbol s : e.symbols()) {
      const bool is_size =
          s.kind == SymbolKind::size && static_cast<size_t>(s.number) < contract_.symbols.size();
      STAX_CHECK(is_size || (late_allowed_ && s.kind == SymbolKind::unbacked), "there is no size {}",
                 s.str());
    }
    return e;
  }
  std::vector<Expr> exprs(const Json& json) const {
    std::vector<Expr> out;
    for (const Json& e : json.as_array()) out.push_back(expr(e));
    return out;
  }
  TensorMeta meta(const Json& json) const {
    TensorMeta m{dtype_of(json.at("dtype")),
                 {},
                 exprs(json.at("sizes")),
                 exprs(json.at("strides")),
                 expr(json.at("offset"))};
    STAX_CHECK(m.sizes.size() == m.strides.size(), "a tensor has {} and {}", counted(m.sizes.size(), "size"),
               counted(m.strides.size(), "stride"));
    return m;
  }
  static Interval interval(const Json& json) {
    STAX_CHECK(json.size() == 2, "a range has {} ends", json.size());
    Interval out;
    if (!json.at(0).is_null()) out.lower = json.at(0).as_int();
    if (!json.at(1).is_null()) out.upper = json.at(1).as_int();
    STAX_CHECK(out.lower && *out.lower >= 0 && (!out.upper || *out.upper >= *out.lower),
               "{} is no range of sizes", out.str());
    return out;
  }
  Condition condition(const Json& json) const {
    for (int k = 0; k < 4; ++k) {
      if (json.at("is").as_string() == kRelationTexts[k]) {
        return {static_cast<Relation>(k), expr(json.at("left")), expr(json.at("right"))};
      }
    }
    throw_user_error(fmt::format("there is no relation '{}'", json.at("is").as_string()));
  }
  Value value(const Json& json) const {
    STAX_CHECK(json.size() == 2, "a value has {}", counted(json.size(), "part"));
    const int32_t node = index_of(json.at(0), captured_.graph.nodes.size(), 0, "node");
    const size_t results = captured_.graph.nodes[static_cast<size_t>(node)].results.size();
    return {node, index_of(json.at(1), results, 0, "result")};
  }

  void read_contract() {
    for (const Json& s : items("symbols")) {
      ExportSymbol symbol{s.at("name").as_string(), s.at("hint").as_int(), interval(s.at("declared")),
                          interval(s.at("assumed"))};
      STAX_CHECK(symbol.name.empty() || is_identifier(symbol.name), "'{}' is no name", symbol.name);
      STAX_CHECK(
          symbol.hint >= *symbol.assumed.lower && symbol.hint <= symbol.assumed.upper.value_or(INT64_MAX),
          "the example {} of a size lies outside {}", symbol.hint, symbol.assumed.str());
      contract_.symbols.push_back(std::move(symbol));
    }
    for (const Json& i : items("arguments")) {
      ExportInput input{i.at("name").as_string(), meta(i.at("meta"))};
      STAX_CHECK(is_identifier(input.name), "'{}' is no name", input.name);
      check_argument(input);
      contract_.inputs.push_back(std::move(input));
    }
    for (const Json& g : items("guards")) contract_.guards.push_back({condition(g), {}});
    for (const Json& c : items("assertions")) contract_.assertions.push_back(condition(c));
    for (size_t s = 0; s < contract_.symbols.size(); ++s) {
      (void)contract_.place_of(Symbol{SymbolKind::size, static_cast<int32_t>(s)});
    }
  }

  /// Files of format 1 have none.
  void read_late() {
    const Json* late = program_.find("late");
    if (late == nullptr) return;
    for (const Json& a : late->as_array()) {
      contract_.late.push_back(
          {condition(a.at("holds")), a.at("words").as_string(), a.at("where").as_string(), {}, {}});
    }
  }

  /// Sizes are numbers or follow from one symbol; the elements lie without holes.
  static void check_argument(const ExportInput& input) {
    const TensorMeta& m = input.meta;
    for (const Expr e : m.sizes) {
      STAX_CHECK(e.is_constant() ? e.value() >= 0 : linear_size(e).has_value(), "{} has the size {}",
                 input.name, e.str());
    }
    std::vector<char> done(m.sizes.size(), 0);
    Expr step = 1;
    for (size_t k = 0; k < done.size(); ++k) {
      // Dimensions of one element first: they leave the step as it is.
      size_t d = done.size();
      for (size_t j = done.size(); j-- > 0;) {
        if (done[j] == 0 && m.strides[j] == step && (d == done.size() || m.sizes[j].is(1))) d = j;
      }
      STAX_CHECK(d < done.size(), "{} has strides that no tensor without holes has", input.name);
      done[d] = 1;
      step = step * m.sizes[d];
    }
    STAX_CHECK(m.offset.is(0), "{} begins at {}", input.name, m.offset.str());
  }

  Argument<Value> argument(const Json& json) const {
    if (json.is_null()) return NoneType{};
    STAX_CHECK(json.as_object().size() == 1, "an argument of {} kinds", json.size());
    const auto& [kind, content] = json.as_object()[0];
    const auto floating = [](const Json& bits) { return std::bit_cast<double>(bits.as_int()); };
    if (kind == "value") return value(content);
    if (kind == "float") return floating(content);
    if (kind == "int") return Number{Number::Kind::integer, expr(content), 0};
    if (kind == "bool") return Number{Number::Kind::boolean, expr(content), 0};
    if (kind == "ints") return exprs(content);
    if (kind == "dtype") return dtype_of(content);
    if (kind == "text") return content.as_string();
    if (kind == "floats") {
      std::vector<double> list;
      for (const Json& f : content.as_array()) list.push_back(floating(f));
      return list;
    }
    STAX_CHECK(kind == "values", "there is no argument of kind '{}'", kind);
    Argument<Value>::Tensors list;
    for (const Json& v : content.as_array()) {
      list.push_back(v.is_null() ? std::nullopt : std::optional(value(v)));
    }
    return list;
  }

  void read_graph() {
    for (const Json& i : items("inputs")) {
      CapturedInput& input = captured_.inputs.emplace_back();
      input.argument = index_of(i.at("argument"), contract_.inputs.size(), 0, "argument");
      input.flat = i.at("flat").as_bool();
      input.start = i.at("start").as_int();
    }
    for (const Json& n : items("nodes")) captured_.graph.nodes.push_back(node(n));
    STAX_CHECK(captured_.graph.inputs.size() == captured_.inputs.size(), "{} where {} were announced",
               counted(captured_.graph.inputs.size(), "input"), captured_.inputs.size());
    for (const Json& o : items("outputs")) {
      captured_.graph.outputs.push_back(
          {value(o.at("value")), index_of(o.at("alias"), captured_.inputs.size(), -1, "input")});
    }
    for (const Json& w : items("writes")) {
      graph::WriteBack write{
          index_of(w.at("input"), captured_.inputs.size(), 0, "input"), value(w.at("value")), {}};
      if (!w.at("region").is_null()) write.region = meta(w.at("region"));
      captured_.graph.write_backs.push_back(std::move(write));
    }
  }

  Node node(const Json& json) {
    Node n;
    n.name = json.at("name").as_string();
    for (const Json& m : json.at("results").as_array()) n.results.push_back(meta(m));
    STAX_CHECK(!n.results.empty(), "the node {} has no results", n.name);
    if (json.find("op") != nullptr) {
      read_call(n, json);
    } else if (const Json* input = json.find("input")) {
      n.kind = NodeKind::input;
      n.input = index_of(*input, captured_.inputs.size(), 0, "input");
      STAX_CHECK(n.input == static_cast<int32_t>(captured_.graph.inputs.size()), "inputs are out of order");
      captured_.graph.inputs.push_back(static_cast<graph::NodeId>(captured_.graph.nodes.size()));
      check_input(n);
    } else {
      n.kind = NodeKind::constant;
      read_constant(n, json.at("data").as_int());
    }
    return n;
  }
  void read_call(Node& n, const Json& json) const {
    n.op = ops::table().find(json.at("op").as_string());
    STAX_CHECK(n.op != nullptr && n.op->op_class != graph::OpClass::composite, "there is no operator '{}'",
               json.at("op").as_string());
    const std::vector<graph::Param>& params = n.op->schema.params;
    const Json::Array& args = json.at("args").as_array();
    STAX_CHECK(args.size() == params.size(), "{} takes {}, got {}", n.name,
               counted(params.size(), "argument"), args.size());
    for (size_t k = 0; k < args.size(); ++k) {
      auto converted = graph::convert<Value>(params[k], argument(args[k]));
      STAX_CHECK(converted, "{} expects {} for '{}'", n.name, graph::describe(params[k].type),
                 params[k].name);
      n.args.push_back(std::move(*converted));
    }
  }
  static std::optional<int64_t> constant_numel(const TensorMeta& m) {
    int64_t count = 1;
    for (const Expr e : m.sizes) {
      if (!e.is_constant() || e.value() < 0 || __builtin_mul_overflow(count, e.value(), &count)) return {};
    }
    return count;
  }
  void read_constant(Node& n, int64_t start) const {
    const std::optional<int64_t> count = constant_numel(n.results[0]);
    const auto size = static_cast<int64_t>(data_.size());
    const int64_t width = itemsize(n.results[0].dtype);
    STAX_CHECK(
        n.results.size() == 1 && count && start >= 0 && start <= size && *count <= (size - start) / width,
        "the constant {} lies outside the data", n.name);
    STAX_CHECK(
        n.results[0].strides == graph::contiguous_strides(n.results[0].sizes) && n.results[0].offset.is(0),
        "the constant {} is not row-major", n.name);
    const auto* first = reinterpret_cast<const std::byte*>(data_.data()) + start;
    n.data = std::make_shared<std::vector<std::byte>>(first, first + *count * width);
  }
  void check_input(const Node& n) const {
    const CapturedInput& input = captured_.inputs[static_cast<size_t>(n.input)];
    const TensorMeta& given = contract_.inputs[static_cast<size_t>(input.argument)].meta;
    const TensorMeta& m = n.results[0];
    STAX_CHECK(n.results.size() == 1 && m.dtype == given.dtype && m.offset.is(0), "{} is no argument",
               n.name);
    if (!input.flat) {
      STAX_CHECK(m.sizes == given.sizes && m.strides == given.strides && input.start == 0,
                 "{} is not the argument that it stands for", n.name);
      return;
    }
    const std::optional<int64_t> all = constant_numel(given), part = constant_numel(m);
    STAX_CHECK(all && part && m.dim() == 1 && m.strides[0].is(1) && input.start >= 0 && *part <= *all &&
                   input.start <= *all - *part,
               "{} reaches outside its argument", n.name);
  }

  void read_results() {
    for (const Json& r : items("results")) {
      const size_t k = captured_.outputs.size();
      CapturedOutput& out = captured_.outputs.emplace_back();
      out.output = index_of(r.at("output"), captured_.graph.outputs.size(), -1, "output");
      out.input = index_of(r.at("input"), captured_.inputs.size(), -1, "input");
      out.same_as = index_of(r.at("same_as"), k, -1, "result");
      out.argument = index_of(r.at("argument"), contract_.inputs.size(), -1, "argument");
      out.whole = r.at("whole").as_bool();
      out.meta = meta(r.at("meta"));
      STAX_CHECK((out.output >= 0 || out.input >= 0 || out.same_as >= 0 || out.argument >= 0) &&
                     (!out.whole || out.output >= 0) && (out.output < 0 || out.input < 0),
                 "the result {} is nothing", k);
      STAX_CHECK(
          out.output < 0 || captured_.graph.outputs[static_cast<size_t>(out.output)].alias_of_input < 0,
          "the result {} is no tensor of its own", k);
    }
    captured_.integers = exprs(program_.at("integers"));
    captured_.random_count = expr(program_.at("random_count"));
    STAX_CHECK(!is_late(captured_.random_count), "how many random numbers are drawn depends on data");
    for (const Json& b : items("offset_matters")) captured_.offset_matters.push_back(b.as_bool() ? 1 : 0);
    STAX_CHECK(captured_.offset_matters.size() == contract_.inputs.size(), "offset_matters has {}",
               counted(captured_.offset_matters.size(), "entry", "entries"));
    for (size_t k = 0; k < captured_.inputs.size(); ++k) {
      const CapturedInput& input = captured_.inputs[k];
      STAX_CHECK(!input.flat || captured_.offset_matters[static_cast<size_t>(input.argument)] != 0,
                 "memory of an argument whose beginning is not known");
    }
    captured_.used.assign(contract_.inputs.size(), 1);
    for (const ExportInput& input : contract_.inputs) captured_.symbols.tensors.push_back(input.meta);
  }

  /// What operators make of their arguments, against what the file says of it; what reaches into memory.
  std::shared_ptr<const detail::ExportedState> verified() {
    const std::shared_ptr<ShapeEnv> env = environment_of(contract_, {});
    STAX_CHECK(env, "the decisions contradict the example");
    const size_t guards = env->guards().size();
    Captured captured = rebuilt(captured_, {}, env, contract_.late);
    STAX_CHECK(env->guards().size() == guards, "the graph needs {}, which is not asserted",
               env->guards().back().condition.str());
    for (const Node& n : captured.graph.nodes) check_strided(captured.graph, n);
    for (const graph::WriteBack& w : captured.graph.write_backs) check_write(captured, w, *env);
    for (const CapturedOutput& o : captured.outputs) check_view(captured, o);
    captured.env.reset();
    return std::make_shared<detail::ExportedState>(std::move(contract_), std::move(captured));
  }

  /// as_strided looks at memory: at the whole of a tensor whose length is known.
  static void check_strided(const graph::Graph& graph, const Node& n) {
    const bool strided = n.op != nullptr && n.op->schema.name.starts_with("as_strided");
    if (!strided) return;
    const size_t first = n.op->schema.name == "as_strided" ? 1 : 2;
    STAX_CHECK(n.args.size() == first + 3 && n.args[0].is_tensor(), "{} cannot be checked", n.name);
    const TensorMeta& base = graph.meta(n.args[0].tensor());
    const std::optional<int64_t> length = constant_numel(base);
    const auto fixed = [](const std::vector<Expr>& list) {
      return std::ranges::all_of(list, [](Expr e) { return e.is_constant(); });
    };
    const Expr offset = n.args[first + 2].is_none() ? Expr(0) : n.args[first + 2].integer();
    const std::vector<Expr>&sizes = n.args[first].integers(), &strides = n.args[first + 1].integers();
    STAX_CHECK(length && base.dim() == 1 && base.strides[0].is(1) && fixed(sizes) && fixed(strides) &&
                   offset.is_constant() && sizes.size() == strides.size(),
               "{} looks at memory whose length is not known", n.name);
    const auto [low, high] = reach(sizes, strides, offset);
    STAX_CHECK(low == high || (low.value() >= 0 && high.value() <= *length), "{} reaches outside its memory",
               n.name);
  }
  /// First element and the end, exact: what leaves 64 bits raises.
  static std::pair<Expr, Expr> reach(const std::vector<Expr>& sizes, const std::vector<Expr>& strides,
                                     Expr offset) {
    Expr low = offset, high = offset + 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].value() <= 0) return {offset, offset};
      const Expr last = (sizes[d] - 1) * strides[d];
      (strides[d].value() < 0 ? low : high) += last;
    }
    return {low, high};
  }

  void check_write(const Captured& captured, const graph::WriteBack& w, const ShapeEnv& env) const {
    const TensorMeta& input =
        captured.graph.nodes[static_cast<size_t>(captured.graph.inputs[static_cast<size_t>(w.input)])]
            .results[0];
    const TensorMeta& target = w.region ? *w.region : input;
    STAX_CHECK(!is_late(target), "a part of an argument is written whose size depends on data");
    const TensorMeta& source = captured.graph.meta(w.value);
    const bool same = source.dtype == target.dtype && source.dtype == input.dtype &&
                      source.dim() == target.dim() &&
                      std::equal(source.sizes.begin(), source.sizes.end(), target.sizes.begin(),
                                 [&](Expr a, Expr b) { return a == b || env.proves(eq(a, b)); });
    STAX_CHECK(same, "{} is written where {} lies", source.str(), target.str());
  }

  /// A view of an argument is made by views of it, or of a value that lies like it.
  void check_view(const Captured& captured, const CapturedOutput& output) const {
    if (output.same_as >= 0 || output.argument >= 0 || output.input < 0) return;
    const graph::Graph& graph = captured.graph;
    const TensorMeta& input =
        graph.nodes[static_cast<size_t>(graph.inputs[static_cast<size_t>(output.input)])].results[0];
    const bool known = std::ranges::any_of(graph.outputs, [&](const graph::Output& o) {
      if (o.alias_of_input != output.input) return false;
      const TensorMeta& m = graph.meta(o.value);
      if (m.dtype != output.meta.dtype || m.sizes != output.meta.sizes || m.strides != output.meta.strides ||
          m.offset != output.meta.offset) {
        return false;
      }
      Value root = o.value;
      while (true) {
        const Node& n = graph.nodes[static_cast<size_t>(root.node)];
        if (n.op == nullptr || n.op->op_class != graph::OpClass::view) break;
        root = n.args[0].tensor();
      }
      const TensorMeta& base = graph.meta(root);
      return base.dtype == input.dtype && base.sizes == input.sizes && base.strides == input.strides;
    });
    STAX_CHECK(known, "a result is a view of an argument that nothing makes");
  }

  const Json& program_;
  std::string_view data_;
  ExportContract contract_;
  Captured captured_;
  bool late_allowed_ = false;  // sizes that only data determines
};

}  // namespace

std::shared_ptr<const detail::ExportedState> export_state(const Json& text, std::string_view data) {
  return Reader(text, data).state();
}

}  // namespace stax::compiler

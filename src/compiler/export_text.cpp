// Recorded programs as text: one operator a line, in the notation of a Python program, with the reads of
// sizes as lines of their own and the assertions at the end.
#include <algorithm>
#include <array>
#include <set>

#include "compiler/export_state.h"
#include "compiler/python_names.h"
#include "support/check.h"
#include "symbolic/node.h"

namespace stax::compiler {
namespace {

using capture::CapturedOutput;
using graph::Node;
using graph::NodeKind;
using graph::Op;
using graph::Param;
using graph::TensorMeta;
using graph::Value;

class ProgramText {
 public:
  ProgramText(const ExportContract& contract, const capture::Captured& captured)
      : contract_(contract), captured_(captured), values_(captured.graph.nodes.size()) {}

  std::string str() {
    for (const ExportInput& input : contract_.inputs) used_.insert(input.name);
    for (size_t n = 0; n < captured_.graph.nodes.size(); ++n) node(n);
    std::vector<std::string> results;
    for (const CapturedOutput& output : captured_.outputs) results.push_back(result(output, results));
    for (const Expr e : captured_.integers) results.push_back(size(e));
    for (const graph::WriteBack& w : captured_.graph.write_backs) write_back(w);
    shared_dims();
    for (const Condition& c : contract_.assertions) assertion(c);
    for (const Assertion& a : contract_.late) assertion(a.condition);
    std::string list;
    for (const std::string& r : results) list += (list.empty() ? "" : ", ") + r;
    if (results.size() != 1) list = results.empty() ? "None" : "(" + list + ")";
    return text_ + "return " + list + "\n";
  }

 private:
  // ---- names ----

  std::string unique(const std::string& base) {
    std::string name = base;
    for (int k = 0; is_python_name(name) || !used_.insert(name).second; ++k) {
      name = fmt::format("{}_{}", base, k);
    }
    return name;
  }
  /// The name of a function that Python code calls: taken when the first line needs it.
  std::string function(const std::string& name) {
    const auto known = functions_.find(name);
    return known != functions_.end() ? known->second : functions_[name] = unique(name);
  }
  std::string line(const std::string& base, const std::function<std::string()>& value) {
    const std::string name = unique(base);
    text_ += fmt::format("{} = {}\n", name, value());
    return name;
  }

  // ---- sizes ----

  std::string shape_of(const std::string& tensor) {
    const auto known = shapes_.find(tensor);
    if (known != shapes_.end()) return known->second;
    return shapes_[tensor] =
               line("getattr", [&] { return fmt::format("{}({}, 'shape')", function("getattr"), tensor); });
  }
  std::string size_of(const ExportPlace& place) {
    const auto key = std::pair(place.input, place.dim);
    const auto known = reads_.find(key);
    if (known != reads_.end()) return known->second;
    const std::string shape = shape_of(contract_.inputs[static_cast<size_t>(place.input)].name);
    return reads_[key] = line("getitem", [&] { return fmt::format("{}[{}]", shape, place.dim); });
  }
  std::string binary(const char* name, const std::string& a, const char* symbol, const std::string& b) {
    return line(name, [&] { return fmt::format("{} {} {}", a, symbol, b); });
  }

  std::string symbol(Symbol s) {
    if (s.kind == SymbolKind::unbacked) return late_symbol(s);
    const ExportPlace place = contract_.place_of(s);
    const Expr whole =
        contract_.inputs[static_cast<size_t>(place.input)].meta.sizes[static_cast<size_t>(place.dim)];
    const LinearSize form = *linear_size(whole);
    std::string out = size_of(place);
    if (form.offset > 0) out = binary("sub", out, "-", std::to_string(form.offset));
    if (form.offset < 0) out = binary("add", out, "+", std::to_string(-form.offset));
    return form.scale == 1 ? out : binary("floordiv", out, "//", std::to_string(form.scale));
  }

  /// A size of the result that determines it, or the element that was asked for.
  std::string late_symbol(Symbol s) {
    const LateSource& from = late_.at(s);
    if (from.dim < 0) return line("item", [&] { return value(from.value) + ".item()"; });
    const std::string shape = shape_of(value(from.value));
    return line("getitem", [&] { return fmt::format("{}[{}]", shape, from.dim); });
  }
  void note_late(size_t n) {
    const Node& node = captured_.graph.nodes[n];
    for (size_t r = 0; r < node.results.size(); ++r) {
      const std::vector<Expr>& sizes = node.results[r].sizes;
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d].kind() != ExprKind::symbol || !is_late(sizes[d])) continue;
        const Value from{static_cast<graph::NodeId>(n), static_cast<int32_t>(r)};
        late_.emplace(sizes[d].symbol(), LateSource{from, static_cast<int32_t>(d)});
      }
    }
  }

  /// Emits the lines that compute `e`, once, and returns what stands for it.
  std::string size(Expr e) {
    if (const auto constant = e.constant()) return fmt::format("{}", *constant);
    const auto known = sizes_.find(e);
    if (known != sizes_.end()) return known->second;
    const std::string text = compute(e);
    return sizes_[e] = text;
  }
  std::string compute(Expr e) {
    if (const auto place = same_size(e)) return size_of(*place);
    const std::span<const Expr> args = e.args();
    switch (e.kind()) {
      case ExprKind::constant:
        return fmt::format("{}", e.value());
      case ExprKind::symbol:
        return symbol(e.symbol());
      case ExprKind::add:
        return sum_of(args);
      case ExprKind::mul:
        return fold("mul", "*", args);
      case ExprKind::floor_div:
        return fold("floordiv", "//", args);
      case ExprKind::mod:
        return fold("mod", "%", args);
      case ExprKind::min:
      case ExprKind::max: {
        std::string list;
        for (const Expr a : args) list += (list.empty() ? "" : ", ") + size(a);
        const std::string name = e.kind() == ExprKind::min ? "min" : "max";
        return line(name, [&] { return fmt::format("{}({})", function(name), list); });
      }
    }
    return {};
  }
  /// A dimension of an argument that is declared as this very expression.
  std::optional<ExportPlace> same_size(Expr e) const {
    for (size_t k = 0; k < contract_.inputs.size(); ++k) {
      const std::vector<Expr>& sizes = contract_.inputs[k].meta.sizes;
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] == e) return ExportPlace{static_cast<int32_t>(k), static_cast<int32_t>(d)};
      }
    }
    return std::nullopt;
  }
  std::string sum_of(std::span<const Expr> terms) {
    std::string out;
    for (const Expr term : terms) {
      const bool negative = symbolic::coefficient_of(term) < 0 || term.constant().value_or(0) < 0;
      if (out.empty()) {
        out = size(term);
      } else if (negative) {
        out = binary("sub", out, "-", size(-term));
      } else {
        out = binary("add", out, "+", size(term));
      }
    }
    return out;
  }
  std::string fold(const char* name, const char* symbol, std::span<const Expr> args) {
    std::vector<Expr> order(args.begin(), args.end());
    if (order.size() > 1 && order[0].is_constant() && *symbol == '*')
      std::rotate(order.begin(), order.begin() + 1, order.end());
    std::string out = size(order[0]);
    for (size_t k = 1; k < order.size(); ++k) out = binary(name, out, symbol, size(order[k]));
    return out;
  }

  // ---- operators ----

  std::string value(const Value& v) {
    const Node& node = captured_.graph.nodes[static_cast<size_t>(v.node)];
    std::string& whole = values_[static_cast<size_t>(v.node)];
    if (node.results.size() == 1) return whole;
    const auto key = std::pair(v.node, v.result);
    const auto known = parts_.find(key);
    if (known != parts_.end()) return known->second;
    return parts_[key] = line("getitem", [&] { return fmt::format("{}[{}]", whole, v.result); });
  }

  std::string number(const Number& n) {
    if (n.kind == Number::Kind::boolean) return n.integer.is(0) ? "False" : "True";
    if (!n.is_float()) return size(n.integer);
    const std::string digits = fmt::format("{}", n.floating);
    return digits.find_first_of(".einf") == std::string::npos ? digits + ".0" : digits;
  }

  template <class List, class Text>
  static std::string bracketed(const List& list, Text&& text) {
    std::string out;
    for (const auto& item : list) out += (out.empty() ? "" : ", ") + text(item);
    return "[" + out + "]";
  }

  std::string argument(const Argument<Value>& a, const Param& param) {
    return std::visit(
        [&](const auto& v) -> std::string {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<V, NoneType>) {
            return "None";
          } else if constexpr (std::is_same_v<V, Value>) {
            return value(v);
          } else if constexpr (std::is_same_v<V, Argument<Value>::Tensors>) {
            return bracketed(v, [&](const auto& t) { return t ? value(*t) : std::string("None"); });
          } else if constexpr (std::is_same_v<V, Number>) {
            return number(v);
          } else if constexpr (std::is_same_v<V, std::vector<Expr>>) {
            if (v.size() == 1 && param.repeat > 0) return size(v[0]);
            return bracketed(v, [&](Expr e) { return size(e); });
          } else if constexpr (std::is_same_v<V, std::vector<double>>) {
            return bracketed(v, [](double d) { return fmt::format("{}", d); });
          } else if constexpr (std::is_same_v<V, DType>) {
            return "stax." + std::string(name(v));
          } else {
            return "'" + v + "'";
          }
        },
        a.value);
  }

  /// The arguments from `first` on, without defaults at the end; keyword-only ones by name.
  std::string arguments(const Node& node, size_t first) {
    const std::vector<Param>& params = node.op->schema.params;
    const auto is_default = [&](size_t k) {
      return params[k].has_default && node.args[k].value == graph::default_value<Value>(params[k]).value;
    };
    size_t positional = 0, end = params.size();
    while (positional < params.size() && !params[positional].keyword_only) ++positional;
    end = positional;
    while (end > first && is_default(end - 1)) --end;
    std::string out;
    const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
    for (size_t k = first; k < end; ++k) add(argument(node.args[k], params[k]));
    for (size_t k = positional; k < params.size(); ++k) {
      if (!is_default(k)) add(params[k].name + "=" + argument(node.args[k], params[k]));
    }
    return out;
  }

  void node(size_t n) {
    const Node& node = captured_.graph.nodes[n];
    switch (node.kind) {
      case NodeKind::input: {
        const capture::CapturedInput& input = captured_.inputs[static_cast<size_t>(node.input)];
        values_[n] = contract_.inputs[static_cast<size_t>(input.argument)].name;
        return;
      }
      case NodeKind::constant:
        values_[n] = unique("constant");
        text_ += fmt::format("{} = self.{}\n", values_[n], values_[n]);
        return;
      case NodeKind::call:
        if (node.op->schema.name == "bind_value") {
          late_.emplace(node.args[1].number().integer.symbol(), LateSource{node.args[0].tensor(), -1});
          values_[n] = value(node.args[0].tensor());
          return;
        }
        values_[n] = call(node);
        note_late(n);
        return;
    }
  }

  std::string call(const Node& node) {
    const graph::Schema& schema = node.op->schema;
    const std::string full = schema.full_name();
    if (const std::optional<Infix> infix = infix_of(full); infix && is_plain(node)) {
      const std::string a = argument(node.args[0], schema.params[0]);
      const std::string b = argument(node.args[1], schema.params[1]);
      return binary(infix->name, a, infix->symbol, b);
    }
    if (full == "neg") {
      const std::string a = argument(node.args[0], schema.params[0]);
      return line("neg", [&] { return "-" + a; });
    }
    const bool method = !schema.params.empty() && schema.params[0].name == "self" && node.args[0].is_tensor();
    if (method && !is_neural(schema.name)) {
      const std::string self = argument(node.args[0], schema.params[0]), rest = arguments(node, 1);
      return line(schema.name, [&] { return fmt::format("{}.{}({})", self, schema.name, rest); });
    }
    const std::string all = arguments(node, 0);
    const std::string home = is_neural(schema.name) ? "stax_nn_functional_" : "stax_";
    return line(schema.name, [&] { return fmt::format("{}({})", function(home + schema.name), all); });
  }
  /// Everything past the two operands has its default.
  static bool is_plain(const Node& node) {
    const std::vector<Param>& params = node.op->schema.params;
    for (size_t k = 2; k < params.size(); ++k) {
      if (!(node.args[k].value == graph::default_value<Value>(params[k]).value)) return false;
    }
    return true;
  }

  // ---- results, writes, assertions ----

  std::string part(const std::string& base, const TensorMeta& meta) {
    const std::string sizes = bracketed(meta.sizes, [&](Expr e) { return size(e); });
    const std::string strides = bracketed(meta.strides, [&](Expr e) { return size(e); });
    const std::string offset = size(meta.offset);
    return line("as_strided",
                [&] { return fmt::format("{}.as_strided({}, {}, {})", base, sizes, strides, offset); });
  }
  std::string result(const CapturedOutput& output, const std::vector<std::string>& before) {
    if (output.same_as >= 0) return before[static_cast<size_t>(output.same_as)];
    if (output.argument >= 0) return contract_.inputs[static_cast<size_t>(output.argument)].name;
    if (output.input >= 0) return view_of_input(output);
    const Value v = captured_.graph.outputs[static_cast<size_t>(output.output)].value;
    return output.whole ? value(v) : part(value(v), output.meta);
  }
  /// The line that made the view, where there is one.
  std::string view_of_input(const CapturedOutput& output) {
    for (const graph::Output& o : captured_.graph.outputs) {
      const TensorMeta& meta = captured_.graph.meta(o.value);
      if (o.alias_of_input == output.input && meta.sizes == output.meta.sizes &&
          meta.strides == output.meta.strides && meta.offset == output.meta.offset) {
        return value(o.value);
      }
    }
    const int32_t argument = captured_.inputs[static_cast<size_t>(output.input)].argument;
    return part(contract_.inputs[static_cast<size_t>(argument)].name, output.meta);
  }
  void write_back(const graph::WriteBack& w) {
    const int32_t argument = captured_.inputs[static_cast<size_t>(w.input)].argument;
    std::string target = contract_.inputs[static_cast<size_t>(argument)].name;
    if (w.region) target = part(target, *w.region);
    const std::string source = value(w.value);
    line("copy_", [&] { return fmt::format("{}.copy_({})", target, source); });
  }

  std::string trace_function(const char* name) {
    return function(fmt::format("stax_export__trace__{}", name));
  }

  /// Dimensions of one name are equal, and lie in its range.
  void shared_dims() {
    std::vector<ExportPlace> last(contract_.symbols.size(), ExportPlace{-1, -1});
    for (size_t k = 0; k < contract_.inputs.size(); ++k) {
      const std::vector<Expr>& sizes = contract_.inputs[k].meta.sizes;
      for (size_t d = 0; d < sizes.size(); ++d) {
        const std::optional<LinearSize> form = linear_size(sizes[d]);
        if (!form) continue;
        const ExportPlace here{static_cast<int32_t>(k), static_cast<int32_t>(d)};
        const ExportPlace first = contract_.place_of(form->symbol);
        if (form->scale == 1 && form->offset == 0) last[static_cast<size_t>(form->symbol.number)] = here;
        if (here.input == first.input && here.dim == first.dim) {
          if (form->scale != 1) assert_form(here, *form);
        } else if (sizes[d].kind() == ExprKind::symbol) {
          line("_assert_dims_equal", [&] {
            return fmt::format("{}({}, {}, '{}')", trace_function("assert_dims_equal"), text(here),
                               text(first), contract_.symbol_text(form->symbol));
          });
        } else {
          assert_derived(here, *form);
        }
      }
    }
    for (size_t s = 0; s < contract_.symbols.size(); ++s) range(s, last[s]);
  }
  std::string text(const ExportPlace& place) const {
    return fmt::format("{}, {}", contract_.inputs[static_cast<size_t>(place.input)].name, place.dim);
  }
  std::string source_text(const ExportPlace& place) const {
    return fmt::format("{}.size()[{}]", contract_.inputs[static_cast<size_t>(place.input)].name, place.dim);
  }
  void assert_guard(const char* name, const std::string& left, const char* relation, const std::string& right,
                    const std::string& words) {
    const std::string holds = binary(name, left, relation, right);
    line("_assert_shape_guard", [&] {
      return fmt::format("{}({}, True, '{}')", trace_function("assert_shape_guard"), holds, words);
    });
  }
  /// The first dimension that gives a symbol is a multiple of it, and more.
  void assert_form(const ExportPlace& here, const LinearSize& form) {
    std::string rest = size_of(here), words = source_text(here);
    if (form.offset != 0) {
      const bool plus = form.offset < 0;
      rest = binary(plus ? "add" : "sub", rest, plus ? "+" : "-", std::to_string(std::abs(form.offset)));
      words = fmt::format("({} {} {})", words, plus ? '+' : '-', std::abs(form.offset));
    }
    assert_guard("eq", binary("mod", rest, "%", std::to_string(form.scale)), "==", "0",
                 fmt::format("{} % {} == 0", words, form.scale));
  }
  void assert_derived(const ExportPlace& here, const LinearSize& form) {
    std::string expected = size(Expr(form.symbol));
    if (form.scale != 1) expected = binary("mul", expected, "*", std::to_string(form.scale));
    if (form.offset > 0) expected = binary("add", expected, "+", std::to_string(form.offset));
    if (form.offset < 0) expected = binary("sub", expected, "-", std::to_string(-form.offset));
    const Expr whole = Expr(form.scale) * form.symbol + form.offset;
    assert_guard("eq", size_of(here), "==", expected,
                 fmt::format("{} == {}", source_text(here),
                             to_string(whole, [&](Symbol s) { return contract_.source_text(s); })));
  }
  void range(size_t s, const ExportPlace& last) {
    const ExportSymbol& symbol = contract_.symbols[s];
    if (symbol.name.empty()) return;
    const int64_t lower = symbol.declared.lower.value_or(0);
    if (lower <= 0 && !symbol.declared.upper) return;
    const std::string max =
        symbol.declared.upper ? fmt::format("{}", *symbol.declared.upper) : std::string("None");
    const Symbol self{SymbolKind::size, static_cast<int32_t>(s)};
    if (last.input >= 0) {
      line("_assert_dim_range", [&] {
        return fmt::format("{}({}, {}, {}, '{}')", trace_function("assert_dim_range"), text(last), lower, max,
                           symbol.name);
      });
      return;
    }
    const std::string value = size(Expr(self)), source = contract_.source_text(self);
    if (lower > 0) {
      assert_guard("ge", value, ">=", fmt::format("{}", lower), fmt::format("{} >= {}", source, lower));
    }
    if (symbol.declared.upper) assert_guard("le", value, "<=", max, fmt::format("{} <= {}", source, max));
  }

  void assertion(const Condition& c) {
    constexpr const char *kNames[] = {"eq", "ne", "lt", "le"}, *kTurnedNames[] = {"eq", "ne", "gt", "ge"};
    constexpr const char *kTexts[] = {"==", "!=", "<", "<="}, *kTurned[] = {"==", "!=", ">", ">="};
    const auto r = static_cast<size_t>(c.relation);
    const bool turn = c.left.is_constant();
    const std::string left = size(turn ? c.right : c.left), right = size(turn ? c.left : c.right);
    assert_guard((turn ? kTurnedNames : kNames)[r], left, (turn ? kTurned : kTexts)[r], right,
                 text_of(c, [&](Symbol s) { return contract_.source_text(s); }));
  }

  /// Where the value of a size that only data determines is found.
  struct LateSource {
    Value value;
    int32_t dim = -1;  // -1: the element
  };

  const ExportContract& contract_;
  const capture::Captured& captured_;
  std::map<Symbol, LateSource> late_;
  std::string text_;
  std::set<std::string> used_;
  std::map<std::string, std::string> functions_, shapes_;
  std::map<std::pair<int32_t, int32_t>, std::string> reads_, parts_;
  std::unordered_map<Expr, std::string> sizes_;
  std::vector<std::string> values_;  // by node
};

}  // namespace

std::string program_text(const ExportContract& contract, const capture::Captured& captured) {
  return ProgramText(contract, captured).str();
}

}  // namespace stax::compiler

namespace stax {

std::vector<std::string> ExportedProgram::assertions() const {
  const compiler::ExportContract& contract = state_->contract;
  std::vector<std::string> out;
  for (const compiler::ExportInput& input : contract.inputs) {
    std::string sizes;
    for (const Expr e : input.meta.sizes) {
      sizes += (sizes.empty() ? "" : ", ") + to_string(e, [&](Symbol s) { return contract.symbol_text(s); });
    }
    out.push_back(fmt::format("{} is {}[{}]", input.name, name(input.meta.dtype), sizes));
  }
  for (const compiler::ExportSymbol& symbol : contract.symbols) {
    if (!symbol.name.empty()) out.push_back(fmt::format("{} within {}", symbol.name, symbol.declared.str()));
  }
  const auto name_of = [&](Symbol s) { return contract.symbol_text(s); };
  for (const Condition& c : contract.assertions) out.push_back(compiler::text_of(c, name_of));
  for (const Assertion& a : contract.late) out.push_back(compiler::text_of(a.condition, name_of));
  return out;
}

}  // namespace stax

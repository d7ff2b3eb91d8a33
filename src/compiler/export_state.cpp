#include "compiler/export_state.h"

#include <algorithm>

#include "graph/builder.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/node.h"

namespace stax::compiler {

using graph::TensorMeta;
using graph::Value;

bool is_late(const TensorMeta& meta) {
  const auto late = [](Expr e) { return is_late(e); };
  return std::ranges::any_of(meta.sizes, late) || std::ranges::any_of(meta.strides, late) ||
         is_late(meta.offset);
}

Condition ordered(const Condition& c) {
  const bool symmetric = c.relation == Relation::eq || c.relation == Relation::ne;
  const bool turned = c.left.kind() == ExprKind::symbol && c.right.kind() == ExprKind::symbol &&
                      c.right.symbol() < c.left.symbol();
  return symmetric && turned ? Condition{c.relation, c.right, c.left} : c;
}

std::string text_of(const Condition& given, const std::function<std::string(Symbol)>& name) {
  const Condition condition = ordered(given);
  constexpr const char* kTexts[] = {"==", "!=", "<", "<="};
  constexpr const char* kTurned[] = {"==", "!=", ">", ">="};
  const bool turn = condition.left.is_constant();
  const char* relation = (turn ? kTurned : kTexts)[static_cast<int>(condition.relation)];
  const Expr left = turn ? condition.right : condition.left, right = turn ? condition.left : condition.right;
  return fmt::format("{} {} {}", to_string(left, name), relation, to_string(right, name));
}

ExportPlace ExportContract::place_of(Symbol symbol) const {
  std::optional<ExportPlace> derived;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<Expr>& sizes = inputs[k].meta.sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const ExportPlace place{static_cast<int32_t>(k), static_cast<int32_t>(d)};
      if (sizes[d] == Expr(symbol)) return place;
      const std::optional<LinearSize> form = linear_size(sizes[d]);
      if (!derived && form && form->symbol == symbol) derived = place;
    }
  }
  STAX_CHECK(derived, "an exported program uses the size {}, which no argument gives", symbol.str());
  return *derived;
}

std::string ExportContract::source_text(Symbol symbol) const {
  if (symbol.kind == SymbolKind::unbacked) return symbol.str();
  const ExportPlace at = place_of(symbol);
  const ExportInput& input = inputs[static_cast<size_t>(at.input)];
  const LinearSize form = *linear_size(input.meta.sizes[static_cast<size_t>(at.dim)]);
  std::string text = fmt::format("{}.size()[{}]", input.name, at.dim);
  if (form.offset != 0) {
    text = fmt::format("({} {} {})", text, form.offset < 0 ? '+' : '-', std::abs(form.offset));
  }
  return form.scale == 1 ? text : fmt::format("{}//{}", text, form.scale);
}

std::string ExportContract::symbol_text(Symbol symbol) const {
  if (symbol.kind == SymbolKind::unbacked) return symbol.str();
  const std::string& name = symbols[static_cast<size_t>(symbol.number)].name;
  return name.empty() ? source_text(symbol) : name;
}

ConditionList::ConditionList(std::span<const Condition> conditions) {
  for (const Condition& c : conditions) {
    items_.push_back({c.relation, program_.add(c.left), program_.add(c.right)});
  }
}

int32_t ConditionList::first_failed(std::span<const int64_t> symbols) const {
  if (items_.empty()) return kNone;
  std::vector<int64_t> registers(program_.initial().begin(), program_.initial().end());
  for (const auto& [symbol, at] : program_.symbols()) {
    registers[static_cast<size_t>(at)] = symbols[static_cast<size_t>(symbol.number)];
  }
  if (!program_.run(registers.data())) return kOverflow;
  for (size_t k = 0; k < items_.size(); ++k) {
    const Item& item = items_[k];
    if (!holds(item.relation, registers[static_cast<size_t>(item.left)],
               registers[static_cast<size_t>(item.right)])) {
      return static_cast<int32_t>(k);
    }
  }
  return kNone;
}

std::shared_ptr<ShapeEnv> environment_of(const ExportContract& contract,
                                         const std::map<Symbol, int64_t>& values) {
  auto env = std::make_shared<ShapeEnv>();
  for (const ExportSymbol& s : contract.symbols) env->new_symbol(SymbolKind::size, s.hint, s.assumed);
  const auto value = [&](Symbol s) -> std::optional<Expr> {
    const auto known = values.find(s);
    return known == values.end() ? std::nullopt : std::optional(Expr(known->second));
  };
  for (const Guard& guard : contract.guards) {
    const Condition c{guard.condition.relation, substitute(guard.condition.left, value),
                      substitute(guard.condition.right, value)};
    if (c.left.is_constant() && c.right.is_constant()) continue;  // the call's own values: asserted or not
    if (!env->decide(c)) return nullptr;
  }
  return env;
}

namespace {

class Rebuilder {
 public:
  Rebuilder(const capture::Captured& from, const std::map<Symbol, int64_t>& values, ShapeEnv& env,
            std::span<const Assertion> late)
      : from_(from), values_(values), env_(env), checks_(late), checked_(late.size(), 0) {}

  Expr operator()(Expr e) const {
    if (values_.empty() && !is_late(e)) return e;
    return substitute(e, [&](Symbol s) -> std::optional<Expr> {
      if (s.kind == SymbolKind::unbacked) {
        const auto bound = late_.find(s);
        STAX_CHECK(bound != late_.end(), "the size {} is used before anything determines it", s.str());
        return bound->second;
      }
      const auto known = values_.find(s);
      return known == values_.end() ? std::nullopt : std::optional(Expr(known->second));
    });
  }
  TensorMeta operator()(const TensorMeta& meta) const {
    TensorMeta out = meta;
    for (auto* list : {&out.sizes, &out.strides}) {
      for (Expr& e : *list) e = (*this)(e);
    }
    out.offset = (*this)(meta.offset);
    return out;
  }

  graph::Graph graph() {
    for (const graph::Node& node : from_.graph.nodes) {
      graph::Node& next = out_.nodes.emplace_back(node);
      if (node.kind == graph::NodeKind::call) {
        infer(next);
        state_checks();
      } else {
        for (TensorMeta& meta : next.results) meta = (*this)(meta);
      }
    }
    out_.inputs = from_.graph.inputs;
    out_.outputs = from_.graph.outputs;
    out_.write_backs = from_.graph.write_backs;
    for (graph::WriteBack& w : out_.write_backs) {
      if (w.region) w.region = (*this)(*w.region);
    }
    return std::move(out_);
  }

 private:
  /// What is recorded as symbol `recorded` is `found` here.
  void bind(Expr recorded, Expr found) {
    const auto is_symbol = [](Expr e) {
      return e.kind() == ExprKind::symbol && e.symbol().kind == SymbolKind::unbacked;
    };
    if (is_symbol(recorded) && is_symbol(found)) late_.emplace(recorded.symbol(), found);
  }

  /// Of the symbols that are known by now.
  void state_checks() {
    const auto known = [&](Expr e) {
      return std::ranges::all_of(
          e.symbols(), [&](Symbol s) { return s.kind != SymbolKind::unbacked || late_.contains(s); });
    };
    for (size_t k = 0; k < checks_.size(); ++k) {
      const Condition& c = checks_[k].condition;
      if (checked_[k] != 0 || !known(c.left) || !known(c.right)) continue;
      checked_[k] = 1;
      const Condition here{c.relation, (*this)(c.left), (*this)(c.right)};
      if (!here.left.is_constant() || !here.right.is_constant())
        env_.check(here, checks_[k].words, checks_[k].where);
    }
  }

  /// bind_value makes the symbol that stands for the element of a tensor.
  void bind_value(const graph::Node& node) {
    STAX_CHECK(node.args.size() == 2 && node.args[0].is_tensor() && node.args[1].is_number() &&
                   node.args[1].number().integer.kind() == ExprKind::symbol,
               "{} binds no size", node.name);
    const Value from = node.args[0].tensor();
    const graph::Node& source = out_.nodes[static_cast<size_t>(from.node)];
    const bool bytes = source.op != nullptr && source.op->schema.full_name() == "to.dtype" &&
                       source.args[0].is_tensor() && out_.meta(source.args[0].tensor()).dtype == DType::uint8;
    bind(node.args[1].number().integer,
         env_.new_symbol(SymbolKind::unbacked, std::nullopt, bytes ? Interval::of(0, 255) : Interval{}));
  }

  void infer(graph::Node& node) {
    if (node.op->schema.name == "bind_value") bind_value(node);
    std::vector<Argument<TensorMeta>> metas;
    for (Argument<Value>& argument : node.args) {
      if (auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
        for (Expr& e : *list) e = (*this)(e);
      } else if (auto* number = std::get_if<Number>(&argument.value)) {
        number->integer = (*this)(number->integer);
      }
      metas.push_back(map_tensors<TensorMeta>(argument, [&](const Value& v) { return out_.meta(v); }));
    }
    const std::vector<TensorMeta> results = infer_meta(ops::table(), *node.op, env_, metas);
    STAX_CHECK(results.size() == node.results.size(), "{} has {}, {} were recorded", node.name,
               counted(results.size(), "result"), node.results.size());
    const bool chosen = node.op->schema.name == "clone";  // its layout is chosen by who records it
    for (size_t r = 0; r < results.size(); ++r) {
      TensorMeta& recorded = node.results[r];
      for (size_t d = 0; d < recorded.sizes.size() && d < results[r].sizes.size(); ++d)
        bind(recorded.sizes[d], results[r].sizes[d]);
      recorded = (*this)(recorded);
      STAX_CHECK(same(results[r], recorded), "{} is {}, it was recorded as {}", node.name, results[r].str(),
                 recorded.str());
      if (!chosen) recorded = results[r];
    }
  }
  bool same(const TensorMeta& a, const TensorMeta& b) const {
    return a.dtype == b.dtype && a.device == b.device && a.dim() == b.dim() &&
           std::equal(a.sizes.begin(), a.sizes.end(), b.sizes.begin(),
                      [&](Expr x, Expr y) { return x == y || env_.proves(eq(x, y)); });
  }

  const capture::Captured& from_;
  const std::map<Symbol, int64_t>& values_;
  ShapeEnv& env_;
  std::span<const Assertion> checks_;
  std::vector<char> checked_;    // by check: it is stated
  std::map<Symbol, Expr> late_;  // by recorded symbol
  graph::Graph out_;
};

}  // namespace

capture::Captured rebuilt(const capture::Captured& captured, const std::map<Symbol, int64_t>& values,
                          std::shared_ptr<ShapeEnv> env, std::span<const Assertion> late) {
  Rebuilder rebuild(captured, values, *env, late);
  capture::Captured out = captured;
  out.graph = rebuild.graph();
  for (capture::CapturedOutput& output : out.outputs) {
    output.meta = output.whole ? out.graph.meta(out.graph.outputs[static_cast<size_t>(output.output)].value)
                               : rebuild(output.meta);
  }
  for (Expr& e : out.integers) e = rebuild(e);
  for (TensorMeta& meta : out.symbols.tensors) meta = rebuild(meta);
  out.random_count = rebuild(captured.random_count);
  out.env = std::move(env);
  return out;
}

}  // namespace stax::compiler

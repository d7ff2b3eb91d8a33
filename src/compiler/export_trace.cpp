// Recording a function for all sizes that are declared.
#include <algorithm>

#include "compiler/constraints.h"
#include "compiler/export_record.h"
#include "compiler/export_state.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::detail {

using capture::Captured;
using compiler::Constraints;
using compiler::ExampleArguments;
using compiler::ExportContract;
using compiler::ExportSymbol;
using compiler::Recorder;
using graph::TensorMeta;

namespace {

/// Makes the record of one exported function.
class Exporter {
 public:
  Exporter(FunctionCall& call, const Leaves& leaves, const DynamicShapes& shapes,
           const ExportOptions& options)
      : call_(call), arguments_(leaves), options_(options) {
    STAX_CHECK(shapes.size() <= arguments_.tensors.size(),
               "dynamic_shapes: declarations for {}, but the arguments have {}",
               counted(shapes.size(), "tensor"), arguments_.tensors.size());
    symbol_options_.dynamic = true;
    symbol_options_.specialize_zero_one = false;
    symbol_options_.share_equal = false;
    symbol_options_.shapes = shapes;
    symbol_options_.shapes.resize(arguments_.tensors.size());
    for (size_t k = 0; k < arguments_.tensors.size(); ++k) fix_undeclared(k);
  }

  std::shared_ptr<const ExportedState> run() {
    move_example();
    Recorder recorder;
    recorder.begin = [&](ShapeEnv& env, capture::InputSymbols& symbols) { begin(env, symbols); };
    recorder.decide = [&](ShapeEnv& env, const Condition& c) { return constraints_->decide(env, c); };
    Captured captured = record(call_, arguments_, symbol_options_, recorder);
    check_writes(captured);
    constraints_->take_over(*captured.env);
    constraints_->check_declarations(contract_);
    contract_.guards = captured.env->guards();
    std::vector<Assertion> checks;
    for (const Assertion& check : captured.env->assertions()) {
      if (compiler::is_late(check.condition)) {
        const std::string where = check.where.empty() ? check.stack.user_place() : check.where;
        contract_.late.push_back({check.condition, check.words, where, {}, {}});
      } else {
        contract_.guards.push_back({check.condition, {}});
        checks.push_back(check);
      }
    }
    constraints_->relax([&](const Condition& c) { return is_dispensable(captured, c); });
    for (size_t s = 0; s < contract_.symbols.size(); ++s) try_small(captured, static_cast<int32_t>(s));
    contract_.assertions = constraints_->assertions();
    for (const Assertion& check : checks) contract_.assertions.push_back(compiler::ordered(check.condition));
    captured.env.reset();
    compiler::freeze(captured);
    // The layouts of frozen tensors may be others than those of the captured ones.
    std::shared_ptr<ShapeEnv> env = compiler::environment_of(contract_, {});
    STAX_ASSERT(env, "[export] the example contradicts its own decisions");
    captured = compiler::rebuilt(captured, {}, std::move(env), contract_.late);
    captured.env.reset();
    return std::make_shared<ExportedState>(std::move(contract_), std::move(captured));
  }

 private:
  static void check_writes(const Captured& captured) {
    for (const graph::WriteBack& w : captured.graph.write_backs) {
      STAX_CHECK(
          !w.region || !compiler::is_late(*w.region),
          "export: the function writes to a part of an argument whose size depends on data; write the whole");
    }
  }

  void fix_undeclared(size_t k) {
    const int64_t rank = strided(arguments_.tensors[k]).dim();
    std::map<int64_t, Dim> all;
    for (const auto& [key, dim] : symbol_options_.shapes[k]) {
      STAX_CHECK(key >= -rank && key < rank,
                 "dynamic_shapes: dimension {} of tensor {} is declared ({}), the tensor has {}", key, k,
                 dim.str(), counted(rank, "dimension"));
      STAX_CHECK(
          dim.options().buckets.empty() && !dim.options().power_of_two_buckets,
          "dynamic_shapes: {} is declared with buckets; an exported program is one for the whole range",
          dim.name());
      STAX_CHECK(all.emplace(key < 0 ? key + rank : key, dim).second,
                 "dynamic_shapes: dimension {} of tensor {} is declared twice", key, k);
    }
    for (int64_t d = 0; d < rank; ++d) all.emplace(d, Dim::fixed());
    symbol_options_.shapes[k] = std::move(all);
  }

  std::vector<std::vector<int64_t>> sizes_with(const std::map<Symbol, int64_t>& values,
                                               const std::vector<TensorMeta>& metas) const {
    std::vector<std::vector<int64_t>> sizes;
    for (const TensorMeta& meta : metas) {
      std::vector<int64_t>& list = sizes.emplace_back();
      for (const Expr e : meta.sizes) list.push_back(evaluate(e, [&](Symbol s) { return values.at(s); }));
    }
    return sizes;
  }

  static Interval assumed(const Interval& declared) {
    Interval out{std::max(int64_t{2}, declared.lower.value_or(0)), declared.upper};
    if (declared.lower == declared.upper) return declared;
    // Of the sizes 0 and 1 only, which are programs of their own: what those are compared with.
    if (out.upper && *out.upper < *out.lower) return Interval::of(2, 3);
    // One value would be taken for a number.
    if (out.upper == out.lower && declared.lower != declared.upper) ++*out.upper;
    return out;
  }

  std::vector<ExportSymbol> symbols_of(ShapeEnv& env, const capture::InputSymbols& symbols) const {
    std::vector<ExportSymbol> out;
    for (Symbol s{SymbolKind::size, 0}; env.hint(s); ++s.number) {
      ExportSymbol symbol{{}, *env.hint(s), Interval::at_least(0), {}};
      for (const capture::DeclaredDim& dim : symbols.dims) {
        if (dim.root != Expr(s)) continue;
        symbol.name = dim.name;
        symbol.declared = Interval::at_least(dim.min);
        if (dim.max != DimOptions::kNoLimit) symbol.declared.upper = dim.max;
      }
      symbol.assumed = assumed(symbol.declared);
      out.push_back(std::move(symbol));
    }
    return out;
  }

  /// An example of size 0 or 1 stands for sizes of 2 and more.
  void move_example() {
    ShapeEnv env;
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : arguments_.tensors) pointers.push_back(&t);
    const capture::InputSymbols symbols = capture::make_symbols(env, pointers, {}, symbol_options_);
    std::map<Symbol, int64_t> values;
    bool moves = false;
    const std::vector<ExportSymbol> all = symbols_of(env, symbols);
    for (size_t s = 0; s < all.size(); ++s) {
      const int64_t value = std::max(all[s].hint, *all[s].assumed.lower);
      moves = moves || value != all[s].hint;
      values[Symbol{SymbolKind::size, static_cast<int32_t>(s)}] = value;
    }
    if (!moves) return;
    arguments_ = arguments_.resized(sizes_with(values, symbols.tensors));
    symbol_options_.stand_ins = true;
  }

  void begin(ShapeEnv& env, capture::InputSymbols& symbols) {
    for (size_t k = 0; k < symbols.tensors.size(); ++k) {
      TensorMeta& meta = symbols.tensors[k];
      Expr step = 1;
      for (size_t at = meta.sizes.size(); at-- > 0;) {
        const size_t d = arguments_.orders[k][at];
        meta.strides[d] = step;
        step = step * meta.sizes[d];
      }
    }
    contract_.inputs = compiler::inputs_of(symbols, options_.names);
    contract_.symbols = symbols_of(env, symbols);
    for (size_t s = 0; s < contract_.symbols.size(); ++s) {
      env.ranges().set(Symbol{SymbolKind::size, static_cast<int32_t>(s)}, contract_.symbols[s].assumed);
    }
    constraints_.emplace(contract_.symbols);
  }

  /// The symbols that the guards make equal to `symbol`.
  std::vector<Symbol> equals(Symbol symbol) const {
    std::vector<Symbol> out = {symbol};
    for (size_t at = 0; at < out.size(); ++at) {
      for (const Guard& guard : contract_.guards) {
        const Condition& c = guard.condition;
        if (c.relation != Relation::eq || c.left.kind() != ExprKind::symbol ||
            c.right.kind() != ExprKind::symbol) {
          continue;
        }
        for (const auto& [one, other] : {std::pair(c.left, c.right), std::pair(c.right, c.left)}) {
          if (one == Expr(out[at]) && std::ranges::find(out, other.symbol()) == out.end()) {
            out.push_back(other.symbol());
          }
        }
      }
    }
    return out;
  }

  /// The graph was recorded for sizes of 2 and more. Where the function does something else at 0 or 1, calls
  /// of these sizes are refused.
  void try_small(const Captured& captured, int32_t number) {
    const Symbol symbol{SymbolKind::size, number};
    const std::vector<Symbol> same = equals(symbol);
    if (std::ranges::min(same) != symbol) return;  // with another one
    for (const int64_t value : {int64_t{0}, int64_t{1}}) {
      const auto has = [&](const Interval& range) {
        return value >= range.lower.value_or(0) && value <= range.upper.value_or(INT64_MAX);
      };
      const bool reached = std::ranges::all_of(same, [&](Symbol s) {
        const ExportSymbol& facts = contract_.symbols[static_cast<size_t>(s.number)];
        return has(facts.declared) && !has(facts.assumed);
      });
      if (reached && !holds_at(captured, same, value)) constraints_->require(ne(Expr(symbol), Expr(value)));
    }
  }

  /// n - 1 != 1, which an operator asked because sizes of 1 are special: gone without where the function does
  /// at n == 2 what it does elsewhere. Only where few small values are in question.
  bool is_dispensable(const Captured& captured, const Condition& condition) {
    constexpr int64_t kSmall = 32, kMost = 4;
    std::vector<Symbol> symbols = condition.left.symbols();
    for (const Symbol s : condition.right.symbols()) symbols.push_back(s);
    std::ranges::sort(symbols);
    symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
    if (condition.relation == Relation::eq || symbols.size() != 1) return false;
    Ranges beyond;
    beyond.set(symbols[0], Interval::at_least(kSmall));
    if (!stax::decide(condition, beyond).value_or(false)) return false;
    std::vector<int64_t> excluded;
    for (int64_t value = 0; value < kSmall; ++value) {
      const auto at = [&](Expr e) { return evaluate(e, [&](Symbol) { return value; }); };
      if (holds(condition.relation, at(condition.left), at(condition.right))) continue;
      if (!excluded_otherwise(symbols[0], value)) excluded.push_back(value);
    }
    const std::vector<Symbol> same = equals(symbols[0]);
    return excluded.size() <= kMost && std::ranges::all_of(excluded, [&](int64_t value) {
             return !reached(same, value) || holds_at(captured, same, value);
           });
  }

  /// Whether an equation of this symbol alone, which always stays, refuses the value: n % 4 == 0.
  bool excluded_otherwise(Symbol symbol, int64_t value) const {
    return std::ranges::any_of(contract_.guards, [&](const Guard& guard) {
      const Condition& c = guard.condition;
      const auto alone = [&](Expr e) {
        return std::ranges::all_of(e.symbols(), [&](Symbol s) { return s == symbol; });
      };
      if (c.relation != Relation::eq || !alone(c.left) || !alone(c.right)) return false;
      const auto at = [&](Expr e) { return evaluate(e, [&](Symbol) { return value; }); };
      return at(c.left) != at(c.right);
    });
  }

  /// Whether calls may have this value for all of some symbols.
  bool reached(const std::vector<Symbol>& symbols, int64_t value) const {
    return std::ranges::all_of(symbols, [&](Symbol s) {
      const Interval& range = contract_.symbols[static_cast<size_t>(s.number)].declared;
      return value >= range.lower.value_or(0) && value <= range.upper.value_or(INT64_MAX);
    });
  }

  bool holds_at(const Captured& captured, const std::vector<Symbol>& fixed, int64_t value) {
    const auto fixed_value = [&](Symbol s) -> std::optional<Expr> {
      return std::ranges::find(fixed, s) == fixed.end() ? std::nullopt : std::optional(Expr(value));
    };
    std::map<Symbol, int64_t> values;
    for (size_t s = 0; s < contract_.symbols.size(); ++s) {
      const Symbol symbol{SymbolKind::size, static_cast<int32_t>(s)};
      values[symbol] = fixed_value(symbol) ? value : contract_.symbols[s].hint;
    }
    try {
      const std::vector<TensorMeta>& metas = captured.symbols.tensors;
      const std::vector<std::vector<int64_t>> sizes = sizes_with(values, metas);
      capture::SymbolOptions options = symbol_options_;
      for (size_t k = 0; k < metas.size(); ++k) {
        for (size_t d = 0; d < metas[k].sizes.size(); ++d) {
          if (sizes[k][d] < 0) return true;  // no call has that
          const Expr e = metas[k].sizes[d];
          if (std::ranges::any_of(fixed, [&](Symbol s) { return e.contains(s); })) {
            options.shapes[k].insert_or_assign(static_cast<int64_t>(d), Dim::fixed());
          }
        }
      }
      std::map<Symbol, Expr> renamed;
      Recorder recorder;
      recorder.begin = [&](ShapeEnv& env, capture::InputSymbols& symbols) {
        name_symbols(env, symbols, metas, renamed);
      };
      const Captured small = record(call_, arguments_.resized(sizes), options, recorder);
      const auto rename = [&](Symbol s) -> std::optional<Expr> {
        const auto known = renamed.find(s);
        return known == renamed.end() ? std::nullopt : std::optional(known->second);
      };
      return compiler::equivalent({captured, fixed_value}, {small, rename}) &&
             follow(small.env->guards(), rename, *captured.env, fixed_value);
    } catch (const UserError&) {
      return false;
    }
  }

  /// Whether the decisions of another recording follow from those of this one.
  template <class Rename, class Fixed>
  bool follow(const std::vector<Guard>& guards, const Rename& rename, const ShapeEnv& env,
              const Fixed& fixed) const {
    return std::ranges::all_of(guards, [&](const Guard& guard) {
      const Condition& g = guard.condition;
      const Condition asked{g.relation, substitute(g.left, rename), substitute(g.right, rename)};
      return env.proves(asked) || std::ranges::any_of(contract_.guards, [&](const Guard& known) {
               const Condition& c = known.condition;
               return asked == Condition{c.relation, substitute(c.left, fixed), substitute(c.right, fixed)};
             });
    });
  }

  /// The symbols of another recording by those of this one.
  void name_symbols(ShapeEnv& env, const capture::InputSymbols& symbols, const std::vector<TensorMeta>& metas,
                    std::map<Symbol, Expr>& renamed) const {
    for (size_t k = 0; k < metas.size(); ++k) {
      for (size_t d = 0; d < metas[k].sizes.size(); ++d) {
        const auto there = compiler::linear_size(symbols.tensors[k].sizes[d]);
        const auto here = compiler::linear_size(metas[k].sizes[d]);
        if (!there || !here) continue;
        renamed.emplace(there->symbol, Expr(here->symbol));
        env.ranges().set(there->symbol, contract_.symbols[static_cast<size_t>(here->symbol.number)].assumed);
      }
    }
  }

  FunctionCall& call_;
  ExampleArguments arguments_;
  ExportOptions options_;
  capture::SymbolOptions symbol_options_;
  ExportContract contract_;
  std::optional<Constraints> constraints_;
};

}  // namespace

std::shared_ptr<const ExportedState> export_call(const Leaves& leaves, FunctionCall& call,
                                                 const DynamicShapes& shapes, const ExportOptions& options) {
  STAX_CHECK(!is_tracing(), "export_program is called while a function is traced; export outside of it");
  return Exporter(call, leaves, shapes, options).run();
}

}  // namespace stax::detail

// Recording a function for export, and without compiling it.
#include <algorithm>
#include <numeric>
#include <ostream>

#include "capture/functional_trace.h"
#include "compiler/constraints.h"
#include "compiler/export_state.h"
#include "stax/make_graph.h"
#include "support/check.h"
#include "tensor/sym_int.h"

namespace stax {

using capture::Captured;
using capture::CapturedInput;
using compiler::Constraints;
using compiler::ExportContract;
using compiler::ExportInput;
using compiler::ExportSymbol;
using graph::TensorMeta;

namespace detail {

namespace {

Tensor without_memory(DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t bytes = itemsize(dtype);
  for (const int64_t size : sizes) {
    STAX_CHECK(size >= 0, "a tensor of the negative size {} is described", size);
    STAX_CHECK(!__builtin_mul_overflow(bytes, std::max(size, int64_t{1}), &bytes),
               "a tensor is described whose bytes leave 64 bits");
  }
  StoragePtr storage(Storage::adopt(nullptr, bytes, kCPU, nullptr));
  return Tensor(detail::ImplPtr(new StridedImpl(dtype, extents_of(sizes, strides), 0, std::move(storage))));
}

/// Row-major strides for dimensions in the order `order`, outermost first.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes, const std::vector<size_t>& order) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = step;
    STAX_CHECK(!__builtin_mul_overflow(step, std::max(sizes[order[k]], int64_t{1}), &step),
               "a tensor is described whose elements leave 64 bits");
  }
  return strides;
}

/// Dimensions, outermost first, in which a tensor without holes lies; row-major where it has holes.
std::vector<size_t> order_of(const StridedImpl& tensor) {
  std::vector<size_t> rows(static_cast<size_t>(tensor.dim()));
  std::iota(rows.begin(), rows.end(), size_t{0});
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < rows.size(); ++d) sizes.push_back(tensor.size(static_cast<int64_t>(d)));
  std::vector<size_t> order = rows;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (sizes[a] == 1 || sizes[b] == 1) return false;
    return tensor.stride(static_cast<int64_t>(a)) > tensor.stride(static_cast<int64_t>(b));
  });
  const std::vector<int64_t> strides = dense_strides(sizes, order);
  for (size_t d = 0; d < rows.size(); ++d) {
    if (sizes[d] != 1 && strides[d] != tensor.stride(static_cast<int64_t>(d))) return rows;
  }
  return order;
}

/// The arguments of a call, without their memory: what tracing needs, and nothing that would stay alive.
struct Arguments {
  explicit Arguments(const Leaves& leaves) {
    for (const Tensor* t : leaves.tensors) {
      const StridedImpl& tensor = strided(*t);
      orders.push_back(order_of(tensor));
      std::vector<int64_t> sizes;
      for (int64_t d = 0; d < tensor.dim(); ++d) sizes.push_back(tensor.size(d));
      dtypes.push_back(tensor.dtype());
      tensors.push_back(without_memory(tensor.dtype(), sizes, dense_strides(sizes, orders.back())));
    }
    for (const Scalar* s : leaves.numbers) numbers.push_back(*s);
    for (const int64_t i : leaves.integers) integers.emplace_back(i);
  }
  /// The same with other sizes.
  Arguments resized(const std::vector<std::vector<int64_t>>& sizes) const {
    Arguments out = *this;
    for (size_t k = 0; k < tensors.size(); ++k) {
      out.tensors[k] = without_memory(dtypes[k], sizes[k], dense_strides(sizes[k], orders[k]));
    }
    return out;
  }
  std::vector<const Tensor*> pointers() const {
    std::vector<const Tensor*> out;
    for (const Tensor& t : tensors) out.push_back(&t);
    return out;
  }

  std::vector<Tensor> tensors;
  std::vector<DType> dtypes;
  std::vector<std::vector<size_t>> orders;
  std::vector<Scalar> numbers;
  std::vector<SymInt> integers;
};

/// Takes the symbols before the function runs; decides for it while it runs.
struct Recorder {
  std::function<void(ShapeEnv& env, capture::InputSymbols& symbols)> begin;
  std::function<bool(ShapeEnv& env, const Condition& condition)> decide;
};

Captured record(FunctionCall& call, const Arguments& arguments, const capture::SymbolOptions& symbol_options,
                const Recorder& recorder) {
  capture::TraceOptions options;
  options.refuse_reads = true;
  options.decide = recorder.decide;
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  const std::vector<const Tensor*> pointers = arguments.pointers();
  capture::InputSymbols symbols = capture::make_symbols(trace->env(), pointers, {}, symbol_options);
  if (recorder.begin) recorder.begin(trace->env(), symbols);
  const capture::TraceScope scope(trace.get());
  std::vector<Tensor> traced;
  for (const Tensor& tensor : arguments.tensors) {
    const size_t k = traced.size();
    traced.push_back(trace->argument(tensor, static_cast<int32_t>(k), symbols.tensors[k]));
  }
  call.run(traced, arguments.numbers, arguments.integers);
  std::vector<Tensor*> result_tensors;
  std::vector<Scalar*> result_numbers;
  std::vector<SymInt*> result_integers;
  call.leaves(result_tensors, result_numbers, result_integers);
  std::vector<Tensor> results;
  std::vector<Expr> sizes;
  for (const Tensor* t : result_tensors) {
    if (t->defined()) results.push_back(*t);
  }
  for (const Scalar* s : result_numbers) {
    if (s->traced()) results.emplace_back(s->traced());
    if (s->is_symbolic()) sizes.push_back(to_expr(s->integer()));
  }
  for (const SymInt* i : result_integers) sizes.push_back(to_expr(*i));
  Captured captured = trace->finish(results);
  captured.symbols = std::move(symbols);
  captured.integers = std::move(sizes);
  return captured;
}

/// Everything that tells two recordings apart, with `rename` for symbols.
std::string signature(const Captured& captured, const std::function<std::optional<Expr>(Symbol)>& rename) {
  const auto text = [&](Expr e) { return substitute(e, rename).str() + ","; };
  const auto meta_text = [&](const TensorMeta& meta) {
    std::string out = fmt::format("{}[", name(meta.dtype));
    for (const Expr e : meta.sizes) out += text(e);
    return out + "]";
  };
  std::string out;
  for (graph::Node node : captured.graph.nodes) {
    for (const TensorMeta& meta : node.results) out += meta_text(meta);
    if (node.kind != graph::NodeKind::call) {
      const CapturedInput* input =
          node.kind == graph::NodeKind::input ? &captured.inputs[static_cast<size_t>(node.input)] : nullptr;
      out += input != nullptr ? fmt::format("input {} {}\n", input->argument, input->start) : "constant\n";
      if (node.data) out.append(reinterpret_cast<const char*>(node.data->data()), node.data->size());
      continue;
    }
    for (Argument<graph::Value>& argument : node.args) {
      if (auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
        for (Expr& e : *list) e = substitute(e, rename);
      } else if (auto* number = std::get_if<Number>(&argument.value)) {
        number->integer = substitute(number->integer, rename);
      }
    }
    out += call_text(captured.graph, node) + "\n";
  }
  for (const graph::Output& o : captured.graph.outputs) {
    out += fmt::format("return {} {} {}\n", o.value.node, o.value.result, o.alias_of_input);
  }
  for (const graph::WriteBack& w : captured.graph.write_backs) {
    out += fmt::format("write {} {} {}\n", w.input, w.value.node, w.value.result);
  }
  for (const capture::CapturedOutput& o : captured.outputs) {
    out += fmt::format("result {} {} {} {} {}\n", o.output, o.input, o.same_as, o.argument,
                       o.output < 0 && o.input < 0 ? "" : meta_text(o.meta));
  }
  for (const Expr e : captured.integers) out += text(e);
  return out;
}

/// Captured tensors become constants: a copy of what they hold now.
void freeze(Captured& captured) {
  std::vector<CapturedInput> inputs;
  std::vector<graph::NodeId> ids;
  std::vector<int32_t> moved(captured.inputs.size(), -1);
  for (size_t k = 0; k < captured.inputs.size(); ++k) {
    CapturedInput& input = captured.inputs[k];
    graph::Node& node = captured.graph.nodes[static_cast<size_t>(captured.graph.inputs[k])];
    if (input.argument >= 0) {
      moved[k] = node.input = static_cast<int32_t>(inputs.size());
      ids.push_back(captured.graph.inputs[k]);
      inputs.push_back(std::move(input));
      continue;
    }
    Tensor tensor = input.tensor;
    if (input.flat) {
      const std::vector<int64_t> sizes = {node.results[0].sizes[0].value()}, strides = {1};
      tensor = new_view(strided(tensor), node.results[0].dtype, extents_of(sizes, strides), input.start);
    }
    node.kind = graph::NodeKind::constant;
    node.data = strided(constant_copy(tensor)).storage()->constant_bytes();
    node.results[0] = graph::dense(node.results[0].dtype, node.results[0].sizes, node.results[0].device);
    node.input = -1;
  }
  for (graph::WriteBack& w : captured.graph.write_backs) {
    w.input = moved[static_cast<size_t>(w.input)];
    STAX_CHECK(w.input >= 0, "an exported function writes to a tensor that it captured; make it an argument");
  }
  for (graph::Output& o : captured.graph.outputs) {
    if (o.alias_of_input >= 0) o.alias_of_input = moved[static_cast<size_t>(o.alias_of_input)];
  }
  for (capture::CapturedOutput& o : captured.outputs) {
    const bool lost = o.same_as < 0 && o.input >= 0 && moved[static_cast<size_t>(o.input)] < 0;
    STAX_CHECK(!lost && !o.tensor.defined(),
               "an exported function returns a tensor that it captured, or a view of it; return a clone");
    if (o.input >= 0) o.input = moved[static_cast<size_t>(o.input)];
  }
  captured.inputs = std::move(inputs);
  captured.graph.inputs = std::move(ids);
}

bool is_identifier(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(
             name, [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

std::vector<ExportInput> inputs_of(const capture::InputSymbols& symbols,
                                   const std::vector<std::string>& names) {
  std::vector<ExportInput> inputs;
  STAX_CHECK(names.empty() || names.size() == symbols.tensors.size(),
             "{} names are given for {} tensors among the arguments", names.size(), symbols.tensors.size());
  for (size_t k = 0; k < symbols.tensors.size(); ++k) {
    const std::string name = names.empty() ? fmt::format("arg{}", k) : names[k];
    STAX_CHECK(is_identifier(name), "the name '{}' of a tensor is no identifier", name);
    STAX_CHECK(std::ranges::none_of(inputs, [&](const ExportInput& i) { return i.name == name; }),
               "two tensors are named {}", name);
    inputs.push_back({name, symbols.tensors[k]});
  }
  return inputs;
}

/// Makes the record of one exported function.
class Exporter {
 public:
  Exporter(FunctionCall& call, const Leaves& leaves, const DynamicShapes& shapes,
           const ExportOptions& options)
      : call_(call), arguments_(leaves), options_(options) {
    STAX_CHECK(shapes.size() <= arguments_.tensors.size(),
               "dynamic_shapes: declarations for {} tensors, but the arguments have {}", shapes.size(),
               arguments_.tensors.size());
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
    constraints_->take_over(*captured.env);
    constraints_->check_declarations(contract_);
    contract_.guards = captured.env->guards();
    constraints_->relax([&](const Condition& c) { return is_dispensable(captured, c); });
    for (size_t s = 0; s < contract_.symbols.size(); ++s) try_small(captured, static_cast<int32_t>(s));
    contract_.assertions = constraints_->assertions();
    captured.env.reset();
    freeze(captured);
    // The layouts of frozen tensors may be others than those of the captured ones.
    std::shared_ptr<ShapeEnv> env = compiler::environment_of(contract_, {});
    STAX_ASSERT(env, "[export] the example contradicts its own decisions");
    captured = compiler::rebuilt(captured, {}, std::move(env));
    captured.env.reset();
    return std::make_shared<ExportedState>(std::move(contract_), std::move(captured));
  }

 private:
  void fix_undeclared(size_t k) {
    const int64_t rank = strided(arguments_.tensors[k]).dim();
    std::map<int64_t, Dim> all;
    for (const auto& [key, dim] : symbol_options_.shapes[k]) {
      STAX_CHECK(key >= -rank && key < rank,
                 "dynamic_shapes: dimension {} of tensor {} is declared ({}), the tensor has {} dimensions",
                 key, k, dim.str(), rank);
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
    if (out.upper && *out.upper < *out.lower) return declared;
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
    const std::vector<const Tensor*> pointers = arguments_.pointers();
    const capture::InputSymbols symbols = capture::make_symbols(env, pointers, {}, symbol_options_);
    std::map<Symbol, int64_t> values;
    bool moves = false;
    const std::vector<ExportSymbol> all = symbols_of(env, symbols);
    for (size_t s = 0; s < all.size(); ++s) {
      const int64_t value = std::max(all[s].hint, *all[s].assumed.lower);
      moves = moves || value != all[s].hint;
      values[Symbol{SymbolKind::size, static_cast<int32_t>(s)}] = value;
    }
    if (moves) arguments_ = arguments_.resized(sizes_with(values, symbols.tensors));
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
    contract_.inputs = inputs_of(symbols, options_.names);
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

  /// n - 1 != 1, which an operator asked because sizes of 1 are special, where the function does at n == 2
  /// what it does elsewhere.
  bool is_dispensable(const Captured& captured, const Condition& condition) {
    if (condition.relation != Relation::ne) return false;
    const bool turn = condition.left.is_constant();
    const Expr size = turn ? condition.right : condition.left,
               other = turn ? condition.left : condition.right;
    const std::optional<compiler::LinearSize> form = compiler::linear_size(size);
    if (!form || !(other.is(0) || other.is(1)) || (other.value() - form->offset) % form->scale != 0)
      return false;
    const int64_t value = (other.value() - form->offset) / form->scale;
    return value < 0 || holds_at(captured, equals(form->symbol), value);
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
      return signature(captured, fixed_value) == signature(small, rename) &&
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
  Arguments arguments_;
  ExportOptions options_;
  capture::SymbolOptions symbol_options_;
  ExportContract contract_;
  std::optional<Constraints> constraints_;
};

}  // namespace

Tensor tensor_without_memory(const TensorSpec& spec) {
  std::vector<size_t> order(spec.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return without_memory(spec.dtype, spec.sizes, dense_strides(spec.sizes, order));
}

std::shared_ptr<const ExportedState> export_call(const Leaves& leaves, FunctionCall& call,
                                                 const DynamicShapes& shapes, const ExportOptions& options) {
  return Exporter(call, leaves, shapes, options).run();
}

struct GraphState {
  ExportContract contract;
  Captured captured;
};

std::shared_ptr<const GraphState> record_graph(const Leaves& leaves, FunctionCall& call,
                                               const GraphOptions& options) {
  auto state = std::make_shared<GraphState>();
  capture::SymbolOptions symbol_options;
  symbol_options.dynamic = options.tracing == Tracing::symbolic;
  symbol_options.shapes = options.dynamic_shapes;
  STAX_CHECK(symbol_options.dynamic || options.dynamic_shapes.empty(),
             "make_graph: dynamic_shapes are declared, but tracing is concrete");
  Captured captured = record(call, Arguments(leaves), symbol_options, {});
  state->contract.inputs = inputs_of(captured.symbols, options.names);
  state->contract.guards = captured.env->guards();
  for (const Guard& guard : state->contract.guards) {
    state->contract.assertions.push_back(compiler::ordered(guard.condition));
  }
  for (Symbol s{SymbolKind::size, 0}; captured.env->hint(s); ++s.number) {
    state->contract.symbols.push_back(
        {{}, *captured.env->hint(s), Interval::at_least(0), captured.env->ranges().interval(s)});
  }
  freeze(captured);
  captured.env.reset();
  state->captured = std::move(captured);
  return state;
}

}  // namespace detail

std::string TracedGraph::str() const {
  return state_->captured.graph.str();
}

std::string TracedGraph::text() const {
  return compiler::program_text(state_->contract, state_->captured);
}

std::vector<std::string> TracedGraph::guards() const {
  std::vector<std::string> out;
  for (const Guard& guard : state_->contract.guards) {
    out.push_back(compiler::text_of(guard.condition, [](Symbol s) { return s.str(); }));
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const TracedGraph& graph) {
  return out << graph.str();
}

}  // namespace stax

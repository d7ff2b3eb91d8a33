#include "compiler/trace_call.h"

#include <algorithm>

#include "capture/functional_trace.h"
#include "support/call_stack.h"
#include "support/check.h"
#include "tensor/sym_int.h"

namespace stax::detail {
namespace {

using compiler::CompiledProgram;
using compiler::NumberCell;

/// The leaves of what a function returned.
struct ResultLeaves {
  std::vector<Tensor*> tensors;
  std::vector<Scalar*> numbers;
  std::vector<SymInt*> integers;
};

/// The values that the hints of an environment give its size symbols, by number.
std::vector<int64_t> hints_of(const ShapeEnv& env) {
  std::vector<int64_t> values;
  for (Symbol s{SymbolKind::size, 0}; env.hint(s); ++s.number) values.push_back(*env.hint(s));
  return values;
}

/// Makes the kept results of a call whose trace was read concrete.
void settle(const ShapeEnv& env, const ResultLeaves& result) {
  const auto number = [&](const SymInt& i) { return *env.hint(to_expr(i)); };
  for (Tensor* t : result.tensors) {
    if (t->defined()) *t = capture::unwrapped(*t);
  }
  for (Scalar* s : result.numbers) {
    if (s->traced()) *s = Tensor(s->traced()).item();
    if (s->is_symbolic()) *s = Scalar(number(s->integer()));
  }
  for (SymInt* i : result.integers) *i = number(*i);
}

std::vector<NumberCell> cells_of(const Leaves& leaves) {
  std::vector<NumberCell> cells;
  for (const Scalar* number : leaves.numbers) cells.push_back(cell_of(*number));
  return cells;
}

/// The results so far of a trace that is read.
std::vector<Tensor> evaluated(capture::Captured captured, const Leaves& leaves) {
  const std::vector<int64_t> symbols = hints_of(*captured.env);
  const std::shared_ptr<ShapeEnv> env = captured.env;
  const auto program = CompiledProgram::make(std::move(captured),
                                             compiler::PipelineOptions{compiler::Backend::reference, false});
  std::vector<Tensor> results(program->result_count());
  std::vector<int64_t> late;
  const std::span<const Tensor* const> arguments(leaves.tensors.data(), leaves.tensors.size());
  program->run(arguments, cells_of(leaves), results.data(), symbols, nullptr, &late);
  for (size_t k = 0; k < late.size(); ++k) {
    env->set_value({SymbolKind::unbacked, static_cast<int32_t>(k)}, late[k]);
  }
  return results;
}

/// What the leaves of a result become: tensors and numbers of the trace are results of the graph, symbolic
/// sizes are computed beside it, and what is neither stays in the result as it is.
std::vector<Tensor> results_of(const ResultLeaves& result, TraceOutcome& outcome, std::vector<Expr>& sizes) {
  std::vector<Tensor> results;
  for (const Tensor* t : result.tensors) {
    outcome.wanted.push_back(t->defined() ? 1 : 0);
    if (t->defined()) results.push_back(*t);
  }
  for (const Scalar* s : result.numbers) {
    outcome.wanted.push_back(s->traced() ? 1 : s->is_symbolic() ? 2 : 0);
    if (s->traced()) {
      results.emplace_back(s->traced());
    } else if (s->is_symbolic()) {
      sizes.push_back(to_expr(s->integer()));
    }
  }
  for (const SymInt* i : result.integers) {
    outcome.wanted.push_back(i->is_symbolic() ? 2 : 0);
    if (i->is_symbolic()) sizes.push_back(to_expr(*i));
  }
  return results;
}

}  // namespace

NumberCell cell_of(const Scalar& number) {
  NumberCell cell{};
  switch (number.kind()) {
    case Scalar::Kind::boolean:
      cell.boolean = static_cast<int64_t>(number.integer()) != 0;
      break;
    case Scalar::Kind::integer:
      cell.integer = number.integer();
      break;
    case Scalar::Kind::floating:
      cell.floating = number.floating();
      break;
  }
  return cell;
}

TraceOutcome trace(const Leaves& leaves, FunctionCall& call, const CompileOptions& compile_options,
                   const capture::SymbolOptions& symbol_options, bool refuse_reads) {
  const std::span<const Tensor* const> arguments(leaves.tensors.data(), leaves.tensors.size());
  capture::TraceOptions options;
  options.refuse_reads = refuse_reads;
  options.compile_options = &compile_options;
  options.evaluate = [&](capture::Captured captured) { return evaluated(std::move(captured), leaves); };
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  capture::InputSymbols symbols = capture::make_symbols(
      trace->env(), arguments, {leaves.integers.data(), leaves.integers.size()}, symbol_options);
  const capture::TraceScope scope(trace.get());
  std::vector<Tensor> tensors;
  std::vector<Scalar> numbers;
  std::vector<SymInt> integers;
  for (const Tensor* tensor : arguments) {
    const size_t k = tensors.size();
    tensors.push_back(trace->argument(*tensor, static_cast<int32_t>(k), symbols.tensors[k]));
  }
  for (const Scalar* number : leaves.numbers) {
    numbers.push_back(trace->number(*number, static_cast<int32_t>(numbers.size())));
  }
  for (const Expr e : symbols.integers) integers.push_back(to_sym_int(e));
  try {
    call.run(tensors, numbers, integers);
  } catch (const PlacedError&) {  // says all already
    throw;
  } catch (const UserError& error) {
    const std::string message = error.what(), more = trace->with_values(message);
    if (more == message) throw;
    throw UserError(more);
  }
  ResultLeaves result;
  call.leaves(result.tensors, result.numbers, result.integers);
  TraceOutcome outcome;
  if (trace->was_read()) {
    outcome.read_where = trace->read_where();
    settle(trace->env(), result);
    return outcome;
  }
  std::vector<Expr> sizes;
  outcome.captured = trace->finish(results_of(result, outcome, sizes));
  outcome.captured->symbols = std::move(symbols);
  outcome.captured->integers = std::move(sizes);
  return outcome;
}

void fix_what_was_read(capture::Captured& captured) {
  std::vector<Symbol> read;
  const auto use = [&](Expr e) {
    for (const Symbol s : e.symbols()) read.push_back(s);
  };
  for (const Guard& guard : captured.env->guards()) {
    use(guard.condition.left);
    use(guard.condition.right);
  }
  for (const graph::Node& node : captured.graph.nodes) {
    for (const auto& argument : node.args) {
      if (argument.is_number()) use(argument.number().integer);
      if (const auto* list = std::get_if<std::vector<Expr>>(&argument.value))
        std::ranges::for_each(*list, use);
    }
  }
  std::ranges::for_each(captured.integers, use);
  for (const graph::TensorMeta& meta : captured.symbols.tensors) {
    const auto is_read = [&](Expr e) {
      return std::ranges::any_of(e.symbols(), [&](Symbol s) { return std::ranges::count(read, s) > 0; });
    };
    if (std::ranges::none_of(meta.sizes, is_read)) continue;
    for (const Expr size : meta.sizes) captured.env->specialize(size);
  }
}

void check_declared(const capture::Captured& captured) {
  for (const capture::DeclaredDim& dim : captured.symbols.dims) {
    if (dim.root.is_constant() || dim.min == dim.max) continue;
    const int64_t value = *captured.env->hint(dim.root);
    const Interval range = captured.env->ranges().interval(dim.root);
    if (range.lower == range.upper || !captured.env->proves(eq(dim.root, value))) continue;
    std::string reasons;
    for (const Guard& guard : captured.env->guards()) {
      const Condition& c = guard.condition;
      if (!c.left.contains(dim.root.symbol()) && !c.right.contains(dim.root.symbol())) continue;
      reasons += "\n  - " + guard.str();
    }
    throw_user_error(fmt::format(
        "dimension {} is declared dynamic, within {}, but the function fixes it to {}; keep sizes symbolic "
        "(SymInt), or declare it as Dim::fixed(). What fixes {}:{}",
        dim.name,
        (dim.max == DimOptions::kNoLimit ? Interval::at_least(dim.min) : Interval::of(dim.min, dim.max))
            .str(),
        value, dim.root.str(), reasons));
  }
}

}  // namespace stax::detail

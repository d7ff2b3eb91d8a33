// Recording a function on arguments without memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/captured.h"
#include "compiler/export_state.h"

namespace stax::compiler {

/// The arguments of a call, without their memory: what tracing needs, and nothing that would stay alive.
/// Tensors lie row-major, or in the order of the dimensions that the call's have.
struct ExampleArguments {
  explicit ExampleArguments(const detail::Leaves& leaves);
  /// The same with other sizes.
  ExampleArguments resized(const std::vector<std::vector<int64_t>>& sizes) const;

  std::vector<Tensor> tensors;
  std::vector<DType> dtypes;
  std::vector<std::vector<size_t>> orders;  // by tensor: its dimensions, outermost first
  std::vector<Scalar> numbers;
  std::vector<SymInt> integers;
};

/// Sees the symbols before the function runs; decides for it while it runs.
struct Recorder {
  std::function<void(ShapeEnv& env, capture::InputSymbols& symbols)> begin;
  std::function<bool(ShapeEnv& env, const Condition& condition)> decide;
};

/// Runs the function of a call on tensors that stand for `arguments`. UserError where it reads a value.
capture::Captured record(detail::FunctionCall& call, const ExampleArguments& arguments,
                         const capture::SymbolOptions& symbol_options, const Recorder& recorder);

/// Whether two recordings compute the same: the same operators on the same values, whatever views, reshapes
/// and copies lie between them; the same results of the same sizes, views and writes of the same arguments.
/// Each comes with a renaming of its symbols.
struct Recording {
  const capture::Captured& captured;
  std::function<std::optional<Expr>(Symbol)> rename;
};
bool equivalent(const Recording& a, const Recording& b);

/// Captured tensors become constants: a copy of what they hold now. UserError where they are written or
/// returned.
void freeze(capture::Captured& captured);

/// The arguments by name: `names`, or "arg0", "arg1", ... where there are none.
std::vector<ExportInput> inputs_of(const capture::InputSymbols& symbols,
                                   const std::vector<std::string>& names);

bool is_identifier(const std::string& name);

}  // namespace stax::compiler

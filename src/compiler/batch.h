// Many functions compiled at once: their kernels share one run of the host compiler. For tests and tools that
// replay thousands of small programs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/guards.h"
#include "compiler/program.h"

namespace stax::compiler {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Records `function` on tensors that stand for `arguments`; what it makes of numbers lies on `device`.
/// UserError where it reads a value.
capture::Captured trace_function(const TensorFunction& function, const std::vector<Tensor>& arguments,
                                 const capture::SymbolOptions& symbols = {}, Device device = {});

/// What became of one of many programs.
struct BatchItem {
  std::shared_ptr<const CompiledProgram> program;  // null where it could not be made
  std::string error;                               // why not, or why it has no kernels of its own
};

/// Compiles all, in one module; programs without kernels of their own run in the reference executor. Nothing
/// is thrown: what cannot be made says why. Where the module does not compile, each program is compiled by
/// itself. `target`: as in PipelineOptions.
std::vector<BatchItem> compile_batch(std::vector<capture::Captured> captured,
                                     const std::string& target = "cpu");

/// The values of size symbols in a call with these arguments; nothing where the guards do not hold. Ranks and
/// dtypes are those that the guards were made for.
std::optional<std::vector<int64_t>> symbols_of(const Guards& guards, const std::vector<Tensor>& arguments,
                                               std::span<const int64_t> integers = {});

/// Calls a program that has no number arguments. `symbols`: of symbols_of(), where sizes are symbolic.
std::vector<Tensor> run_program(const CompiledProgram& program, const std::vector<Tensor>& arguments,
                                std::span<const int64_t> symbols = {});

}  // namespace stax::compiler

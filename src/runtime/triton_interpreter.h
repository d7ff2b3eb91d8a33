// Runs generated Triton kernels on the CPU, in Triton's interpreter: a way to check them without a GPU.
#pragma once

#include <memory>
#include <string>

#include "codegen/kernel_info.h"
#include "codegen/tile/tile_kernel.h"

namespace stax::runtime {

/// A Python process with Triton's interpreter, and memory that both sides see. Started at the first use.
/// Thread-safe; kernels run one at a time.
class TritonInterpreter {
 public:
  TritonInterpreter();
  ~TritonInterpreter();

  /// Starts the process where it is not up. RuntimeError, with what to install, where Python cannot
  /// interpret.
  void check();

  /// One launch of `kernel`, whose file is `source`. RuntimeError when the worker fails; it is started anew
  /// for the next launch.
  void launch(const codegen::TileKernel& kernel, const codegen::LaunchConfig& config,
              const loops::Program& program, const std::string& source, const codegen::KernelCall& call);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A runner for a plan's kernel. `interpreter` outlives it.
std::shared_ptr<const codegen::KernelRunner> interpreted(TritonInterpreter& interpreter,
                                                         codegen::TileKernel kernel,
                                                         codegen::LaunchConfig config,
                                                         std::shared_ptr<const loops::Program> program,
                                                         std::string source);

}  // namespace stax::runtime

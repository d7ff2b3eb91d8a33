// The half of the pipeline that makes kernels for GPUs: their sources, what compiles them, and plans of them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_info.h"
#include "codegen/plan/plan.h"
#include "codegen/tile/tile_kernel.h"
#include "codegen/triton/printer.h"
#include "runtime/plan_executor.h"
#include "runtime/triton_compiler.h"
#include "schedule/schedule.h"

namespace stax::tuning {
class TunedKernel;
}

namespace stax::compiler {

struct PipelineOptions;
struct Stages;

/// What the first launch of a kernel will likely have.
struct FirstLaunch {
  codegen::Alignment alignment;
  std::vector<long> extents;  // of the kernel's axes
};

/// A kernel for a GPU, before it is compiled.
struct GpuKernel {
  codegen::TileKernel tile;
  codegen::KernelInfo info;
  codegen::TritonSources sources;
  std::optional<FirstLaunch> first;  // none: another form is launched
  std::string launch_facts;          // of `first`, as arguments of the decorator: what a launch needs
  size_t group = 0;                  // position in Schedule::groups
};

/// The kernels of the groups that are not external, one or several each, in the order of the groups.
std::vector<GpuKernel> make_gpu_kernels(const loops::Program& program, const schedule::Schedule& schedule,
                                        const schedule::Target& target, const Sizes& sizes);

/// The compiler of kernels for GPUs, which all compiled functions share.
runtime::TritonCompiler& triton_compiler();

/// The kernels of a plan for a GPU, in its order; nothing is compiled. `tuning` as CompileOptions::tuning.
std::vector<std::shared_ptr<tuning::TunedKernel>> kernels_on_gpu(const Stages& stages,
                                                                 const codegen::Plan& plan,
                                                                 const std::string& tuning);

/// Makes sure that the compilers have these programs' kernels for GPUs, so that build() finds them: all at
/// the same time. Errors are left to build().
void compile_ahead(std::span<Stages* const> programs);

/// The plan for the GPU that `stages` are for. What its first call will likely need is compiled; RuntimeError
/// where a kernel does not compile in any configuration.
std::unique_ptr<runtime::PlanExecutor> build_cuda(const Stages& stages, const PipelineOptions& options);

/// The plan with kernels in Triton's interpreter, on the CPU.
std::unique_ptr<runtime::PlanExecutor> build_interpreted(const Stages& stages,
                                                         const PipelineOptions& options);

}  // namespace stax::compiler

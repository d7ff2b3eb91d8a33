// From a captured graph to something that runs: the one place that strings the stages together.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/cpp/printer.h"
#include "codegen/plan/plan.h"
#include "compiler/pipeline_gpu.h"
#include "graph/graph.h"
#include "lowering/lowering.h"
#include "reference/executor.h"
#include "runtime/host_compiler.h"
#include "runtime/plan_executor.h"
#include "schedule/schedule.h"
#include "stax/error.h"

namespace stax::compiler {

enum class Backend : uint8_t {
  native,     // compiled kernels
  reference,  // the lowered program in the reference executor: no compiler
};

/// "cpu", but where STAX_TRITON is "interpret": then a GPU's name.
std::string default_target();

struct PipelineOptions {
  Backend backend = Backend::native;
  /// Raises where kernels cannot be generated or compiled, instead of running the program in the reference
  /// executor.
  bool strict_native = false;
  /// What kernels are made for: "cpu", or "cuda:sm_90", whose kernels run in Triton's interpreter. Graphs
  /// over tensors of a GPU are compiled for that GPU.
  std::string target = default_target();
  /// How the launch configurations of kernels for a GPU are chosen: as CompileOptions::tuning.
  std::string tuning = "none";
  /// Whether products of float32 matrices on a GPU may round their operands, by
  /// CompileOptions::matmul_precision.
  bool tf32 = false;
  /// CompileOptions::batch_invariant.
  bool batch_invariant = false;
};

/// What each stage made of one graph.
struct Stages {
  graph::Graph captured;  // before the passes
  graph::Graph graph;     // after them
  loops::Program program;
  std::vector<lowering::ResultView> results;  // parallel to the graph's outputs
  schedule::Schedule schedule;
  std::vector<Choice> choices;  // of lowering, that depend on sizes
  /// Of the groups that are not external, one or several each: only one of the two lists is filled.
  std::vector<codegen::Kernel> kernels;  // for a CPU
  std::vector<GpuKernel> gpu_kernels;
  std::map<Symbol, int64_t> example;  // with `gpu_kernels`: sizes in the example
  std::vector<std::string> sources;   // of `kernels`: one for each run of the host compiler
  std::vector<int32_t> source_of;     // parallel to kernels: position in sources
  std::string target;                 // "cpu:x86-64-v4"
  Device device;                      // what it runs on
  std::string fallback;               // why the program runs in the reference executor; empty: it does not
  double stax_seconds = 0, host_seconds = 0;
};

/// A graph, made ready to run: one of the two.
struct Executables {
  std::unique_ptr<runtime::PlanExecutor> plan;
  std::shared_ptr<const reference::Executable> reference;
};

/// The machine's schedule target.
schedule::Target cpu_schedule_target();
/// The compiler of the process, which all compiled functions share.
runtime::HostCompiler& host_compiler();

/// What plans run on, on the CPU.
runtime::Machine host_machine(const PipelineOptions& options);

/// Passes, lowering, schedule, kernels and their sources. Nothing is compiled. Where a kernel cannot be
/// decided or spelled, `fallback` says why; with `options.strict_native` it raises.
Stages run_stages(graph::Graph graph, ShapeEnv& env, const PipelineOptions& options);

/// A program whose sizes only data determines cannot have kernels, without which it can only run operator by
/// operator.
class NeedsKernels : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

/// Compiles the sources, or takes them from the disk cache, and makes the plan. Where that fails and
/// `options` allow it, `stages.fallback` says why and the program runs in the reference executor.
/// NeedsKernels where that cannot run it; CudaError where a GPU fails, or is short of memory.
Executables build(Stages& stages, const PipelineOptions& options);

/// How to call the kernels of either kind, in their order.
std::vector<codegen::KernelInfo> infos_of(const Stages& stages);

/// The plan with its kernels not loaded: for show.
codegen::Plan plan_of(const Stages& stages);

/// What was chosen by the sizes in lowering, scheduling and for the kernels, and why, a line each.
std::vector<std::string> choices_in_words(const Stages& stages);

/// One stage as text: "graph", "loops", "schedule", "kernels", "cpp", "triton" or "plan". UserError for
/// another name.
std::string stage_text(const Stages& stages, std::string_view stage);

}  // namespace stax::compiler

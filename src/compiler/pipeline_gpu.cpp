#include "compiler/pipeline_gpu.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/pipeline.h"
#include "compiler/product_calls.h"
#include "device/cuda_allocator.h"
#include "device/cuda_device.h"
#include "runtime/triton_interpreter.h"
#include "support/environment.h"
#include "support/progress.h"
#include "tuning/launch_config.h"
#include "tuning/tuned_kernel.h"

namespace stax {

/// A worker imports Triton meanwhile.
void device::start_beside_first_cuda_context() {
  compiler::triton_compiler().start_where_unknown();
}

namespace compiler {
namespace {

// Further kernels for other sizes than the hint's, of one group and of all. They are compiled when they are
// first launched.
constexpr size_t kMostTileFormsOfOne = 5, kMostTileForms = 60;

bool likely_even(const codegen::KernelInfo& info, const Sizes& sizes) {
  bool any = !info.symbols.empty();
  const auto is_even = [&](Expr e) {
    any = any || !e.is_constant();
    return e.is_constant() || sizes.likely(e) % 16 == 0;
  };
  const bool even = std::ranges::all_of(info.extents, is_even) &&
                    std::ranges::all_of(info.symbols, [&](Symbol s) { return is_even(Expr(s)); });
  return any && even;
}

/// Whether a kernel has nothing to write: it is never launched, and may divide by its sizes.
bool is_empty(const codegen::TileKernel& tile) {
  return std::ranges::any_of(tile.axes, [](const codegen::TileAxis& axis) {
    return codegen::facts_of(axis.kind).grid_dimension >= 0 && axis.numel.is(0);
  });
}

FirstLaunch likely_launch(const codegen::KernelInfo& info, const Sizes& sizes) {
  using codegen::Alignment;
  FirstLaunch launch{likely_even(info, sizes) ? Alignment::even : Alignment::aligned, {}};
  for (const Expr e : info.extents) launch.extents.push_back(sizes.likely(e));
  return launch;
}

bool fits_likely_sizes(const codegen::KernelInfo& info, const Sizes& sizes) {
  return std::ranges::all_of(info.when, [&](const Condition& c) {
    return holds(c.relation, sizes.likely(c.left), sizes.likely(c.right));
  });
}

/// From the first to the last element, in the example.
int64_t likely_elements(const loops::Buffer& buffer, const Sizes& sizes) {
  int64_t last = 0;
  for (size_t d = 0; d < buffer.sizes.size(); ++d) {
    const int64_t size = sizes.likely(buffer.sizes[d]);
    if (size == 0) return 0;
    last += (size - 1) * sizes.likely(buffer.strides[d]);
  }
  return last + 1;
}

/// What a launch with the sizes of the example needs beside the kernel's text, as standalone.py reads it.
std::string launch_facts(const codegen::TileKernel& kernel, const loops::Program& program,
                         const Sizes& sizes) {
  std::vector<std::string> elements, numels, symbols, scalars, config;
  for (const codegen::TilePointer& p : kernel.pointers)
    elements.push_back(fmt::format("'{}': {}", p.name,
                                   likely_elements(program.buffers[static_cast<size_t>(p.buffer)], sizes)));
  for (const codegen::TileAxis& axis : kernel.axes)
    numels.push_back(fmt::format("'{}': {}", codegen::facts_of(axis.kind).prefix, sizes.likely(axis.numel)));
  for (size_t k = 0; k < kernel.symbols.size(); ++k)
    symbols.push_back(fmt::format("'ks{}': {}", k, sizes.likely(Expr(kernel.symbols[k]))));
  for (size_t k = 0; k < kernel.scalars.size(); ++k)
    scalars.push_back(fmt::format("'scalar{}': {}", k, is_floating_point(kernel.scalars[k]) ? "0.5" : "1"));
  const codegen::LaunchConfig launch = tuning::default_config(kernel);
  for (const auto& [name, size] : launch.blocks) config.push_back(fmt::format("'{}': {}", name, size));
  if (kernel.keeps) config.push_back(fmt::format("'{}': {}", codegen::kKeptBlocks, launch.kept));
  config.push_back(fmt::format("'num_warps': {}", launch.warps));
  config.push_back(fmt::format("'num_stages': {}", launch.stages));
  if (kernel.keeps) config.push_back(fmt::format("'{}': {}", codegen::kMostRegisters, launch.registers));
  std::string text =
      fmt::format(", elements={{{}}}, numels={{{}}}", fmt::join(elements, ", "), fmt::join(numels, ", "));
  if (!symbols.empty()) text += fmt::format(", symbols={{{}}}", fmt::join(symbols, ", "));
  if (!scalars.empty()) text += fmt::format(", scalars={{{}}}", fmt::join(scalars, ", "));
  if (kernel.wide_index) text += ", wide=True";
  return text + fmt::format(", config={{{}}}", fmt::join(config, ", "));
}

runtime::TritonInterpreter& interpreter() {
  static runtime::TritonInterpreter one;
  return one;
}

Expr bytes_of(const loops::Buffer& buffer) {
  return product(buffer.sizes) * itemsize(buffer.dtype);
}

std::vector<runtime::TritonRequest> first_requests(const GpuKernel& kernel,
                                                   const tuning::TunedKernel& tuned) {
  if (!kernel.first) return {};
  return tuned.requests(kernel.first->alignment, kernel.first->extents);
}

std::vector<runtime::TritonOutcome> compile_for_gpu(const std::vector<runtime::TritonRequest>& requests) {
  Progress progress("compiling kernels for a GPU", requests.size());
  return triton_compiler().compile(requests, [&](size_t done) { progress.report(done); });
}

/// What the first call will likely need of all kernels is compiled. A configuration that does not compile is
/// left out; a kernel none of whose does is an error now.
void compile_first(const Stages& stages, std::span<const std::shared_ptr<tuning::TunedKernel>> kernels) {
  std::vector<runtime::TritonRequest> requests;
  std::vector<size_t> kernel_of;
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (runtime::TritonRequest& r : first_requests(stages.gpu_kernels[k], *kernels[k])) {
      requests.push_back(std::move(r));
      kernel_of.push_back(k);
    }
  }
  if (requests.empty()) return;
  const std::vector<runtime::TritonOutcome> outcomes = compile_for_gpu(requests);
  std::vector<char> compiled(kernels.size(), 0);
  std::vector<std::string> errors(kernels.size());
  for (size_t r = 0; r < outcomes.size(); ++r) {
    if (outcomes[r].kernel) compiled[kernel_of[r]] = 1;
    if (!outcomes[r].kernel) errors[kernel_of[r]] = outcomes[r].error;
  }
  for (size_t k = 0; k < kernels.size(); ++k)
    if (!compiled[k] && !errors[k].empty()) throw_runtime_error(errors[k]);
}

}  // namespace

runtime::TritonCompiler& triton_compiler() {
  static runtime::TritonCompiler compiler([] {
    runtime::TritonCompilerOptions options;
    if (const auto workers = environment_count("STAX_TRITON_WORKERS", 1024)) options.workers = *workers;
    return options;
  }());
  return compiler;
}

std::vector<GpuKernel> make_gpu_kernels(const loops::Program& program, const schedule::Schedule& schedule,
                                        const schedule::Target& target, const Sizes& sizes) {
  std::vector<GpuKernel> out;
  size_t forms = kMostTileForms;
  int32_t number = 0;
  for (const schedule::Group& group : schedule.groups) {
    if (group.external) continue;
    const size_t most = 1 + std::min(forms, kMostTileFormsOfOne);
    bool found = false;  // the form that the example's sizes take
    for (codegen::TileKernel& tile :
         codegen::make_tile_kernels(program, group, target, number, sizes, most)) {
      GpuKernel kernel{std::move(tile), {}, {}, {}, {}, 0};
      kernel.info = codegen::info_of(kernel.tile);
      kernel.sources = codegen::print_sources(kernel.tile);
      if (!kernel.info.when.empty()) --forms;
      const bool fits = fits_likely_sizes(kernel.info, sizes);
      if (fits && !found && !is_empty(kernel.tile)) {
        kernel.first = likely_launch(kernel.info, sizes);
        kernel.launch_facts = launch_facts(kernel.tile, program, sizes);
      }
      kernel.group = static_cast<size_t>(&group - schedule.groups.data());
      found = found || fits;
      out.push_back(std::move(kernel));
    }
    ++number;
  }
  return out;
}

std::vector<std::shared_ptr<tuning::TunedKernel>> kernels_on_gpu(const Stages& stages,
                                                                 const codegen::Plan& plan,
                                                                 const std::string& tuning) {
  const int32_t device = stages.device.index;
  std::shared_ptr<runtime::CudaStatus> status;
  std::vector<std::shared_ptr<tuning::TunedKernel>> kernels;
  for (const GpuKernel& kernel : stages.gpu_kernels) {
    if (kernel.tile.checks && !status)
      status = std::make_shared<runtime::CudaStatus>(device, plan.origins, plan.places);
    std::vector<Expr> bytes;
    for (const codegen::TilePointer& p : kernel.tile.pointers)
      bytes.push_back(bytes_of(stages.program.buffers[static_cast<size_t>(p.buffer)]));
    kernels.push_back(std::make_shared<tuning::TunedKernel>(triton_compiler(), kernel.tile, kernel.sources,
                                                            std::move(bytes), device,
                                                            kernel.tile.checks ? status : nullptr, tuning));
  }
  return kernels;
}

void compile_ahead(std::span<Stages* const> programs) {
  std::vector<runtime::TritonRequest> requests;
  for (const Stages* stages : programs) {
    if (stages->device == kCPU || stages->gpu_kernels.empty()) continue;
    const auto kernels = kernels_on_gpu(*stages, plan_of(*stages), "none");
    for (size_t k = 0; k < kernels.size(); ++k)
      for (runtime::TritonRequest& r : first_requests(stages->gpu_kernels[k], *kernels[k]))
        requests.push_back(std::move(r));
  }
  if (requests.empty()) return;
  try {
    compile_for_gpu(requests);
  } catch (const RuntimeError&) {
  }
}

std::unique_ptr<runtime::PlanExecutor> build_cuda(const Stages& stages, const PipelineOptions& options) {
  codegen::Plan plan = plan_of(stages);
  const auto kernels = kernels_on_gpu(stages, plan, options.tuning);
  for (size_t k = 0; k < kernels.size(); ++k) plan.kernels[k].runner = kernels[k];
  compile_first(stages, kernels);
  set_products(plan, stages.device, options);
  runtime::Machine on_gpu = host_machine(options);
  on_gpu.allocator = &device::CudaAllocator::of(stages.device.index);
  on_gpu.find_prepare = nullptr;
  on_gpu.device = stages.device;
  return std::make_unique<runtime::PlanExecutor>(std::move(plan), on_gpu);
}

std::unique_ptr<runtime::PlanExecutor> build_interpreted(const Stages& stages,
                                                         const PipelineOptions& options) {
  codegen::Plan plan = plan_of(stages);
  const auto program = std::make_shared<loops::Program>(stages.program);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const GpuKernel& kernel = stages.gpu_kernels[k];
    plan.kernels[k].runner = runtime::interpreted(
        interpreter(), kernel.tile, tuning::default_config(kernel.tile), program, kernel.sources.plain);
  }
  return std::make_unique<runtime::PlanExecutor>(std::move(plan), host_machine(options));
}

}  // namespace compiler
}  // namespace stax

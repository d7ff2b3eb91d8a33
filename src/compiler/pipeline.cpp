#include "compiler/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "codegen/triton/printer.h"
#include "compiler/constant_evaluator.h"
#include "compiler/product_calls.h"
#include "device/cpu_allocator.h"
#include "device/cpu_info.h"
#include "device/cuda_allocator.h"
#include "device/cuda_device.h"
#include "graph/pass_table.h"
#include "kernels/external.h"
#include "ops/table.h"
#include "runtime/triton_interpreter.h"
#include "schedule/verify.h"
#include "support/check.h"
#include "support/log.h"
#include "support/progress.h"
#include "tuning/launch_config.h"
#include "tuning/tuned_kernel.h"

namespace stax::compiler {
namespace {

using Clock = std::chrono::steady_clock;
using log::Channel;

// Kernels that one host compiler run takes, where there are more than the machine has processors.
constexpr size_t kKernelsPerModule = 12;
// Further kernels for other sizes than the hint's, of one group and of all: each takes time to compile.
constexpr size_t kMostFormsOfOne = 3, kMostForms = 12;
// Those of a GPU are compiled when they are first launched.
constexpr size_t kMostTileFormsOfOne = 5, kMostTileForms = 60;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void log_fusion(const schedule::Schedule& schedule) {
  if (!log::enabled(Channel::fusion)) return;
  for (const schedule::Decision& d : schedule.decisions) {
    log::write(Channel::fusion,
               fmt::format("{} {} and {}: {} ({} bytes saved)", d.fused ? "fused" : "kept apart", d.first,
                           d.second, d.reason, d.bytes_saved));
  }
}

/// Kernels and their sources: as many modules as compile well at the same time.
void emit_cpu(Stages& stages, const schedule::Target& target, const Sizes& sizes) {
  size_t forms = kMostForms;
  for (const schedule::Group& group : stages.schedule.groups) {
    if (group.external) continue;
    const size_t most = 1 + std::min(forms, kMostFormsOfOne);
    for (codegen::Kernel& kernel : codegen::make_kernels(stages.program, group, target, sizes, most)) {
      if (!kernel.info.when.empty()) --forms;
      stages.kernels.push_back(std::move(kernel));
    }
  }
  const size_t count = stages.kernels.size();
  const auto processors = static_cast<size_t>(std::max(1, device::available_processors()));
  const size_t each = std::clamp((count + processors - 1) / processors, size_t{1}, kKernelsPerModule);
  for (size_t first = 0; first < count; first += each) {
    const auto part = std::span(stages.kernels).subspan(first, std::min(each, count - first));
    codegen::Module module = codegen::print_module(part);
    stages.source_of.insert(stages.source_of.end(), part.size(), static_cast<int32_t>(stages.sources.size()));
    stages.sources.push_back(std::move(module.source));
    stages.infos.insert(stages.infos.end(), module.kernels.begin(), module.kernels.end());
  }
}

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
    return axis.kind != codegen::TileAxisKind::r0 && axis.numel.is(0);
  });
}

void emit_cuda(Stages& stages, const schedule::Target& target, const Sizes& sizes) {
  size_t forms = kMostTileForms;
  int32_t number = 0;
  for (const schedule::Group& group : stages.schedule.groups) {
    if (group.external) continue;
    const size_t most = 1 + std::min(forms, kMostTileFormsOfOne);
    bool found = false;  // the form that the example's sizes take
    for (codegen::TileKernel& tile :
         codegen::make_tile_kernels(stages.program, group, target, number, sizes, most)) {
      codegen::KernelInfo info = codegen::info_of(tile);
      if (!info.when.empty()) --forms;
      const bool fits = std::ranges::all_of(info.when, [&](const Condition& c) {
        return holds(c.relation, sizes.likely(c.left), sizes.likely(c.right));
      });
      stages.first.push_back(!fits || found || is_empty(tile) ? FirstUse::later
                             : likely_even(info, sizes)       ? FirstUse::even
                                                              : FirstUse::aligned);
      found = found || fits;
      stages.sources.push_back(codegen::print_triton(tile));
      stages.infos.push_back(std::move(info));
      stages.tiles.push_back(std::move(tile));
    }
    ++number;
  }
}

runtime::Machine machine() {
  return {&device::ThreadPool::global(), &device::CpuAllocator::global(), &kernels::find_external,
          &kernels::find_prepare};
}

runtime::CompileFlags compile_flags() {
  runtime::CompileFlags flags;
  flags.target = device::cpu_target().flags;
  return flags;
}

std::unique_ptr<runtime::PlanExecutor> build_native(Stages& stages) {
  const auto modules = host_compiler().compile_all(stages.sources, compile_flags());
  codegen::Plan plan = plan_of(stages);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    codegen::PlanKernel& kernel = plan.kernels[k];
    const runtime::Module& module = *modules[static_cast<size_t>(stages.source_of[k])];
    kernel.entry = reinterpret_cast<codegen::KernelEntry>(module.symbol(kernel.info.name));
  }
  plan.module = std::make_shared<std::vector<std::shared_ptr<runtime::Module>>>(modules);
  return std::make_unique<runtime::PlanExecutor>(std::move(plan), machine());
}

runtime::TritonInterpreter& interpreter() {
  static runtime::TritonInterpreter one;
  return one;
}

std::unique_ptr<runtime::PlanExecutor> build_interpreted(const Stages& stages) {
  codegen::Plan plan = plan_of(stages);
  const auto program = std::make_shared<loops::Program>(stages.program);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const codegen::TileKernel& tile = stages.tiles[k];
    plan.kernels[k].runner =
        runtime::interpreted(interpreter(), tile, tuning::default_config(tile), program, stages.sources[k]);
  }
  return std::make_unique<runtime::PlanExecutor>(std::move(plan), machine());
}

Expr bytes_of(const loops::Buffer& buffer) {
  return product(buffer.sizes) * itemsize(buffer.dtype);
}

}  // namespace

std::vector<std::shared_ptr<tuning::TunedKernel>> kernels_on_gpu(const Stages& stages,
                                                                 const codegen::Plan& plan,
                                                                 const std::string& tuning) {
  const int32_t device = stages.device.index;
  std::shared_ptr<runtime::CudaStatus> status;
  std::vector<std::shared_ptr<tuning::TunedKernel>> kernels;
  for (size_t k = 0; k < stages.tiles.size(); ++k) {
    const codegen::TileKernel& tile = stages.tiles[k];
    if (tile.checks && !status)
      status = std::make_shared<runtime::CudaStatus>(device, plan.origins, plan.places);
    std::vector<Expr> bytes;
    for (const codegen::TilePointer& p : tile.pointers)
      bytes.push_back(bytes_of(stages.program.buffers[static_cast<size_t>(p.buffer)]));
    kernels.push_back(std::make_shared<tuning::TunedKernel>(triton_compiler(), tile, stages.sources[k],
                                                            std::move(bytes), device,
                                                            tile.checks ? status : nullptr, tuning));
  }
  return kernels;
}

namespace {

/// What the first call will likely need of a kernel.
std::vector<runtime::TritonRequest> first_requests(const Stages& stages, size_t kernel,
                                                   const tuning::TunedKernel& tuned) {
  switch (stages.first[kernel]) {
    case FirstUse::later:
      return {};
    case FirstUse::aligned:
      return tuned.requests(runtime::CudaVariant::aligned);
    case FirstUse::even:
      return tuned.requests(runtime::CudaVariant::even);
  }
  return {};
}

std::vector<runtime::TritonOutcome> compile_for_gpu(const std::vector<runtime::TritonRequest>& requests) {
  Progress progress("compiling kernels for a GPU", requests.size());
  return triton_compiler().compile(requests, [&](size_t done) { progress.report(done); });
}

std::unique_ptr<runtime::PlanExecutor> build_cuda(const Stages& stages, const PipelineOptions& options) {
  codegen::Plan plan = plan_of(stages);
  const auto kernels = kernels_on_gpu(stages, plan, options.tuning);
  std::vector<runtime::TritonRequest> requests;
  std::vector<size_t> kernel_of;
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (runtime::TritonRequest& r : first_requests(stages, k, *kernels[k])) {
      requests.push_back(std::move(r));
      kernel_of.push_back(k);
    }
    plan.kernels[k].runner = kernels[k];
  }
  if (!requests.empty()) {
    // A configuration that does not compile is left out; a kernel none of whose does is an error now.
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
  set_products(plan, stages.device, options);
  runtime::Machine on_gpu = machine();
  on_gpu.allocator = &device::CudaAllocator::of(stages.device.index);
  on_gpu.find_prepare = nullptr;
  on_gpu.device = stages.device;
  return std::make_unique<runtime::PlanExecutor>(std::move(plan), on_gpu);
}

/// A worker imports Triton while the driver makes its context.
[[maybe_unused]] const bool starts_ahead = [] {
  device::before_first_cuda_context([] { triton_compiler().start_where_unknown(); });
  return true;
}();

}  // namespace

runtime::TritonCompiler& triton_compiler() {
  static runtime::TritonCompiler compiler([] {
    runtime::TritonCompilerOptions options;
    if (const char* workers = std::getenv("STAX_TRITON_WORKERS"))
      options.workers = std::max(0, std::atoi(workers));
    return options;
  }());
  return compiler;
}

void compile_ahead(std::span<Stages* const> programs) {
  std::vector<runtime::TritonRequest> requests;
  for (const Stages* stages : programs) {
    if (stages->device == kCPU || stages->tiles.empty()) continue;
    const auto kernels = kernels_on_gpu(*stages, plan_of(*stages), "none");
    for (size_t k = 0; k < kernels.size(); ++k)
      for (runtime::TritonRequest& r : first_requests(*stages, k, *kernels[k]))
        requests.push_back(std::move(r));
  }
  if (requests.empty()) return;
  try {
    compile_for_gpu(requests);
  } catch (const RuntimeError&) {
  }
}

std::string default_target() {
  const char* how = std::getenv("STAX_TRITON");
  if (how == nullptr || *how == '\0') return "cpu";
  STAX_CHECK(std::string_view(how) == "interpret", "STAX_TRITON is '{}'; expected 'interpret', or nothing",
             how);
  return "cuda:sm_90";
}

schedule::Target cpu_schedule_target() {
  schedule::Target target;
  target.kind = schedule::Target::Kind::cpu;
  target.processors = std::max(1, device::available_processors());
  target.vector_bytes = device::cpu_target().vector_bytes;
  target.cache_bytes = device::last_level_cache_bytes();
  target.phases = 8;  // more would only make kernels that share nothing into one
  return target;
}

runtime::HostCompiler& host_compiler() {
  static runtime::HostCompiler compiler;
  return compiler;
}

Stages run_stages(graph::Graph graph, ShapeEnv& env, const PipelineOptions& options) {
  const auto start = Clock::now();
  Stages stages;
  stages.captured = graph;
  stages.device = options.backend == Backend::native ? graph::device_of(graph) : kCPU;
  const bool gpu = stages.device != kCPU, cpu = !gpu && options.target == "cpu";
  const schedule::Target target = cpu   ? cpu_schedule_target()
                                  : gpu ? cuda_target_of(stages.device.index)
                                        : cuda_target_named(options.target);
  stages.target = cpu   ? "cpu:" + device::cpu_target().name
                  : gpu ? cuda_target_name(stages.device.index)
                        : options.target;
  stages.graph = graph::run_passes({ops::table(), env, evaluate_constants}, std::move(graph));
  if (gpu)
    stages.graph =
        with_fused_products({ops::table(), env, evaluate_constants}, std::move(stages.graph), stages.device);
  if (log::enabled(Channel::graph)) log::write(Channel::graph, "\n" + stages.graph.str());
  lowering::Lowered lowered =
      lowering::lower(ops::table(), stages.graph, env, cpu ? schedule::Target{} : target);
  stages.program = std::move(lowered.program);
  stages.results = std::move(lowered.results);
  stages.choices = std::move(lowered.choices);
  if (options.backend == Backend::reference) {
    stages.target = "cpu:reference";
    return stages;
  }
  try {
    const Sizes sizes(env);
    stages.schedule = schedule::make_schedule(stages.program, target, sizes);
    log_fusion(stages.schedule);
    if (target.kind == schedule::Target::Kind::cpu)
      emit_cpu(stages, target, sizes);
    else
      emit_cuda(stages, target, sizes);
  } catch (const Error& error) {
    if (options.strict_native) throw;
    stages.fallback = error.what();
    stages.kernels.clear();
    stages.tiles.clear();
    stages.first.clear();
    stages.sources.clear();
    stages.infos.clear();
    stages.source_of.clear();
  }
  stages.stax_seconds = seconds_since(start);
  return stages;
}

Executables build(Stages& stages, const PipelineOptions& options) {
  Executables out;
  if (options.backend == Backend::native && stages.fallback.empty()) {
    const auto start = Clock::now();
    try {
      out.plan = stages.device != kCPU               ? build_cuda(stages, options)
                 : stages.target.starts_with("cuda") ? build_interpreted(stages)
                                                     : build_native(stages);
      stages.host_seconds = seconds_since(start);
      log::print(Channel::kernels, "{} kernels in {} modules, {:.1f} ms in Stax, {:.1f} ms to compile",
                 stages.infos.size(), stages.sources.size(), stages.stax_seconds * 1e3,
                 stages.host_seconds * 1e3);
      return out;
    } catch (const device::CudaError&) {
      throw;  // of this call: the next one may find memory again
    } catch (const RuntimeError& error) {
      if (options.strict_native) throw;
      stages.fallback = error.what();
    }
  }
  const bool dynamic = std::ranges::any_of(stages.program.nodes, &loops::Node::dynamic);
  if (dynamic || !stages.program.assertions.empty()) throw NeedsKernels(stages.fallback);
  if (!stages.fallback.empty()) {
    stages.target = "cpu:reference";
    log::warn(fmt::format("a compiled function runs without kernels of its own: {}", stages.fallback));
  }
  out.reference = reference::Executable::prepare(stages.program);
  return out;
}

std::vector<std::string> choices_in_words(const Stages& stages) {
  std::vector<std::string> lines;
  for (const auto* list : {&stages.choices, &stages.schedule.choices}) {
    for (const Choice& c : *list) lines.push_back(c.what + ": " + c.reason);
  }
  for (const codegen::TileKernel& kernel : stages.tiles) {
    for (const Choice& c : kernel.choices)
      lines.push_back(fmt::format("{}: {}: {}", c.subject, c.what, c.reason));
  }
  for (const codegen::Kernel& kernel : stages.kernels) {
    std::string when;
    for (const Condition& c : kernel.info.when)
      when += (when.empty() ? ", launched where " : " and ") + c.str();
    for (const Choice& c : kernel.choices)
      lines.push_back(fmt::format("{}{}: {}: {}", c.subject, when, c.what, c.reason));
  }
  return lines;
}

codegen::Plan plan_of(const Stages& stages) {
  codegen::Plan plan = codegen::make_plan(stages.program, stages.schedule, stages.infos);
  if (!stages.tiles.empty() || stages.target.starts_with("cuda")) plan.device = Target::Kind::cuda;
  return plan;
}

std::string stage_text(const Stages& stages, std::string_view stage) {
  if (stage == "graph") return stages.graph.str();
  if (stage == "loops") return stages.program.str();
  std::string text;
  if (stage == "schedule") {
    text = stages.schedule.str(stages.program);
    for (const std::string& line : choices_in_words(stages)) text += "# " + line + "\n";
    return text;
  }
  if (stage == "kernels") {
    for (const codegen::Kernel& kernel : stages.kernels) text += kernel.str();
    return text;
  }
  const bool cpu = stages.tiles.empty();
  if (stage == "triton" && !cpu) {
    for (const std::string& source : stages.sources) text += source + "\n\n";
    return text;
  }
  if (stage == "cpp" && cpu) {
    for (const std::string& source : stages.sources) text += source;
    return text;
  }
  STAX_CHECK(stage == "plan", "there is no stage '{}' for {}; expected graph, loops, schedule, {} or plan",
             stage, stages.target, cpu ? "kernels, cpp" : "triton");
  return plan_of(stages).str();
}

}  // namespace stax::compiler

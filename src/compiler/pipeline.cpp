#include "compiler/pipeline.h"

#include <algorithm>
#include <chrono>

#include "compiler/constant_evaluator.h"
#include "compiler/product_calls.h"
#include "compiler/standalone_file.h"
#include "device/cpu_allocator.h"
#include "device/cpu_info.h"
#include "device/cuda_device.h"
#include "graph/pass_table.h"
#include "kernels/external.h"
#include "ops/table.h"
#include "schedule/verify.h"
#include "support/check.h"
#include "support/environment.h"
#include "support/log.h"
#include "support/plural.h"

namespace stax::compiler {
namespace {

using Clock = std::chrono::steady_clock;
using log::Channel;

// Kernels that one host compiler run takes, where there are more than the machine has processors.
constexpr size_t kKernelsPerModule = 12;
// Further kernels for other sizes than the hint's, of one group and of all: each takes time to compile.
constexpr size_t kMostFormsOfOne = 3, kMostForms = 12;

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
    stages.source_of.insert(stages.source_of.end(), part.size(), static_cast<int32_t>(stages.sources.size()));
    stages.sources.push_back(codegen::print_module(part).source);
  }
}

runtime::CompileFlags compile_flags() {
  runtime::CompileFlags flags;
  flags.target = device::cpu_target().flags;
  return flags;
}

std::unique_ptr<runtime::PlanExecutor> build_native(Stages& stages, const PipelineOptions& options) {
  const auto modules = host_compiler().compile_all(stages.sources, compile_flags());
  codegen::Plan plan = plan_of(stages);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    codegen::PlanKernel& kernel = plan.kernels[k];
    const runtime::Module& module = *modules[static_cast<size_t>(stages.source_of[k])];
    kernel.entry = reinterpret_cast<codegen::KernelEntry>(module.symbol(kernel.info.name));
  }
  plan.module = std::make_shared<std::vector<std::shared_ptr<runtime::Module>>>(modules);
  return std::make_unique<runtime::PlanExecutor>(std::move(plan), host_machine(options));
}

}  // namespace

runtime::Machine host_machine(const PipelineOptions& options) {
  runtime::Machine machine{&device::ThreadPool::global(), &device::CpuAllocator::global(),
                           &kernels::find_external, &kernels::find_prepare};
  if (options.batch_invariant) {
    machine.find_external = &kernels::find_batch_invariant_external;
    machine.find_prepare = nullptr;  // packs for what is fastest
  }
  return machine;
}

std::string default_target() {
  static constexpr std::string_view kHow[] = {"interpret"};
  return environment_word("STAX_TRITON", kHow) ? "cuda:sm_90" : "cpu";
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
  schedule::Target target = cpu   ? cpu_schedule_target()
                            : gpu ? cuda_target_of(stages.device.index)
                                  : cuda_target_named(options.target);
  target.batch_invariant = options.batch_invariant;
  stages.target = cpu   ? "cpu:" + device::cpu_target().name
                  : gpu ? cuda_target_name(stages.device.index)
                        : options.target;
  // Whether a library does what follows a product depends on the number of rows.
  const bool fuses_products = gpu && !options.batch_invariant;
  const graph::PassContext context{ops::table(), env, evaluate_constants, fuses_products};
  stages.graph = graph::run_passes(context, std::move(graph));
  if (log::enabled(Channel::graph)) log::write(Channel::graph, "\n" + stages.graph.str());
  const schedule::Target lowered_for =
      cpu ? schedule::Target{.batch_invariant = options.batch_invariant} : target;
  lowering::Lowered lowered = lowering::lower(ops::table(), stages.graph, env, lowered_for);
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
      stages.gpu_kernels = make_gpu_kernels(stages.program, stages.schedule, target, sizes);
    if (!stages.gpu_kernels.empty()) stages.example = example_sizes(stages.program, sizes);
  } catch (const Error& error) {
    if (options.strict_native) throw;
    stages.fallback = error.what();
    stages.kernels.clear();
    stages.gpu_kernels.clear();
    stages.sources.clear();
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
                 : stages.target.starts_with("cuda") ? build_interpreted(stages, options)
                                                     : build_native(stages, options);
      stages.host_seconds = seconds_since(start);
      const size_t gpu_kernels = stages.gpu_kernels.size();  // a module each
      log::print(Channel::kernels, "{} in {}, {:.1f} ms in Stax, {:.1f} ms to compile",
                 counted(stages.kernels.size() + gpu_kernels, "kernel"),
                 counted(stages.sources.size() + gpu_kernels, "module"), stages.stax_seconds * 1e3,
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
  for (const GpuKernel& kernel : stages.gpu_kernels) {
    for (const Choice& c : kernel.tile.choices)
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

std::vector<codegen::KernelInfo> infos_of(const Stages& stages) {
  std::vector<codegen::KernelInfo> infos;
  for (const codegen::Kernel& kernel : stages.kernels) infos.push_back(kernel.info);
  for (const GpuKernel& kernel : stages.gpu_kernels) infos.push_back(kernel.info);
  return infos;
}

codegen::Plan plan_of(const Stages& stages) {
  codegen::Plan plan = codegen::make_plan(stages.program, stages.schedule, infos_of(stages));
  if (!stages.gpu_kernels.empty() || stages.target.starts_with("cuda")) plan.device = Target::Kind::cuda;
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
  const bool cpu = !stages.target.starts_with("cuda");
  if (stage == "kernels" && cpu) {
    for (const codegen::Kernel& kernel : stages.kernels) text += kernel.str();
    return text;
  }
  if (stage == "triton" && !cpu) {
    return stages.gpu_kernels.empty() ? "# no kernels: see stage plan\n" : standalone_file(stages);
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

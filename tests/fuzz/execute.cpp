#include "fuzz/execute.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "codegen/triton/printer.h"
#include "device/cpu_allocator.h"
#include "fuzz/random.h"
#include "kernels/registry.h"
#include "stax/error.h"
#include "tuning/launch_config.h"

namespace stax::fuzz {

namespace {

constexpr size_t kGuard = 64;
constexpr std::byte kPattern{0xa5};

/// Memory of one tensor between two guards, its start a few elements past an aligned address.
class Guarded {
 public:
  Guarded(const Array& array, int64_t shift)
      : array_(array), block_(array.data.size() + 4 * kGuard, kPattern) {
    const auto start = reinterpret_cast<uintptr_t>(block_.data()) + kGuard;
    data_ = reinterpret_cast<std::byte*>((start + 63) / 64 * 64) + shift * itemsize(array.dtype);
    std::copy(array.data.begin(), array.data.end(), data_);
  }
  std::byte* data() { return data_; }
  /// The tensor as it is now. Throws where a guard or a gap between elements was written.
  Array read(const char* what) const {
    Array out = array_;
    std::copy(data_, data_ + out.data.size(), out.data.begin());
    const auto clean = [](std::byte b) { return b == kPattern; };
    const std::byte* end = data_ + out.data.size();
    if (!std::all_of(block_.data(), static_cast<const std::byte*>(data_), clean) ||
        !std::all_of(end, block_.data() + block_.size(), clean)) {
      throw InternalError(fmt::format("{} was written outside its elements", what));
    }
    return out;
  }

 private:
  Array array_;
  std::vector<std::byte> block_;
  std::byte* data_;
};

std::vector<int64_t> values_of(const std::vector<Expr>& exprs) {
  std::vector<int64_t> out;
  for (const Expr e : exprs) out.push_back(e.value());
  return out;
}

/// The elements of a view of `storage`, dense.
Array view_of(const graph::TensorMeta& meta, DType dtype, const std::byte* storage) {
  Array out =
      testing::empty_array(dtype, values_of(meta.sizes), testing::dense_strides(values_of(meta.sizes)));
  TensorView view = out.view();
  view.strides = values_of(meta.strides);
  const auto size = static_cast<size_t>(itemsize(dtype));
  size_t n = 0;
  kernels::for_each_offset(view, [&](int64_t at) {
    std::memcpy(out.data.data() + n++ * size, storage + (meta.offset.value() + at) * itemsize(dtype), size);
  });
  return out;
}

std::vector<Array> read_results(const lowering::Lowered& lowered, const std::vector<void*>& inputs,
                                const std::vector<void*>& outputs) {
  const loops::Program& program = lowered.program;
  std::vector<Array> out;
  for (const lowering::ResultView& r : lowered.results) {
    const bool fresh = r.output >= 0;
    const loops::BufferId id = fresh ? program.outputs[r.output] : program.inputs[r.alias_of_input];
    const void* storage = fresh ? outputs[r.output] : inputs[r.alias_of_input];
    out.push_back(view_of(r.meta, program.buffers[id].dtype, static_cast<const std::byte*>(storage)));
  }
  return out;
}

/// The inputs of one run.
struct Arguments {
  std::vector<Guarded> blocks;
  std::vector<void*> pointers;
  std::vector<loops::Constant> scalars;

  Arguments(const std::vector<Array>& inputs, const loops::Program& program, uint64_t seed) {
    Random random(seed ^ 0x5eed);
    blocks.reserve(inputs.size());
    for (const Array& a : inputs) {
      blocks.emplace_back(a, random.of<int64_t>({0, 0, 0, 1, 2, 4, 8}));
      pointers.push_back(blocks.back().data());
    }
    scalars = scalars_of(program);
  }
  std::vector<Array> read() const {
    std::vector<Array> out;
    for (const Guarded& b : blocks) out.push_back(b.read("an input"));
    return out;
  }
};

Outcome reference(const lowering::Lowered& lowered, const std::vector<Array>& inputs, uint64_t seed) {
  const loops::Program& program = lowered.program;
  Arguments arguments(inputs, program, seed);
  std::vector<Guarded> outputs;
  outputs.reserve(program.outputs.size());
  std::vector<void*> pointers;
  for (const loops::BufferId id : program.outputs) {
    const loops::Buffer& b = program.buffers[id];
    outputs.emplace_back(testing::empty_array(b.dtype, values_of(b.sizes), values_of(b.strides)), 0);
    pointers.push_back(outputs.back().data());
  }
  const auto executable = reference::Executable::prepare(program);
  Outcome out;
  try {
    executable->run({arguments.pointers, pointers, arguments.scalars, nullptr});
  } catch (const UserError&) {
    out.failed = true;
    return out;
  }
  for (const Guarded& b : outputs) b.read("an output of the reference executor");
  out.results = read_results(lowered, arguments.pointers, pointers);
  out.inputs = arguments.read();
  return out;
}

lowering::Lowered lower(const graph::Graph& graph, ShapeEnv& env, const Target& target = {}) {
  const graph::Graph done = graph::run_passes({ops::table(), env}, graph);
  return lowering::lower(ops::table(), done, env, target);
}

/// What a program is compiled for: with a small cache in a share of them, so that results are stored past it.
Target target_of(const Program& program, const device::CpuTarget& cpu) {
  const int64_t cache_bytes = program.seed % 4 == 0 ? 1 << 10 : 32 << 20;
  const int32_t phases = program.seed % 3 == 1 ? 1 : 4;
  return {.processors = 2, .vector_bytes = cpu.vector_bytes, .cache_bytes = cache_bytes, .phases = phases};
}

device::ThreadPool& pool() {
  static device::ThreadPool pool(3);
  return pool;
}

Outcome run_plan(const runtime::PlanExecutor& executor, const Prepared& prepared) {
  const loops::Program& program = prepared.lowered.program;
  Arguments arguments(prepared.program.inputs, program, prepared.program.seed);
  std::vector<runtime::InputTensor> tensors;
  for (size_t n = 0; n < arguments.pointers.size(); ++n) {
    const Array& a = prepared.program.inputs[n];
    tensors.push_back({arguments.pointers[n], a.dtype, a.sizes, a.strides});
  }
  std::vector<runtime::OutputTensor> outputs(program.outputs.size());
  runtime::RunOutputs results{outputs, {}};
  Outcome out;
  try {
    executor.run({tensors, arguments.scalars}, results);
  } catch (const UserError&) {
    out.failed = true;
    return out;
  }
  std::vector<void*> pointers;
  for (const auto& o : outputs) pointers.push_back(o.data);
  out.results = read_results(prepared.lowered, arguments.pointers, pointers);
  for (const auto& o : outputs) device::CpuAllocator::global().deallocate(o.data, o.bytes);
  out.inputs = arguments.read();
  return out;
}

}  // namespace

Prepared prepare(Program program, const Target& target) {
  ShapeEnv env;
  const graph::Graph graph = build(program, env);
  return {std::move(program), lower(graph, env, target)};
}

std::string details(const Prepared& prepared, const device::CpuTarget& cpu) {
  const Target target = target_of(prepared.program, cpu);
  const loops::Program& program = prepared.lowered.program;
  const schedule::Schedule schedule = schedule::make_schedule(program, target);
  std::string out = program.str() + "\n" + schedule.str(program) + "\n";
  for (const schedule::Group& group : schedule.groups) {
    if (!group.external) out += codegen::make_kernel(program, group, target).str() + "\n";
  }
  return out;
}

Outcome run_reference(const Prepared& prepared) {
  return reference(prepared.lowered, prepared.program.inputs, prepared.program.seed);
}

Outcome run_noisy(const Program& program, uint64_t noise_seed) {
  ShapeEnv env;
  Noise noise{noise_seed, {}};
  const graph::Graph graph = build(program, env, &noise);
  std::vector<Array> inputs = program.inputs;
  inputs.insert(inputs.end(), noise.inputs.begin(), noise.inputs.end());
  Outcome out = reference(lower(graph, env), inputs, program.seed);
  if (!out.failed) out.inputs.resize(program.inputs.size());
  return out;
}

void Batch::add(const Prepared& prepared) {
  const Target target = target_of(prepared.program, cpu_);
  const loops::Program& program = prepared.lowered.program;
  schedule::Schedule schedule = schedule::make_schedule(program, target);
  std::vector<codegen::KernelInfo> infos;
  for (schedule::Group& group : schedule.groups) {
    if (group.external) continue;
    group.name = fmt::format("p{}_{}", entries_.size(), group.name);
    kernels_.push_back(codegen::make_kernel(program, group, target));
    infos.push_back(kernels_.back().info);
    // The grain is a hint: small ones cut small loops at any place. Without a number of points it counts
    // always.
    if (prepared.program.seed % 3 == 0) {
      infos.back().grain = static_cast<int64_t>(prepared.program.seed % 5) + 1;
      infos.back().points = 0;
    }
  }
  entries_.push_back({&prepared, codegen::make_plan(program, schedule, std::move(infos))});
}

void Batch::compile() {
  runtime::CompileFlags flags;
  flags.target = cpu_.flags;
  const auto module = compiler_.compile(codegen::print_module(kernels_).source, flags);
  const runtime::Machine machine{&pool(), &device::CpuAllocator::global(), kernels::find_external};
  for (Entry& entry : entries_) {
    for (codegen::PlanKernel& k : entry.plan.kernels)
      k.entry = reinterpret_cast<codegen::KernelEntry>(module->symbol(k.info.name));
    entry.plan.module = module;
    executors_.push_back(std::make_unique<runtime::PlanExecutor>(entry.plan, machine));
  }
}

Outcome Batch::run(size_t k) const {
  return run_plan(*executors_[k], *entries_[k].prepared);
}

namespace {

/// Every fourth program has 64-bit indices.
std::vector<codegen::TileKernel> tile_kernels(const loops::Program& program,
                                              const schedule::Schedule& schedule, Target target,
                                              uint64_t seed) {
  target.narrow_indices = target.narrow_indices && seed % 4 != 0;
  std::vector<codegen::TileKernel> kernels;
  for (const schedule::Group& group : schedule.groups) {
    if (group.external) continue;
    kernels.push_back(
        codegen::make_tile_kernels(program, group, target, static_cast<int32_t>(kernels.size())).front());
  }
  return kernels;
}

}  // namespace

std::string triton_details(const Prepared& prepared, const Target& target) {
  const loops::Program& program = prepared.lowered.program;
  const schedule::Schedule schedule = schedule::make_schedule(program, target);
  std::string out = program.str() + "\n" + schedule.str(program) + "\n";
  for (const codegen::TileKernel& kernel : tile_kernels(program, schedule, target, prepared.program.seed))
    out += codegen::print_triton(kernel) + "\n";
  return out;
}

namespace {

/// Smaller blocks, but not so many that the interpreter takes long. Some rows stay in registers.
codegen::LaunchConfig smaller(codegen::LaunchConfig config, const codegen::TileKernel& kernel,
                              Random& random) {
  constexpr int64_t kMostBlocks = 32;  // of all axes, beyond what there are
  int64_t blocks = 1;
  for (const codegen::TileAxis& axis : kernel.axes) {
    for (auto& [name, size] : config.blocks) {
      if (name != codegen::facts_of(axis.kind).block) continue;
      const int64_t wanted = random.of<int64_t>({1, 1, 2, 4, 16});
      for (int64_t part = 1; part < wanted && size > 1; part *= 2) {
        if (blocks * 2 * axis.size_hint / size > kMostBlocks) break;
        size /= 2;
      }
      blocks *= std::max<int64_t>(1, axis.size_hint / size);
    }
  }
  if (kernel.keeps) config.kept = random.of<int32_t>({0, 1, 2, 3});
  return config;
}

}  // namespace

TritonProgram triton_program(const Prepared& prepared, const Target& target) {
  const loops::Program& program = prepared.lowered.program;
  const schedule::Schedule schedule = schedule::make_schedule(program, target);
  TritonProgram out;
  out.kernels = tile_kernels(program, schedule, target, prepared.program.seed);
  std::vector<codegen::KernelInfo> infos;
  Random random(prepared.program.seed ^ 0xb10c);
  for (const codegen::TileKernel& kernel : out.kernels) {
    infos.push_back(codegen::info_of(kernel));
    out.sources.push_back(codegen::print_triton(kernel));
    out.configs.push_back(smaller(tuning::default_config(kernel), kernel, random));
  }
  out.plan = codegen::make_plan(program, schedule, std::move(infos));
  return out;
}

Outcome outcome_of(const Prepared& prepared, std::vector<Array> inputs, const std::vector<void*>& outputs) {
  std::vector<void*> pointers;
  for (Array& a : inputs) pointers.push_back(a.data.data());
  Outcome out;
  out.results = read_results(prepared.lowered, pointers, outputs);
  out.inputs = std::move(inputs);
  return out;
}

std::vector<loops::Constant> scalars_of(const loops::Program& program) {
  std::vector<loops::Constant> out;
  for (size_t k = 0; k < program.scalars.size(); ++k)
    out.push_back(loops::Constant::of(int64_t{1234567 + static_cast<int64_t>(k)}));
  return out;
}

Outcome run_interpreted(const Prepared& prepared, const Target& target,
                        runtime::TritonInterpreter& interpreter) {
  const auto program = std::make_shared<loops::Program>(prepared.lowered.program);
  TritonProgram made = triton_program(prepared, target);
  for (size_t k = 0; k < made.kernels.size(); ++k)
    made.plan.kernels[k].runner = runtime::interpreted(interpreter, std::move(made.kernels[k]),
                                                       std::move(made.configs[k]), program, made.sources[k]);
  const runtime::Machine machine{&pool(), &device::CpuAllocator::global(), kernels::find_external};
  return run_plan(runtime::PlanExecutor(std::move(made.plan), machine), prepared);
}

}  // namespace stax::fuzz

// Random programs on a GPU: their kernels against the reference executor, with guard zones around every
// buffer.
//
// STAX_FUZZ_SEED is the seed of the first program, STAX_FUZZ_COUNT how many there are (128 by default).
#include <fmt/core.h>

#include "compiler/pipeline.h"
#include "device/cuda_allocator.h"
#include "device/target.h"
#include "device/thread_pool.h"
#include "fuzz/compare.h"
#include "fuzz/generator.h"
#include "fuzz/random.h"
#include "fuzz/settings.h"
#include "gpu/gpu_testing.h"
#include "gpu/guarded_memory.h"
#include "kernels/registry.h"
#include "runtime/cuda_kernel.h"
#include "runtime/triton_compiler.h"
#include "stax/error.h"

namespace stax::fuzz {
namespace {

constexpr int32_t kDevice = 0;
constexpr size_t kBatch = 32;  // programs whose kernels are compiled at a time

/// A program that is ready to run.
struct Ready {
  Prepared prepared;
  std::unique_ptr<runtime::PlanExecutor> executor;
};

/// The inputs of a program in guarded memory, each a few elements behind the start of its block.
class Inputs {
 public:
  Inputs(const Program& program, GuardedMemory& memory) : arrays_(program.inputs), memory_(memory) {
    Random random(program.seed ^ 0x5eed);
    for (const Array& a : arrays_) {
      const int64_t shift = random.of<int64_t>({0, 0, 0, 1, 2, 4, 8}) * itemsize(a.dtype);
      const int64_t bytes = shift + static_cast<int64_t>(a.data.size());
      blocks_.push_back({memory.allocate(bytes), bytes, shift});
      device::copy_to_device(data(blocks_.back()), a.data.data(), bytes - shift, kDevice);
      tensors_.push_back({data(blocks_.back()), a.dtype, a.sizes, a.strides});
    }
  }
  ~Inputs() {
    for (const Block& b : blocks_) memory_.deallocate(b.start, b.bytes);
  }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  const std::vector<runtime::InputTensor>& tensors() const { return tensors_; }
  /// As they are now.
  std::vector<Array> read() const {
    std::vector<Array> out = arrays_;
    for (size_t k = 0; k < out.size(); ++k)
      device::copy_to_host(out[k].data.data(), data(blocks_[k]), blocks_[k].bytes - blocks_[k].shift,
                           kDevice);
    return out;
  }

 private:
  struct Block {
    void* start;
    int64_t bytes, shift;
  };
  static void* data(const Block& b) { return static_cast<std::byte*>(b.start) + b.shift; }

  const std::vector<Array>& arrays_;
  GuardedMemory& memory_;
  std::vector<Block> blocks_;
  std::vector<runtime::InputTensor> tensors_;
};

/// Runs the program once, and copies what it left to the host.
Outcome run(const Ready& ready, GuardedMemory& memory) {
  const loops::Program& program = ready.prepared.lowered.program;
  const Inputs inputs(ready.prepared.program, memory);
  const std::vector<loops::Constant> scalars = scalars_of(program);
  std::vector<runtime::OutputTensor> outputs(program.outputs.size());
  runtime::RunOutputs results{outputs, {}};
  try {
    ready.executor->run({inputs.tensors(), scalars}, results);
  } catch (const UserError&) {
    return {.failed = true};
  }
  std::vector<std::vector<std::byte>> host;
  std::vector<void*> pointers;
  bool failed = false;
  try {
    device::synchronize_cuda_device(kDevice);
  } catch (const UserError&) {
    failed = true;
  }
  for (const runtime::OutputTensor& o : outputs) {
    host.emplace_back(static_cast<size_t>(o.bytes));
    device::copy_to_host(host.back().data(), o.data, o.bytes, kDevice);
    memory.deallocate(o.data, o.bytes);
  }
  if (failed) return {.failed = true};
  for (auto& bytes : host) pointers.push_back(bytes.data());
  return outcome_of(ready.prepared, inputs.read(), pointers);
}

class ProgramsOnGpu : public GpuTest {
 protected:
  ProgramsOnGpu() : memory_(kDevice) {}

  /// Programs with these seeds, their kernels compiled together.
  std::vector<Ready> made(int64_t first, int64_t count) {
    const Target target = cuda_target_of(kDevice);
    std::vector<Ready> out;
    std::vector<runtime::TritonRequest> requests;
    for (int64_t k = 0; k < count; ++k) {
      Prepared prepared = prepare(generate(static_cast<uint64_t>(first + k)), target);
      TritonProgram triton = triton_program(prepared, target);
      triton.plan.device = Target::Kind::cuda;
      std::shared_ptr<runtime::CudaStatus> status;
      for (size_t n = 0; n < triton.kernels.size(); ++n) {
        if (triton.kernels[n].checks && !status)
          status = std::make_shared<runtime::CudaStatus>(kDevice, triton.plan.origins, triton.plan.places);
        auto kernel = std::make_shared<runtime::CudaKernel>(
            compiler_, triton.kernels[n], triton.configs[n], codegen::print_sources(triton.kernels[n]),
            kDevice, triton.kernels[n].checks ? status : nullptr);
        requests.push_back(kernel->request({codegen::Alignment::aligned}));
        requests.push_back(kernel->request({codegen::Alignment::general}));
        triton.plan.kernels[n].runner = std::move(kernel);
      }
      runtime::Machine machine{&device::ThreadPool::global(), &memory_, kernels::find_external};
      machine.device = kCUDA;
      out.push_back(
          {std::move(prepared), std::make_unique<runtime::PlanExecutor>(std::move(triton.plan), machine)});
    }
    compiler_.compile(requests);
    return out;
  }

  void check(const Ready& ready) {
    const Program& program = ready.prepared.program;
    const std::string repeat = fmt::format(
        "\n{}repeat with: STAX_FUZZ_SEED={} STAX_FUZZ_COUNT=1 {}/test_gpu --gtest_filter='ProgramsOnGpu*'\n",
        text(program), program.seed, STAX_TEST_PROGRAMS);
    try {
      const std::string found = difference(program, run_reference(ready.prepared), run(ready, memory_));
      if (!found.empty()) ADD_FAILURE() << found << repeat;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << repeat;
    }
    if (const std::string damage = memory_.damage(); damage != reported_) {
      ADD_FAILURE() << damage.substr(reported_.size()) << repeat;
      reported_ = damage;
    }
  }

  runtime::TritonCompiler& compiler_ = compiler::triton_compiler();
  GuardedMemory memory_;
  std::string reported_;
};

TEST_F(ProgramsOnGpu, AgreeWithTheReferenceAndStayInTheirBuffers) {
  const int64_t count = setting("STAX_FUZZ_COUNT", 128), seed = first_seed();
  for (int64_t first = 0; first < count; first += static_cast<int64_t>(kBatch)) {
    const int64_t some = std::min<int64_t>(static_cast<int64_t>(kBatch), count - first);
    for (const Ready& ready : made(seed + first, some)) check(ready);
  }
}

TEST_F(GpuTest, GuardZonesShowWhatIsWrittenBesideABlock) {
  GuardedMemory memory(kDevice);
  const std::vector<std::byte> bytes(8, std::byte{1});
  auto* inside = static_cast<std::byte*>(memory.allocate(100));
  device::copy_to_device(inside, bytes.data(), 8, kDevice);
  EXPECT_EQ(memory.damage(), "");
  memory.deallocate(inside, 100);
  auto* behind = static_cast<std::byte*>(memory.allocate(100));
  device::copy_to_device(behind + 99, bytes.data(), 8, kDevice);
  memory.deallocate(behind, 100);
  EXPECT_NE(memory.damage().find("behind its end, first at byte 0"), std::string::npos);
  auto* before = static_cast<std::byte*>(memory.allocate(100));
  device::copy_to_device(before - 8, bytes.data(), 8, kDevice);
  memory.deallocate(before, 100);
  EXPECT_NE(memory.damage().find("before its start, first at byte -8"), std::string::npos);
}

}  // namespace
}  // namespace stax::fuzz

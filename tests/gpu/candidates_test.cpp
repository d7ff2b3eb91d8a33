// Every launch configuration that tuning may try computes the same, and writes nothing beside its buffers.
#include <fmt/core.h>

#include <cmath>
#include <random>

#include "compiler/batch.h"
#include "compiler/pipeline.h"
#include "device/cuda_device.h"
#include "device/thread_pool.h"
#include "gpu/gpu_testing.h"
#include "gpu/guarded_memory.h"
#include "kernels/registry.h"
#include "runtime/cuda_kernel.h"
#include "tensor/tensor_impl.h"
#include "tuning/config_space.h"

namespace stax {
namespace {

constexpr int32_t kDevice = 0;
/// Of a drawn block: Triton takes minutes to compile scans of very long ones.
constexpr int64_t kMostElements = 4096;
/// Configurations of the whole space beside the candidates; the interpreter takes long for each.
size_t drawn() {
  return on_real_gpu() ? 12 : 0;
}

/// The configurations of a kernel: candidates, one that keeps several blocks of a row, others of the space.
std::vector<codegen::LaunchConfig> configurations(const codegen::TileKernel& kernel) {
  std::vector<codegen::LaunchConfig> out = tuning::candidates(kernel);
  if (kernel.keeps) out.push_back({.blocks = {{"XBLOCK", 2}, {"R0_BLOCK", 256}}, .kept = 3});
  const tuning::ConfigSpace space(kernel);
  std::mt19937_64 random(7);
  for (size_t k = 0; k < drawn();) {
    codegen::LaunchConfig config = space.draw(random);
    int64_t elements = 1;
    for (const auto& [name, size] : config.blocks) elements *= size;
    for (const codegen::TileAxis& axis : kernel.axes) elements *= std::max<int64_t>(axis.block, 1);
    if (elements > kMostElements) continue;
    out.push_back(std::move(config));
    ++k;
  }
  return out;
}

/// A function of tensors with one dense float32 result, compiled up to the choice of configurations.
class EachConfiguration {
 public:
  EachConfiguration(const compiler::TensorFunction& f, std::vector<Tensor> inputs)
      : inputs_(std::move(inputs)), captured_(compiler::trace_function(f, inputs_, {}, kCUDA)) {
    stages_ = compiler::run_stages(captured_.graph, *captured_.env, {.strict_native = true});
    for (const compiler::GpuKernel& kernel : stages_.gpu_kernels)
      configurations_.push_back(configurations(kernel.tile));
    compile_all();
  }

  size_t count() const {
    size_t most = 0;
    for (const auto& of_kernel : configurations_) most = std::max(most, of_kernel.size());
    return most;
  }
  /// What the kernels are launched with in turn `turn`.
  std::string text(size_t turn) const {
    std::string out;
    for (const auto& of_kernel : configurations_) out += tuning::to_string(of(of_kernel, turn)) + "; ";
    return out;
  }
  /// The elements of the result.
  std::vector<float> run(size_t turn, GuardedMemory& memory) const {
    runtime::Machine machine{&device::ThreadPool::global(), &memory, kernels::find_external};
    machine.device = kCUDA;
    const runtime::PlanExecutor executor(plan(turn), machine);
    std::vector<runtime::InputTensor> tensors;
    std::vector<std::vector<int64_t>> sizes;
    for (const Tensor& t : inputs_) sizes.push_back(t.sizes().values());
    for (const Tensor& t : inputs_) sizes.push_back(t.strides().values());
    for (size_t k = 0; k < inputs_.size(); ++k)
      tensors.push_back(
          {strided(inputs_[k]).data(), inputs_[k].dtype(), sizes[k], sizes[inputs_.size() + k]});
    std::vector<runtime::OutputTensor> outputs(1);
    runtime::RunOutputs results{outputs, {}};
    executor.run({tensors}, results);
    std::vector<float> got(static_cast<size_t>(outputs[0].bytes) / sizeof(float));
    device::copy_to_host(got.data(), outputs[0].data, outputs[0].bytes, kDevice);
    memory.deallocate(outputs[0].data, outputs[0].bytes);
    return got;
  }

 private:
  /// So that launches find their kernels in the cache.
  void compile_all() const {
    std::vector<runtime::TritonRequest> requests;
    for (size_t k = 0; k < stages_.gpu_kernels.size(); ++k)
      for (const codegen::LaunchConfig& config : configurations_[k])
        requests.push_back(kernel(k, config)->request({codegen::Alignment::aligned}));
    compiler::triton_compiler().compile(requests);
  }
  std::shared_ptr<runtime::CudaKernel> kernel(size_t k, const codegen::LaunchConfig& config) const {
    const compiler::GpuKernel& made = stages_.gpu_kernels[k];
    return std::make_shared<runtime::CudaKernel>(compiler::triton_compiler(), made.tile, config, made.sources,
                                                 kDevice, nullptr);
  }
  static const codegen::LaunchConfig& of(const std::vector<codegen::LaunchConfig>& list, size_t turn) {
    return list[turn % list.size()];
  }
  codegen::Plan plan(size_t turn) const {
    codegen::Plan plan = compiler::plan_of(stages_);
    for (size_t k = 0; k < stages_.gpu_kernels.size(); ++k)
      plan.kernels[k].runner = kernel(k, of(configurations_[k], turn));
    return plan;
  }

  std::vector<Tensor> inputs_;
  capture::Captured captured_;
  compiler::Stages stages_;
  std::vector<std::vector<codegen::LaunchConfig>> configurations_;
};

/// What `terms` roundings to float32 may add up to, relatively: those of a sum of one element at a time.
double rounding(int64_t terms) {
  return std::ldexp(static_cast<double>(terms), -24);
}

/// `expected`: of an element of the result, by its position. `kept`: whether some rows stay in registers.
void expect_in_every_configuration(const compiler::TensorFunction& f, const std::vector<Tensor>& inputs,
                                   double tolerance, size_t length,
                                   const std::function<double(size_t)>& expected, bool kept = false) {
  GuardedMemory memory(kDevice);
  const EachConfiguration each(f, inputs);
  ASSERT_GT(each.count(), drawn());  // candidates there are always
  bool keeps = false;
  for (size_t turn = 0; turn < each.count(); ++turn) {
    SCOPED_TRACE(each.text(turn));
    keeps = keeps || each.text(turn).find(codegen::kKeptBlocks) != std::string::npos;
    const std::vector<float> got = each.run(turn, memory);
    ASSERT_EQ(got.size(), length);
    for (size_t k = 0; k < length; ++k)
      ASSERT_NEAR(got[k], expected(k), tolerance * std::abs(expected(k))) << "element " << k;
    ASSERT_EQ(memory.damage(), "");
  }
  EXPECT_TRUE(keeps || !kept);
}

Tensor ones_there(IntList sizes) {
  return ones(sizes).cuda();
}

/// A size for a GPU, and one that the interpreter does not take long for.
int64_t size(int64_t large, int64_t small) {
  return on_real_gpu() ? large : small;
}

// One loop, and several kernels.
TEST_F(GpuTest, EveryConfigurationOfAScan) {
  for (const int64_t n : {size(8003, 1003), size(100003, 33793)}) {
    expect_in_every_configuration([](const auto& t) { return std::vector{cumsum(t[0], 0)}; },
                                  {ones_there({n})}, 0, static_cast<size_t>(n),
                                  [](size_t k) { return static_cast<double>(k + 1); });
  }
}

TEST_F(GpuTest, EveryConfigurationOfReductions) {
  const int64_t rows = size(517, 3), length = size(30001, 1101), columns = size(333, 5);
  // A logarithm of the length at another place of each row: it gets half of the sum, nearly.
  const Tensor peaks =
      (arange(length) == arange(rows).unsqueeze(1)).to(kFloat32) * std::log(static_cast<double>(length));
  const auto n = static_cast<double>(length);
  expect_in_every_configuration([](const auto& t) { return std::vector{softmax(t[0], -1)}; }, {peaks.cuda()},
                                rounding(2 * length), static_cast<size_t>(rows * length),
                                [=](size_t k) {
                                  const auto at = static_cast<int64_t>(k);
                                  return (at % length == at / length ? n : 1) / (2 * n - 1);
                                });
  const Tensor weights = arange(1, columns + 1).to(kFloat32);
  expect_in_every_configuration([](const auto& t) { return std::vector{(t[0] * 2).sum(0)}; },
                                {weights.expand({length, columns}).contiguous().cuda()}, rounding(length),
                                static_cast<size_t>(columns),
                                [=](size_t k) { return 2 * n * static_cast<double>(k + 1); });
  const int64_t all = size(3000007, 3007);
  expect_in_every_configuration([](const auto& t) { return std::vector{t[0].sum()}; }, {ones_there({all})}, 0,
                                1, [=](size_t) { return static_cast<double>(all); });
  expect_in_every_configuration([](const auto& t) { return std::vector{var(t[0], {-1}, 1)}; },
                                {arange(0, 1025, kFloat32).expand({rows, 1025}).contiguous().cuda()},
                                rounding(4 * 1025), static_cast<size_t>(rows),
                                [](size_t) { return 1025.0 * 1026.0 / 12.0; });
}

// Rows of a kernel of several passes, some of whose blocks stay in registers. Of the first, sums are exact.
TEST_F(GpuTest, EveryConfigurationOfRowsThatAreUsedTwice) {
  const int64_t rows = size(300, 5), length = size(30003, 3003);
  const Tensor alternating = (arange(rows * length) % 2).view({rows, length}).to(kBFloat16);
  const auto centred = [](const auto& t) {
    const Tensor x = t[0].to(kFloat32);
    return std::vector{x * 4 - x.sum(-1, true)};
  };
  const auto at = [=](size_t k) { return static_cast<int64_t>(k) / length; };
  expect_in_every_configuration(
      centred, {alternating.cuda()}, 0, static_cast<size_t>(rows * length),
      [=](size_t k) {
        // A row that starts with 1 has one more of them, since its length is odd.
        const int64_t ones = (length + at(k) % 2) / 2;
        return static_cast<double>(4 * static_cast<int64_t>(k % 2) - ones);
      },
      true);
  const Tensor peaks =
      (arange(length) == arange(rows).unsqueeze(1)).to(kFloat32) * std::log(static_cast<double>(length));
  const auto n = static_cast<double>(length);
  expect_in_every_configuration([](const auto& t) { return std::vector{softmax(t[0], -1)}; }, {peaks.cuda()},
                                rounding(2 * length), static_cast<size_t>(rows * length),
                                [=](size_t k) {
                                  const bool peak = static_cast<int64_t>(k) % length == at(k);
                                  return (peak ? n : 1) / (2 * n - 1);
                                },
                                true);
}

// Three passes, two tensors, positions: row i of the first has its largest element at 7 * i + 300, in the
// second block of those that stay, or at length - 1 - i, behind all of them. The second holds 1, -1, 1, ...
// Positions count modulo 251, so that one thread's part of a sum, all of one sign, is exact.
TEST_F(GpuTest, EveryConfigurationOfRowsThatAreUsedByThreePasses) {
  const int64_t rows = size(300, 6), length = size(30004, 3004);
  const auto position = [=](int64_t row) { return row % 2 == 0 ? 7 * row + 300 : length - 1 - row; };
  const Tensor row = arange(rows).unsqueeze(1);
  const Tensor positions = where(row % 2 == 0, row * 7 + 300, row * -1 + (length - 1));
  const Tensor peaks = (arange(length) == positions).to(kFloat32);
  const Tensor signs = (1 - 2 * (arange(rows * length) % 2)).view({rows, length}).to(kFloat32);
  const auto f = [](const auto& t) {
    const Tensor at = (t[0].argmax(-1, true) % 251).to(kFloat32);
    const Tensor scaled = (t[1] + t[0]) * at;
    return std::vector{scaled - scaled.sum(-1, true) + t[1]};
  };
  // Signs cancel along a row, so that the sum is the peak's 1 times its position.
  expect_in_every_configuration(
      f, {peaks.cuda(), signs.cuda()}, 0, static_cast<size_t>(rows * length),
      [=](size_t k) {
        const auto column = static_cast<int64_t>(k) % length;
        const int64_t at = position(static_cast<int64_t>(k) / length);
        const int64_t sign = column % 2 == 0 ? 1 : -1, peak = column == at, factor = at % 251;
        return static_cast<double>((sign + peak) * factor - factor + sign);
      },
      true);
}

TEST_F(GpuTest, EveryConfigurationOfElementwiseKernels) {
  expect_in_every_configuration([](const auto& t) { return std::vector{(t[0].t() + t[1]) * 2}; },
                                {arange(0, 70 * 45, kFloat32).view({70, 45}).cuda(), ones_there({45, 70})}, 0,
                                70 * 45,
                                [](size_t k) { return 2.0 * static_cast<double>(k % 70 * 45 + k / 70 + 1); });
}

}  // namespace
}  // namespace stax

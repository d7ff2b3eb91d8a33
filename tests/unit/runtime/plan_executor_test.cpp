// Plans with kernels written by hand, so that nothing of code generation is needed.
#include "runtime/plan_executor.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "device/cpu_allocator.h"
#include "loops/parse.h"
#include "stax/error.h"
#include "support/heap_counter.h"

namespace stax::runtime {
namespace {

using codegen::KernelStatus;
using codegen::Plan;
using loops::Constant;
using testing::ElementsAre;
using testing::HasSubstr;

kernels::ExternalFunction no_external(std::string_view name) {
  throw InternalError(fmt::format("no external function {}", name));
}

/// A machine of its own, so that what it holds can be counted.
struct TestMachine {
  explicit TestMachine(int threads = 1) : pool(threads), allocator(int64_t{1} << 26) {}
  device::ThreadPool pool;
  device::CpuAllocator allocator;
  Machine machine(kernels::ExternalFunction (*find)(std::string_view) = no_external) {
    return {&pool, &allocator, find};
  }
};

struct KernelOf {
  std::vector<loops::BufferId> buffers;
  codegen::KernelEntry entry;
  Expr extent;
  int64_t scratch_bytes = 0;
  std::vector<Symbol> symbols = {};
};

/// The plan of `text` as it is scheduled, its groups running the given functions.
Plan plan_of(std::string_view text, const std::vector<KernelOf>& kernels) {
  const loops::Program program = loops::parse_program(text);
  loops::verify(program);
  const schedule::Schedule s = schedule::make_schedule(program, {});
  std::vector<codegen::KernelInfo> infos;
  size_t next = 0;
  for (const schedule::Group& g : s.groups) {
    if (g.external) continue;
    const KernelOf& k = kernels.at(next++);
    infos.push_back({g.name, k.buffers, k.symbols, {}, k.extent, 8, k.scratch_bytes});
  }
  Plan plan = codegen::make_plan(program, s, infos);
  for (size_t k = 0; k < plan.kernels.size(); ++k) plan.kernels[k].entry = kernels[k].entry;
  return plan;
}

InputTensor tensor(std::vector<float>& data, std::span<const int64_t> sizes,
                   std::span<const int64_t> strides) {
  return {data.data(), DType::float32, sizes, strides};
}

// out0 = scalar * (in0 + 1), by way of an intermediate that is summed pairwise in reverse: two kernels.
constexpr std::string_view kTwoKernels = R"(
buffer in0 float32 [40] input
buffer out0 float32 [40] output
buffer buf0 float32 [40] intermediate
scalars [float64, int64]
node op0 "add" [i0 < 40]
  v0 = load float32 in0[i0]
  v1 = constant float32 1.0
  v2 = add float32 v0 v1
  store buf0[i0] v2
node op1 "flip" [i0 < 40]
  v0 = load float32 buf0[39 - i0]
  store out0[i0] v0
)";

void add_one(void* const* buffers, const long*, const void*, long*, long begin, long end) {
  const float* in = static_cast<const float*>(buffers[0]);
  float* out = static_cast<float*>(buffers[1]);
  for (long i = begin; i < end; ++i) out[i] = in[i] + 1;
}

void flip_times_scalars(void* const* buffers, const long*, const void* scalars, long*, long begin, long end) {
  const float* in = static_cast<const float*>(buffers[0]);
  float* out = static_cast<float*>(buffers[1]);
  const double factor = *static_cast<const double*>(scalars);
  const int64_t plus = static_cast<const int64_t*>(scalars)[1];
  for (long i = begin; i < end; ++i)
    out[i] = static_cast<float>(factor * in[39 - i] + static_cast<double>(plus));
}

const int64_t kForty[] = {40}, kOne[] = {1};

TEST(PlanExecutor, RunsKernelsThroughTheArena) {
  TestMachine m;
  {
    PlanExecutor executor(plan_of(kTwoKernels, {{{0, 2}, add_one, 40}, {{2, 1}, flip_times_scalars, 40}}),
                          m.machine());
    std::vector<float> in(40);
    std::iota(in.begin(), in.end(), 0.0f);
    const InputTensor inputs[] = {tensor(in, kForty, kOne)};
    const Constant scalars[] = {Constant::of(0.5), Constant::of(int64_t{3})};
    OutputTensor outputs[1];
    RunOutputs out{outputs, {}};
    executor.run({inputs, scalars}, out);
    ASSERT_EQ(outputs[0].bytes, 160);
    EXPECT_THAT(std::vector<int64_t>(outputs[0].sizes.begin(), outputs[0].sizes.end()), ElementsAre(40));
    EXPECT_THAT(std::vector<int64_t>(outputs[0].strides.begin(), outputs[0].strides.end()), ElementsAre(1));
    const float* result = static_cast<const float*>(outputs[0].data);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(result[i], 0.5f * static_cast<float>(40 - i) + 3);
    EXPECT_GT(m.allocator.stats().in_use_bytes, 0);
    m.allocator.deallocate(outputs[0].data, outputs[0].bytes);
  }
  EXPECT_EQ(m.allocator.stats().in_use_bytes, 0);
}

TEST(PlanExecutor, ACallAllocatesOnlyFromTheCachingAllocator) {
  TestMachine m;
  PlanExecutor executor(plan_of(kTwoKernels, {{{0, 2}, add_one, 40}, {{2, 1}, flip_times_scalars, 40}}),
                        m.machine());
  std::vector<float> in(40, 1.0f);
  const InputTensor inputs[] = {tensor(in, kForty, kOne)};
  const Constant scalars[] = {Constant::of(1.0), Constant::of(int64_t{0})};
  OutputTensor outputs[1];
  RunOutputs out{outputs, {}};
  const auto call = [&] {
    executor.run({inputs, scalars}, out);
    m.allocator.deallocate(outputs[0].data, outputs[0].bytes);
  };
  for (int k = 0; k < 3; ++k) call();  // fills the caches
  const int64_t before = heap_allocations();
  for (int k = 0; k < 10; ++k) call();
  EXPECT_EQ(heap_allocations() - before, 0);
}

TEST(PlanExecutor, RefusesOtherInputs) {
  TestMachine m;
  PlanExecutor executor(plan_of(kTwoKernels, {{{0, 2}, add_one, 40}, {{2, 1}, flip_times_scalars, 40}}),
                        m.machine());
  std::vector<float> in(80, 1.0f);
  const Constant scalars[] = {Constant::of(1.0), Constant::of(int64_t{0})};
  OutputTensor outputs[1];
  RunOutputs out{outputs, {}};
  const auto message = [&](InputTensor input) -> std::string {
    try {
      executor.run({std::span(&input, 1), scalars}, out);
    } catch (const UserError& e) {
      return e.what();
    }
    m.allocator.deallocate(outputs[0].data, outputs[0].bytes);
    return "fine";
  };
  const int64_t thirty_nine[] = {39}, two[] = {2}, plane[] = {40, 1}, ones[] = {1, 1};
  EXPECT_EQ(message(tensor(in, kForty, kOne)), "fine");
  EXPECT_THAT(message(tensor(in, thirty_nine, kOne)),
              HasSubstr("sizes [40] and strides [1], got float32 with sizes [39]"));
  EXPECT_THAT(message(tensor(in, kForty, two)), HasSubstr("strides [2]"));
  EXPECT_THAT(message(tensor(in, plane, ones)), HasSubstr("sizes [40, 1]"));
  EXPECT_THAT(message({in.data(), DType::int32, kForty, kOne}), HasSubstr("expected float32"));
  EXPECT_EQ(m.allocator.stats().in_use_bytes, 0);
}

constexpr std::string_view kGather = R"(
buffer in0 float32 [5] input
buffer in1 int64 [3] input
buffer out0 float32 [3] output
node op0 "index_select" [i0 < 3]
  v0 = load int64 in1[i0]
  v1 = check_index int64 v0 size 5
  v2 = load float32 in0[t0] indirect v1
  store out0[i0] v2
)";

void gather(void* const* buffers, const long*, const void*, long* status, long begin, long end) {
  auto* s = reinterpret_cast<KernelStatus*>(status);
  for (long i = begin; i < end; ++i) {
    long at = static_cast<const int64_t*>(buffers[1])[i];
    if (at < 0 || at >= 5) {
      if (!s->flag) *s = {0, at, 5, 1};
      at = 0;
    }
    static_cast<float*>(buffers[2])[i] = static_cast<const float*>(buffers[0])[at];
  }
}

TEST(PlanExecutor, RaisesAFailedIndexAtTheEnd) {
  TestMachine m;
  PlanExecutor executor(plan_of(kGather, {{{0, 1, 2}, gather, 3}}), m.machine());
  std::vector<float> in{10, 11, 12, 13, 14};
  std::vector<int64_t> at{4, 7, 0};
  const int64_t five[] = {5}, three[] = {3};
  const InputTensor inputs[] = {tensor(in, five, kOne), {at.data(), DType::int64, three, kOne}};
  OutputTensor outputs[1];
  RunOutputs out{outputs, {}};
  try {
    executor.run({inputs, {}}, out);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("[index_select] index 7 is out of range for a dimension of size 5"));
  }
  EXPECT_EQ(outputs[0].data, nullptr);
  EXPECT_EQ(m.allocator.stats().in_use_bytes, 0);
  at[1] = 1;  // the failure does not stick
  executor.run({inputs, {}}, out);
  const float* result = static_cast<const float*>(outputs[0].data);
  EXPECT_THAT(std::vector<float>(result, result + 3), ElementsAre(14, 11, 10));
  m.allocator.deallocate(outputs[0].data, outputs[0].bytes);
}

// A mutated input, scratch for each thread, and a size symbol.
constexpr std::string_view kInPlace = R"(
buffer in0 float32 [s0] input mutated
bind s0 size 0 0
node op0 "mul_" [i0 < s0]
  v0 = load float32 in0[i0]
  v1 = mul float32 v0 v0
  store in0[i0] v1
)";

std::atomic<int> parts{0};

void square_in_place(void* const* buffers, const long* sizes, const void*, long*, long begin, long end) {
  float* data = static_cast<float*>(buffers[0]);
  float* scratch = static_cast<float*>(buffers[1]);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch) % 64, 0u);
  EXPECT_LE(end, sizes[0]);
  parts.fetch_add(1);
  for (long from = begin; from < end; from += 16) {
    const long to = std::min(end, from + 16);
    for (long i = from; i < to; ++i) scratch[i - from] = data[i] * data[i];
    for (long i = from; i < to; ++i) data[i] = scratch[i - from];
  }
}

TEST(PlanExecutor, MutatesInputsInParallelAtAnySize) {
  TestMachine m(4);
  const Symbol s0{SymbolKind::size, 0};
  PlanExecutor executor(plan_of(kInPlace, {{{0}, square_in_place, Expr(s0), 64, {s0}}}), m.machine());
  for (const int64_t n : {1, 7, 0, 1000, 4096}) {
    parts = 0;
    std::vector<float> data(static_cast<size_t>(n));
    std::iota(data.begin(), data.end(), 1.0f);
    const int64_t sizes[] = {n};
    const InputTensor inputs[] = {tensor(data, sizes, kOne)};
    RunOutputs out;
    executor.run({inputs, {}}, out);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(data[i], static_cast<float>((i + 1) * (i + 1))) << n;
    EXPECT_EQ(parts > 0, n > 0);
    EXPECT_GT(parts, n == 4096 ? 1 : -1);
  }
  EXPECT_EQ(m.allocator.stats().in_use_bytes, 0);
}

// External: out0 = in0[1:] scaled by 2.5 into a view of the output, beside a constant.
constexpr std::string_view kExternal = R"(
buffer in0 float32 [s0] input
buffer out0 float32 [s0 + 2] output
bind s0 size 0 0
external op0 "scale" "scale"
  argument tensor in0 float32 [s0 - 1] strides [1] offset 1
  argument tensors {in0 float32 [1] strides [1] offset 0; none}
  argument float 2.5
  argument ints [s0, 3]
  result out0 float32 [s0 - 1] strides [1] offset 2
)";

void scale(std::span<const Argument<TensorView>> arguments, std::span<const TensorView> results) {
  const TensorView& in = arguments[0].tensor();
  EXPECT_EQ(*static_cast<float*>(arguments[1].tensors()[0]->data), 1.0f);
  EXPECT_FALSE(arguments[1].tensors()[1].has_value());
  EXPECT_EQ(arguments[3].integers()[0].value(), in.sizes[0] + 1);
  EXPECT_EQ(arguments[3].integers()[1].value(), 3);
  for (int64_t i = 0; i < in.numel(); ++i) {
    static_cast<float*>(results[0].data)[i] =
        static_cast<float>(arguments[2].floating()) * static_cast<const float*>(in.data)[i];
  }
}

kernels::ExternalFunction find_scale(std::string_view name) {
  EXPECT_EQ(name, "scale");
  return scale;
}

TEST(PlanExecutor, CallsExternalFunctionsOnViews) {
  TestMachine m;
  const loops::Program p = loops::parse_program(kExternal);
  PlanExecutor executor(codegen::make_plan(p, schedule::make_schedule(p, {}), {}), m.machine(find_scale));
  for (const int64_t n : {2, 5}) {
    std::vector<float> in(static_cast<size_t>(n));
    std::iota(in.begin(), in.end(), 1.0f);
    const int64_t sizes[] = {n};
    const InputTensor inputs[] = {tensor(in, sizes, kOne)};
    OutputTensor outputs[1];
    RunOutputs out{outputs, {}};
    executor.run({inputs, {}}, out);
    EXPECT_EQ(outputs[0].sizes[0], n + 2);
    EXPECT_EQ(outputs[0].bytes, 4 * (n + 2));
    for (int64_t i = 1; i < n; ++i) {
      EXPECT_EQ(static_cast<float*>(outputs[0].data)[i + 1], 2.5f * static_cast<float>(i + 1));
    }
    m.allocator.deallocate(outputs[0].data, outputs[0].bytes);
    const int64_t before = heap_allocations();
    executor.run({inputs, {}}, out);  // the views are kept, and set anew
    EXPECT_EQ(heap_allocations() - before, 0);
    m.allocator.deallocate(outputs[0].data, outputs[0].bytes);
  }
}

TEST(PlanExecutor, ManyThreadsCallOnePlan) {
  TestMachine m(2);
  PlanExecutor executor(plan_of(kTwoKernels, {{{0, 2}, add_one, 40}, {{2, 1}, flip_times_scalars, 40}}),
                        m.machine());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float> in(40, static_cast<float>(t));
      const InputTensor inputs[] = {tensor(in, kForty, kOne)};
      const Constant scalars[] = {Constant::of(2.0), Constant::of(int64_t{t})};
      for (int k = 0; k < 200; ++k) {
        OutputTensor outputs[1];
        RunOutputs out{outputs, {}};
        executor.run({inputs, scalars}, out);
        for (int i = 0; i < 40; ++i) {
          wrong += static_cast<float*>(outputs[0].data)[i] != static_cast<float>(2 * (t + 1) + t);
        }
        m.allocator.deallocate(outputs[0].data, outputs[0].bytes);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(m.allocator.stats().in_use_bytes, 0);
}

TEST(PlanExecutor, RefusesKernelsItCannotRun) {
  TestMachine m;
  EXPECT_THROW(PlanExecutor(plan_of(kGather, {{{0, 1, 2}, nullptr, 3}}), m.machine()), InternalError);
}

}  // namespace
}  // namespace stax::runtime

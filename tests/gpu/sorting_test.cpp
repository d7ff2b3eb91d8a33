// Orders of rows.
#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gpu/gpu_testing.h"

namespace stax {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// 0 to count - 1, each once, out of order; 37 and `count` have no common factor.
Tensor shuffled(int64_t count) {
  return remainder(arange(count, kInt64) * 37, count);
}

/// Where shuffled(count) has 0, 1, ...; `inverse` times 37 is 1 modulo count.
Tensor places(int64_t count, int64_t inverse) {
  return remainder(arange(count, kInt64) * inverse, count);
}

/// No step of the program is a function of the CPU.
template <class Compiled>
void expect_on_gpu(const Compiled& compiled) {
  for (const auto& artifact : compiled.artifacts()) {
    EXPECT_EQ(artifact.plan.find("extern_kernels"), std::string::npos) << artifact.plan;
    EXPECT_GE(artifact.kernels.size(), 1u);
  }
}

// 37 * 1063 = 39331 = 19 * 2070 + 1, 37 * 941 = 34817 = 17 * 2048 + 1, 37 * 170 = 6290 = 19 * 331 + 1, and
// 37 * 1 = 37 = 36 + 1.
TEST_F(GpuTest, SortsRowsByKernels) {
  auto compiled = compile([](const Tensor& x) { return sort(x, -1); }, {.strict_native = true});
  for (const auto& [count, inverse] :
       {std::pair<int64_t, int64_t>{2070, 1063}, {2048, 941}, {331, 170}, {36, 1}}) {
    if (count > 2048 && !on_real_gpu()) continue;  // takes the interpreter minutes
    const Tensor x = stack({shuffled(count), shuffled(count) * -1 + (count - 1)}).to(kFloat32);
    const auto [values, indices] = compiled(x.cuda());
    expect_close(values, arange(count).to(kFloat32).expand({2, count}).contiguous());
    expect_close(indices, stack({places(count, inverse), places(count, inverse).flip({0})}));
    const auto [eager_values, eager_indices] = sort(x.cuda(), -1);
    expect_close(eager_values, values.cpu());
    expect_close(eager_indices, indices.cpu());
  }
  expect_on_gpu(compiled);
}

// Along the first dimension of a transposed tensor, half types; equal elements keep their order either way.
TEST_F(GpuTest, SortsEqualElementsInTheirOrder) {
  for (const DType dtype : {kBFloat16, kInt8, kFloat64}) {
    const Tensor x = remainder(arange(30, kInt64), 3).to(dtype).view({1, 30});
    for (const bool descending : {false, true}) {
      auto compiled = compile([=](const Tensor& t) { return sort(t.t() * 1, 0, descending); });
      const auto [values, indices] = compiled(x.cuda());
      std::vector<int64_t> order;
      for (const int64_t v : {0, 1, 2})
        for (int64_t k = 0; k < 10; ++k) order.push_back((descending ? 2 - v : v) + 3 * k);
      expect_close(indices, tensor(order, kInt64).view({30, 1}));
      expect_close(values, remainder(tensor(order, kInt64), 3).to(dtype).view({30, 1}));
      expect_on_gpu(compiled);
    }
  }
  const Tensor bools = tensor({1, 0, 1, 0}, kInt64).to(kBool);
  expect_close(argsort(bools.cuda()), tensor({1, 3, 0, 2}, kInt64));
  expect_close(argsort(bools.cuda(), -1, true), tensor({0, 2, 1, 3}, kInt64));
}

// Along the middle dimension, against the CPU's function: many equal elements, and the least and the largest.
TEST_F(GpuTest, SortsRowsOfEveryDtype) {
  for (const DType dtype :
       {kFloat32, kFloat16, kBFloat16, kInt32, kInt16, kInt8, kUInt8, kBool, kFloat64, kInt64}) {
    const int64_t bits = 8 * itemsize(dtype);
    const double last = dtype == kUInt8 ? 255 : std::ldexp(1, static_cast<int>(bits) - 1) - 1;
    std::vector<double> numbers;
    for (int64_t k = 0; k < 2 * 37 * 3; ++k) {
      const bool special = k % 5 == 0 && bits <= 32 && dtype != kBool;
      const double extremes[] = {is_floating_point(dtype) ? -kInf
                                 : dtype == kUInt8        ? 0
                                                          : -last - 1,
                                 is_floating_point(dtype) ? kInf : last, is_floating_point(dtype) ? kNan : 1,
                                 is_floating_point(dtype) ? -0.0 : 0};
      numbers.push_back(special ? extremes[k / 5 % 4] : static_cast<double>(k * k % 11 % 7));
    }
    const Tensor x = tensor(numbers, kFloat64).to(dtype).view({2, 37, 3});
    for (const bool descending : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, {}", name(dtype), descending));
      auto compiled =
          compile([=](const Tensor& t) { return sort(t, 1, descending); }, {.strict_native = true});
      const auto [values, indices] = compiled(x.cuda());
      const auto [wanted, at] = sort(x, 1, descending);
      expect_close(indices, at);
      expect_close(nan_to_num(values.cpu().to(kFloat64), 7.5), nan_to_num(wanted.to(kFloat64), 7.5));
      expect_on_gpu(compiled);
    }
  }
}

TEST_F(GpuTest, SortsNanBehindNumbers) {
  const Tensor x = tensor({kNan, 1.0, -kInf, kNan, 0.0, -0.0, kInf}, kFloat32);
  expect_close(argsort(x.cuda()), tensor({2, 4, 5, 1, 6, 0, 3}, kInt64));
  expect_close(argsort(x.cuda(), -1, true), tensor({0, 3, 6, 1, 4, 5, 2}, kInt64));
  const auto [largest, at] = topk(x.cuda(), 3);
  expect_close(at, tensor({0, 3, 6}, kInt64));
  const auto [smallest, where_smallest] = topk(x.cuda(), 2, -1, false);
  expect_close(smallest, tensor({-kInf, 0.0}, kFloat32));
  expect_close(where_smallest, tensor({2, 4}, kInt64));
}

// 0 to 1008 in an order that repeats; 37 * 300 = 11 * 1009 + 1, so -300 is where the largest lies.
TEST_F(GpuTest, FindsTheFirstOfLongRows) {
  constexpr int64_t kPeriod = 1009, kFirst = 5;
  // The interpreter takes a second for a chunk; the last one of these has fewer than five elements if each
  // has 1024.
  const int64_t length = on_real_gpu() ? 50245 : 4100;
  const Tensor x = remainder(arange(length, kInt64) * 37, kPeriod).to(kFloat16);
  for (const bool largest : {true, false}) {
    auto compiled =
        compile([=](const Tensor& t) { return topk(t, kFirst, -1, largest); }, {.strict_native = true});
    const auto [values, indices] = compiled(x.cuda());
    std::vector<int64_t> at;
    for (int64_t value = 0; std::ssize(at) < kFirst; ++value)  // from the first on
      for (int64_t p = largest ? (kPeriod - 300 * (value + 1) % kPeriod) % kPeriod : 300 * value % kPeriod;
           p < length && std::ssize(at) < kFirst; p += kPeriod)
        at.push_back(p);
    expect_close(indices, tensor(at, kInt64));
    expect_close(values, x.index_select(0, tensor(at, kInt64)));
    EXPECT_EQ(compiled.artifacts().at(0).kernels.size(), 2u);
    expect_on_gpu(compiled);
  }
}

TEST_F(GpuTest, SelectsByRanks) {
  auto compiled = compile(
      [](const Tensor& x) {
        const auto [third, at_third] = kthvalue(x, 3, 1, true);
        const auto [middle, at_middle] = median(x, 1);
        const auto [of_numbers, at_numbers] = nanmedian(x, 1);
        return std::vector{third, at_third, middle, at_middle, of_numbers, at_numbers};
      },
      {.strict_native = true});
  const Tensor x = tensor({5.0, 1.0, 4.0, 2.0,      //
                           5.0, kNan, 1.0, kNan,    //
                           kNan, kNan, kNan, kNan,  //
                           7.0, 7.0, 7.0, 7.0},
                          kFloat32)
                       .view({4, 4});
  const std::vector<Tensor> got = compiled(x.cuda());
  const auto column = [](std::vector<int64_t> values) { return tensor(values, kInt64); };
  expect_close(got[1], column({2, 1, 2, 2}).view({4, 1}));
  expect_close(got[0].cpu().index_select(0, column({0, 3})), tensor({4.0, 7.0}, kFloat32).view({2, 1}));
  expect_close(got[3], column({3, 1, 0, 1}));
  expect_close(got[2].cpu().index_select(0, column({0, 3})), tensor({2.0, 7.0}, kFloat32));
  EXPECT_TRUE(isnan(got[2].cpu()).equal(tensor({0, 1, 1, 0}, kInt64).to(kBool)));
  expect_close(got[5], column({3, 2, 0, 1}));
  expect_close(got[4].cpu().index_select(0, column({0, 1, 3})), tensor({2.0, 1.0, 7.0}, kFloat32));
  EXPECT_TRUE(isnan(got[4].cpu()).equal(tensor({0, 0, 1, 0}, kInt64).to(kBool)));
  expect_on_gpu(compiled);
}

// Longer rows go to the CPU; so does the first of them when the function was compiled for shorter ones.
TEST_F(GpuTest, OrdersRowsOfAllLengths) {
  auto compiled = compile([](const Tensor& x) { return topk(x, 2); }, {.dynamic = true});
  for (const int64_t count : {100, 36, 3, 2, 17000, 40}) {
    SCOPED_TRACE(count);
    const auto [values, indices] = compiled(shuffled(count).to(kFloat32).cuda());
    expect_close(values, tensor({count - 1, count - 2}, kInt64).to(kFloat32));
    for (int64_t k = 0; k < 2; ++k)
      EXPECT_EQ(indices.cpu().select(0, k).item<int64_t>() * 37 % count, count - 1 - k);
  }
  EXPECT_LE(compiled.artifacts().size(), 3u);
  const auto [none, of_none] = sort(empty({3, 0}, TensorOptions(kFloat32).device(kCUDA)));
  EXPECT_EQ(none.numel() + of_none.numel(), 0);
  const auto [one, at_one] = sort(full({}, 2.5).cuda());
  expect_close(one, full({}, 2.5));
  expect_close(at_one, zeros({}, kInt64));
}

}  // namespace
}  // namespace stax

// Scans along long axes, which several kernels compute: the totals of chunks, what comes before each chunk,
// and each chunk.
#include <cmath>

#include "gpu/gpu_testing.h"

namespace stax {
namespace {

/// Small integers, so that sums are exact and extrema repeat.
Tensor some(IntList sizes) {
  SymInt count = 1;
  for (size_t k = 0; k < sizes.size(); ++k) count *= sizes[k];
  const Tensor k = arange(count, kInt64);
  return (remainder(remainder(k * k * k, 1009), 11) - 4).to(kFloat32).reshape(sizes);
}

/// A running result by a loop on the host along the only dimension: `step` changes `running`, given an
/// element and its position.
template <class Step>
Tensor by_loop(const Tensor& x, double running, Step&& step) {
  std::vector<double> out;
  const Tensor wide = x.to(kFloat64).contiguous();
  const auto* values = static_cast<const double*>(wide.data_ptr());
  for (int64_t k = 0; k < x.numel(); ++k) {
    step(running, values[k], k);
    out.push_back(running);
  }
  return tensor(out, kFloat64);
}

Tensor sums_of(const Tensor& x) {
  return by_loop(x, 0, [](double& sum, double v, int64_t) { sum += v; });
}

// The lengths fill the last chunk, miss it by one, and pass it by one.
TEST_F(GpuTest, LongScansAreComputedInChunks) {
  const auto f = [](const Tensor& x) { return cumsum(x * 2, 0) + 1; };
  for (const int64_t n : {33791, 33792, 33793, 40000}) {
    const Tensor x = some({n});
    auto compiled = compile(f, {.strict_native = true});
    const Tensor got = compiled(x.cuda());
    expect_close(got.to(kFloat64), sums_of(x) * 2 + 1);
    // What follows joins the third kernel where all chunks are full: of 1024 elements, or of 1000.
    EXPECT_EQ(compiled.artifacts().at(0).kernels.size(), n == 33792 || n == 40000 ? 3u : 4u);
    expect_close(f(x.cuda()).to(kFloat64), sums_of(x) * 2 + 1);
  }
}

TEST_F(GpuTest, ScansInChunksForAllSizes) {
  auto sums = compile([](const Tensor& x) { return cumsum(x, 0); }, {.dynamic = true, .strict_native = true});
  auto largest =
      compile([](const Tensor& x) { return cummax(x, 0); }, {.dynamic = true, .strict_native = true});
  for (const int64_t n : {40000, 2048, 2049, 1023, 1024, 1025, 2, 3, 33793}) {
    SCOPED_TRACE(n);
    const Tensor x = some({n});
    expect_close(sums(x.cuda()).to(kFloat64), sums_of(x));
    const auto [value, at] = largest(x.cuda());
    expect_close(value.to(kFloat64),
                 by_loop(x, -100, [](double& best, double v, int64_t) { best = std::max(best, v); }));
    double best = -100;
    expect_close(at.to(kFloat64), by_loop(x, 0, [&](double& found, double v, int64_t k) {
                   if (v < best) return;
                   best = v;
                   found = static_cast<double>(k);
                 }));
  }
}

TEST_F(GpuTest, EveryKindOfScanInChunks) {
  const int64_t n = 33793;
  const Tensor x = some({n}), signs = where(x < 0, -1, 1).to(kInt32);
  const auto f = [](const Tensor& a, const Tensor& b) {
    const auto [low, low_at] = cummin(a, 0);
    return std::vector{
        cumprod(b, 0), low, low_at, logcumsumexp(a * 0, 0), cumsum(b > 0, 0), cumsum(a.to(kFloat16), 0)};
  };
  auto compiled = compile(f, {.strict_native = true});
  const std::vector<Tensor> got = compiled(x.cuda(), signs.cuda());
  expect_close(got[0].to(kFloat64),
               by_loop(signs, 1, [](double& product, double v, int64_t) { product *= v; }));
  expect_close(got[1].to(kFloat64),
               by_loop(x, 100, [](double& best, double v, int64_t) { best = std::min(best, v); }));
  double best = 100;
  expect_close(got[2].to(kFloat64), by_loop(x, 0, [&](double& found, double v, int64_t k) {
                 if (v > best) return;
                 best = v;
                 found = static_cast<double>(k);
               }));
  expect_close(
      got[3].to(kFloat64),
      by_loop(x, 0, [](double& sum, double, int64_t k) { sum = std::log(static_cast<double>(k + 1)); }),
      1e-6);
  expect_close(got[4].to(kFloat64), sums_of((signs > 0).to(kFloat32)));
  expect_close(got[5], sums_of(x).to(kFloat16));
}

// Of few rows, of rows that lie side by side, and of one scan after another.
TEST_F(GpuTest, ScansInChunksAlongEachAxis) {
  const int64_t n = 33793;
  const Tensor row = some({n}), wide = sums_of(row);
  auto along = [](int64_t dim) {
    return compile([=](const Tensor& x) { return cumsum(x, dim); }, {.strict_native = true});
  };
  const Tensor weights = tensor({1.0f, -2.0f, 3.0f});
  expect_close(along(1)((weights.unsqueeze(1) * row).cuda()).to(kFloat64), weights.unsqueeze(1) * wide);
  expect_close(along(0)((row.unsqueeze(1) * weights).cuda()).to(kFloat64), wide.unsqueeze(1) * weights);
  expect_close(along(1)((row.unsqueeze(1) * weights).unsqueeze(0).cuda()).to(kFloat64),
               (wide.unsqueeze(1) * weights).unsqueeze(0));
  // From the end, as gradients of sums run.
  auto backwards =
      compile([](const Tensor& x) { return flip(cumsum(flip(x, {0}), 0), {0}); }, {.strict_native = true});
  expect_close(backwards(row.cuda()).to(kFloat64), wide.index({-1}) - wide + row.to(kFloat64));
  auto twice = compile([](const Tensor& x) { return cumsum(cumsum(x, 0), 0); }, {.strict_native = true});
  expect_close(twice(row.to(kFloat64).cuda()), sums_of(wide));
}

// Totals are combined and never subtracted, so infinities stay what they are; so do zeros.
TEST_F(GpuTest, ScansInChunksKeepInfinitiesAndSignsOfZero) {
  const int64_t n = 33793;
  const Tensor infinite = full({n}, std::numeric_limits<float>::infinity(), kFloat32);
  auto sums = compile([](const Tensor& x) { return cumsum(x, 0); }, {.strict_native = true});
  expect_close(sums(infinite.cuda()), infinite);
  expect_close(sums(-infinite.cuda()), -infinite);
  const Tensor zeros_there = full({n}, -0.0f, kFloat32).cuda(), ones_there = ones({n}).cuda();
  auto others = compile(
      [](const Tensor& zero, const Tensor& one) {
        return std::vector{cumprod(where(arange(one.size(0), kCUDA) == 0, zero, one), 0),
                           std::get<0>(cummax(zero, 0)), std::get<0>(cummin(zero, 0))};
      },
      {.strict_native = true});
  for (const Tensor& zero : others(zeros_there, ones_there)) EXPECT_TRUE(signbit(zero).all().item<bool>());
}

}  // namespace
}  // namespace stax

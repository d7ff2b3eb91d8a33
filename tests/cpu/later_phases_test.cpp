// Reductions of what the same kernel reduced before: one kernel, whatever the sizes. Expected values are
// closed forms, or sums in double.
#include "cpu/compile_testing.h"

namespace stax {
namespace {

using T = Tensor;

/// 0, 1, ..., 6, 0, 1, ...: exact in every order of summation as long as the sum stays below 2^24.
T sevens(int64_t n) {
  return remainder(arange(n), 7).to(kFloat32);
}
double sum_of_sevens(int64_t n) {
  const int64_t rest = n % 7;
  return static_cast<double>(n / 7 * 21 + rest * (rest - 1) / 2);
}

TEST(LaterPhases, SumsOfLargeArraysAreOneKernel) {
  for (const int64_t n : {1, 7, 65536, 100003, 1 << 20, (1 << 20) + 3}) {
    const auto compiled = compile([](const T& x) { return x.sum(); }, strict());
    EXPECT_EQ(compiled(sevens(n)).item<float>(), static_cast<float>(sum_of_sevens(n))) << n;
    EXPECT_EQ(kernel_count(compiled), 1u) << n;
  }
}

TEST(LaterPhases, MeansAndNormsAreOneKernel) {
  const int64_t n = 300007;
  const auto mean = compile([](const T& x) { return x.mean(); }, strict());
  EXPECT_NEAR(mean(sevens(n)).item<float>(), sum_of_sevens(n) / static_cast<double>(n), 1e-6);
  EXPECT_EQ(kernel_count(mean), 1u);

  const auto loss = compile([](const T& x, const T& y) { return mse_loss(x, y); }, strict());
  EXPECT_EQ(loss(sevens(n) + 3, sevens(n)).item<float>(), 9.f);
  EXPECT_EQ(kernel_count(loss), 1u);

  const auto norm = compile([](const T& x) { return x.norm(); }, strict());
  EXPECT_FLOAT_EQ(norm(full({360000}, 0.5)).item<float>(), 300.f);
  EXPECT_EQ(kernel_count(norm), 1u);

  const auto spread = compile([](const T& x) { return x.var(); }, strict());
  // Equally often -1 and 1: mean 0, squares 1, n / (n - 1).
  EXPECT_NEAR(spread(remainder(arange(200000), 2).to(kFloat32) * 2 - 1).item<float>(), 200000. / 199999.,
              1e-6);
  EXPECT_EQ(kernel_count(spread), 1u);
}

TEST(LaterPhases, MeanCrossEntropyIsOneKernelForAnyRows) {
  const auto loss = [](const T& x, const T& t) { return cross_entropy(x, t); };
  for (const int64_t rows : {1, 3, 64, 1001, 70001}) {
    // Row i has 2 at its target and 0 elsewhere: log(e^2 + 9) - 2 each.
    const T target = remainder(arange(rows), 10);
    const T x = one_hot(target, 10).to(kFloat32) * 2;
    const auto compiled = compile(loss, strict());
    EXPECT_NEAR(compiled(x, target).item<float>(), std::log(std::exp(2.) + 9) - 2, 1e-5) << rows;
    EXPECT_EQ(kernel_count(compiled), 1u) << rows;
  }
  const auto none = compile(loss, strict());
  EXPECT_TRUE(std::isnan(none(zeros({0, 10}), zeros({0}, kInt64)).item<float>()));
}

TEST(LaterPhases, IgnoredTargetsLeaveTheMean) {
  const auto compiled = compile([](const T& x, const T& t) { return cross_entropy(x, t); }, strict());
  const T x = tensor({{0.f, 0.f}, {5.f, 1.f}, {0.f, 0.f}});
  EXPECT_NEAR(compiled(x, tensor({1, -100, 0})).item<float>(), std::log(2.f), 1e-6f);
  EXPECT_EQ(kernel_count(compiled), 1u);
}

TEST(LaterPhases, RunAgainInEveryCall) {
  // The count of what is done starts anew in every launch.
  const auto compiled = compile([](const T& x) { return x.sum() * 2; }, strict());
  for (int k = 1; k <= 50; ++k) EXPECT_EQ(compiled(full({100000}, k)).item<float>(), 200000.f * k);
}

TEST(LaterPhases, GiveTheSameBitsEachTime) {
  manual_seed(11);
  const T x = randn({1 << 20});
  const auto compiled = compile([](const T& a) { return a.sum(); }, strict());
  const float first = compiled(x).item<float>();
  for (int k = 0; k < 50; ++k) EXPECT_EQ(compiled(x).item<float>(), first);
}

TEST(LaterPhases, ResultsOfTheFirstPhaseAreKept) {
  const auto compiled = compile(
      [](const T& x) {
        const T rows = x.sum(-1);
        return std::vector<T>{rows, rows.amax(), rows.argmax()};
      },
      strict());
  T x = zeros({513, 8});
  x.select(0, 512).fill_(1.5);
  const std::vector<T> got = compiled(x);
  EXPECT_EQ(got[0].select(0, 512).item<float>(), 12.f);
  EXPECT_EQ(got[0].sum().item<float>(), 12.f);
  EXPECT_EQ(got[1].item<float>(), 12.f);
  EXPECT_EQ(got[2].item<int64_t>(), 512);
  EXPECT_EQ(kernel_count(compiled), 1u);
}

TEST(LaterPhases, MayOverwriteWhatTheFirstPhaseRead) {
  const auto compiled = compile(
      [](T x) {
        const T total = x.sum();
        x.copy_(x / total);
        return total;
      },
      strict());
  T x = tensor({1.f, 3.f});
  EXPECT_EQ(compiled(x).item<float>(), 4.f);
  expect_floats(x, {0.25f, 0.75f});
}

}  // namespace
}  // namespace stax

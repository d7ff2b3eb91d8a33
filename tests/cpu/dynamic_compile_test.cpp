// Compiled functions with symbolic sizes. Expected values are worked out by hand.
#include <gmock/gmock.h>

#include <array>
#include <numeric>
#include <set>

#include "cpu/compile_testing.h"

namespace stax {
namespace {

using T = Tensor;

CompileOptions dynamic(bool native = true) {
  return {.dynamic = true, .strict_native = native};
}

T count_to(int64_t n) {
  return arange(n, kFloat);
}

template <class C>
bool has_guard(const C& compiled, size_t artifact, const std::string& words) {
  const std::vector<Artifact> artifacts = compiled.artifacts();
  for (const std::string& guard : artifacts.at(artifact).guards) {
    if (guard.find(words) != std::string::npos) return true;
  }
  return false;
}

// ---- example 10.4 ----

TEST(DynamicCompile, ServesTheSixCallsOfABranchWithTwoArtifacts) {
  int traces = 0;
  const auto f = compile(
      [&](const T& x) {
        ++traces;
        return x.size(0) > 4 ? x + 1 : x * 2;
      },
      dynamic());
  for (const int n : {3, 7, 2, 9, 4, 11}) {
    std::vector<float> expected;
    for (int i = 0; i < n; ++i) expected.push_back(static_cast<float>(n > 4 ? i + 1 : 2 * i));
    expect_floats(f(count_to(n)), expected);
  }
  EXPECT_EQ(traces, 2);
  ASSERT_EQ(f.artifacts().size(), 2u);
  EXPECT_TRUE(has_guard(f, 0, "s0 <= 4"));
  EXPECT_TRUE(has_guard(f, 1, "4 < s0"));
}

TEST(DynamicCompile, KeepsSizesZeroAndOneApart) {
  const auto f = compile([](const T& x) { return x * 2 + 1; }, dynamic());
  for (const int n : {3, 1, 0, 7, 1, 0, 11}) {
    std::vector<float> expected;
    for (int i = 0; i < n; ++i) expected.push_back(static_cast<float>(2 * i + 1));
    expect_floats(f(count_to(n)), expected);
  }
  EXPECT_EQ(f.artifacts().size(), 3u);
}

TEST(DynamicCompile, KeepsContiguousAndTransposedApart) {
  const auto f = compile([](const T& x) { return x * 2 + 1; }, dynamic());
  expect_floats(f(count_to(6).view({2, 3})), {1, 3, 5, 7, 9, 11});
  expect_floats(f(count_to(6).view({2, 3}).t()), {1, 7, 3, 9, 5, 11});
  expect_floats(f(count_to(8).view({4, 2})), {1, 3, 5, 7, 9, 11, 13, 15});
  expect_floats(f(count_to(8).view({4, 2}).t()), {1, 5, 9, 13, 3, 7, 11, 15});
  EXPECT_EQ(f.artifacts().size(), 2u);
}

// ---- what is one artifact ----

TEST(DynamicCompile, RunsReductionsOfAnyLengthFromOneKernel) {
  const auto f =
      compile([](const T& x, const T& w) { return (relu(x + w) * 2).sum(-1) / x.size(0); }, dynamic());
  for (const auto& [n, m] : {std::pair{2, 3}, {5, 17}, {3, 70}, {4, 1000}}) {
    // relu(1 + 1) * 2 = 4 in each of m columns
    expect_floats(
        f(ones({n, m}), ones({n, m})),
        std::vector<float>(static_cast<size_t>(n), 4.f * static_cast<float>(m) / static_cast<float>(n)));
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
  EXPECT_EQ(kernel_count(f), 1u);
}

TEST(DynamicCompile, ReshapesBySizesThatFollow) {
  const auto f = compile([](const T& x) { return x.reshape({x.size(0), -1}).sum(1); }, dynamic());
  for (const int n : {2, 3, 6}) {
    expect_floats(f(ones({n, 4, n})),
                  std::vector<float>(static_cast<size_t>(n), 4.f * static_cast<float>(n)));
  }
}

TEST(DynamicCompile, DoesNotLookAtTensorsThatAreNotRead) {
  int traces = 0;
  const auto f = compile(
      [&](const T&, const T& y) {
        ++traces;
        return y + 2;
      },
      dynamic());
  for (const int n : {0, 2, 1, 9}) expect_floats(f(zeros({n}), tensor({1.f, 2.f})), {3, 4});
  EXPECT_EQ(traces, 1);
}

TEST(DynamicCompile, LooksAtTensorsOfWhichOnlyASizeIsRead) {
  const auto f = compile([](const T& x, const T& y) { return x.sum() + full({y.size(0)}, 2.0); }, dynamic());
  for (const int n : {3, 0, 5, 1, 3, 4}) {
    expect_floats(f(ones({3}), zeros({n})), std::vector<float>(static_cast<size_t>(n), 5));
  }
  const auto g = compile([](const T& x, const T& y) { return zeros_like(y) + x.sum(); }, dynamic());
  for (const int n : {3, 0, 5, 1, 3, 4}) {
    expect_floats(g(ones({3}), zeros({n})), std::vector<float>(static_cast<size_t>(n), 3));
  }
}

TEST(DynamicCompile, ChecksThatSizesWhichHappenedToBeEqualAre) {
  const auto f = compile([](const T& x, const T& y) { return cat({x, y}); }, dynamic());
  expect_floats(f(ones({3}), zeros({3})), {1, 1, 1, 0, 0, 0});
  EXPECT_TRUE(has_guard(f, 0, "tensor 1: size(0) == s0"));
  expect_floats(f(ones({2}), zeros({4})), {1, 1, 0, 0, 0, 0});
  expect_floats(f(ones({5}), zeros({2})), {1, 1, 1, 1, 1, 0, 0});
  EXPECT_EQ(f.artifacts().size(), 2u);
}

TEST(DynamicCompile, BroadcastsBySizesThatTurnOutToBeOne) {
  const auto f = compile([](const T& x, const T& y) { return x.view({-1, 3}) * y.view({-1, 3}); }, dynamic());
  const T row = tensor({1.f, 2.f, 3.f});
  expect_floats(f(row, tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f})), {1, 4, 9, 4, 10, 18});
  expect_floats(f(ones({6}), full({6}, 2.0)), std::vector<float>(6, 2));
  expect_floats(f(full({9}, 3.0), row), {3, 6, 9, 3, 6, 9, 3, 6, 9});
  EXPECT_THROW(f(ones({6}), ones({9})), UserError);
}

// ---- arithmetic on sizes ----

TEST(DynamicCompile, DividesByACountThatMayBeZero) {
  const auto f = compile([](const T& x) { return sum(x, 0) / x.size(0); }, dynamic());
  expect_floats(f(ones({4, 3})), {1, 1, 1});
  expect_floats(f(ones({1, 3})), {1, 1, 1});
  for (const float v : values(f(ones({0, 3})))) EXPECT_TRUE(std::isnan(v));
}

TEST(DynamicCompile, KeepsFloorDivisionsOfProducts) {
  const auto f = compile(
      [](const T& x, const T& y) {
        const SymInt a = x.size(0), b = y.size(0);
        return full({((6 * a + 40) * (b / 50) + 9) / 7}, 1.0);
      },
      dynamic());
  const auto length = [&](int64_t a, int64_t b) {
    return static_cast<int64_t>(f(ones({a}), ones({b})).size(0));
  };
  EXPECT_EQ(length(3, 100), 17);  // (58 * 2 + 9) / 7
  EXPECT_EQ(length(1, 49), 1);    // (46 * 0 + 9) / 7
  EXPECT_EQ(length(2, 151), 23);  // (52 * 3 + 9) / 7
}

TEST(DynamicCompile, TruncatesDivisionsOfNegativeSizesAsCppDoes) {
  const auto f = compile([](const T& x) { return x * 0 + (x.size(0) - 7) / 2; }, dynamic());
  for (const auto& [n, k] : {std::pair{4, -1}, {6, 0}, {7, 0}, {8, 0}, {10, 1}}) {
    expect_floats(f(ones({n})), std::vector<float>(static_cast<size_t>(n), static_cast<float>(k)));
  }
}

TEST(DynamicCompile, PadsToAnEvenLength) {
  const auto f = compile(
      [](const T& x) {
        const SymInt odd = x.size(0) % 2;
        return constant_pad_nd(x, {0, odd}).view({-1, 2}).sum(1);
      },
      dynamic());
  expect_floats(f(arange(1, 6, 1, kFloat)), {3, 7, 5});
  expect_floats(f(arange(1, 7, 1, kFloat)), {3, 7, 11});
  expect_floats(f(arange(1, 8, 1, kFloat)), {3, 7, 11, 7});
}

TEST(DynamicCompile, SlicesByBoundsThatSizesGive) {
  const auto f = compile([](const T& x) { return x.slice(0, 1, x.size(0) - 1) * 1; }, dynamic());
  expect_floats(f(count_to(6)), {1, 2, 3, 4});
  expect_floats(f(count_to(9)), {1, 2, 3, 4, 5, 6, 7});
  const auto half = compile([](const T& x) { return x.slice(0, x.size(0) / 2) * 1; }, dynamic());
  expect_floats(half(count_to(7)), {3, 4, 5, 6});
  expect_floats(half(count_to(4)), {2, 3});
  const auto steps = compile([](const T& x) { return x.slice(0, 0, -1, 2) * 1; }, dynamic());
  expect_floats(steps(count_to(6)), {0, 2, 4});
  expect_floats(steps(count_to(7)), {0, 2, 4});
}

TEST(DynamicCompile, GuardsThatAnIndexIsInRange) {
  const auto f = compile([](const T& x) { return x.select(0, 3) * 1; }, dynamic());
  expect_floats(f(count_to(6)), {3});
  expect_floats(f(count_to(4)), {3});
  EXPECT_THROW(f(count_to(3)), UserError);
  expect_floats(f(count_to(5)), {3});
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(DynamicCompile, ReturnsViewsThatShareMemory) {
  const auto f = compile([](const T& x) { return x.slice(0, 1, -1); }, dynamic());
  for (const int n : {4, 6, 9}) {
    const T x = count_to(n);
    f(x).fill_(-1);
    std::vector<float> expected(static_cast<size_t>(n), -1);
    expected.front() = 0;
    expected.back() = static_cast<float>(n - 1);
    expect_floats(x, expected);
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(DynamicCompile, WritesIntoArgumentsOfAnySize) {
  const auto f = compile(
      [](const T& x) {
        x.slice(0, 1).mul_(2);
        return x.sum();
      },
      dynamic());
  for (const int n : {3, 5, 8}) {
    const T x = ones({n});
    EXPECT_EQ(f(x).item<float>(), static_cast<float>(2 * n - 1));
    EXPECT_EQ(x.sum().item<float>(), static_cast<float>(2 * n - 1));
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

// ---- integers and numbers as arguments ----

TEST(DynamicCompile, TakesIntegersThatChange) {
  int traces = 0;
  const auto f = compile(
      [&](const T& x, SymInt i) {
        ++traces;
        return x.slice(0, i, i + 3).sum();
      },
      dynamic());
  const T x = count_to(50);
  for (int i = 0; i <= 20; ++i) EXPECT_EQ(f(x, SymInt(i)).item<float>(), static_cast<float>(3 * i + 3));
  EXPECT_LE(traces, 2);
}

TEST(DynamicCompile, TakesIntegersThatChangeWithFixedShapesToo) {
  int traces = 0;
  const auto f = compile(
      [&](const T& x, SymInt n) {
        ++traces;
        return std::pair(x * n, n * 2 + x.size(0));
      },
      strict());
  for (int n = 3; n < 9; ++n) {
    const auto [y, size] = f(ones({4}), SymInt(n));
    expect_floats(y, std::vector<float>(4, static_cast<float>(n)));
    EXPECT_EQ(static_cast<int64_t>(size), 2 * n + 4);
  }
  EXPECT_EQ(traces, 1);
}

TEST(DynamicCompile, ReturnsSizesThatTheCallGives) {
  const auto f =
      compile([](const T& x) { return std::tuple(x.size(0) * 3, x + 1, Scalar(x.size(1))); }, dynamic());
  for (const int n : {2, 5, 7}) {
    const auto [size, y, number] = f(zeros({n, n + 1}));
    EXPECT_EQ(static_cast<int64_t>(size), 3 * n);
    EXPECT_EQ(number.to<int64_t>(), n + 1);
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(DynamicCompile, SizesAsPlainNumbersFixThem) {
  const auto f = compile(
      [](const T& x) {
        const int64_t n = x.size(0);
        return x * static_cast<double>(n);
      },
      dynamic());
  expect_floats(f(ones({3})), {3, 3, 3});
  expect_floats(f(ones({2})), {2, 2});
  EXPECT_EQ(f.artifacts().size(), 2u);
  EXPECT_TRUE(has_guard(f, 0, "s0 == 3"));
}

TEST(DynamicCompile, GoesOnAfterAReadWithTheSizesOfTheCall) {
  const auto f = compile(
      [](const T& x) {
        const SymInt n = x.size(0);
        const float first = x.index({0}).item<float>();
        return zeros({n + 1}) + first + (n > 2 ? 10 : 20);
      },
      dynamic(false));
  expect_floats(f(full({3}, 1.0)), std::vector<float>(4, 11));
  expect_floats(f(full({2}, 2.0)), std::vector<float>(3, 22));
}

// ---- declared dimensions ----

TEST(DeclaredDims, RefusesSizesOutsideTheirRange) {
  CompileOptions options = dynamic();
  options.dynamic_shapes = {{{0, Dim("n", {.min = 2, .max = 8})}}};
  const auto f = compile([](const T& x) { return x + 1; }, options);
  expect_floats(f(zeros({8})), std::vector<float>(8, 1));
  try {
    f(zeros({9}));
    FAIL() << "a size outside the declared range was taken";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("n is declared within [2, 8], got 9"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(f(zeros({1})), UserError);
}

TEST(DeclaredDims, RefusesTwoSizesOfOneName) {
  CompileOptions options = dynamic();
  const Dim n("n");
  options.dynamic_shapes = {{{0, n}}, {{0, 2 * n + 1}}};
  const auto f = compile([](const T& x, const T& y) { return x.sum() + y.sum(); }, options);
  EXPECT_EQ(f(ones({3}), ones({7})).item<float>(), 10);
  EXPECT_EQ(f(ones({5}), ones({11})).item<float>(), 16);
  EXPECT_EQ(f.artifacts().size(), 1u);
  EXPECT_THROW(f(ones({5}), ones({12})), UserError);
  EXPECT_THROW(f(ones({5}), ones({13})), UserError);
}

TEST(DeclaredDims, RefusesAFunctionThatFixesThem) {
  CompileOptions options = dynamic();
  options.dynamic_shapes = {{{0, Dim("n", {.min = 2, .max = 64})}}};
  const auto f = compile([](const T& x) { return x.view({5, -1}) * x.size(0).value(); }, options);
  EXPECT_THROW(f(ones({10})), UserError);
}

TEST(DeclaredDims, GiveFixedDimensionsAnArtifactEach) {
  CompileOptions options = dynamic();
  options.dynamic_shapes = {{{0, Dim::fixed()}}};
  const auto f = compile([](const T& x) { return x.sum(); }, options);
  for (const int n : {4, 5, 4, 6})
    EXPECT_EQ(f(ones({n, n + 2})).item<float>(), static_cast<float>(n * (n + 2)));
  EXPECT_EQ(f.artifacts().size(), 3u);
}

TEST(DeclaredDims, HaveOneArtifactABucket) {
  CompileOptions options = dynamic();
  options.dynamic_shapes = {{{0, Dim("n", {.min = 1, .max = 4096, .power_of_two_buckets = true})}}};
  const auto f = compile([](const T& x) { return x.sum(); }, options);
  std::set<int> ranges;
  for (int n = 1; n <= 4096; n = n < 40 ? n + 1 : n * 2 - 31) {
    EXPECT_EQ(f(ones({n})).item<float>(), static_cast<float>(n)) << n;
    int k = 0;
    while ((1 << k) < n) ++k;
    ranges.insert(k);
  }
  EXPECT_EQ(f.artifacts().size(), ranges.size());  // at most 13: log2(4096) - log2(1) + 1
}

TEST(DeclaredDims, HaveOneArtifactBetweenEdges) {
  CompileOptions options = dynamic();
  options.dynamic_shapes = {{{0, Dim("n", {.min = 2, .buckets = {16, 100}})}}};
  const auto f = compile([](const T& x) { return x.sum(); }, options);
  for (const int n : {2, 16, 17, 100, 101, 5000})
    EXPECT_EQ(f(ones({n})).item<float>(), static_cast<float>(n));
  EXPECT_EQ(f.artifacts().size(), 3u);
  EXPECT_TRUE(has_guard(f, 0, "[2, 16]"));
  EXPECT_TRUE(has_guard(f, 1, "[17, 100]"));
}

TEST(DeclaredDims, RefusesContradictions) {
  EXPECT_THROW(Dim("n", {.min = 5, .max = 4}), UserError);
  EXPECT_THROW(Dim("2n"), UserError);
  EXPECT_THROW(Dim("n") * 0, UserError);
  EXPECT_THROW(Dim(-1), UserError);
  EXPECT_THROW(Dim("n", {.buckets = {8, 8}}), UserError);
  CompileOptions options = dynamic();
  options.dynamic_shapes = {{{0, Dim("n", {.min = 2})}}, {{0, Dim("n", {.min = 3})}}};
  const auto f = compile([](const T& x, const T& y) { return x + y; }, options);
  EXPECT_THROW(f(ones({4}), ones({4})), UserError);
  CompileOptions fixed = strict();
  fixed.dynamic_shapes = {{{0, Dim("n")}}};
  EXPECT_THROW(compile([](const T& x) { return x; }, fixed), UserError);
}

TEST(DynamicCompile, DoesNotUnrollNestsOfLongBodies) {
  const auto f = compile([](const T& x) { return adaptive_avg_pool2d(x, {8, 7}); }, dynamic());
  for (const int n : {9, 16, 30}) {
    for (const float v : values(f(ones({2, n, n + 1})))) EXPECT_EQ(v, 1);
  }
  // 56 copies of the windows' loops take a host compiler 18 s.
  EXPECT_EQ(f.artifacts().at(0).kernels.at(0).source.find("unroll"), std::string::npos);
}

// ---- memory, backends, words ----

TEST(DynamicCompile, FixesTheSizesOfTensorsThatShareMemory) {
  const auto f = compile(
      [](const T& x, const T& y) {
        x.add_(1);
        return y * 1;
      },
      dynamic());
  for (const int n : {4, 6}) {
    const T base = zeros({n});
    expect_floats(f(base, base.slice(0, 1)), std::vector<float>(static_cast<size_t>(n - 1), 1));
  }
  expect_floats(f(zeros({4}), zeros({3})), {0, 0, 0});
}

TEST(DynamicCompile, LetsTheDebugBackendKeyByShapesThatAreRead) {
  int traces = 0;
  const auto reads = compile(
      [&](const T& x) {
        ++traces;
        return x / x.size(0);
      },
      {.dynamic = true, .backend = "debug"});
  for (const int n : {2, 4, 2, 4})
    expect_floats(reads(ones({n})), std::vector<float>(static_cast<size_t>(n), 1.f / static_cast<float>(n)));
  EXPECT_EQ(traces, 2);
  traces = 0;
  const auto plain = compile(
      [&](const T& x) {
        ++traces;
        return x + 1;
      },
      {.dynamic = true, .backend = "debug"});
  for (const int n : {2, 4, 7})
    expect_floats(plain(ones({n})), std::vector<float>(static_cast<size_t>(n), 2));
  EXPECT_EQ(traces, 1);
}

TEST(DynamicCompile, TakesMinusOneAsASizeThatFollows) {
  const auto f = compile(
      [](const T& x, const SymInt& a, const SymInt& b) {
        const T y = x.reshape({a, b});
        return y + ones({2, 1}).expand({a, 1}) * 0;
      },
      dynamic());
  for (const auto& [n, a, b, rows, columns] : std::vector<std::array<int64_t, 5>>{
           {6, 2, 3, 2, 3}, {6, -1, 3, 2, 3}, {10, 2, -1, 2, 5}, {8, -1, 4, 2, 4}, {14, 2, 7, 2, 7}}) {
    const T y = f(arange(n, kFloat), SymInt(a), SymInt(b));
    EXPECT_EQ(y.sizes().values(), (std::vector<int64_t>{rows, columns}));
    EXPECT_EQ(y[1][0].item<float>(), static_cast<float>(columns));
  }
  EXPECT_THROW(f(arange(6, kFloat), SymInt(-2), SymInt(3)), UserError);
  EXPECT_THROW(f(arange(6, kFloat), SymInt(-1), SymInt(-1)), UserError);
}

TEST(DynamicCompile, RefusesSizesThatLeftTheirTrace) {
  SymInt kept;
  const auto f = compile(
      [&](const T& x) {
        kept = x.size(0) + 1;
        return x * 2;
      },
      dynamic());
  f(zeros({4}));
  const auto refusal = [](const auto& use) -> std::string {
    try {
      use();
    } catch (const UserError& error) {
      return error.what();
    }
    return {};
  };
  const auto says = testing::HasSubstr("sizes of traced tensors may not leave the traced function");
  EXPECT_THAT(refusal([&] { (void)int64_t{kept}; }), says);
  EXPECT_THAT(refusal([&] { (void)zeros({kept}); }), says);
  EXPECT_THAT(refusal([&] { (void)zeros({9}).slice(0, 0, kept); }), says);
  EXPECT_THAT(refusal([&] { (void)(zeros({9}) + Scalar(kept)); }), says);
}

TEST(DynamicCompile, SaysWhichGuardFailed) {
  const auto f = compile([](const T& x) { return x.size(0) > 4 ? x + 1 : x * 2; }, dynamic());
  f(ones({3}));
  const Explanation explanation = f.explain(ones({7}));
  EXPECT_FALSE(explanation.cached);
  ASSERT_EQ(explanation.misfits.size(), 1u);
  EXPECT_NE(explanation.misfits[0].find("s0 <= 4"), std::string::npos) << explanation.misfits[0];
  EXPECT_NE(explanation.misfits[0].find("s0 = 7"), std::string::npos) << explanation.misfits[0];
}

TEST(DynamicCompile, RefusesSizesWhoseProductLeaves64Bits) {
  const auto f = compile([](const T& x, SymInt n) { return x.sum() + n * n * n * n; }, dynamic());
  EXPECT_EQ(f(ones({3}), SymInt(2)).item<float>(), 19);
  EXPECT_THROW(f(ones({3}), SymInt(int64_t{1} << 40)), Error);
  EXPECT_EQ(f(ones({3}), SymInt(3)).item<float>(), 84);
}

}  // namespace
}  // namespace stax

// Gradients of functions, against derivatives worked out by hand.
#include "stax/grad.h"

#include <gmock/gmock.h>

#include "cpu/compile_testing.h"
#include "support/user_error.h"

namespace stax {
namespace {

using ::testing::HasSubstr;

Tensor square_sum(const Tensor& x) {
  return (x * x).sum();
}
Tensor cube_sum(const Tensor& x) {
  return (x * x * x).sum();
}

TEST(Grad, OfASumOfSquaresIsTwiceTheArgument) {
  const Tensor x = stax::tensor({1.0f, -2.0f, 0.5f});
  expect_floats(grad(square_sum)(x), {2, -4, 1});
  auto compiled = compile(grad(square_sum), strict());
  expect_floats(compiled(x), {2, -4, 1});
  EXPECT_EQ(kernel_count(compiled), 1u);
}

// d/dw mean((w * x - y)^2) = mean(2 (w x - y) x), d/dx = 2 (w x - y) w / 2
TEST(Grad, WithRespectToSeveralArguments) {
  const auto loss = [](const Tensor& w, const Tensor& x, const Tensor& y) { return mse_loss(w * x, y); };
  const Tensor w = stax::tensor({3.0f}), x = stax::tensor({1.0f, 2.0f}), y = stax::tensor({1.0f, 2.0f});
  for (const auto& g : {grad(loss, {0, 1})(w, x, y), compile(grad(loss, {0, 1}))(w, x, y)}) {
    ASSERT_EQ(g.size(), 2u);
    expect_floats(g[0], {10});     // (2 * 2 * 1 + 2 * 4 * 2) / 2
    expect_floats(g[1], {6, 12});  // 2 * 2 * 3 / 2, 2 * 4 * 3 / 2
  }
  expect_floats(grad(loss)(w, x, y), {10});
  const auto swapped = grad(loss, {2, 0})(w, x, y);
  expect_floats(swapped[0], {-2, -4});
  expect_floats(swapped[1], {10});
}

// gelu'(x) = Phi(x) + x phi(x)
TEST(Grad, OfGelu) {
  const std::vector<float> at = {-2, -0.5f, 0, 1, 3};
  std::vector<float> expected;
  for (const double v : at) {
    const double phi = std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
    expected.push_back(static_cast<float>(0.5 * (1 + std::erf(v / std::sqrt(2.0))) + v * phi));
  }
  const Tensor x = stax::tensor(at);
  const auto f = [](const Tensor& t) { return gelu(t).sum(); };
  expect_near(grad(f)(x), expected);
  expect_near(compile(grad(f), strict())(x), expected);
}

// d/dx x^y = y x^(y - 1), d/dy = x^y log x: 0 where x^y does not change, although log 0 and 0^-1 are
// infinite.
TEST(Grad, OfPowersOfZero) {
  const auto f = [](const Tensor& x, const Tensor& y) { return pow(x, y).sum(); };
  const auto of_number = [](const Tensor& y) { return pow(Scalar(0.0), y).sum(); };
  const Tensor x = stax::tensor({0.0f, 0.0f, 1.0f, 2.0f, 0.0f}),
               y = stax::tensor({2.0f, 1.0f, 0.0f, 3.0f, 0.0f});
  for (const auto& g : {grad(f, {0, 1})(x, y), compile(grad(f, {0, 1}), strict())(x, y)}) {
    expect_floats(g[0], {0, 1, 0, 12, 0});
    expect_near(g[1], {0, 0, 0, 8 * std::log(2.0f), 0});
  }
  expect_floats(grad(of_number)(y), {0, 0, 0, 0, 0});
  expect_floats(compile(grad(of_number), strict())(y), {0, 0, 0, 0, 0});
}

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNaN = std::numeric_limits<float>::quiet_NaN();

/// The gradient of f(x).sum(), eagerly and compiled, up to the last digits.
template <class F>
void expect_gradient(const F& f, const Tensor& x, const std::vector<float>& expected) {
  const auto total = [&](const Tensor& t) { return f(t).sum(); };
  for (const Tensor& g : {grad(total)(x), compile(grad(total), strict())(x)}) {
    const std::vector<float> got = values<float>(g);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != expected[i]) {
        EXPECT_NEAR(got[i], expected[i], 1e-5f * std::max(1.0f, std::abs(expected[i]))) << i;
      }
  }
}

// 0 is a subgradient of every norm at 0, and PyTorch's choice.
TEST(Grad, OfNormsOfZeros) {
  const Tensor zeros = stax::zeros({2, 2}), rows = tensor({{0.0f, 0.0f}, {3.0f, 4.0f}});
  for (const double p : {2.0, 0.0, 0.5, 1.0, 1.5, 3.0, HUGE_VAL, -HUGE_VAL, -1.0}) {
    SCOPED_TRACE(p);
    expect_gradient([&](const Tensor& x) { return x.norm(p); }, zeros, {0, 0, 0, 0});
    expect_gradient([&](const Tensor& x) { return linalg_vector_norm(x, p, 0, true); }, zeros, {0, 0, 0, 0});
    expect_gradient([&](const Tensor& x) { return dist(x, zeros, p); }, zeros, {0, 0, 0, 0});
  }
  const std::vector<float> unit = {0, 0, 0.6f, 0.8f};
  expect_gradient([](const Tensor& x) { return x.norm(2, -1); }, rows, unit);
  expect_gradient([](const Tensor& x) { return x.norm(2, -1, true); }, rows, unit);
  expect_gradient([](const Tensor& x) { return linalg_norm(x, std::nullopt, 1); }, rows, unit);
  expect_gradient([](const Tensor& x) { return x.norm("fro"); }, zeros, {0, 0, 0, 0});
  expect_gradient([](const Tensor& x) { return linalg_matrix_norm(x, "fro"); }, zeros, {0, 0, 0, 0});
}

// d norm / dx = sign(x) (|x| / norm)^(p - 1); the largest and the smallest share evenly.
TEST(Grad, OfNorms) {
  const Tensor x = tensor({3.0f, -4.0f}), tied = tensor({2.0f, -2.0f, 1.0f}), some = tensor({0.0f, 4.0f});
  const auto norm = [](double p) { return [p](const Tensor& t) { return t.norm(p); }; };
  const auto cubic = static_cast<float>(std::pow(27.0 + 64.0, 2.0 / 3));
  expect_gradient(norm(3), x, {9 / cubic, -16 / cubic});
  expect_gradient(norm(1), x, {1, -1});
  expect_gradient(norm(0), x, {0, 0});
  expect_gradient(norm(HUGE_VAL), tied, {0.5f, -0.5f, 0});
  expect_gradient(norm(-HUGE_VAL), tied, {0, 0, 1});
  expect_gradient(norm(-1), tensor({2.0f, -2.0f}), {0.25f, -0.25f});
  for (const double p : {0.5, 1.5, 2.5}) expect_gradient(norm(p), some, {0, 1});
  // Squares of these exceed float16, in which 0.6 and 0.8 are 1229 / 2^11 and 1638 / 2^11.
  const auto half = [](const Tensor& t) { return t.to(kFloat16).norm().to(kFloat32); };
  expect_gradient(half, tensor({300.0f, 400.0f}), {1229 / 2048.0f, 1638 / 2048.0f});
  const auto wide = [](const Tensor& t) { return t.norm(2, IntList(0), false, kFloat64).to(kFloat32); };
  expect_gradient(wide, tensor({3e30f, 4e30f}), {0.6f, 0.8f});
  // The derivative of the sum of x / |x|: (1 - x_i (x_0 + x_1) / |x|^2) / |x|
  const auto slope = [](const Tensor& t) { return grad([](const Tensor& u) { return u.norm(); })(t); };
  expect_gradient(slope, tensor({3.0f, 4.0f}), {(1 - 21.0f / 25) / 5, (1 - 28.0f / 25) / 5});
}

// 1 / x exceeds float32 where g / x does not.
TEST(Grad, OfLogarithmsOfTheSmallest) {
  const Tensor x = tensor({1e-39f});
  expect_gradient([](const Tensor& t) { return log(t) * 0x1p-60; }, x, {static_cast<float>(0x1p-60 / 1e-39)});
  expect_gradient([](const Tensor& t) { return log2(t) * 0x1p-60; }, x,
                  {static_cast<float>(0x1p-60 / (1e-39 * M_LN2))});
  expect_gradient([](const Tensor& t) { return log10(t) * 0x1p-60; }, x,
                  {static_cast<float>(0x1p-60 / (1e-39 * M_LN10))});
}

// Ties share in halves. Where one is NaN the result is, too, and both matter to it.
TEST(Grad, OfMaximaOfTiesAndNaN) {
  const auto high = [](const Tensor& x, const Tensor& y) { return maximum(x, y).sum(); };
  const auto low = [](const Tensor& x, const Tensor& y) { return minimum(x, y).sum(); };
  const Tensor x = tensor({1.0f, 2.0f, 3.0f, kNaN, 1.0f}), y = tensor({2.0f, 2.0f, 1.0f, 1.0f, kNaN});
  const std::vector<float> greater = {0, 0.5f, 1, 1, 1}, less = {1, 0.5f, 0, 1, 1};
  for (const auto& g : {grad(high, {0, 1})(x, y), compile(grad(high, {0, 1}), strict())(x, y)}) {
    expect_floats(g[0], greater);
    expect_floats(g[1], less);
  }
  for (const auto& g : {grad(low, {0, 1})(x, y), compile(grad(low, {0, 1}), strict())(x, y)}) {
    expect_floats(g[0], less);
    expect_floats(g[1], greater);
  }
  expect_gradient([](const Tensor& t) { return relu(t); }, tensor({-1.0f, 0.0f, 2.0f, kNaN}), {0, 0, 1, 1});
}

// Formulas that meet 0 * infinity where a derivative exists.
TEST(Grad, WhereFormulasHaveNoLimit) {
  const auto of_exponent = [](double n) { return [n](const Tensor& t) { return pow(t, n); }; };
  expect_gradient(of_exponent(1), tensor({0.0f}), {1});
  expect_gradient(of_exponent(1.5), tensor({0.0f}), {0});
  expect_gradient(of_exponent(0), tensor({0.0f}), {0});
  expect_gradient(of_exponent(0.5), tensor({0.0f}), {kInfinity});
  expect_gradient([](const Tensor& t) { return abs(t); }, tensor({0.0f, -0.0f}), {0, 0});
  expect_gradient([](const Tensor& t) { return logsumexp(t, -1); }, tensor({-kInfinity, 0.0f, 0.0f}),
                  {0, 0.5f, 0.5f});
}

TEST(Grad, OfAGradient) {
  const auto slope = [](const Tensor& x) { return grad(cube_sum)(x).sum(); };
  const Tensor x = stax::tensor({1.0f, -2.0f, 0.5f});
  expect_floats(grad(cube_sum)(x), {3, 12, 0.75f});
  expect_floats(grad(slope)(x), {6, -12, 3});
  expect_floats(compile(grad(slope), strict())(x), {6, -12, 3});
}

TEST(Grad, OneArtifactServesAllSizes) {
  auto compiled = compile(grad(square_sum), {.dynamic = true, .strict_native = true});
  for (const int64_t n : {2, 5, 70, 1000}) {
    const Tensor x = stax::arange(n, kFloat32);
    std::vector<float> expected;
    for (int64_t i = 0; i < n; ++i) expected.push_back(2 * static_cast<float>(i));
    expect_floats(compiled(x), expected);
  }
  EXPECT_EQ(compiled.artifacts().size(), 1u);
}

TEST(Grad, ThroughViewsAndWrites) {
  const Tensor x = stax::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({2, 2});
  const auto twice = [](const Tensor& t) {
    Tensor y = t.clone();
    y.mul_(2);
    y.select(0, 1).mul_(t.select(0, 0));  // 2 t1 * t0
    return y.t().sum();
  };
  expect_floats(grad(twice)(x), {2 + 2 * 3, 2 + 2 * 4, 2 * 1, 2 * 2});
  expect_floats(compile(grad(twice))(x), {8, 10, 2, 4});
}

// Two arguments over the same memory are two variables.
TEST(Grad, ArgumentsThatShareMemoryAreApart) {
  const Tensor x = stax::tensor({1.0f, 2.0f});
  const auto product = [](const Tensor& a, const Tensor& b) { return (a * b * b).sum(); };
  const auto g = grad(product, {0, 1})(x, x);
  expect_floats(g[0], {1, 4});
  expect_floats(g[1], {2, 8});
}

TEST(Grad, WhatDoesNotMatterHasZeros) {
  const auto first = [](const Tensor& a, const Tensor&) { return a.sum(); };
  const auto g = grad(first, {0, 1})(stax::ones({2}), stax::ones({3}));
  expect_floats(g[0], {1, 1});
  expect_floats(g[1], {0, 0, 0});
}

TEST(Grad, SaysWhatItCannotDifferentiate) {
  const Tensor x = stax::ones({2, 3});
  EXPECT_THAT(error_of([&] { grad([](const Tensor& t) { return t * 2; })(x); }),
              HasSubstr("expected a floating tensor of one element"));
  EXPECT_THAT(error_of([&] { grad([](const Tensor& t) { return t.sum(); })(x.to(kInt64)); }),
              HasSubstr("argument 0 is int64"));
  EXPECT_THAT(error_of([&] { grad(square_sum, {1})(x); }),
              HasSubstr("there is no argument 1; the call has 1"));
  const auto scaled = [](const Tensor& t, double by) { return (t * by).sum(); };
  EXPECT_THAT(error_of([&] { grad(scaled, {1})(x, 2.0); }), HasSubstr("argument 1 is no tensor"));
  expect_floats(grad(scaled)(stax::ones({2}), 2.5), {2.5f, 2.5f});
}

}  // namespace
}  // namespace stax

// Gradients of functions, against derivatives worked out by hand.
#include "stax/grad.h"

#include <gmock/gmock.h>

#include "cpu/compile_testing.h"

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

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
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

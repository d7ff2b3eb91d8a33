// Compiled functions: kernels, numbers, containers. Expected values are worked out by hand.
#include "cpu/compile_testing.h"

namespace stax {
namespace {

using T = Tensor;

T example(const T& x, const T& w) {
  return (relu(x + w) * 2).sum(-1);
}

TEST(Compile, RunsTheFirstExampleAsOneKernel) {
  const auto compiled = compile(example, strict());
  const T x = tensor({{1.f, -2.f, 3.f}, {-4.f, 5.f, -6.f}});
  const T w = tensor({{1.f, 1.f, 1.f}, {2.f, 2.f, 2.f}});
  // relu(x + w) = [[2, 0, 4], [0, 7, 0]]
  expect_floats(compiled(x, w), {12, 14});
  expect_floats(compiled(x, w), {12, 14});
  EXPECT_EQ(kernel_count(compiled), 1u);
}

TEST(Compile, MakesOneKernelOfAPointwiseChain) {
  const auto compiled = compile(
      [](const T& x) {
        T y = x;
        for (int i = 0; i < 20; ++i) y = maximum(y * 2 + 1, -y);
        return y;
      },
      strict());
  const T x = full({7}, 0.0);
  // y -> 2y + 1 from 0: 2^20 - 1
  expect_floats(compiled(x), std::vector<float>(7, 1048575.f));
  EXPECT_EQ(kernel_count(compiled), 1u);
}

TEST(Compile, MakesOneKernelOfSoftmax) {
  const auto compiled = compile([](const T& x) { return softmax(x, -1); }, strict());
  const T y = compiled(zeros({5, 8}));
  expect_floats(y, std::vector<float>(40, 0.125f));
  EXPECT_EQ(kernel_count(compiled), 1u);
}

TEST(Compile, MakesOneKernelOfLayerNorm) {
  const auto compiled =
      compile([](const T& x, const T& w, const T& b) { return layer_norm(x, {4}, w, b, 0.0); }, strict());
  const T x = tensor({{1.f, 1.f, 3.f, 3.f}, {-2.f, 2.f, -2.f, 2.f}});
  const T y = compiled(x, tensor({1.f, 2.f, 1.f, 2.f}), tensor({0.f, 0.f, 10.f, 10.f}));
  // Means 2 and 0, deviations 1 and 2: (x - mean) / deviation is +-1 everywhere.
  expect_floats(y, {-1, -2, 11, 12, -1, 2, 9, 12});
  EXPECT_EQ(kernel_count(compiled), 1u);
}

TEST(Compile, MakesOneKernelOfCrossEntropy) {
  const auto compiled =
      compile([](const T& x, const T& t) { return cross_entropy(x, t, {}, -100, "none"); }, strict());
  const T losses = compiled(zeros({6, 4}), tensor({0, 1, 2, 3, 0, 1}));
  for (const float loss : values(losses)) EXPECT_NEAR(loss, std::log(4.f), 1e-6f);
  EXPECT_EQ(kernel_count(compiled), 1u);
  // The mean over the rows is a later loop nest of the kernel.
  const auto mean = compile([](const T& x, const T& t) { return cross_entropy(x, t); }, strict());
  EXPECT_NEAR(mean(zeros({6, 4}), tensor({0, 1, 2, 3, 0, 1})).item<float>(), std::log(4.f), 1e-6f);
  EXPECT_EQ(kernel_count(mean), 1u);
}

TEST(Compile, KeepsPermutedStrides) {
  const auto compiled = compile([](const T& x) { return (x + 1).t(); }, strict());
  const T y = compiled(tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}));
  EXPECT_EQ(numbers(y.sizes()), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(numbers(y.strides()), (std::vector<int64_t>{1, 3}));
  expect_floats(y, {2, 5, 3, 6, 4, 7});
}

TEST(Compile, KeepsPermutedStridesOfConstants) {
  const auto compiled = compile([] { return full({2, 3}, 4.0).t(); }, strict());
  const T y = compiled();
  EXPECT_EQ(numbers(y.sizes()), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(numbers(y.strides()), (std::vector<int64_t>{1, 3}));
  expect_floats(y, std::vector<float>(6, 4.f));
}

TEST(Compile, DrawsTheNumbersOfEagerMode) {
  const auto f = [](const T& x) { return std::tuple(rand({3, 5}) + x, randn({4})); };
  const auto compiled = compile(f, strict());
  const T x = zeros({3, 5});
  manual_seed(7);
  const auto [a1, b1] = f(x);
  const auto [a2, b2] = f(x);
  manual_seed(7);
  const auto [c1, d1] = compiled(x);
  const auto [c2, d2] = compiled(x);
  expect_floats(c1, values(a1));
  expect_near(d1, values(b1));
  expect_floats(c2, values(a2));
  expect_near(d2, values(b2));
  EXPECT_NE(values(c1), values(c2));
}

struct Layer {
  T weight, bias;
  double scale = 1;
};

}  // namespace

template <>
struct Traversable<Layer> {
  static void fields(auto& layer, auto&& visit) { visit(layer.weight, layer.bias, layer.scale); }
};

namespace {

TEST(Compile, TakesContainersAndStructs) {
  const auto compiled = compile(
      [](const std::vector<T>& xs, const std::map<std::string, T>& named, const std::optional<T>& extra,
         const Layer& layer, const std::array<std::pair<T, int64_t>, 1>& pairs) {
        T sum = xs[0];
        for (size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
        sum = sum + named.at("a") * layer.weight + layer.bias * layer.scale;
        if (extra) sum = sum + *extra;
        return sum + pairs[0].first * pairs[0].second;
      },
      strict());
  const T one = ones({3});
  const auto run = [&](size_t count, std::optional<T> extra, double scale, int64_t factor) {
    return compiled(std::vector<T>(count, one), std::map<std::string, T>{{"a", one * 2}}, extra,
                    Layer{one * 3, one, scale}, std::array<std::pair<T, int64_t>, 1>{{{one, factor}}});
  };
  // count + 2 * 3 + scale + extra + factor
  expect_floats(run(2, std::nullopt, 1, 10), {19, 19, 19});
  expect_floats(run(3, std::nullopt, 1, 10), {20, 20, 20});
  expect_floats(run(3, one * 5, 1, 10), {25, 25, 25});
  expect_floats(run(3, one * 5, 2, 10), {26, 26, 26});
  expect_floats(run(3, one * 5, 2, 20), {36, 36, 36});
  EXPECT_EQ(compiled.artifacts().size(), 5u);
  expect_floats(run(3, one * 5, 2, 20), {36, 36, 36});
  EXPECT_EQ(compiled.artifacts().size(), 5u);
}

TEST(Compile, ReturnsContainers) {
  const auto compiled = compile(
      [](const T& x) {
        std::map<std::string, std::vector<T>> out;
        out["twice"] = {x * 2, x * 3};
        out["none"] = {};
        return std::tuple(out, std::optional<T>(x + 1), int64_t{42}, T());
      },
      strict());
  for (int i = 0; i < 2; ++i) {
    const auto [map, optional, number, undefined] = compiled(tensor({1.f, 2.f}));
    expect_floats(map.at("twice")[0], {2, 4});
    expect_floats(map.at("twice")[1], {3, 6});
    EXPECT_TRUE(map.at("none").empty());
    expect_floats(*optional, {2, 3});
    EXPECT_EQ(number, 42);
    EXPECT_FALSE(undefined.defined());
  }
}

TEST(Compile, TakesScalarsAsRunTimeInputs) {
  const auto compiled = compile([](const T& x, const Scalar& rate) { return x - x * rate; }, strict());
  const T x = tensor({2.f, 4.f});
  expect_floats(compiled(x, Scalar(0.5)), {1, 2});
  expect_floats(compiled(x, Scalar(0.25)), {1.5, 3});
  expect_floats(compiled(x, Scalar(-1.0)), {4, 8});
  EXPECT_EQ(compiled.artifacts().size(), 1u);
  // An integer leaves the dtype of integers alone, a float does not.
  EXPECT_EQ(compiled(tensor({2, 4}), Scalar(3)).dtype(), kInt64);
  EXPECT_EQ(compiled(tensor({2, 4}), Scalar(0.5)).dtype(), kFloat32);
}

TEST(Compile, SpecialisesOnAScalarThatTheFunctionReads) {
  const auto compiled =
      compile([](const T& x, const Scalar& s) { return s.toDouble() > 0 ? x + 1 : x - 1; }, strict());
  const T x = zeros({2});
  expect_floats(compiled(x, Scalar(2.0)), {1, 1});
  expect_floats(compiled(x, Scalar(-2.0)), {-1, -1});
  expect_floats(compiled(x, Scalar(2.0)), {1, 1});
  EXPECT_EQ(compiled.artifacts().size(), 2u);
}

TEST(Compile, KeepsItemSymbolic) {
  const auto compiled = compile(
      [](const T& x) {
        const Scalar s = x.sum().item();
        return std::pair(x * s, s);
      },
      strict());
  const auto [y, s] = compiled(tensor({1.f, 3.f}));
  expect_floats(y, {4, 12});
  EXPECT_EQ(s.toDouble(), 4);
  const auto [z, t] = compiled(tensor({2.f, 3.f}));
  expect_floats(z, {10, 15});
  EXPECT_EQ(t.toDouble(), 5);
}

TEST(Compile, InlinesCompiledFunctions) {
  const auto inner = compile([](const T& x) { return x * 2; });
  const auto outer = compile([&](const T& x) { return inner(x) + inner(x + 1); }, strict());
  expect_floats(outer(tensor({1.f, 2.f})), {6, 10});
  EXPECT_EQ(kernel_count(outer), 1u);
  EXPECT_TRUE(inner.artifacts().empty());
}

TEST(Compile, FunctionsOfNothingAndFunctionsThatReturnNothing) {
  const auto make = compile([] { return full({2, 2}, 3); }, strict());
  expect_values<int64_t>(make(), {3, 3, 3, 3});
  const auto update = compile([](const T& x) { x.add_(1); }, strict());
  const T x = zeros({2});
  update(x);
  update(x);
  expect_floats(x, {2, 2});
}

TEST(Compile, KeepsNumbersOfTheProgramAsConstants) {
  const auto compiled = compile(
      [](const T& x) {
        const T c = tensor({1.f, 2.f});
        c.add_(x);
        return c;
      },
      strict());
  expect_floats(compiled(ones({2})), {2, 3});
  expect_floats(compiled(ones({2})), {2, 3});
}

TEST(Compile, CopiesOneValueThatIsReturnedTwice) {
  const auto compiled = compile([](const T& x) { return std::pair(x + 1, x + 1); }, strict());
  const auto [a, b] = compiled(zeros({2}));
  EXPECT_FALSE(a.is_alias_of(b));
  expect_floats(a, {1, 1});
  expect_floats(b, {1, 1});
}

TEST(Compile, RoundsHalfValuesOnce) {  // C123, C128
  const auto compiled = compile([](const T& x) {
    const T y = x * 1.001;
    const T y2 = matmul(y.reshape({1, 512}).t(), ones({1, 1}, kHalf)).reshape({512});
    return std::tuple(sum(y.to(kFloat) - y2.to(kFloat)), y, y2);
  });
  const auto [a, y, y2] = compiled(arange(1, 513, 1).to(kHalf));
  EXPECT_EQ(a.item<float>(), 0);
  EXPECT_EQ(values(y.to(kFloat)), values(y2.to(kFloat)));
  const auto cast = compile([](const T& x) { return x.to(kHalf).to(kFloat); }, strict());
  const float inf = INFINITY;
  expect_floats(cast(tensor({65504.f, 65519.f, 65520.f, 65536.f, -1e6f})), {65504, 65504, inf, inf, -inf});
}

TEST(Compile, GrowsACacheByConcatenation) {  // C118
  const auto decode = compile(
      [](const T& x, const std::optional<T>& c) {
        const T o = x * 2;
        return std::pair(o, c ? cat({*c, o}) : o);
      },
      strict());
  std::optional<T> c;
  for (int i = 1; i <= 10; ++i) c = decode(full({1}, static_cast<float>(i)), c).second;
  expect_floats(*c, {2, 4, 6, 8, 10, 12, 14, 16, 18, 20});
}

TEST(Compile, StepsStateThatItMakes) {  // C117
  const auto step = compile(
      [](const T& x, const std::optional<T>& state) {
        const T st = state ? *state : zeros_like(x);
        st.add_(x);
        return std::pair(x + st, st);
      },
      strict());
  const T x = tensor({1.f});
  std::optional<T> st;
  for (int i = 1; i <= 6; ++i) {
    const auto [out, next] = step(x, st);
    st = next;
    expect_floats(out, {static_cast<float>(i + 1)});
    expect_floats(*st, {static_cast<float>(i)});
  }
}

TEST(Compile, DebugBackendGivesTheSame) {
  const auto compiled = compile(
      [](const T& x) {
        x.slice(0, 0, 1).mul_(3);
        return std::pair(softmax(x, -1), x.t());
      },
      {.backend = "debug"});
  const T x = zeros({2, 4});
  const auto [y, t] = compiled(x);
  expect_floats(y, std::vector<float>(8, 0.25f));
  EXPECT_TRUE(t.is_alias_of(x));
  EXPECT_EQ(compiled.artifacts()[0].target, "debug");
}

TEST(Compile, RefusesUnknownBackends) {
  EXPECT_THROW(compile(example, {.backend = "nothing"}), UserError);
  EXPECT_THROW(compile(example, {.strict_native = true, .backend = "debug"}), UserError);
}

}  // namespace
}  // namespace stax

// Compiled functions far from the sizes of their example. Expected values are worked out by hand.
#include <gmock/gmock.h>

#include <string>

#include "cpu/compile_testing.h"

namespace stax {
namespace {

using testing::HasSubstr;
using T = Tensor;

CompileOptions dynamic() {
  return {.dynamic = true, .strict_native = true};
}

TEST(DynamicSizes, SumsSplitByTheHintServeEveryLength) {
  const auto f = compile([](const T& x) { return x.sum(); }, dynamic());
  f(ones({1 << 20}));  // 16 parts and more
  for (const int64_t n : {2, 15, 16, 17, 31, 32, 33, 1000, 65537, 3000001}) {
    const T x = remainder(arange(n, kLong), 5).to(kDouble);
    const int64_t whole = n / 5, rest = n % 5;
    expect_values<double>(f(x.to(kFloat)).to(kDouble),
                          {static_cast<double>(10 * whole + rest * (rest - 1) / 2)});
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(DynamicSizes, ExplainsWhatTheHintChose) {
  const T x = ones({1024, 1024});
  const auto sum = compile([](const T& a) { return a.sum(); }, dynamic());
  sum(x);
  EXPECT_THAT(sum.explain(x).str(),
              HasSubstr("a reduction in 16 parts: 1 results of s0*s0 values, by the hint (1 and 1048576)"));
  const auto rows = compile([](const T& a) { return softmax(a, -1); }, dynamic());
  rows(x);
  const std::string text = rows.explain(x).str();
  EXPECT_THAT(text, HasSubstr("rows are held between passes"));
  EXPECT_THAT(text, HasSubstr("indices of 64 bits: the target has no others"));
}

TEST(DynamicSizes, SaysNothingOfFixedSizes) {
  const auto f = compile([](const T& x) { return softmax(x, -1).sum(); });
  EXPECT_THAT(f.explain(ones({1024, 1024})).str(), testing::Not(HasSubstr("by the hint")));
}

// 2^31 + 11 elements of one byte each in memory: none. Offsets stay 0, points are counted past 31 bits.
TEST(DynamicSizes, CountsPointsPast31Bits) {
  const auto f = compile([](const T& x, const SymInt& n) { return x.expand({n, 2}).sum(); }, dynamic());
  const T one = ones({1, 1}, kInt8);
  expect_values<int64_t>(f(one, SymInt(1000)), {2000});
  const int64_t n = (int64_t{1} << 30) + 11;
  expect_values<int64_t>(f(one, SymInt(n)), {2 * n});
}

TEST(DynamicSizes, RefusesPointsPast63Bits) {
  const auto f = compile([](const T& x, const SymInt& n) { return x.expand({n, n}).sum(); }, dynamic());
  const T one = ones({1, 1}, kInt8);
  expect_values<int64_t>(f(one, SymInt(1000)), {1000000});
  for (const int bits : {32, 40, 62}) {
    EXPECT_THROW(f(one, SymInt(int64_t{1} << bits)), UserError) << bits;  // 2^32 * 2^32 would wrap to 0
  }
}

// A chain of library calls between intermediates of several sizes, which share one arena.
TEST(DynamicSizes, IntermediatesOfOtherSizesThanTheHintsShareAnArena) {
  const auto f = compile(
      [](const T& x, const T& w, const T& v) {
        const T a = relu(x.mm(w));            // [n, m]
        const T b = a.mm(v);                  // [n, k]
        const T c = relu(b.t().mm(a));        // [k, m]
        return c.mm(w.t()).mm(x.t()).sum(1);  // [k]
      },
      dynamic());
  for (const auto& [n, d, m, k] : {std::tuple<int64_t, int64_t, int64_t, int64_t>{4, 3, 5, 2},
                                   {2, 50, 3, 70},
                                   {90, 2, 4, 3},
                                   {3, 4, 200, 2}}) {
    // All ones: a = d, b = d m, c = n d^2 m, then m, d and n of these are added.
    const double each = static_cast<double>(n * d * d * m * m * d * n);
    const T y = f(ones({n, d}, kDouble), ones({d, m}, kDouble), ones({m, k}, kDouble));
    expect_values<double>(y, std::vector<double>(static_cast<size_t>(k), each));
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

// Strides along one element address nothing, but the program may ask for them, and views show them.
TEST(DynamicSizes, StridesAlongOneElementAreThoseOfTheCall) {
  const auto f = compile([](const T& x) { return x + x.stride(0); }, dynamic());
  const auto view = compile([](const T& x) { return x.t(); }, dynamic());
  const T wide = zeros({3, 7});
  const auto expect_stride = [&](const T& x, int64_t stride) {
    expect_values<float>(f(x)[0], std::vector<float>(static_cast<size_t>(x.size(1)), float(stride)));
    EXPECT_EQ(view(x).strides(), (std::vector<int64_t>{1, stride}));
  };
  for (const int64_t n : {3, 4, 5}) {
    expect_stride(zeros({1, n}), n);
    expect_stride(wide.slice(0, 1, 2).slice(1, 0, n), 7);
  }
  expect_stride(zeros({1, 12}).slice(1, 0, 6), 12);
  EXPECT_EQ(f.artifacts().size(), 2u);
  // The same of a tensor without elements.
  const auto g = compile([](const T& x, const T& empty) { return x + empty.stride(0); }, dynamic());
  for (const int64_t n : {3, 4}) {
    expect_values<float>(g(zeros({2}), zeros({n, 0})), {1, 1});
    expect_values<float>(g(zeros({2}), zeros({n, 6}).slice(1, 2, 2)), {6, 6});
  }
}

// A part whose length is 1 by a guard is written as 1 in one place and by sizes in the other.
TEST(DynamicSizes, WritesPartsOfOneElement) {
  const auto f = compile(
      [](const T& x) {
        x.slice(0, x.size(0) / 2, x.size(0)).mul_(3);
        return x.sum();
      },
      dynamic());
  for (const int64_t n : {2, 3, 8, 2}) {
    const T x = ones({n});
    const int64_t tripled = n - n / 2;
    expect_values<float>(f(x), {static_cast<float>(n + 2 * tripled)});
    EXPECT_EQ(x[n - 1].item<float>(), 3);
  }
}

// What a captured tensor has one value of each for is a number; the rest of the sizes stay open.
TEST(DynamicSizes, ValuesForEachChannelOrClassFixTheirNumber) {
  const T four = tensor({1.0, 2.0, 3.0, 4.0}), one = ones({4});
  const auto norm = compile(
      [=](const T& x) { return batch_norm(x, zeros({4}), one, four, {}, false, 0.1, 0.0); }, dynamic());
  const auto loss =
      compile([=](const T& x, const T& t) { return nll_loss(x, t, four, -100, "sum"); }, dynamic());
  const auto margin =
      compile([=](const T& x, const T& t) { return multi_margin_loss(x, t, 1, 1, one, "sum"); }, dynamic());
  for (const int64_t n : {3, 7}) {
    expect_floats(norm(ones({n, 4})).index({n - 1}), {1, 2, 3, 4});
    expect_floats(loss(ones({n, 4}), full({n}, 2, kLong)), {-3.0f * static_cast<float>(n)});
    expect_floats(margin(ones({n, 4}), full({n}, 2, kLong)), {0.75f * static_cast<float>(n)});
  }
  EXPECT_EQ(norm.artifacts().size() + loss.artifacts().size() + margin.artifacts().size(), 3u);
  EXPECT_THROW(norm(ones({3, 5})), UserError);
}

TEST(DynamicSizes, DivisionByTheSizeZeroIsAnError) {
  const auto f =
      compile([](const T& x, const SymInt& k) { return x + x.size(0) / k + x.size(0) % k; }, dynamic());
  expect_values<float>(f(zeros({7}), SymInt(2)).sum(), {28});    // 3 + 1
  expect_values<float>(f(zeros({7}), SymInt(-2)).sum(), {-14});  // -3 + 1
  for (const int64_t n : {7, 8}) {
    try {
      f(zeros({n}), SymInt(0));
      FAIL();
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("by zero"));
    }
  }
}

}  // namespace
}  // namespace stax

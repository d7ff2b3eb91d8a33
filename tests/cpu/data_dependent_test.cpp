// Sizes that only data determines: one artifact for every count, zero included. Expected values are worked
// out by hand or by loops over plain vectors.
#include <random>

#include "cpu/compile_testing.h"
#include "support/user_error.h"

namespace stax {
namespace {

using T = Tensor;

template <class F>
void expect_one_artifact(const CompiledFunction<F>& compiled) {
  const auto artifacts = compiled.artifacts();
  ASSERT_EQ(artifacts.size(), 1u);
  EXPECT_NE(artifacts[0].target, "eager");
  EXPECT_NE(artifacts[0].target, "debug");
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

T floats(const std::vector<float>& v) {
  return tensor(v);
}
T bools(const std::vector<int64_t>& v) {
  return tensor(v) != 0;
}

// ---- operators, each with no, one and many results ----

TEST(DataDependent, CompilesWhatFollowsNonzero) {
  const auto compiled = compile([](const T& x) { return nonzero(x) * 2 + 1; }, strict());
  expect_values<int64_t>(compiled(floats({0, 5, 0, 7})), {3, 7});
  expect_values<int64_t>(compiled(floats({0, 0, 0, 0})), {});
  expect_values<int64_t>(compiled(floats({9, 0, 0, 0})), {1});
  const T all = compiled(floats({1, 1, 1, 1}));
  expect_values<int64_t>(all, {1, 3, 5, 7});
  EXPECT_EQ(numbers(all.sizes()), (std::vector<int64_t>{4, 1}));
  expect_one_artifact(compiled);
  EXPECT_EQ(kernel_count(compiled), 1u);
  expect_part(compiled.artifacts()[0].plan, "dynamic_kernels.nonzero");
  expect_part(compiled.artifacts()[0].plan, "u0 = ");
}

TEST(DataDependent, CompilesWhatFollowsMaskedSelect) {
  const auto compiled = compile([](const T& x) { return (masked_select(x, x > 0) * 2).sum(); }, strict());
  expect_floats(compiled(floats({-1, 2, 3, -4})), {10});
  expect_floats(compiled(floats({-1, -2, -3, -4})), {0});
  expect_floats(compiled(floats({-1, -2, -3, 4})), {8});
  expect_one_artifact(compiled);
}

TEST(DataDependent, ReturnsWhatTheOperatorGives) {
  const auto compiled = compile([](const T& x) { return masked_select(x, x > 0); }, strict());
  expect_floats(compiled(floats({-1, 2, 3})), {2, 3});
  expect_floats(compiled(floats({-1, -2, -3})), {});
  expect_one_artifact(compiled);
}

TEST(DataDependent, CompilesWhatFollowsUnique) {
  const auto compiled = compile(
      [](const T& x) {
        const std::vector<T> u = unique(x, true, true, true);
        return std::vector<T>{u[0] * 10, u[1] + 1, u[2] * 2};
      },
      strict());
  const std::vector<T> three = compiled(tensor({3, 1, 3, 2}));
  expect_values<int64_t>(three[0], {10, 20, 30});
  expect_values<int64_t>(three[1], {3, 1, 3, 2});
  expect_values<int64_t>(three[2], {2, 2, 4});
  const std::vector<T> one = compiled(tensor({4, 4, 4, 4}));
  expect_values<int64_t>(one[0], {40});
  expect_values<int64_t>(one[2], {8});
  expect_one_artifact(compiled);
}

TEST(DataDependent, CompilesWhatFollowsBincount) {
  const auto compiled = compile([](const T& x) { return bincount(x, std::nullopt, 2) * 3; }, strict());
  expect_values<int64_t>(compiled(tensor({0, 3, 3})), {3, 0, 0, 6});
  expect_values<int64_t>(compiled(tensor({0, 0, 0})), {9, 0});
  expect_one_artifact(compiled);
  EXPECT_THROW(compiled(tensor({0, -3, 3})), UserError);
}

TEST(DataDependent, CompilesWhatFollowsRepeatInterleave) {
  const auto compiled =
      compile([](const T& x, const T& n) { return repeat_interleave(x, n, 0) + 1; }, strict());
  const T x = floats({5, 6, 7});
  expect_floats(compiled(x, tensor({2, 0, 1})), {6, 6, 8});
  expect_floats(compiled(x, tensor({0, 0, 0})), {});
  expect_floats(compiled(x, tensor({0, 1, 0})), {7});
  expect_one_artifact(compiled);
}

TEST(DataDependent, CompilesOneHotOfUnknownClasses) {
  const auto compiled = compile([](const T& x) { return one_hot(x).sum(0); }, strict());
  expect_values<int64_t>(compiled(tensor({2, 0, 2})), {1, 0, 2});
  expect_values<int64_t>(compiled(tensor({0, 0, 0})), {3});
  expect_one_artifact(compiled);
}

// ---- through other operators ----

TEST(DataDependent, WritesBackThroughAMask) {
  const auto compiled = compile(
      [](const T& h, const T& m) {
        T o = h.clone();
        o.index_put_({m}, h.index({m}) * 2 + 1);
        return o;
      },
      strict());
  const T h = floats({1, 2, 3});
  expect_floats(compiled(h, bools({1, 0, 1})), {3, 2, 7});
  expect_floats(compiled(h, bools({0, 0, 0})), {1, 2, 3});
  expect_floats(compiled(h, bools({1, 1, 1})), {3, 5, 7});
  expect_one_artifact(compiled);
}

TEST(DataDependent, GoesThroughViewsReductionsMatmulAndCat) {
  const auto compiled = compile(
      [](const T& x, const T& w) {
        const T rows = x.index({x.select(1, 0) > 0});  // (u, 2)
        const T flat = rows.reshape({-1});
        const T back = flat.view({-1, 2}).t();
        return std::vector<T>{rows.sum(0), rows.sum(1), matmul(rows, w), cat({rows, x}, 0),
                              flat + 1,    back * 2,    softmax(rows, 0)};
      },
      strict());
  const T w = tensor({{1.f, 0.f, 2.f}, {0.f, 1.f, 1.f}});
  const T x = tensor({{1.f, 2.f}, {-1.f, 5.f}, {3.f, 4.f}});
  const std::vector<T> two = compiled(x, w);
  expect_floats(two[0], {4, 6});
  expect_floats(two[1], {3, 7});
  expect_floats(two[2], {1, 2, 4, 3, 4, 10});
  expect_floats(two[3], {1, 2, 3, 4, 1, 2, -1, 5, 3, 4});
  expect_floats(two[4], {2, 3, 4, 5});
  expect_floats(two[5], {2, 6, 4, 8});
  EXPECT_EQ(numbers(two[5].sizes()), (std::vector<int64_t>{2, 2}));
  const float low = 1 / (1 + std::exp(2.f));  // columns 1, 3 and 2, 4: two apart
  expect_near(two[6], {low, low, 1 - low, 1 - low});
  const std::vector<T> none = compiled(-x.abs(), w);
  expect_floats(none[0], {0, 0});
  EXPECT_EQ(numbers(none[2].sizes()), (std::vector<int64_t>{0, 3}));
  expect_floats(none[3], {-1, -2, -1, -5, -3, -4});
  EXPECT_EQ(numbers(none[5].sizes()), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(numbers(none[6].sizes()), (std::vector<int64_t>{0, 2}));
  expect_one_artifact(compiled);
}

TEST(DataDependent, UsesOneKernelForAPointwiseChain) {
  const auto compiled = compile(
      [](const T& x) {
        T y = masked_select(x, x > 0);
        for (int i = 0; i < 5; ++i) y = y * 2 + 1;
        return y;
      },
      strict());
  expect_floats(compiled(floats({-1, 1, 0})), {63});  // 2^5 * 1 + 2^5 - 1
  expect_floats(compiled(floats({-1, -1, 0})), {});
  EXPECT_EQ(kernel_count(compiled), 2u);  // the mask, the chain
}

TEST(DataDependent, AddsResultsOfEqualCounts) {
  // Two masks of different tensors: that both select as many is checked when the program runs.
  const auto compiled = compile(
      [](const T& x, const T& y) {
        const T first = masked_select(x, x > 0);
        return first + masked_select(y, y > 0);
      },
      strict());
  expect_floats(compiled(floats({1, -1, 2}), floats({-5, 6, 7})), {7, 9});
  expect_floats(compiled(floats({-1, -1, -2}), floats({-5, -6, -7})), {});
  const std::string error = error_of([&] { compiled(floats({1, -1, 2}), floats({5, 6, 7})); });
  expect_part(error, "check failed");
  expect_part(error, "u0 = 2");
  expect_part(error, "u1 = 3");
  expect_one_artifact(compiled);
}

TEST(DataDependent, RunsWhatNeedsASizeAfterWhatGivesIt) {
  // Three results over the same sum: what needs u0 only as a number must wait for it.
  const auto compiled = compile(
      [](const T& x) {
        const T sums = (x + 1).sum(0);
        const SymInt count = nonzero(sums).size(0);
        return std::vector<T>{sums * count, full({count}, 2.0) + sums.sum(), sums + 1};
      },
      strict());
  const std::vector<T> out = compiled(tensor({{1.f, -1.f}, {2.f, -1.f}}));  // sums 5, 0
  expect_floats(out[0], {5, 0});
  expect_floats(out[1], {7});
  expect_floats(out[2], {6, 1});
  const std::vector<T> none = compiled(tensor({{-1.f, -1.f}, {-1.f, -1.f}}));
  expect_floats(none[0], {0, 0});
  expect_floats(none[1], {});
}

TEST(DataDependent, WritesPartsOfKnownTensors) {
  const auto compiled = compile(
      [](const T& x, const T& n) {
        const SymInt b = n.item().toSymInt();
        check(b >= 0);
        check(b <= x.size(0));
        T y = x.clone();
        y.index({Slice(None, b)}).mul_(10);
        return y;
      },
      strict());
  const T x = floats({1, 2, 3});
  expect_floats(compiled(x, tensor(2)), {10, 20, 3});
  expect_floats(compiled(x, tensor(0)), {1, 2, 3});
  expect_floats(compiled(x, tensor(3)), {10, 20, 30});
}

TEST(DataDependent, WritesWhatItFoundIntoTheFrontOfABuffer) {
  const auto compiled = compile(
      [](const T& x) {
        const T found = masked_select(x, x > 0);
        T out = full({4}, -1.0);
        out.index({Slice(None, found.size(0))}).copy_(found);
        return out;
      },
      strict());
  expect_floats(compiled(floats({-5, 2, 0, 3})), {2, 3, -1, -1});
  expect_floats(compiled(floats({-5, -2, 0, -3})), {-1, -1, -1, -1});
  expect_floats(compiled(floats({5, 2, 1, 3})), {5, 2, 1, 3});
  expect_one_artifact(compiled);
}

TEST(DataDependent, RunsOnEagerlyWhereOnlyMemoryKnows) {
  // as_strided needs its sizes as numbers.
  const auto compiled = compile([](const T& x) {
    const SymInt count = nonzero(x).size(0);
    return x.clone().as_strided({count}, {1}) + 1;
  });
  expect_floats(compiled(floats({1, 0, 3})), {2, 1});
  expect_floats(compiled(floats({0, 0, 3})), {1});
}

TEST(DataDependent, ServesEverySizeOfDynamicInputs) {
  const auto compiled = compile([](const T& x) { return masked_select(x, x > 0) + 1; },
                                {.dynamic = true, .strict_native = true});
  expect_floats(compiled(floats({-1, 2, 3})), {3, 4});
  expect_floats(compiled(floats({-1, 2, 3, 5, -6})), {3, 4, 6});
  expect_floats(compiled(floats({-1, -2, -3, -5, -6, -7})), {});
  expect_one_artifact(compiled);
}

// ---- item() ----

TEST(DataDependent, MakesSizesOfItem) {
  const auto compiled = compile([](const T& c) { return ones({c.item().toSymInt() * 2}); }, strict());
  for (const int64_t n : {3, 1, 0}) expect_floats(compiled(tensor(n)), std::vector<float>(2 * n, 1.f));
  const std::string error = error_of([&] { compiled(tensor(-1)); });
  expect_part(error, "check failed");
  expect_part(error, "u0 = -1");
  expect_one_artifact(compiled);
}

TEST(DataDependent, LetsACheckedRelationSettleASlice) {
  const auto compiled = compile(
      [](const T& y, const T& n) {
        const SymInt b = n.item().toSymInt();
        check(b >= 0, "no negative lengths");
        check(b < y.size(0), "n is an index of y");
        return y.index({Slice(None, b)}).sum();
      },
      strict());
  const T y = ones({8});
  expect_floats(compiled(y, tensor(3)), {3});
  expect_floats(compiled(y, tensor(0)), {0});
  const std::string error = error_of([&] { compiled(y, tensor(8)); });
  expect_part(error, "u0 < 8");
  expect_part(error, "n is an index of y");
  expect_part(error, "u0 = 8");
  expect_part(error, "data_dependent_test.cpp");
  expect_part(error_of([&] { compiled(y, tensor(-1)); }), "no negative lengths");
  expect_one_artifact(compiled);
}

TEST(DataDependent, KeepsChecksOverDynamicSizes) {
  const auto compiled = compile(
      [](const T& n, const T& y) {
        const SymInt b = n.item().toSymInt();
        check(b >= 0);
        check(b < y.size(0));
        return y.index({Slice(None, b)});
      },
      {.dynamic = true, .strict_native = true});
  expect_floats(compiled(tensor(5), ones({9})), std::vector<float>(5, 1.f));
  const std::string error = error_of([&] { compiled(tensor(5), ones({2})); });
  expect_part(error, "check failed");
  expect_part(error, "= 2");
  expect_one_artifact(compiled);
}

TEST(DataDependent, ClampsSlicesWithoutChecks) {
  const auto compiled = compile(
      [](const T& y, const T& n) { return y.index({Slice(None, n.item().toSymInt())}) + 1; }, strict());
  const T y = floats({0, 1, 2, 3});
  expect_floats(compiled(y, tensor(2)), {1, 2});
  expect_floats(compiled(y, tensor(9)), {1, 2, 3, 4});
  expect_floats(compiled(y, tensor(-1)), {1, 2, 3});
  expect_floats(compiled(y, tensor(-9)), {});
  expect_one_artifact(compiled);
}

TEST(DataDependent, SelectsByItem) {
  const auto compiled =
      compile([](const T& y, const T& n) { return y.select(0, n.item().toSymInt()) * 2; }, strict());
  const T y = floats({0, 1, 2, 3});
  expect_floats(compiled(y, tensor(2)), {4});
  expect_floats(compiled(y, tensor(-1)), {6});
  EXPECT_THROW(compiled(y, tensor(4)), UserError);
  EXPECT_THROW(compiled(y, tensor(-5)), UserError);
  expect_one_artifact(compiled);
}

TEST(DataDependent, SqueezesASliceOfOneWhereAChecksSaysSo) {
  const auto compiled = compile(
      [](const T& x, const T& i) {
        const SymInt u = i.item().toSymInt();
        check(u >= 0);
        check(u < x.size(1));
        return x.index({Slice(), Slice(u, u + 1)}).squeeze(1);
      },
      strict());
  const T x = arange(12).reshape({3, 4});
  expect_values<int64_t>(compiled(x, tensor(2)), {2, 6, 10});
  expect_values<int64_t>(compiled(x, tensor(0)), {0, 4, 8});
  expect_values<int64_t>(compiled(x, tensor(3)), {3, 7, 11});
  expect_part(error_of([&] { compiled(x, tensor(4)); }), "u0 < 4");
}

TEST(DataDependent, SqueezesWithoutACheckByRunningOnEagerly) {
  const auto compiled = compile([](const T& x, const T& i) {
    const SymInt u = i.item().toSymInt();
    return x.index({Slice(), Slice(u, u + 1)}).squeeze(1);
  });
  const T x = arange(12).reshape({3, 4});
  expect_values<int64_t>(compiled(x, tensor(2)), {2, 6, 10});
  const T empty = compiled(x, tensor(4));
  EXPECT_EQ(numbers(empty.sizes()), (std::vector<int64_t>{3, 0}));
}

TEST(DataDependent, ReturnsSizes) {
  const auto compiled = compile([](const T& x) { return nonzero(x).size(0) * 2 + 1; }, strict());
  EXPECT_EQ(int64_t{compiled(floats({1, 0, 2}))}, 5);
  EXPECT_EQ(int64_t{compiled(floats({0, 0, 0}))}, 1);
  expect_one_artifact(compiled);
}

TEST(DataDependent, ComputesWithSizes) {
  const auto compiled = compile(
      [](const T& x) {
        const T chosen = masked_select(x, x > 0);
        return chosen.sum() / max(chosen.size(0), 1);
      },
      strict());
  expect_floats(compiled(floats({1, -1, 3})), {2});
  expect_floats(compiled(floats({-1, -1, -3})), {0});
}

// ---- the program's own decisions ----

T branches(const T& x) {
  const T chosen = masked_select(x, x > 0);
  if (chosen.size(0) < 2) return chosen * 10;
  return chosen.sum();
}

TEST(DataDependent, RefusesUndeterminedDecisionsUnderFullgraph) {
  for (const CompileOptions& options : {CompileOptions{.fullgraph = true}, strict()}) {
    const auto compiled = compile(branches, options);
    const std::string error = error_of([&] { compiled(floats({1, 2, 3})); });
    expect_part(error, "u0 < 2 is undetermined");
    expect_part(error, "u0 in [0, 3]");
    expect_part(error, "stax::check(u0 < 2)");
    expect_part(error, "stax::check(2 <= u0)");
  }
}

TEST(DataDependent, RunsOnEagerlyAfterAnUndeterminedDecision) {
  int runs = 0;
  const auto compiled = compile([&](const T& x) {
    ++runs;
    return branches(x);
  });
  expect_floats(compiled(floats({1, 2, 3})), {6});
  EXPECT_EQ(runs, 1);
  expect_floats(compiled(floats({-1, 2, -3})), {20});
  expect_floats(compiled(floats({-1, -2, -3})), {});
}

TEST(DataDependent, DecidesWhatFollowsFromWhatIsKnown) {
  const auto compiled = compile(
      [](const T& x) {
        const T chosen = nonzero(x);
        if (chosen.size(0) >= 0 && chosen.size(0) <= 4) return chosen + 1;
        return chosen;
      },
      strict());
  expect_values<int64_t>(compiled(floats({0, 0, 1, 0})), {3});
  const auto checked = compile(
      [](const T& x) {
        const T chosen = nonzero(x);
        check(chosen.size(0) > 1, "two at least");
        return chosen.size(0) == 1 ? chosen : chosen + 1;
      },
      strict());
  expect_values<int64_t>(checked(floats({1, 0, 1, 0})), {1, 3});
  expect_part(error_of([&] { checked(floats({1, 0, 0, 0})); }), "two at least");
}

TEST(DataDependent, ReadsASizeAsANumber) {
  const auto count = [](const T& x) { return x * int64_t{nonzero(x).size(0)}; };
  const auto compiled = compile(count);
  expect_floats(compiled(floats({1, 0, 2})), {2, 0, 4});
  expect_floats(compiled(floats({0, 0, 2})), {0, 0, 2});
  expect_part(error_of([&] { compile(count, strict())(floats({1, 0, 2})); }), "only data determines it");
}

// ---- check() ----

TEST(Check, RaisesOutsideTracing) {
  const T x = ones({3});
  EXPECT_NO_THROW(check(x.size(0) == 3));
  const std::string error = error_of([&] { check(x.size(0) == 4, "four of them"); });
  expect_part(error, "four of them");
  expect_part(error, "data_dependent_test.cpp");
}

TEST(Check, TakesConjunctions) {
  // Each part is a check: nothing is decided, and the message names the part that fails.
  const auto f = compile(
      [](const T& x, const T& n) {
        const SymInt k = n.item().toSymInt();
        check((k >= 0) & (k < x.size(0)) & (x.size(0) > 1), "an index");
        return x.index({k}) * 2;
      },
      strict());
  const T x = floats({1, 2, 3});
  expect_floats(f(x, tensor(1)), {4});
  expect_floats(f(x, tensor(2)), {6});
  expect_part(error_of([&] { f(x, tensor(3)); }), "check failed: u0 < 3 (an index), with u0 = 3");
  expect_part(error_of([&] { f(x, tensor(-1)); }), "check failed: 0 <= u0 (an index), with u0 = -1");
  expect_one_artifact(f);
  EXPECT_TRUE((x.size(0) > 1) & (x.size(0) < 4));
  EXPECT_FALSE((x.size(0) > 1) & (x.size(0) < 3));
  EXPECT_FALSE((x.size(0) > 1) & false);
  expect_part(error_of([&] { check((x.size(0) > 1) & (x.size(0) < 3), "short"); }), "short");
}

TEST(Check, NamesTheDimensionsOfItsSymbols) {
  const auto n = Dim("n", {.min = 2, .max = 64});
  const auto f = compile(
      [](const T& x) {
        check(x.size(0) % 4 == 0, "blocks of 4");
        return x * 2;
      },
      {.dynamic = true, .dynamic_shapes = {{{0, n}}}});
  expect_floats(f(zeros({4})), {0, 0, 0, 0});
  const std::string text = error_of([&] { f(zeros({6})); });
  expect_part(text, "blocks of 4");
  expect_part(text, "with s0 = 6; s0 is dimension 0 of tensor 0, declared as n with n within [2, 64]");
}

TEST(Check, IsNoGuardOverSizesOfInputs) {
  const auto compiled = compile(
      [](const T& x) {
        check(x.size(0) <= 5, "at most five");
        return x + 1;
      },
      {.dynamic = true, .strict_native = true});
  expect_floats(compiled(ones({3})), {2, 2, 2});
  expect_floats(compiled(ones({5})), {2, 2, 2, 2, 2});
  const std::string error = error_of([&] { compiled(ones({6})); });
  expect_part(error, "at most five");
  expect_part(error, "s0 = 6");
  expect_one_artifact(compiled);
  // The example violates it: nothing is compiled.
  const auto other = compile(
      [](const T& x) {
        check(x.size(0) <= 5, "at most five");
        return x + 1;
      },
      CompileOptions{.dynamic = true});
  expect_part(error_of([&] { other(ones({7})); }), "at most five");
}

TEST(Check, IsAssertedByExportedPrograms) {
  const auto e = export_program(
      [](const T& x) {
        check(x.size(0) <= 5, "at most five");
        return x + 1;
      },
      std::tuple{ones({3})}, {{{0, Dim("n", {.min = 2, .max = 10})}}}, {.names = {"x"}});
  expect_floats(e(ones({5})), {2, 2, 2, 2, 2});
  expect_part(error_of([&] { e(ones({6})); }), "x.size()[0]");
}

// ---- other ways to run ----

TEST(DataDependent, AssertsEqualSizesOfContractions) {
  const auto dots = compile(
      [](const T& x, const T& y) {
        const T a = masked_select(x, x > 0), b = masked_select(y, y > 0);
        return std::vector<T>{einsum("i,i->", {a, b}), tensordot(a, b, {0}, {0}), einsum("i,j->j", {a, b})};
      },
      strict());
  const std::vector<T> two = dots(floats({1, -1, 2}), floats({3, 4, -1}));
  expect_floats(two[0], {11});
  expect_floats(two[1], {11});
  expect_floats(two[2], {9, 12});
  const std::vector<T> none = dots(floats({-1}), floats({-1}));
  expect_floats(none[0], {0});
  expect_floats(none[2], {});
  expect_part(error_of([&] { dots(floats({1, 2, 3}), floats({3, 4, -1})); }), "check failed");
  EXPECT_EQ(dots.artifacts().size(), 2u);  // for inputs of one element, too
}

TEST(DataDependent, RunsOperatorByOperator) {
  const auto compiled = compile(
      [](const T& h, const T& n) {
        const SymInt b = n.item().toSymInt();
        check(b >= 0, "a length");
        const T chosen = masked_select(h, h > 0);
        return std::vector<T>{chosen * 2, ones({b}), chosen.reshape({-1, 1})};
      },
      {.backend = "debug"});
  const std::vector<T> out = compiled(floats({1, -2, 3}), tensor(2));
  expect_floats(out[0], {2, 6});
  expect_floats(out[1], {1, 1});
  EXPECT_EQ(numbers(out[2].sizes()), (std::vector<int64_t>{2, 1}));
  expect_floats(compiled(floats({-1, -2, -3}), tensor(0))[0], {});
  expect_part(error_of([&] { compiled(floats({1, -2, 3}), tensor(-2)); }), "a length");
}

TEST(DataDependent, AgreesWithLoopsOverRandomMasks) {
  const auto compiled = compile(
      [](const T& x, const T& m) {
        const T chosen = x.index({m});  // (u, 3)
        T written = x.clone();
        written.index_put_({m}, chosen * 3);
        return std::vector<T>{chosen + 1, chosen.sum(0), written, nonzero(m).select(1, 0)};
      },
      strict());
  std::mt19937 random(7);
  constexpr int kRows = 37;
  for (int round = 0; round < 60; ++round) {
    std::vector<float> data(kRows * 3), more, sums(3, 0.f);
    std::vector<int64_t> mask(kRows), places;
    for (float& v : data) v = static_cast<float>(static_cast<int>(random() % 17) - 8);
    const unsigned density = round % 6;
    for (int64_t& m : mask) m = random() % 5 < density ? 1 : 0;
    std::vector<float> written = data;
    for (int r = 0; r < kRows; ++r) {
      if (!mask[r]) continue;
      places.push_back(r);
      for (int c = 0; c < 3; ++c) {
        more.push_back(data[r * 3 + c] + 1);
        sums[c] += data[r * 3 + c];
        written[r * 3 + c] *= 3;
      }
    }
    const std::vector<T> out = compiled(floats(data).reshape({kRows, 3}), bools(mask));
    expect_floats(out[0], more);
    expect_floats(out[1], sums);
    expect_floats(out[2], written);
    expect_values<int64_t>(out[3], places);
  }
  expect_one_artifact(compiled);
}

}  // namespace
}  // namespace stax

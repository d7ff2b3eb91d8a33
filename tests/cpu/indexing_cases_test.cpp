// Indices: negative ones, ones out of range, empty operands, products that need 64 bits, and random numbers.
#include <gtest/gtest.h>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

TEST(IndexingCases, ScatteredReductions) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{
              scatter_reduce(t[0], 0, t[1], t[2], "sum"), scatter_reduce(t[0], 0, t[1], t[2], "amax"),
              scatter_reduce(t[0], 0, t[1], t[2], "prod", false), scatter_add(t[0], 0, t[1], t[2])};
        },
        {make({10, 20, 30}), integers({0, 2, 0, 1}), make({1, 2, 3, 4})});
    expect_values(got[0], {14, 24, 32});
    expect_values(got[1], {10, 20, 30});
    expect_values(got[2], {3, 4, 2});
    expect_values(got[3], {14, 24, 32});
    for (const int64_t wrong : {-1, 3, 1000000}) {
      for (const char* how : {"sum", "amax", "mean"}) {
        expect_user_error(
            [&] {
              run([how](const Tensors& t) { return Tensors{scatter_reduce(t[0], 0, t[1], t[2], how)}; },
                  {make({10, 20, 30}), integers({0, 2, 0, wrong}), make({1, 2, 3, 4})});
            },
            {"scatter", std::to_string(wrong)});
      }
      expect_user_error(
          [&] {
            run([](const Tensors& t) { return Tensors{gather(t[0], 0, t[1])}; },
                {make({10, 20, 30}), integers({0, wrong})});
          },
          {"index", std::to_string(wrong)});
      expect_user_error(
          [&] {
            run([](const Tensors& t) { return Tensors{index_select(t[0], 0, t[1])}; },
                {make({10, 20, 30}), integers({0, wrong})});
          },
          {"index", std::to_string(wrong)});
      expect_user_error(
          [&] {
            run([](const Tensors& t) { return Tensors{embedding(t[0], t[1])}; },
                {make({10, 20, 30}, kFloat32, {3, 1}), integers({0, wrong})});
          },
          {"index", std::to_string(wrong)});
    }
  });
}

TEST(IndexingCases, IndexTensorsCountFromTheEndToo) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{t[0].index({t[1] - 1}), t[0].index({t[1] - 12}),
                         t[0].index({(t[1] - 1).view({3, 1})})};
        },
        {arange(12), zeros({3}, kInt64)});
    expect_whole(got[0], {11, 11, 11});
    expect_whole(got[1], {0, 0, 0});
    expect_form(got[2], kInt64, {3, 1});
    for (const int64_t wrong : {-13, 12}) {
      expect_user_error(
          [&] {
            run([](const Tensors& t) { return Tensors{t[0].index({t[1]})}; },
                {arange(12), integers({0, wrong})});
          },
          {"index", std::to_string(wrong), "12"});
    }
  });
}

TEST(IndexingCases, EmptyIndicesAndEmptyTensors) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run.lax()(
        [](const Tensors& t) {
          return Tensors{t[0].index({t[1]}),    index_select(t[0], 1, t[1]), gather(t[0], 0, t[2]),
                         t[3].index({t[1]}),    scatter(t[0], 0, t[2], 5),   index_add(t[0], 0, t[1], t[4]),
                         embedding(t[0], t[1]), t[0].index({t[5]})};
        },
        {arange(6).view({2, 3}), zeros({0}, kInt64), zeros({0, 3}, kInt64), zeros({0, 3}),
         zeros({0, 3}, kInt64), zeros({2, 3}, kBool)});
    const std::vector<int64_t> shapes[] = {{0, 3}, {2, 0}, {0, 3}, {0, 3}, {2, 3}, {2, 3}, {0, 3}, {0}};
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(shape(got[i]), shapes[i]) << i;
    expect_whole(got[4], {0, 1, 2, 3, 4, 5});
  });
  expect_user_error([] { return zeros({0, 3}).index({tensor({0})}); }, {"index", "0"});
}

TEST(IndexingCases, PositionsTimesLargeConstants) {
  for_each_mode([](const Mode& run) {
    const std::vector<int64_t> expected{0,          700000000,  1400000000, 2100000000,
                                        2800000000, 3500000000, 4200000000};
    const Tensors got = run(
        [&run](const Tensors& t) {
          return Tensors{arange(0, 7) * 700000000, arange(0, 7, run.device()) * t[0],
                         arange(7, kInt64) * int64_t{700000000},
                         arange(0, int64_t{4900000000}, int64_t{700000000})};
        },
        {integers({700000000})});
    for (const Tensor& t : got) {
      EXPECT_EQ(t.dtype(), kInt64);
      expect_whole(t, expected);
    }
  });
}

TEST(IndexingCases, NestedQuotientsOfPositions) {
  for_each_mode([](const Mode& run) {
    std::vector<int64_t> expected(48);
    for (int64_t i = 0; i < 48; ++i) expected[static_cast<size_t>(i)] = ((i % 24) / 3 * 3) % 6 + 6 * (i / 24);
    const Tensors got = run(
        [&run](const Tensors& t) {
          const Tensor i = arange(48, run.device()), q = floor_divide(remainder(i, 24), 3) * 3;
          const Tensor viewed = t[0].view({2, 24})
                                    .slice(1, 0, 6)
                                    .view({2, 2, 3})
                                    .select(2, 0)
                                    .view({2, 1, 2, 1})
                                    .expand({2, 4, 2, 3})
                                    .reshape({48});
          return Tensors{t[0].index({remainder(q, 6) + floor_divide(i, 24) * 6}), viewed};
        },
        {arange(48)});
    expect_whole(got[0], expected);
    for (int64_t i = 0; i < 48; ++i) expected[static_cast<size_t>(i)] = (i % 6) / 3 * 3 + 24 * (i / 24);
    expect_whole(got[1], expected);
  });
}

TEST(IndexingCases, TransposedCopiesOfManyRows) {
  for_each_mode([](const Mode& run) {
    const int64_t n = 1 << 17;
    const Tensor x = arange(4 * n).view({n, 4});
    const Tensors got = run([](const Tensors& t) { return Tensors{transpose_copy(t[0], 0, 1) + 1}; }, {x});
    expect_form(got[0], kInt64, {4, n});
    EXPECT_TRUE(all(got[0] == x.t() + 1).item<bool>());
  });
}

TEST(IndexingCases, OperandsOfMoreThanTwoGigabytes) {
  if (!huge_memory_wanted()) GTEST_SKIP() << "needs 10 GB of memory: set STAX_TEST_HUGE=1 to run it";
  for_each_mode([](const Mode& run) {
    {
      const int64_t start = (int64_t{1} << 31) + 8;
      const Tensor base = zeros({start + 120}, kUInt8);
      base.slice(0, start, start + 64).copy_(arange(64));
      const Tensors got = run(
          [](const Tensors& t) {
            return Tensors{t[0] * 2, cat({t[0], t[0] + 1})};
          },
          {base.slice(0, start, start + 64)});
      expect_whole(got[0], whole(arange(0, 128, 2)));
      expect_whole(got[1], whole(cat({arange(64), arange(1, 65)})));
    }
    {
      const Tensor x = zeros({70000, 2, 32768}, kUInt8);
      x[0][0][0].fill_(1);
      const Tensor y = run([](const Tensors& t) { return Tensors{cumsum(t[0], 1, kUInt8)}; }, {x})[0];
      EXPECT_EQ(y[0][0][0].item<int64_t>(), 1);
      EXPECT_EQ(y[0][1][0].item<int64_t>(), 1);
      EXPECT_EQ(sum(y[0]).item<int64_t>(), 2);
      EXPECT_EQ(max(y.slice(0, 1)).item<int64_t>(), 0);
    }
  });
}

TEST(IndexingCases, MasksOfAllNoneAndSome) {
  for_each_mode([](const Mode& run) {
    for (const auto& [mask, expected] : std::vector<std::pair<Numbers, Numbers>>{
             {{1, 0, 1}, {3, 2, 7}}, {{0, 0, 0}, {1, 2, 3}}, {{1, 1, 1}, {3, 5, 7}}}) {
      const Tensors got = run.lax()(
          [](const Tensors& t) {
            Tensor o = t[0].clone();
            o.index_put_({t[1]}, o.index({t[1]}) * 2 + 1);
            return Tensors{o, masked_select(t[0], t[1])};
          },
          {make({1, 2, 3}), make(mask, kBool)});
      expect_values(got[0], expected);
    }
  });
}

TEST(IndexingCases, BoolsAreMasksBesideOtherIndexTensors) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor &x = t[0], &i = t[1];
          Tensor y = x.clone();
          y.index_put_({true, i}, tensor(9.0f));
          return Tensors{x.index({true, i, Slice()}),
                         x.index({i, true}),
                         x.index({true, true}),
                         x.index({0, true, true}),
                         x.index({false, i.slice(0, 0, 1)}),
                         x.index({true, Slice(), true}),
                         x.index({Slice(), true}),
                         x.index({Slice(), false}),
                         y};
        },
        {make({0, 1, 2, 3, 4, 5}, kFloat32, {2, 3}), integers({1, 0, 1})});
    const std::vector<std::vector<int64_t>> shapes{{3, 3},    {3, 3},    {1, 2, 3}, {1, 3}, {0, 3},
                                                   {1, 2, 3}, {2, 1, 3}, {2, 0, 3}, {2, 3}};
    for (size_t k = 0; k < shapes.size(); ++k) EXPECT_EQ(shape(got[k]), shapes[k]) << k;
    for (const size_t k : {0, 1}) expect_values(got[k], {3, 4, 5, 0, 1, 2, 3, 4, 5});
    expect_values(got[3], {0, 1, 2});
    expect_values(got[8], Numbers(6, 9));
  });
}

TEST(RandomCases, DropoutAtTheEndsOfItsRange) {
  for_each_mode([](const Mode& run) {
    const Tensor x = make({1, 2, kNaN, kInf});
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{dropout(t[0], 0.0), dropout(t[0], 1.0), dropout(t[0], 1.0, false),
                         dropout(t[0], 0.5, false)};
        },
        {x});
    expect_values(got[0], {1, 2, kNaN, kInf});
    expect_values(got[1], {0, 0, 0, 0});
    expect_values(got[2], {1, 2, kNaN, kInf});
    expect_values(got[3], {1, 2, kNaN, kInf});
  });
  expect_user_error([] { return dropout(ones({2}), 1.5); }, {"dropout", "1.5"});
  expect_user_error([] { return dropout(ones({2}), -0.1); }, {"dropout", "-0.1"});
  expect_user_error([] { return dropout(ones({2}), kNaN); }, {"dropout"});
}

TEST(RandomCases, DropoutScalesWhatItKeepsAndFollowsTheSeed) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{dropout(t[0], 0.25), dropout(t[0], 0.25)};
    });
    manual_seed(11);
    const Tensors first = f({ones({4096})}), second = f({ones({4096})});
    manual_seed(11);
    const Tensors again = f({ones({4096})});
    EXPECT_EQ(numbers(first[0]), numbers(again[0]));
    EXPECT_EQ(numbers(first[1]), numbers(again[1]));
    EXPECT_NE(numbers(first[0]), numbers(first[1]));
    EXPECT_NE(numbers(first[0]), numbers(second[0]));
    size_t kept = 0;
    for (const double v : numbers(first[0])) {
      EXPECT_TRUE(v == 0 || std::abs(v - 4.0 / 3) < 1e-6) << v;
      kept += v != 0;
    }
    EXPECT_NEAR(static_cast<double>(kept), 3072, 140);  // five standard deviations of 28
  });
}

TEST(RandomCases, CompiledAndEagerDrawTheSameNumbers) {
  Tensors first;
  for_each_mode([&](const Mode& run) {
    manual_seed(5);
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{rand({33}), randn({33}), randint(-3, 0, {64}), dropout(t[0], 0.5),
                         rand({7}, kFloat64)};
        },
        {ones({50})});
    if (!run.compiled()) {
      first = got;
      return;
    }
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(got[i].dtype(), first[i].dtype());
      expect_values(got[i], numbers(first[i]), 1e-6);
    }
  });
}

TEST(RandomCases, NumbersLikeATensorAndInPlace) {
  Tensors first;
  for_each_mode([&](const Mode& run) {
    manual_seed(9);
    const Tensor u = zeros({2, 5000}).t(), n = zeros({10000}, kFloat64);
    Tensors got = run(
        [](const Tensors& t) {
          return Tensors{rand_like(t[0]),           randn_like(t[1]),    randint_like(t[2], 7),
                         randint_like(t[2], -2, 0), bernoulli(t[3]),     bernoulli(t[2], 0.25),
                         t[4].uniform_(-3, -1),     t[5].normal_(10, 2), t[3].clone().bernoulli_(0.5)};
        },
        {zeros({3, 4}, kFloat16), zeros({64}, kFloat64), zeros({1000}, kInt8), make({0, 1, 0, 1, 1}), u, n});
    const DType dtypes[] = {kFloat16, kFloat64, kInt8, kInt8, kFloat32, kInt8, kFloat32, kFloat64, kFloat32};
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].dtype(), dtypes[i]) << i;
    EXPECT_EQ(shape(got[0]), (std::vector<int64_t>{3, 4}));
    for (const double v : numbers(got[2])) EXPECT_TRUE(v >= 0 && v < 7) << v;
    for (const double v : numbers(got[3])) EXPECT_TRUE(v == -2 || v == -1) << v;
    expect_values(got[4], {0, 1, 0, 1, 1});
    EXPECT_NEAR(got[5].to(kFloat64).sum().item<double>(), 250, 70);  // five standard deviations of 14
    EXPECT_TRUE(u.min().item<float>() >= -3 && u.max().item<float>() < -1);
    EXPECT_NEAR(u.mean().item<double>(), -2, 0.03);
    EXPECT_NEAR(n.mean().item<double>(), 10, 0.1);
    EXPECT_NEAR(n.std().item<double>(), 2, 0.08);
    if (!run.compiled()) first = got;
    for (size_t i = 0; i < got.size(); ++i) expect_values(got[i], numbers(first[i]), 1e-6);
  });
  expect_user_error([] { return zeros({2}, kInt32).normal_(); }, {"normal_", "int32"});
  expect_user_error([] { return bernoulli(ones({2}), 1.5); }, {"bernoulli", "1.5"});
}

/// They are data, so that only a run of the operator finds one outside.
TEST(RandomCases, ProbabilitiesOfTensorsLieBetweenZeroAndOne) {
  const auto draw = [](const Tensors& t) { return Tensors{bernoulli(t[0]), bernoulli(t[0].t()) + 1}; };
  const auto draw_once = [](const Tensors& t) { return Tensors{bernoulli(t[0])}; };
  for_each_mode([&](const Mode& run) {
    for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      const Tensors got = run(draw, {make({0, 1, -0.0, 1, 1, 0}, dtype, {2, 3})});
      expect_values(got[0], {0, 1, 0, 1, 1, 0});
      expect_values(got[1], {1, 2, 2, 2, 1, 1});
      for (const auto& [p, text] : std::vector<std::pair<double, std::string>>{
               {1.5, "got 1.5"}, {-0.5, "got -0.5"}, {-kInf, "got -inf"}, {kNaN, "nan"}})
        expect_user_error(
            [&, p = p] {
              run(draw_once, {make({0, 0.5, 1, 1, p, 0}, dtype, {2, 3})});
            },
            {"[bernoulli] expected probabilities in [0, 1]", text});
    }
  });
}

TEST(RandomCases, PermutationsHoldEachNumberOnce) {
  std::vector<int64_t> eager;
  for_each_mode([&](const Mode& run) {
    manual_seed(3);
    const Tensors got = run(
        [](const Tensors&) {
          return Tensors{randperm(50), randperm(50), randperm(4, kInt32), randperm(0)};
        },
        {});
    const std::vector<int64_t> first = whole(got[0]);
    EXPECT_NE(first, whole(got[1]));
    std::vector<int64_t> sorted = first;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
    EXPECT_NE(sorted, first);
    EXPECT_EQ(got[2].dtype(), kInt32);
    EXPECT_EQ(shape(got[3]), std::vector<int64_t>{0});
    if (!run.compiled()) eager = first;
    EXPECT_EQ(first, eager);
  });
}

TEST(RandomCases, SignedRandomIntegersStaySigned) {
  for_each_mode([](const Mode& run) {
    manual_seed(1);
    const Tensors got = run(
        [](const Tensors&) {
          const Tensor r = randint(-3, 0, {64}, kInt64);
          return Tensors{r, bitwise_right_shift(r, 31),
                         randint(int64_t{-5000000000}, int64_t{-4999999990}, {64}), randint(0, 1, {9})};
        },
        {});
    for (const int64_t v : whole(got[0])) EXPECT_TRUE(v >= -3 && v < 0) << v;
    expect_whole(got[1], std::vector<int64_t>(64, -1));
    for (const int64_t v : whole(got[2])) EXPECT_TRUE(v >= -5000000000 && v < -4999999990) << v;
    expect_whole(got[3], std::vector<int64_t>(9, 0));
  });
  expect_user_error([] { return randint(3, 3, {2}); }, {"randint", "3"});
}

TEST(RandomCases, RandomNumbersLieInTheirRange) {
  for_each_mode([](const Mode& run) {
    manual_seed(3);
    const Tensors got = run(
        [](const Tensors&) {
          return Tensors{rand({20000}), rand({20000}, kFloat16), rand({0, 3}), randn({20001})};
        },
        {});
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_GE(min(got[i]).item<float>(), 0);
      EXPECT_LT(max(got[i]).item<float>(), 1);
      EXPECT_NEAR(mean(got[i]).item<float>(), 0.5, 0.011);  // five standard deviations
    }
    EXPECT_EQ(shape(got[2]), (std::vector<int64_t>{0, 3}));
    EXPECT_NEAR(mean(got[3]).item<float>(), 0, 0.036);
    EXPECT_NEAR(var(got[3]).item<float>(), 1, 0.051);
  });
}

/// GPUs have no atomic additions of narrow types: sums wrap, bool is true or false, and half types are right.
TEST(ScatterCases, RepeatedIndicesAddUpInEveryDType) {
  for (const DType dtype : {kInt8, kUInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    for_each_mode([&](const Mode& run) {
      const Tensors got = run(
          [&](const Tensors& t) {
            return Tensors{index_add(t[0], 0, t[1], t[2]), scatter_add(t[0], 0, t[1], t[2])};
          },
          {make({1, 2, 100}, dtype), integers({0, 2, 0, 2, 2}), make({3, 20, 4, 20, 20}, dtype)});
      const double last = dtype == kInt8 ? 160 - 256 : 160;
      expect_values(got, {{8, 2, last}, {8, 2, last}});
    });
  }
  for_each_mode([](const Mode& run) {
    const Tensors got =
        run([](const Tensors& t) { return Tensors{index_add(t[0], 0, t[1], t[2])}; },
            {make({0, 0, 1, 0}, kBool), integers({0, 0, 2, 3, 0}), make({1, 1, 1, 0, 0}, kBool)});
    expect_whole(got[0], {1, 0, 1, 0});
  });
}

/// An index that was read, of a tensor without dimensions too, becomes a value.
TEST(ScatterCases, OneHotOfAVectorAndOfANumber) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{one_hot(t[0], 3), one_hot(t[0].select(0, 1), 3)};
        },
        {integers({2, 0, 1})});
    expect_whole(got[0], {0, 0, 1, 1, 0, 0, 0, 1, 0});
    expect_whole(got[1], {1, 0, 0});
  });
}

}  // namespace
}  // namespace stax::cases

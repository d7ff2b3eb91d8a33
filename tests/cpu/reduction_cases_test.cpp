// Reductions and scans at their edges: nothing to reduce, NaN, infinities, ties, long and half-precision
// inputs. Expected values are algebra, or NumPy's in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

Tensor range(int64_t n, DType dtype, const std::vector<int64_t>& sizes) {
  return arange(n).to(dtype).view(sizes);
}

TEST(ReductionCases, AnEmptyAxisGivesTheNeutralElement) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor& x = t[0];
          return Tensors{sum(x, 1),
                         mean(x, 1),
                         prod(x, 1),
                         any(x.to(kBool), 1),
                         all(x.to(kBool), 1),
                         sum(x, 1, true),
                         sum(x, {0, 1}),
                         sum(x),
                         mean(x),
                         prod(x),
                         any(x),
                         all(x),
                         logsumexp(x, 1),
                         var(x, 1),
                         count_nonzero(x, 1),
                         nansum(x, 1),
                         norm(x)};
        },
        {zeros({5, 0, 2})});
    const std::vector<int64_t> reduced{5, 2};
    for (const size_t i : {0, 1, 2, 3, 4, 12, 13, 14, 15}) EXPECT_EQ(shape(got[i]), reduced) << i;
    expect_values(got[0], Numbers(10, 0));
    expect_values(got[1], Numbers(10, kNaN));
    expect_values(got[2], Numbers(10, 1));
    expect_values(got[3], Numbers(10, 0));
    expect_values(got[4], Numbers(10, 1));
    expect_form(got[5], kFloat32, {5, 1, 2});
    expect_form(got[6], kFloat32, {2});
    expect_values(got[6], {0, 0});
    expect_values(got[7], {0});
    expect_values(got[8], {kNaN});
    expect_values(got[9], {1});
    expect_values(got[10], {0});
    expect_values(got[11], {1});
    expect_values(got[12], Numbers(10, -kInf));
    expect_values(got[13], Numbers(10, kNaN));
    expect_values(got[14], Numbers(10, 0));
    expect_values(got[15], Numbers(10, 0));
    expect_values(got[16], {0});
  });
}

TEST(ReductionCases, ExtremaOfAnEmptyAxisAreRefused) {
  const Tensor x = zeros({5, 0, 2});
  for_each_mode([&](const Mode& run) {
    const std::pair<const char*, Function> functions[] = {
        {"max", [](const Tensors& t) { return Tensors{std::get<0>(max(t[0], 1))}; }},
        {"min", [](const Tensors& t) { return Tensors{std::get<0>(min(t[0], 1))}; }},
        {"amax", [](const Tensors& t) { return Tensors{amax(t[0], 1)}; }},
        {"amin", [](const Tensors& t) { return Tensors{amin(t[0], 1)}; }},
        {"argmax", [](const Tensors& t) { return Tensors{argmax(t[0], 1)}; }},
        {"argmin", [](const Tensors& t) { return Tensors{argmin(t[0], 1)}; }},
        {"max", [](const Tensors& t) { return Tensors{max(t[0])}; }},
        {"aminmax", [](const Tensors& t) { return Tensors{std::get<0>(aminmax(t[0], 1))}; }}};
    for (const auto& [name, f] : functions) {
      SCOPED_TRACE(name);
      expect_user_error([&, &f = f] { run(f, {x}); }, {name});
    }
    // Another axis has elements to choose from, though the result has none.
    const Tensors got = run([](const Tensors& t) { return Tensors{amax(t[0], 0), argmax(t[0], 2)}; }, {x});
    expect_form(got[0], kFloat32, {0, 2});
    expect_form(got[1], kInt64, {5, 0});
  });
}

TEST(ReductionCases, ScansOfNothingGiveNothing) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{cumsum(t[0], 1),       cumprod(t[0], 0),
                         logcumsumexp(t[0], 1), std::get<0>(cummax(t[0], 1)),
                         softmax(t[0], 1),      log_softmax(t[0], 0)};
        },
        {zeros({3, 0})});
    for (const Tensor& t : got) expect_form(t, kFloat32, {3, 0});
  });
}

TEST(ReductionCases, MomentsOfNothingAreNaN) {
  for_each_mode([](const Mode& run) {
    for (const int64_t correction : {0, 1}) {
      const Tensors whole = run(
          [correction](const Tensors& t) {
            const auto [v, m] = var_mean(t[0], std::nullopt, correction);
            return Tensors{v, m, std(t[0], std::nullopt, correction)};
          },
          {zeros({0})});
      for (const Tensor& t : whole) {
        expect_form(t, kFloat32, {});
        expect_values(t, {kNaN});
      }
      const Tensors column = run(
          [correction](const Tensors& t) {
            const auto [v, m] = var_mean(t[0], IntList(0), correction);
            return Tensors{v, m};
          },
          {zeros({0, 1})});
      for (const Tensor& t : column) {
        expect_form(t, kFloat32, {1});
        expect_values(t, {kNaN});
      }
    }
  });
}

TEST(ReductionCases, VarianceOfOneElement) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{var(t[0], 1), var(t[0], IntList(1), 0), std(t[0], 1),
                         var(t[0].select(1, 0), std::nullopt, 3)};
        },
        {make({3, 4, 5}, kFloat32, {3, 1})});
    expect_values(got[0], Numbers(3, kNaN));
    expect_values(got[1], Numbers(3, 0));
    expect_values(got[2], Numbers(3, kNaN));
    expect_values(got[3], {kInf});
  });
}

TEST(ReductionCases, VarianceKeepsItsDigits) {
  for_each_mode([](const Mode& run) {
    const Function variance = run.prepare([](const Tensors& t) {
      return Tensors{var(t[0], 0), std(t[0], 0)};
    });
    Numbers offset(4096), wide(4096 * 3);
    for (size_t i = 0; i < 4096; ++i) offset[i] = 100000.0 + static_cast<double>(i % 2);
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = offset[i / 3];
    expect_values(variance({make(offset)})[0], {0.25006105006105006}, 1e-5);
    expect_values(variance({make(wide, kFloat32, {4096, 3})})[0], Numbers(3, 0.25006105006105006), 1e-5);
    for (const double scale : {1e30, 1e-30}) {
      expect_values(variance({make({scale, -scale})})[1], {1.4142135623730951 * scale}, 1e-6);
    }
    expect_values(variance({make({1e19, -1e19})})[1], {1.4142135623730951e19}, 1e-6);
  });
}

TEST(ReductionCases, ExtremaOfNegativeZerosAndInfinities) {
  for_each_mode([](const Mode& run) {
    const Function extrema = run.prepare([](const Tensors& t) {
      return Tensors{max(t[0]), min(t[0]), amax(t[0]), std::get<0>(max(t[0], 0))};
    });
    for (const int64_t n : {1, 8192, 8193, 65537}) {
      for (const double value : {-0.0, -kInf, kInf, -3.5}) {
        for (const Tensor& t : extrema({full({n}, value)})) expect_values(t, {value});
      }
    }
  });
}

TEST(ReductionCases, ExtremaOfIntegersReachTheEndsOfTheType) {
  for_each_mode([](const Mode& run) {
    const std::pair<DType, std::vector<int64_t>> kinds[] = {{kInt8, {-128, 127}},
                                                            {kUInt8, {0, 255}},
                                                            {kInt16, {-32768, 32767}},
                                                            {kInt32, {INT32_MIN, INT32_MAX}},
                                                            {kInt64, {INT64_MIN, INT64_MAX}}};
    for (const auto& [dtype, ends] : kinds) {
      for (const int64_t end : ends) {
        const Tensors got = run(
            [](const Tensors& t) {
              return Tensors{max(t[0]), min(t[0]), amax(t[0], 0), amin(t[0], 0), argmax(t[0])};
            },
            {integers(std::vector<int64_t>(70, end), dtype)});
        for (size_t i = 0; i < 4; ++i) expect_whole(got[i], {end});
        expect_whole(got[4], {0});
      }
    }
  });
}

TEST(ReductionCases, FirstTieWinsAndNaNWinsOverEverything) {
  for_each_mode([](const Mode& run) {
    const Function positions = run.prepare([](const Tensors& t) {
      const auto [high, high_at] = max(t[0], 0);
      const auto [low, low_at] = min(t[0], 0);
      return Tensors{argmax(t[0]), argmin(t[0]), high, high_at, low, low_at};
    });
    const auto check = [&](const Numbers& x, Numbers expected) {
      const Tensors got = positions({make(x)});
      for (size_t i = 0; i < got.size(); ++i) expect_values(got[i], {expected[i]});
    };
    check({1, 3, 3, 2}, {1, 0, 3, 1, 1, 0});
    check({2, kNaN, 5, kNaN}, {1, 1, kNaN, 1, kNaN, 1});
    check(Numbers(4, -kInf), {0, 0, -kInf, 0, -kInf, 0});
    check(Numbers(4, kInf), {0, 0, kInf, 0, kInf, 0});
    Numbers lengthy(1000, 0);
    lengthy[130] = lengthy[900] = 1;
    check(lengthy, {130, 0, 1, 130, 0, 0});
    lengthy[517] = kNaN;
    check(lengthy, {517, 517, kNaN, 517, kNaN, 517});
    lengthy[0] = kNaN;
    check(lengthy, {0, 0, kNaN, 0, kNaN, 0});
    check({-0.0, 0.0}, {0, 0, 0, 0, 0, 0});
  });
}

TEST(ReductionCases, NaNPassesThroughEveryReduction) {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16, kFloat64}) {
    for_each_mode([&](const Mode& run) {
      for (const size_t n : {3u, 100u, 5000u}) {
        SCOPED_TRACE(n);
        Numbers x(n, 1);
        x[n - 2] = kNaN;
        const Tensors got = run(
            [](const Tensors& t) {
              const Tensor& x = t[0];
              return Tensors{sum(x),
                             mean(x),
                             prod(x),
                             max(x),
                             min(x),
                             amax(x, 0),
                             amin(x, 0),
                             var(x),
                             std(x),
                             logsumexp(x, 0),
                             norm(x),
                             norm(x, kInf),
                             norm(x, 1),
                             std::get<0>(max(x, 0)),
                             std::get<1>(aminmax(x)),
                             any(x),
                             all(x),
                             nansum(x),
                             nanmean(x),
                             count_nonzero(x)};
            },
            {make(x, dtype)});
        for (size_t i = 0; i < 15; ++i) {
          SCOPED_TRACE(i);
          expect_values(got[i], {kNaN});
        }
        expect_values(got[15], {1});
        expect_values(got[16], {1});
        expect_values(got[17], {static_cast<double>(n - 1)}, 1e-2);
        expect_values(got[18], {1}, 1e-2);
        expect_values(got[19], {static_cast<double>(n)});
      }
    });
  }
}

TEST(ReductionCases, NaNStaysInItsRowAndColumn) {
  for_each_mode([](const Mode& run) {
    Numbers x(33 * 70, 2);
    x[5 * 70 + 11] = kNaN;
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{sum(t[0], 0), amax(t[0], 0), sum(t[0], 1), amax(t[0], 1)};
        },
        {make(x, kFloat32, {33, 70})});
    Numbers column(70, 66), most(70, 2), row(33, 140), row_most(33, 2);
    column[11] = most[11] = row[5] = row_most[5] = kNaN;
    expect_values(got[0], column);
    expect_values(got[1], most);
    expect_values(got[2], row);
    expect_values(got[3], row_most);
  });
}

TEST(ReductionCases, InfinitiesInSums) {
  for_each_mode([](const Mode& run) {
    for (const size_t n : {3u, 200u}) {
      Numbers up(n, 1), both(n, 1), down(n, 1);
      up[1] = both[0] = kInf;
      both[n - 1] = down[1] = -kInf;
      const Function f = run.prepare([](const Tensors& t) {
        return Tensors{sum(t[0]), mean(t[0]), prod(t[0]), logsumexp(t[0], 0), var(t[0])};
      });
      const auto check = [&](const Numbers& x, const Numbers& expected) {
        const Tensors got = f({make(x)});
        for (size_t i = 0; i < expected.size(); ++i) {
          SCOPED_TRACE(i);
          expect_values(got[i], {expected[i]}, 1e-6);
        }
      };
      check(up, {kInf, kInf, kInf, kInf, kNaN});
      check(both, {kNaN, kNaN, -kInf, kInf, kNaN});
      check(down, {-kInf, -kInf, -kInf, 1 + std::log(static_cast<double>(n - 1)), kNaN});
    }
  });
}

TEST(ReductionCases, MaximumOfASumWithATransposedOperand) {
  Numbers a(64), b(64);
  for (size_t i = 0; i < 64; ++i) {
    a[i] = static_cast<double>(i * 37 % 101);
    b[i] = static_cast<double>(i * 53 % 97);
  }
  for_each_mode([&](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const auto [v, i] = max(t[0] + t[1], 1);
          return Tensors{v, i};
        },
        {make(a, kFloat32, {8, 8}).t(), make(b, kFloat32, {8, 8})});
    expect_values(got[0], {147, 159, 146, 163, 129, 167, 184, 115});
    expect_whole(got[1], {1, 6, 0, 3, 7, 0, 3, 0});
  });
}

TEST(ReductionCases, HalfSumsAreAccumulatedWide) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) { return Tensors{sum(t[0], 0), mean(t[0], 0)}; });
    const auto check = [&](const Tensor& x, const Numbers& total, const Numbers& average) {
      const Tensors got = f({x});
      EXPECT_EQ(got[0].dtype(), x.dtype());
      expect_values(got[0], total);
      expect_values(got[1], average);
    };
    check(ones({20000}, kFloat16), {20000}, {1});
    check(ones({70000}, kBFloat16), {70144}, {1});
    check(full({4096}, 100, kFloat16), {kInf}, {100});
    check(ones({20000, 3}, kFloat16), Numbers(3, 20000), Numbers(3, 1));
    check(ones({3, 20000}, kFloat16).t(), Numbers(3, 20000), Numbers(3, 1));
    check(ones({70000, 2}, kBFloat16), Numbers(2, 70144), Numbers(2, 1));
  });
}

TEST(ReductionCases, HalfReductionsOtherThanSumsAreComputedWide) {
  for_each_mode([](const Mode& run) {
    // Squares of 300 exceed float16; their root and their mean do not.
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{norm(t[0]),    std(t[0], std::nullopt, 0),
                         prod(t[1]),    logsumexp(t[0], 0),
                         norm(t[0], 1), cumsum(t[2], 0)};
        },
        {make({300, -300, 300, -300}, kFloat16), make({600, 600, 0.0078125, 0.0078125}, kFloat16),
         ones({4096}, kFloat16)});
    expect_values(got[0], {600});
    expect_values(got[1], {300});
    expect_values(got[2], {21.96875}, 1e-3);
    expect_values(got[3], {300.75}, 1e-3);
    expect_values(got[4], {1200});
    EXPECT_EQ(numbers(got[5])[4095], 4096);
    EXPECT_EQ(numbers(got[5])[2047], 2048);
  });
}

TEST(ReductionCases, IntegersAndBoolsSumToInt64) {
  for_each_mode([](const Mode& run) {
    for (const DType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64}) {
      SCOPED_TRACE(name(dtype));
      const Tensors got = run(
          [](const Tensors& t) {
            return Tensors{sum(t[0]), prod(t[0]), cumsum(t[0], 0), cumprod(t[0], 0), sum(t[0], 0)};
          },
          {ones({300}, dtype)});
      for (const Tensor& t : got) EXPECT_EQ(t.dtype(), kInt64);
      expect_whole(got[0], {300});
      expect_whole(got[1], {1});
      EXPECT_EQ(whole(got[2])[299], 300);
      EXPECT_EQ(whole(got[3])[299], 1);
    }
    const Tensors large = run(
        [](const Tensors& t) {
          return Tensors{sum(t[0]), prod(t[1])};
        },
        {integers({INT32_MAX, INT32_MAX, 1}, kInt32), integers({100, 100, 100, 100, 100}, kInt8)});
    expect_whole(large[0], {4294967295});
    expect_whole(large[1], {10000000000});
    const Tensors wrapped =
        run([](const Tensors& t) { return Tensors{sum(t[0])}; }, {integers({INT64_MAX, 1})});
    expect_whole(wrapped[0], {INT64_MIN});
    expect_user_error([] { return mean(ones({3}, kInt64)); }, {"mean", "int64"});
    expect_user_error([] { return var(ones({3}, kInt32)); }, {"var", "int32"});
    const Tensors exact =
        run([](const Tensors& t) { return Tensors{sum(t[0])}; }, {integers({(int64_t{1} << 53) + 1, 1, 1})});
    expect_whole(exact[0], {(int64_t{1} << 53) + 3});
  });
}

TEST(ReductionCases, PrefixSumsOfBoolsMadeInsideCount) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run([](const Tensors&) { return Tensors{cumsum(full({3, 5}, 1).to(kBool), 1)}; }, {});
    expect_form(got[0], kInt64, {3, 5});
    expect_whole(got[0], {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5});
  });
}

TEST(ReductionCases, PrefixSumsOfInfinitiesHoldNoNaN) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) { return Tensors{cumsum(t[0], 0)}; });
    for (const DType dtype : {kFloat64, kFloat32, kFloat16}) {
      expect_values(f({full({3000}, kInf, dtype)})[0], Numbers(3000, kInf));
      Numbers x(3000, 2), expected(3000, kInf);
      x[0] = expected[0] = 1;
      x[1] = kInf;
      expect_values(f({make(x, dtype)})[0], expected);
    }
  });
}

TEST(ReductionCases, ScansPassNaNOnFromWhereItStands) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const auto [high, high_at] = cummax(t[0], 0);
          const auto [low, low_at] = cummin(t[0], 0);
          return Tensors{cumsum(t[0], 0), cumprod(t[0], 0),     high, high_at, low,
                         low_at,          logcumsumexp(t[1], 0)};
        },
        {make({2, 3, kNaN, 5}), make({-kInf, -kInf, 0, 0})});
    expect_values(got[0], {2, 5, kNaN, kNaN});
    expect_values(got[1], {2, 6, kNaN, kNaN});
    expect_values(got[2], {2, 3, kNaN, kNaN});
    expect_values(got[3], {0, 1, 2, 2});
    expect_values(got[4], {2, 2, kNaN, kNaN});
    expect_values(got[5], {0, 0, 2, 2});
    expect_values(got[6], {-kInf, -kInf, 0, 0.6931471805599453}, 1e-6);
  });
}

TEST(ReductionCases, PrefixSumsAlongAnAxisThatIsBroadcast) {
  for_each_mode([](const Mode& run) {
    for (const int64_t n : {128, 129, 130, 5000}) {
      const Tensors got = run([](const Tensors& t) { return Tensors{cumsum(t[0] + t[1], 1)}; },
                              {zeros({1, n, 4}), make({1, 2, 3, 4})});
      Numbers expected;
      for (int64_t k = 0; k < n; ++k) {
        for (int64_t j = 1; j <= 4; ++j) expected.push_back(static_cast<double>((k + 1) * j));
      }
      expect_values(got[0], expected);
    }
  });
}

TEST(ReductionCases, ReductionsAndScansOfAZeroDimTensor) {
  for_each_mode([](const Mode& run) {
    const Function all_of = [](const Tensors& t) {
      const Tensor& s = t[0];
      return Tensors{cumsum(s, 0),
                     mean(s, IntList(0)),
                     sum(s, -1),
                     prod(s, 0),
                     amax(s, 0),
                     amin(s,
                          {
                              0,
                          }),
                     cumprod(s, -1),
                     std::get<0>(max(s, 0)),
                     std::get<0>(cummax(s, 0)),
                     logsumexp(s, 0),
                     logcumsumexp(s, 0),
                     sum(s),
                     max(s),
                     nansum(s),
                     norm(s, 2, IntList(0)),
                     sum(s, 0, true),
                     flip(s, IntList{})};
    };
    for (const Tensor& t : run(all_of, {tensor(3.5)})) {
      expect_form(t, kFloat32, {});
      expect_values(t, {3.5});
    }
    for (const Tensor& t : run([&](const Tensors&) { return all_of({tensor(3.5)}); }, {})) {
      expect_form(t, kFloat32, {});
      expect_values(t, {3.5});
    }
    const Tensors zeros = run(
        [](const Tensors& t) {
          return Tensors{argmax(t[0], 0),
                         argmin(t[0]),
                         std::get<1>(max(t[0], 0)),
                         std::get<1>(cummin(t[0], -1)),
                         log_softmax(t[0], 0).to(kInt64),
                         var(t[0], IntList(0), 0).to(kInt64)};
        },
        {tensor(3.5)});
    for (const Tensor& t : zeros) {
      expect_form(t, kInt64, {});
      expect_whole(t, {0});
    }
  });
  expect_user_error([] { return sum(tensor(1.0), 1); }, {"sum", "1"});
  expect_user_error([] { return cumsum(tensor(1.0), -2); }, {"cumsum", "-2"});
}

TEST(ReductionCases, VarianceOverSeveralAxesOfWhichOneHasOneElement) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{var(t[0], {1, 3}, 1), var(t[0], {3, -3}, 0)};
        },
        {range(24, kFloat32, {2, 3, 4, 1})});
    expect_form(got[0], kFloat32, {2, 4});
    expect_values(got[0], Numbers(8, 16));
    expect_values(got[1], Numbers(8, 32.0 / 3), 1e-6);
  });
}

TEST(ReductionCases, ComparedWithAMaximumOverInterleavedAxes) {
  Numbers values(128);
  for (size_t i = 0; i < 128; ++i) values[i] = static_cast<double>(i * 37 % 128);
  for_each_mode([&](const Mode& run) {
    for (const bool turned : {false, true}) {
      Tensor x = make(values, kFloat32, {1, 2, 2, 2, 2, 8});
      if (turned) x = x.transpose(1, 5).contiguous().transpose(1, 5);
      const Tensors got = run(
          [](const Tensors& t) {
            const Tensor hits = t[0] == amax(t[0], {2, 4}, true);
            return Tensors{sum(hits), any(hits), all(hits), sum(hits, {2, 4})};
          },
          {x});
      expect_whole(got[0], {32});
      expect_whole(got[1], {1});
      expect_whole(got[2], {0});
      expect_whole(got[3], std::vector<int64_t>(32, 1));
    }
  });
}

TEST(ReductionCases, ExpandedAndStridedInputs) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{sum(t[0], 0), sum(t[0], 1), amax(t[0]), argmax(t[0], 1), cumsum(t[0], 0)};
    });
    const Tensor row = make({1, 2, 5});
    const Tensors expanded = f({row.expand({40, 3})});
    expect_values(expanded[0], {40, 80, 200});
    expect_values(expanded[1], Numbers(40, 8));
    expect_values(expanded[2], {5});
    expect_whole(expanded[3], std::vector<int64_t>(40, 2));
    EXPECT_EQ(numbers(expanded[4])[119], 200);
    const Tensors strided =
        f({range(200, kFloat32, {20, 10}).index({Slice(None, None, 2), Slice(1, None, 4)})});
    expect_values(strided[0], {910, 950, 990});  // sum over i of 20 i + 1, + 5, + 9
    EXPECT_EQ(numbers(strided[1])[9], 181 + 185 + 189);
    expect_values(strided[2], {189});
  });
}

TEST(ReductionCases, ManyLengthsAgreeWithAlgebra) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{sum(t[0], 0),  amax(t[0], 0),    argmax(t[0], 0),
                     mean(t[0], 0), any(t[0] > 3, 0), all(t[0] >= 0, 0)};
    });
    for (const int64_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 65, 127, 129, 1023, 1025, 4099}) {
      SCOPED_TRACE(n);
      const auto d = static_cast<double>(n);
      const Tensors got = f({arange(n).to(kFloat64)});
      expect_values(got[0], {d * (d - 1) / 2});
      expect_values(got[1], {d - 1});
      expect_values(got[2], {d - 1});
      expect_values(got[3], {(d - 1) / 2});
      expect_values(got[4], {n > 4 ? 1. : 0.});
      expect_values(got[5], {1});
    }
  });
}

// On GPUs in chunks, of which the last is shorter.
TEST(ReductionCases, PositionsAndVariancesOfLongRows) {
  constexpr int64_t kLength = 20011;
  const auto row = [](const std::vector<std::pair<int64_t, double>>& special, double rest) {
    Numbers x(kLength, rest);
    for (const auto& [at, value] : special) x[static_cast<size_t>(at)] = value;
    return x;
  };
  const struct {
    Numbers x;
    int64_t high, low;
  } probes[] = {{row({{15000, 2}, {19999, 2}, {7, -1}, {14000, -1}}, 0), 15000, 7},
                {row({}, 3), 0, 0},
                {row({}, -kInf), 0, 0},
                {row({{20010, kInf}, {20009, -kInf}}, 1), 20010, 20009},
                {row({{9000, kNaN}, {19000, kNaN}, {4, kInf}, {5, -kInf}}, 0), 9000, 9000}};
  for_each_mode([&](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      const auto [high, high_at] = max(t[0], 1);
      return Tensors{argmax(t[0], 1), argmin(t[0], 1), high, high_at, argmax(t[0]), t[0].argmax(0)};
    });
    for (const auto& probe : probes) {
      SCOPED_TRACE(probe.high);
      const Tensors got = f({make(probe.x, kFloat32, {1, kLength})});
      expect_whole(got[0], {probe.high});
      expect_whole(got[1], {probe.low});
      expect_values(got[2], {probe.x[static_cast<size_t>(probe.high)]});
      expect_whole(got[3], {probe.high});
      expect_whole(got[4], {probe.high});
    }
    // 0, 1, ..., n - 1 far from 0: (n^2 - 1) / 12.
    Numbers ramp(kLength);
    for (size_t k = 0; k < kLength; ++k) ramp[k] = 1e5 + static_cast<double>(k);
    const Tensors moments = run(
        [](const Tensors& t) {
          return Tensors{var(t[0], IntList(0), 0), mean(t[0])};
        },
        {make(ramp)});
    expect_values(moments[0], {(20011.0 * 20011 - 1) / 12}, 1e-5);
    expect_values(moments[1], {1e5 + 10005}, 1e-6);
  });
}

TEST(ReductionCases, AResultDTypeIsAppliedBeforeReducing) {
  for_each_mode([](const Mode& run) {
    for (const DType dtype : {kFloat16, kFloat32}) {
      const Tensors got = run(
          [](const Tensors& t) {
            return Tensors{sum(t[0], kBool), prod(t[0], kBool), sum(t[0], kInt64), cumsum(t[0], 1, kFloat64)};
          },
          {make({0, 0, 0, 2}, dtype, {2, 2})});
      expect_form(got[0], kBool, {});
      expect_whole(got[0], {1});
      expect_form(got[1], kBool, {});
      expect_whole(got[1], {0});
      expect_whole(got[2], {2});
      expect_form(got[3], kFloat64, {2, 2});
    }
    const Tensors halves = run(
        [](const Tensors& t) {
          return Tensors{sum(t[0], kInt64), sum(t[0], kFloat64), mean(t[1], kFloat32)};
        },
        {make({0.9, 0.9, 1.9}), ones({7}, kInt64)});
    expect_whole(halves[0], {1});
    expect_values(halves[1], {3.6999999284744263}, 1e-12);
    expect_values(halves[2], {1});
  });
}

TEST(ReductionCases, DifferencesAndAreasOfHalvesAreRoundedOnce) {
  for_each_mode([](const Mode& run) {
    const Tensors out = run(
        [](const Tensors& x) {
          return Tensors{diff(x[0], 4), trapezoid(x[0], 2.0), trapezoid(x[1]), cumulative_trapezoid(x[1])};
        },
        {make({-1.8369140625, -2.64453125, 2.583984375, 0.4658203125, 1.79296875}, kFloat16),
         make({2048, 1, 1, 2048}, kFloat16)});
    // In float64: 24.1748046875 and 0.7666015625; the sums from the left are 1024.5, 1025.5 and 2050.
    expect_values(out[0], {24.171875});
    expect_values(out[1], {0.7666015625});
    expect_values(out[2], {2050});
    expect_values(out[3], {1024, 1026, 2050});
    for (const Tensor& t : out) EXPECT_EQ(t.dtype(), kFloat16);
  });
}

TEST(ReductionCases, SumsOfEinsumHaveTheDTypeOfSums) {
  for_each_mode([](const Mode& run) {
    const Tensors out = run(
        [](const Tensors& x) {
          return Tensors{einsum("ik,j->ij", {x[0], x[1]}), einsum("ik,kj->ij", {x[0], x[0]}),
                         einsum("ik,k->i", {x[0], x[1]}), einsum("abk,k->k", {unsqueeze(x[0], 0), x[1]})};
        },
        {make({100, 100, 100, 1}, kInt8, {2, 2}), make({1, 2}, kInt8)});
    expect_form(out[0], kInt64, {2, 2});
    expect_values(out[0], {200, 400, 101, 202});
    expect_form(out[1], kInt8, {2, 2});
    expect_values(out[1], {32, 116, 116, 17});  // 20000, 10100, 10100 and 10001, wrapped
    expect_form(out[2], kInt8, {2});
    expect_values(out[2], {44, 102});
    expect_form(out[3], kInt64, {2});
    expect_values(out[3], {200, 202});
  });
}

// Later parts alone overflow or lie below the normal range; PyTorch goes from the left, in float64.
TEST(ReductionCases, ScansOfLargeNumbersGoFromTheLeft) {
  for (const DType dtype : {kFloat32, kFloat64}) {
    for_each_mode([&](const Mode& run) {
      const int most = dtype == kFloat32 ? 127 : 1023;
      Numbers terms(40, 1), factors(40, 1);
      for (const size_t at : {0, 16, 32}) {
        terms[at] = -std::ldexp(1, most), terms[at + 1] = terms[at + 2] = -terms[at],
        terms[at + 3] = terms[at];
        factors[at] = std::ldexp(1, 20 - most), factors[at + 1] = factors[at + 2] = std::ldexp(1, most - 40);
        factors[at + 3] = factors[at + 4] = std::ldexp(1.25, 50 - most),
                     factors[at + 5] = std::ldexp(1, 20 - 40);
      }
      Numbers sums, products;
      double sum = 0, product = 1;
      const auto rounded = [&](double v) {
        return dtype == kFloat32 ? static_cast<double>(static_cast<float>(v)) : v;
      };
      for (size_t i = 0; i < terms.size(); ++i) {
        sums.push_back(rounded(sum += terms[i]));
        products.push_back(rounded(product *= factors[i]));
      }
      const Tensors got = run(
          [](const Tensors& t) {
            return Tensors{cumsum(t[0], -1), cumprod(t[1], -1)};
          },
          {make(terms, dtype), make(factors, dtype)});
      expect_values(got[0], sums);
      expect_values(got[1], products);
      EXPECT_EQ(numbers(got[0])[2], std::ldexp(1, most));
    });
  }
  for_each_mode([](const Mode& run) {
    // -max * 88 * 2^-128 is out of range in float32 only between; max + max - max is max.
    const double most = std::numeric_limits<float>::max();
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{cumprod(t[0], 0), cumsum(t[1], 1)};
        },
        {make({-most, 88, std::ldexp(1, -128), -3}), make({most, 0, most, 1, -most, 2}, kFloat32, {2, 3})});
    expect_values(got[0], {-most, -kInf, -88, 264}, 1e-6);
    expect_values(got[1], {most, most, kInf, 1, -most, -most});
  });
}

}  // namespace
}  // namespace stax::cases

// Numerical quality: normalisations of large half values, true divisions, constants that are NaN.
#include <gtest/gtest.h>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

TEST(NumericCases, NormalisationsOfLargeHalvesSquareWide) {
  for_each_mode([](const Mode& run) {
    Numbers x(128, 300), root(64), layer(64);
    for (size_t i = 0; i < 64; ++i) {
      const double v = 100.0 + static_cast<double>(i);
      x[64 + i] = v;
      root[i] = v / std::sqrt(131.5 * 131.5 + 341.25);  // mean square = mean^2 + (64^2 - 1) / 12
      layer[i] = (v - 131.5) / std::sqrt(341.25 + 1e-6);
    }
    for (const DType dtype : {kFloat16, kBFloat16, kFloat32}) {
      SCOPED_TRACE(name(dtype));
      const double tolerance = dtype == kFloat16 ? 2e-3 : dtype == kBFloat16 ? 1e-2 : 1e-5;
      const Tensors got = run(
          [](const Tensors& t) {
            const Tensor& x = t[0];
            return Tensors{rms_norm(x, {64}, {}, 1e-6), layer_norm(x, {64}, {}, {}, 1e-6),
                           x / norm(x, 2, IntList(1), true) * 8, normalize(x, 2.0, 1) * 8};
          },
          {make(x, dtype, {2, 64})});
      for (const Tensor& t : got) expect_form(t, dtype, {2, 64});
      expect_values(got[0][0], Numbers(64, 1), tolerance);
      expect_values(got[0][1], root, tolerance);
      expect_values(got[1][0], Numbers(64, 0));
      for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(numbers(got[1][1])[i], layer[i], 4 * tolerance);
      expect_values(got[3][0], Numbers(64, 1), tolerance);
      if (dtype == kFloat32) expect_values(got[2][1], root, tolerance);
    }
  });
}

TEST(NumericCases, GroupsInstancesAndBatchesOfLargeHalves) {
  for_each_mode([](const Mode& run) {
    Numbers x(2 * 4 * 32);
    for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 600 : -600;  // mean 0, variance 360000
    const Numbers expected = [&] {
      Numbers e(x.size());
      for (size_t i = 0; i < e.size(); ++i) e[i] = i % 2 == 0 ? 1 : -1;
      return e;
    }();
    for (const DType dtype : {kFloat16, kBFloat16}) {
      const Tensors got = run(
          [](const Tensors& t) {
            const Tensor& x = t[0];
            return Tensors{group_norm(x, 2), instance_norm(x), batch_norm(x, {}, {}, {}, {}, true),
                           layer_norm(x, {4, 32}), layer_norm(x, {32})};
          },
          {make(x, dtype, {2, 4, 32})});
      for (const Tensor& t : got) {
        EXPECT_EQ(t.dtype(), dtype);
        expect_values(t, expected, 1e-2);
      }
    }
  });
}

TEST(NumericCases, NormalisationsOfConstantTinyAndEmptyRows) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{layer_norm(t[0], {5}), rms_norm(t[1], {4}, {}, 1e-12), layer_norm(t[2], {0}),
                         layer_norm(t[3], {4}), normalize(t[1], 2.0, 1),        layer_norm(t[4], {4})};
        },
        {full({2, 5}, 1e10), zeros({2, 4}), zeros({3, 0}), zeros({0, 4}),
         make({1, 2, kNaN, 4, 1, 1, 3, 3}, kFloat32, {2, 4})});
    expect_values(got[0], Numbers(10, 0));
    expect_values(got[1], Numbers(8, 0));
    EXPECT_EQ(shape(got[2]), (std::vector<int64_t>{3, 0}));
    EXPECT_EQ(shape(got[3]), (std::vector<int64_t>{0, 4}));
    expect_values(got[4], Numbers(8, 0));
    expect_values(got[5], {kNaN, kNaN, kNaN, kNaN, -0.99999500, -0.99999500, 0.99999500, 0.99999500}, 1e-6);
  });
}

TEST(NumericCases, AHalfChainKeepsItsMiddleWide) {
  // Intermediates stay in float32 until they are stored; so the two forms agree however they are fused.
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{(t[0] * t[0]) * 0.001, square(t[0]) * 0.001};
        },
        {full({64}, 300, kFloat16)});
    if (run.compiled()) {
      expect_values(got[0], Numbers(64, 90), 1e-3);
      expect_values(got[1], Numbers(64, 90), 1e-3);
    } else {  // every operator stores its result
      expect_values(got[0], Numbers(64, kInf));
    }
  });
}

TEST(NumericCases, DivisionByANumberIsTrueDivision) {
  for_each_mode([](const Mode& run) {
    Numbers x(1999), single(1999), doubled(1999), inverse(1999);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<double>(i + 1);
      single[i] = static_cast<float>(x[i]) / 101.0F;
      doubled[i] = x[i] / 101.0;
      inverse[i] = 1.0F / static_cast<float>(x[i]);
    }
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{t[0] / 101, div(t[0], 101.0), t[0] / tensor(101.0), reciprocal(t[0]), 1 / t[0]};
    });
    const Tensors singles = f({make(x)});
    for (size_t i = 0; i < 3; ++i) expect_values(singles[i], single);
    expect_values(singles[3], inverse);
    expect_values(singles[4], inverse);
    expect_values(run([](const Tensors& t) { return Tensors{t[0] / 101}; }, {make(x, kFloat64)})[0], doubled);
    Numbers roots(1999);
    for (size_t i = 0; i < x.size(); ++i) roots[i] = std::sqrt(static_cast<float>(x[i]));
    expect_values(run([](const Tensors& t) { return Tensors{sqrt(t[0])}; }, {make(x)})[0], roots);
  });
}

TEST(NumericCases, SigmoidIsAccurateOverItsRange) {
  for_each_mode([](const Mode& run) {
    Numbers x(4001), expected(4001);
    for (size_t i = 0; i < 4001; ++i) {
      x[i] = static_cast<float>(-12.0 + static_cast<double>(i) * 0.006);
      expected[i] = 1 / (1 + std::exp(-x[i]));
    }
    const Function f = run.prepare([](const Tensors& t) { return Tensors{sigmoid(t[0]) * 1.0}; });
    expect_values(f({make(x)})[0], expected, 3e-7);
    const Numbers ends = numbers(f({make({90, -90})})[0]);
    EXPECT_EQ(ends[0], 1);
    EXPECT_GE(ends[1], 0);
    EXPECT_LE(ends[1], 8.3e-40);
  });
}

TEST(NumericCases, NormalisationsOfLongRowsFarFromZero) {
  for_each_mode([](const Mode& run) {
    const Function f =
        run.prepare([](const Tensors& t) { return Tensors{layer_norm(t[0], {t[0].size(-1)}, {}, {}, 0.0)}; });
    for (const int64_t n : {1501, 4096, 5000}) {
      SCOPED_TRACE(n);
      Numbers x, expected;
      for (const double offset : {0.0, 4096.0, -65536.0}) {
        const auto middle = static_cast<double>(n - 1) / 2;
        for (int64_t k = 0; k < n; ++k) {
          x.push_back(offset + static_cast<double>(k) / 16);
          expected.push_back((static_cast<double>(k) - middle) /
                             std::sqrt((static_cast<double>(n) * static_cast<double>(n) - 1) / 12));
        }
      }
      const Tensor want = make(expected, kFloat32, {3, n});
      EXPECT_TRUE(f({make(x, kFloat32, {3, n})})[0].allclose(want, 1e-4, 1e-4));
      const Tensors same = run([](const Tensors& t) { return Tensors{layer_norm(t[0], {t[0].size(-1)})}; },
                               {full({2, n}, 10000.1)});
      expect_values(same[0], Numbers(static_cast<size_t>(2 * n), 0));
    }
  });
}

/// `want` at every number of a half type between -30 and 30: to half a unit, and a little more where float32
/// rounds sums that cancel.
void check_every_half(const std::function<Tensor(const Tensor&)>& f, double (*want)(double)) {
  for_each_mode([&](const Mode& run) {
    for (const DType dtype : {kFloat16, kBFloat16}) {
      SCOPED_TRACE(name(dtype));
      const Tensor x = arange(65536, kInt32).to(kInt16).view(dtype);
      const Numbers inputs = numbers(x),
                    got = numbers(run([&](const Tensors&t) { return Tensors{f(t[0])}; }, {x})[0]);
      const double unit = dtype == kFloat16 ? 0x1p-11 : 0x1p-8;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!(std::abs(inputs[i]) <= 30)) continue;
        const double expected = want(inputs[i]);
        ASSERT_NEAR(got[i], expected, 1.5 * unit * std::abs(expected) + 1e-6) << "at " << inputs[i];
      }
    }
  });
}

TEST(NumericCases, ActivationsOfEveryHalf) {
  check_every_half([](const Tensor& x) { return gelu(x); },
                   [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); });
  check_every_half(
      [](const Tensor& x) { return gelu(x, "tanh"); },
      [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); });
  check_every_half([](const Tensor& x) { return silu(x); }, [](double x) { return x / (1 + std::exp(-x)); });
}

TEST(NumericCases, AConstantThatIsNaNCompiles) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors&) {
          const Tensor c = acosh(log2(atan2(ones({2, 2}), ones({2, 2}))));
          return Tensors{softmax(c, 0),
                         maximum(c, tensor(0.0)),
                         c + 1,
                         full({2, 2}, kNaN) * 0,
                         full({2, 2}, kInf) - full({2, 2}, kInf),
                         sum(c)};
        },
        {});
    for (size_t i = 0; i < 5; ++i) expect_values(got[i], Numbers(4, kNaN));
    expect_values(got[5], {kNaN});
    const Tensors kept = run(
        [](const Tensors&) {
          return Tensors{full({3}, kInf), full({3}, -kInf), full({3}, -0.0), full({3}, 0.1, kFloat64)};
        },
        {});
    expect_values(kept[0], Numbers(3, kInf));
    expect_values(kept[1], Numbers(3, -kInf));
    expect_signed(kept[2], Numbers(3, -0.0));
    expect_values(kept[3], Numbers(3, 0.1));
  });
}

TEST(NumericCases, NumbersKeepTheirDigitsInWideTensors) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{t[0] * 0.1, t[0] + 1e-17, t[1] + int64_t{9007199254740993},
                         t[1] * int64_t{3037000500}, t[2] + 0.1};
        },
        {ones({5}, kFloat64), ones({5}, kInt64), ones({5}, kFloat32)});
    expect_values(got[0], Numbers(5, 0.1));
    expect_values(got[1], Numbers(5, 1));
    expect_whole(got[2], std::vector<int64_t>(5, 9007199254740994));
    expect_whole(got[3], std::vector<int64_t>(5, 3037000500));
    expect_values(got[4], Numbers(5, 1.10000002384185791015625));
  });
}

TEST(NumericCases, LossesOfExtremePredictions) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{binary_cross_entropy(t[0], t[1]), binary_cross_entropy_with_logits(t[2], t[1]),
                         cross_entropy(t[3], t[4]), smooth_l1_loss(t[2], t[1]), cross_entropy(t[5], t[4])};
        },
        {make({0, 1}), make({1, 0}), make({1000, -1000}), make({1000, -1000, 0, 0}, kFloat32, {2, 2}),
         integers({1, 0}), make({60000, -60000, 0, 0}, kFloat16, {2, 2})});
    expect_values(got[0], {100});
    expect_values(got[1], {0});
    expect_values(got[2], {(2000 + 0.6931471805599453) / 2}, 1e-6);
    expect_values(got[3], {(998.5 + 999.5) / 2}, 1e-6);
    expect_values(got[4], {60000}, 1e-3);
  });
}

TEST(NumericCases, MarginsAndEmptyNeighbourhoods) {
  for_each_mode([](const Mode& run) {
    expect_user_error(
        [&] {
          run([](const Tensors& t) { return Tensors{triplet_margin_loss(t[0], t[0], t[0], -1.0)}; },
              {ones({2, 3})});
        },
        {"triplet_margin_loss", "margin"});
    const Tensors got = run([](const Tensors& t) { return Tensors{local_response_norm(t[0], 2)}; },
                            {zeros({0, 1, 2}, kInt64)});
    expect_form(got[0], kInt64, {0, 1, 2});
  });
}

}  // namespace
}  // namespace stax::cases

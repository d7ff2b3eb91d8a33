// Values of pointwise operators that are easily lost: NaN, signed zeros, infinities, the ends of integers.
// Written out by hand from the definitions of the functions; decimal fractions come from NumPy.
#include <gtest/gtest.h>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

const std::vector<DType> kFloats{kFloat32, kFloat16, kBFloat16, kFloat64};
const std::vector<DType> kWideFloats{kFloat32, kFloat64};

TEST(PointwiseCases, NaNSurvivesBoundsOnEitherSide) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{relu(x[0]),           clamp(x[0], 0.25),   clamp(x[0], {}, 0.25),
                                        clamp(x[0], -1, 1),   maximum(x[0], x[1]), minimum(x[0], x[1]),
                                        clamp(x[0], x[1], {})};
                       },
                   .inputs = {{kNaN, -2, 0.5, 3}, {1, kNaN, 0.25, kNaN}},
                   .expected = {{kNaN, 0, 0.5, 3},
                                {kNaN, 0.25, 0.5, 3},
                                {kNaN, -2, 0.25, 0.25},
                                {kNaN, -1, 0.5, 1},
                                {kNaN, kNaN, 0.5, kNaN},
                                {kNaN, kNaN, 0.25, kNaN},
                                {kNaN, kNaN, 0.5, kNaN}}},
                  kFloats);
}

TEST(PointwiseCases, NaNSurvivesEveryActivation) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{
                             relu6(x[0]),       leaky_relu(x[0]), hardtanh(x[0]),       elu(x[0]),
                             selu(x[0]),        silu(x[0]),       gelu(x[0]),           mish(x[0]),
                             hardsigmoid(x[0]), hardswish(x[0]),  hardshrink(x[0]),     softshrink(x[0]),
                             tanhshrink(x[0]),  softsign(x[0]),   softplus(x[0]),       logsigmoid(x[0]),
                             sigmoid(x[0]),     tanh(x[0]),       threshold(x[0], 0, 7)};
                       },
                   .inputs = {{kNaN}},
                   .expected = std::vector<Numbers>(19, Numbers{kNaN})},
                  kFloats);
}

TEST(PointwiseCases, OfTwoNumbersFmaxAndFminKeepTheOneThatIs) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{fmax(x[0], x[1]), fmin(x[0], x[1])};
                       },
                   .inputs = {{kNaN, -2, kNaN, 3}, {1, kNaN, kNaN, -kInf}},
                   .expected = {{1, -2, kNaN, 3}, {1, -2, kNaN, -kInf}}},
                  kFloats);
}

TEST(PointwiseCases, ComparisonsWithNaNAreFalseButForUnequal) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         const Tensor &a = x[0], &b = x[1];
                         return Tensors{a == b,   a != b,   a<b, a <= b, a> b, a >= b,    isclose(a, b),
                                        isnan(a), isinf(a), isfinite(a),       signbit(a)};
                       },
                   .inputs = {{kNaN, 1, kInf, -kInf, -0.0}, {kNaN, kNaN, kInf, kInf, 0.0}},
                   .expected = {{0, 0, 1, 0, 1},
                                {1, 1, 0, 1, 0},
                                {0, 0, 0, 1, 0},
                                {0, 0, 1, 1, 1},
                                {0, 0, 0, 0, 0},
                                {0, 0, 1, 0, 1},
                                {0, 0, 1, 0, 1},
                                {1, 0, 0, 0, 0},
                                {0, 0, 1, 1, 0},
                                {0, 1, 0, 0, 1},
                                {std::signbit(kNaN) ? 1. : 0., 0, 0, 1, 1}}},
                  kFloats);
}

TEST(PointwiseCases, AddingZeroMakesNegativeZeroPositive) {
  for_each_mode([](const Mode& run) {
    const Function literal = run.prepare([](const Tensors& x) {
      const Tensor z = ceil(x[0]);
      return Tensors{reciprocal(z + 0.0), reciprocal(z + -0.0), reciprocal(z - 0.0), z * 1.0, z + 0};
    });
    const Function tensors = run.prepare([](const Tensors& x) {
      return Tensors{reciprocal(ceil(x[0]) + x[1]), reciprocal(ceil(x[0]) + zeros({}))};
    });
    for (const int64_t n : {2, 33}) {
      const Tensor x = make(Numbers(static_cast<size_t>(n), -0.25));
      const Numbers inf(static_cast<size_t>(n), kInf), minus_inf(static_cast<size_t>(n), -kInf);
      const Numbers plus(static_cast<size_t>(n), 0.0), minus(static_cast<size_t>(n), -0.0);
      const Tensors got = literal({x});
      expect_values(got[0], inf);
      expect_values(got[1], minus_inf);
      expect_values(got[2], minus_inf);
      expect_signed(got[3], minus);
      expect_signed(got[4], plus);
      for (const Tensor& sum : tensors({x, zeros({n})})) expect_values(sum, inf);
    }
  });
}

TEST(PointwiseCases, ReluKeepsNegativeZero) {
  for_each_mode([](const Mode& run) {
    for (const DType dtype : {kFloat32, kFloat64, kFloat16}) {
      for (const size_t n : {size_t{3}, size_t{35}}) {
        const Tensors got =
            run([](const Tensors& x) { return Tensors{relu(x[0])}; }, {make(Numbers(n, -0.0), dtype)});
        // A GPU's maximum of two zeros has no sign to rely on.
        run.device() == kCPU ? expect_signed(got[0], Numbers(n, -0.0))
                             : expect_values(got[0], Numbers(n, -0.0));
      }
    }
  });
}

// NumPy, SciPy and PyTorch give NaN at the infinities, where the formula is infinity over infinity.
TEST(PointwiseCases, BesselOfInfinityIsNaN) {
  check_pointwise({.function = [](const Tensors& x) { return Tensors{i0(x[0])}; },
                   .inputs = {{kInf, -kInf, kNaN, 0, 800}},
                   .expected = {{kNaN, kNaN, kNaN, 1, kInf}}},
                  kFloats);
}

TEST(PointwiseCases, SignedZerosPassThroughOddFunctionsAndRoundings) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         const Tensor& a = x[0];
                         return Tensors{floor(a), ceil(a),  trunc(a), round(a),  neg(a),   abs(a),
                                        sqrt(a),  sin(a),   tan(a),   asin(a),   atan(a),  sinh(a),
                                        tanh(a),  asinh(a), atanh(a), expm1(a),  log1p(a), erf(a),
                                        a * 1,    a / 1,    a - 0.0,  fmod(a, 1)};
                       },
                   .inputs = {{-0.0, 0.0}},
                   .expected =
                       [] {
                         std::vector<Numbers> all(22, Numbers{-0.0, 0.0});
                         all[4] = {0.0, -0.0};
                         all[5] = {0.0, 0.0};
                         return all;
                       }(),
                   .signed_zeros = true},
                  kFloats);
}

TEST(PointwiseCases, RoundingToZeroKeepsTheSign) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{floor(x[0]), ceil(x[0]), trunc(x[0]), round(x[0]), fmod(x[0], 0.25)};
                       },
                   .inputs = {{-0.5, 0.5, -0.25, 1.5, 2.5, -1.5, -2.5, kInf}},
                   .expected = {{-1, 0, -1, 1, 2, -2, -3, kInf},
                                {-0.0, 1, -0.0, 2, 3, -1, -2, kInf},
                                {-0.0, 0, -0.0, 1, 2, -1, -2, kInf},
                                {-0.0, 0, -0.0, 2, 2, -2, -2, kInf},
                                {-0.0, 0, -0.0, 0, 0, -0.0, -0.0, kNaN}},
                   .signed_zeros = true},
                  kFloats);
}

TEST(PointwiseCases, RoundingLeavesLargeNumbersAlone) {
  const Numbers large{8388607.5, 8388609, 16777216, -8388607.5, 3e38, -2147483648.0, 9.2233720368547758e18};
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{floor(x[0]), ceil(x[0]), trunc(x[0]), round(x[0])};
                       },
                   .inputs = {large},
                   .expected = {{8388607, 8388609, 16777216, -8388608, large[4], large[5], large[6]},
                                {8388608, 8388609, 16777216, -8388607, large[4], large[5], large[6]},
                                {8388607, 8388609, 16777216, -8388607, large[4], large[5], large[6]},
                                {8388608, 8388609, 16777216, -8388608, large[4], large[5], large[6]}},
                   .tolerance = 1e-7},
                  kWideFloats);
}

TEST(PointwiseCases, ZeroTimesNaNAndInfinityIsNaN) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{x[0] * 0,    0.0 * x[0],   x[0] - x[0],
                                        x[0] / x[0], pow(x[0], 0), where(x[0] == x[0], x[0], 5)};
                       },
                   .inputs = {{kNaN, kInf, -kInf, 2}},
                   .expected = {{kNaN, kNaN, kNaN, 0},
                                {kNaN, kNaN, kNaN, 0},
                                {kNaN, kNaN, kNaN, 0},
                                {kNaN, kNaN, kNaN, 1},
                                {1, 1, 1, 1},
                                {5, kInf, -kInf, 2}}},
                  kFloats);
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{x[0] * 0, x[0] - x[0]};
                       },
                   .inputs = {{5, -9}},
                   .expected = {{0, 0}, {0, 0}}},
                  {kInt32, kInt64, kInt8});
}

TEST(PointwiseCases, CopysignReadsTheSignOfNegativeZero) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{copysign(x[0], -0.0), copysign(x[0], 0.0), copysign(x[0], x[1])};
                       },
                   .inputs = {{1.5, -2.0, 0.0}, {-0.0, 0.0, -3.0}},
                   .expected = {{-1.5, -2, -0.0}, {1.5, 2, 0.0}, {-1.5, 2, -0.0}},
                   .signed_zeros = true},
                  kFloats);
}

TEST(PointwiseCases, ArcTangentTellsTheFourZerosApart) {
  const double pi = 3.141592653589793;
  check_pointwise({.function = [](const Tensors& x) { return Tensors{atan2(x[0], x[1])}; },
                   .inputs = {{0.0, -0.0, 0.0, -0.0, kInf, -kInf, 1, kNaN},
                              {0.0, 0.0, -0.0, -0.0, kInf, -kInf, -kInf, 1}},
                   .expected = {{0.0, -0.0, pi, -pi, pi / 4, -3 * pi / 4, pi, kNaN}},
                   .tolerance = 2e-7},
                  kWideFloats);
}

TEST(PointwiseCases, FloorDivisionUsesTheExactQuotient) {
  const std::vector<Numbers> inputs{{2.0, 0.9, -2.0, 0.7, 3.0}, {0.1, 0.3, 0.1, 0.1, 0.2}};
  const Function divide = [](const Tensors& x) {
    return Tensors{floor_divide(x[0], x[1]), div(x[0], x[1], "floor")};
  };
  check_pointwise(
      {.function = divide, .inputs = inputs, .expected = {{19, 3, -20, 6, 14}, {19, 3, -20, 6, 14}}},
      {kFloat64});
  check_pointwise(
      {.function = divide, .inputs = inputs, .expected = {{19, 2, -20, 6, 14}, {19, 2, -20, 6, 14}}},
      {kFloat32});
  check_pointwise(
      {.function = divide,
       .inputs = {{1, -1, 0.0, 5, -5, kInf, 1}, {0.0, 0.0, 0.0, kInf, kInf, 2, kNaN}},
       .expected = {{kInf, -kInf, kNaN, 0, -1, kNaN, kNaN}, {kInf, -kInf, kNaN, 0, -1, kNaN, kNaN}}},
      kWideFloats);
}

TEST(PointwiseCases, RemainderOfHugeQuotientsIsExact) {
  const Function remainders = [](const Tensors& x) {
    return Tensors{fmod(x[0], x[1]), remainder(x[0], x[1])};
  };
  check_pointwise({.function = remainders,
                   .inputs = {{1073741824.0, -1073741824.0}, {3, 3}},
                   .expected = {{1, -1}, {1, 2}}},
                  kWideFloats);
  check_pointwise({.function = remainders,
                   .inputs = {{1e8}, {0.3}},
                   .expected = {{0.026357173919677734}, {0.026357173919677734}},
                   .tolerance = 1e-7},
                  {kFloat32});
  // The sign is that of the dividend and of the divisor; an infinite divisor leaves the dividend, or itself.
  check_pointwise({.function = remainders,
                   .inputs = {{5.5, -5.5, 5.5, -5.5, 1, kInf, 1, 1}, {2, 2, -2, -2, 0.0, 2, kInf, kNaN}},
                   .expected = {{1.5, -1.5, 1.5, -1.5, kNaN, kNaN, 1, kNaN},
                                {1.5, 0.5, -0.5, -1.5, kNaN, kNaN, 1, kNaN}}},
                  kWideFloats);
}

TEST(PointwiseCases, IntegerDivisionOfAllSigns) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{floor_divide(x[0], x[1]), div(x[0], x[1], "trunc"),
                                        remainder(x[0], x[1]),    fmod(x[0], x[1]),
                                        floor_divide(x[0], 2),    floor_divide(x[0], -2),
                                        remainder(x[0], 4),       fmod(x[0], -4)};
                       },
                   .inputs = {{-7, 7, -7, 7}, {2, -2, -2, 2}},
                   .expected = {{-4, -4, 3, 3},
                                {-3, -3, 3, 3},
                                {1, -1, -1, 1},
                                {-1, 1, -1, 1},
                                {-4, 3, -4, 3},
                                {3, -4, 3, -4},
                                {1, 3, 1, 3},
                                {-3, 3, -3, 3}}},
                  {kInt64, kInt32, kInt16, kInt8});
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{floor_divide(x[0], x[1]), remainder(x[0], x[1]), fmod(x[0], x[1])};
                       },
                   .inputs = {{255, 200, 7}, {2, 255, 16}},
                   .expected = {{127, 0, 0}, {1, 200, 7}, {1, 200, 7}}},
                  {kUInt8});
}

TEST(PointwiseCases, TheLeastIntegerDividedByMinusOneWrapsAround) {
  const struct {
    DType dtype;
    int64_t least;
  } kinds[] = {{kInt8, -128}, {kInt16, -32768}, {kInt32, INT32_MIN}, {kInt64, INT64_MIN}};
  for_each_mode([&](const Mode& run) {
    for (const auto& [dtype, least] : kinds) {
      for (const size_t n : {1u, 35u}) {
        const Tensors got = run(
            [](const Tensors& x) {
              return Tensors{floor_divide(x[0], x[1]),
                             div(x[0], x[1], "trunc"),
                             remainder(x[0], x[1]),
                             fmod(x[0], x[1]),
                             neg(x[0]),
                             abs(x[0]),
                             x[0] - 1,
                             x[0] * x[1],
                             gcd(x[0], x[1])};
            },
            {integers(std::vector<int64_t>(n, least), dtype), integers(std::vector<int64_t>(n, -1), dtype)});
        const std::vector<int64_t> same(n, least), zero(n, 0), one(n, 1),
            greatest(n, static_cast<int64_t>(~static_cast<uint64_t>(least)));
        expect_whole(got, {same, same, zero, zero, same, same, greatest, same, one});
      }
    }
  });
}

TEST(PointwiseCases, UnsignedArithmeticWrapsBeforeItIsWidened) {
  for_each_mode([](const Mode& run) {
    for (const size_t n : {2u, 65u}) {
      std::vector<int64_t> b(n), twice(n), less(n), opposite(n), product(n);
      for (size_t i = 0; i < n; ++i) {
        b[i] = i % 2 ? 3 : 200;
        twice[i] = i % 2 ? 6 : 144;
        less[i] = i % 2 ? 254 : 195;
        opposite[i] = i % 2 ? 253 : 56;
        product[i] = i % 2 ? 9 : 64;
      }
      const Tensors got = run(
          [](const Tensors& x) {
            const Tensor& b = x[0];
            return Tensors{(b + b).to(kInt32), (b - 5).to(kInt32), neg(b).to(kInt64), (b * b).to(kFloat32)};
          },
          {integers(b, kUInt8)});
      expect_whole(got[0], twice);
      expect_whole(got[1], less);
      expect_whole(got[2], opposite);
      expect_values(got[3], Numbers(product.begin(), product.end()));
    }
  });
}

TEST(PointwiseCases, SignedArithmeticWraps) {
  const struct {
    DType dtype;
    int64_t most, least;
  } kinds[] = {{kInt8, 127, -128},
               {kInt16, 32767, -32768},
               {kInt32, INT32_MAX, INT32_MIN},
               {kInt64, INT64_MAX, INT64_MIN}};
  for_each_mode([&](const Mode& run) {
    for (const auto& [dtype, most, least] : kinds) {
      const Tensors got = run(
          [](const Tensors& x) {
            return Tensors{x[0] + 1, (x[0] + 1).to(kInt64), x[0] * 2, x[0] + x[0]};
          },
          {integers(std::vector<int64_t>(35, most), dtype)});
      expect_whole(got, {std::vector<int64_t>(35, least), std::vector<int64_t>(35, least),
                         std::vector<int64_t>(35, -2), std::vector<int64_t>(35, -2)});
    }
  });
}

TEST(PointwiseCases, ShiftsBeyondTheWidthShiftEverythingOut) {
  const struct {
    DType dtype;
    int64_t width;
  } kinds[] = {{kInt64, 64}, {kInt32, 32}, {kInt16, 16}, {kInt8, 8}};
  for_each_mode([&](const Mode& run) {
    for (const auto& [dtype, width] : kinds) {
      for (const size_t n : {1u, 37u}) {
        for (const int64_t count : {width, width + 6}) {
          const Tensors got = run(
              [](const Tensors& x) {
                return Tensors{bitwise_left_shift(x[0], x[2]), bitwise_right_shift(x[0], x[2]),
                               bitwise_right_shift(x[1], x[2]), bitwise_left_shift(x[1], x[2])};
              },
              {integers(std::vector<int64_t>(n, 5), dtype), integers(std::vector<int64_t>(n, -5), dtype),
               integers(std::vector<int64_t>(n, count), dtype)});
          expect_whole(got, {std::vector<int64_t>(n, 0), std::vector<int64_t>(n, 0),
                             std::vector<int64_t>(n, -1), std::vector<int64_t>(n, 0)});
        }
      }
    }
    const Tensors bytes = run(
        [](const Tensors& x) {
          return Tensors{bitwise_left_shift(x[0], x[1]), bitwise_right_shift(x[0], x[1])};
        },
        {integers({255, 255, 255, 255}, kUInt8), integers({0, 1, 7, 8}, kUInt8)});
    expect_whole(bytes[0], {255, 254, 128, 0});
    expect_whole(bytes[1], {255, 127, 1, 0});
    const Tensors edge = run(
        [](const Tensors& x) {
          return Tensors{bitwise_left_shift(x[0], 63), bitwise_right_shift(bitwise_left_shift(x[0], 63), 63)};
        },
        {integers({1, 2, 3})});
    expect_whole(edge[0], {INT64_MIN, 0, INT64_MIN});
    expect_whole(edge[1], {-1, 0, -1});
  });
}

TEST(PointwiseCases, BoundsOutsideTheIntegerTypeBoundNothing) {
  for_each_mode([](const Mode& run) {
    for (const size_t times : {1u, 9u}) {
      std::vector<int64_t> v;
      for (size_t i = 0; i < times; ++i) v.insert(v.end(), {-128, -3, 0, 5, 127});
      const Tensors got = run(
          [](const Tensors& x) {
            return Tensors{clamp(x[0], -500, 500), clamp(x[0], {}, 200), clamp(x[0], -129),
                           clamp(x[0], -128, 127)};
          },
          {integers(v, kInt8)});
      for (const Tensor& same : got) {
        EXPECT_EQ(same.dtype(), kInt8);
        expect_whole(same, v);
      }
    }
    const Tensors bytes = run(
        [](const Tensors& x) {
          return Tensors{clamp(x[0], -5, 300), clamp(x[0], {}, -1)};
        },
        {integers({0, 7, 255}, kUInt8)});
    expect_whole(bytes[0], {0, 7, 255});
    expect_whole(bytes[1], {0, 0, 0});
    const Tensors wide =
        run([](const Tensors& x) { return Tensors{clamp(x[0], int64_t{-3000000000}, int64_t{3000000000})}; },
            {integers({INT32_MIN, 0, INT32_MAX}, kInt32)});
    expect_whole(wide[0], {INT32_MIN, 0, INT32_MAX});
  });
}

TEST(PointwiseCases, NumbersOutsideTheIntegerTypeCompareAsTheyAre) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& x) {
          return Tensors{
              x[0]<200, x[0]> - 200, x[0] == 200, x[0] != 328, x[1] >= -1, x[1] < 256, x[1] == 256};
        },
        {integers({-128, -56, 0, 72, 127}, kInt8), integers({0, 1, 200, 255, 0}, kUInt8)});
    const std::vector<int64_t> yes(5, 1), no(5, 0);
    expect_whole(got, {yes, yes, no, yes, yes, yes, no});
  });
}

TEST(PointwiseCases, SmallArgumentsKeepTheirDigits) {
  for_each_mode([](const Mode& run) {
    for (const int64_t n : {3, 64, 67}) {
      const Tensors got = run(
          [](const Tensors& x) {
            return Tensors{expm1(x[0]), elu(-x[0]),  log1p(x[0]), sinh(x[0]),  tanh(x[0]), sin(x[0]),
                           atanh(x[0]), asinh(x[0]), selu(-x[0]), celu(-x[0]), erf(x[0]),  asin(x[0])};
          },
          {full({n}, 1e-8)});
      const auto expect = [&](size_t i, double value) {
        SCOPED_TRACE(i);
        expect_values(got[i], Numbers(static_cast<size_t>(n), value), 1e-6);
      };
      for (const size_t i : {0, 2, 3, 4, 5, 6, 7, 11}) expect(i, 1e-8);
      expect(1, -1e-8);
      expect(8, -1.7580993408473766e-8);
      expect(9, -1e-8);
      expect(10, 1.1283791670955126e-8);
    }
  });
}

TEST(PointwiseCases, LongChainsStayRight) {
  for_each_mode([](const Mode& run) {
    const Function chain = run.prepare([](const Tensors& x) {
      Tensor y = x[0];
      for (int i = 0; i < 300; ++i) y = y * 1 + 1;
      return Tensors{y};
    });
    for (int call = 0; call < 3; ++call) expect_values(chain({make({0, 2})})[0], {300, 302});
  });
}

TEST(PointwiseCases, EndsOfExponentialsAndLogarithms) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         const Tensor& a = x[0];
                         return Tensors{exp(a),  expm1(a), exp2(a), sigmoid(a), tanh(a),      erf(a),
                                        erfc(a), atan(a),  sqrt(a), rsqrt(a),   reciprocal(a)};
                       },
                   .inputs = {{kInf, -kInf, 0.0, -0.0}},
                   .expected = {{kInf, 0, 1, 1},
                                {kInf, -1, 0, -0.0},
                                {kInf, 0, 1, 1},
                                {1, 0, 0.5, 0.5},
                                {1, -1, 0, 0},
                                {1, -1, 0, 0},
                                {0, 2, 1, 1},
                                {1.5707963267948966, -1.5707963267948966, 0, 0},
                                {kInf, kNaN, 0, 0},
                                {0, kNaN, kInf, -kInf},
                                {0, 0, kInf, -kInf}},
                   .tolerance = 1e-2},
                  kFloats);
  check_pointwise({.function =
                       [](const Tensors& x) {
                         const Tensor& a = x[0];
                         return Tensors{log(a),    log2(a),  log10(a), log1p(a), acosh(a),
                                        lgamma(a), logit(a), asin(a),  acos(a),  atanh(a)};
                       },
                   .inputs = {{0.0, 1, -2, kInf}},
                   .expected = {{-kInf, 0, kNaN, kInf},
                                {-kInf, 0, kNaN, kInf},
                                {-kInf, 0, kNaN, kInf},
                                {0, 0.6931471805599453, kNaN, kInf},
                                {kNaN, 0, kNaN, kInf},
                                {kInf, 0, kInf, kInf},
                                {-kInf, kInf, kNaN, kNaN},
                                {0, 1.5707963267948966, kNaN, kNaN},
                                {1.5707963267948966, 0, kNaN, kNaN},
                                {0, kInf, kNaN, kNaN}},
                   .tolerance = 1e-2},
                  kFloats);
}

TEST(PointwiseCases, OverflowAndUnderflowOfFloat32) {
  // What would be subnormal is left out: kernels may give 0 there.
  check_pointwise(
      {.function =
           [](const Tensors& x) {
             return Tensors{exp(x[0]), exp2(x[0]), sigmoid(x[0]), softplus(x[0]), cosh(x[0])};
           },
       .inputs = {{80, 89, 128, -126, 200}},
       .expected = {{5.540622384393510e34, kInf, kInf, 0, kInf},
                    {1.2089258196146292e24, 6.189700196426902e26, kInf, 1.1754943508222875e-38, kInf},
                    {1, 1, 1, 0, 1},
                    {80, 89, 128, 0, 200},
                    {2.770311192196755e34, 2.244806400879402e38, kInf, kInf, kInf}},
       .tolerance = 1e-5},
      {kFloat32});
  check_pointwise({.function = [](const Tensors& x) { return Tensors{logsigmoid(x[0])}; },
                   .inputs = {{80, 0, -128, kInf, -kInf}},
                   .expected = {{-1.8048513878454153e-35, -0.6931471805599453, -128, 0, -kInf}},
                   .tolerance = 1e-5},
                  {kFloat32});
}

// 2^-130 has 19 digits in float32. The first row is itself to first order.
TEST(PointwiseCases, NumbersBelowTheSmallestNormalOne) {
  const double tiny = std::ldexp(1.0, -130), large = std::ldexp(1.0, 125);
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{expm1(x[0]), log1p(x[0]), sin(x[0]),  tan(x[0]),   asin(x[0]),
                                        atan(x[0]),  sinh(x[0]),  tanh(x[0]), asinh(x[0]), atanh(x[0])};
                       },
                   .inputs = {{tiny, -tiny}},
                   .expected = std::vector<std::vector<double>>(10, {tiny, -tiny}),
                   .tolerance = 1e-5},
                  {kFloat32});
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{log(x[0]),   log2(x[0]),   sqrt(x[0]),
                                        rsqrt(x[0]), lgamma(x[0]), 1 / (x[0] * 32)};
                       },
                   .inputs = {{tiny}},
                   .expected = {{-90.10913347279289},
                                {-130},
                                {std::ldexp(1.0, -65)},
                                {std::ldexp(1.0, 65)},
                                {90.10913347279289},
                                {large}},
                   .tolerance = 1e-6},
                  {kFloat32});
  check_pointwise({.function = [](const Tensors& x) { return Tensors{sigmoid(x[0])}; },
                   .inputs = {{-88, -64}},
                   .expected = {{6.054601895401186e-39, 1.603810890548638e-28}},
                   .tolerance = 1e-5},
                  {kFloat32});
  check_pointwise({.function = [](const Tensors& x) { return Tensors{digamma(x[0])}; },
                   .inputs = {{-1e-30, 1e-30, -0.25}},
                   .expected = {{1e30, -1e30, 2.9141391202135245}},
                   .tolerance = 1e-6},
                  {kFloat32});
}

TEST(PointwiseCases, JoinedLogarithmsOfInfinities) {
  check_pointwise(
      {.function =
           [](const Tensors& x) {
             return Tensors{logaddexp(x[0], x[1]), logaddexp2(x[0], x[1])};
           },
       .inputs = {{-kInf, kInf, -kInf, 1000, kInf, kNaN}, {-kInf, kInf, 3, 1000, -kInf, 1}},
       .expected = {{-kInf, kInf, 3, 1000.6931471805599, kInf, kNaN}, {-kInf, kInf, 3, 1001, kInf, kNaN}},
       .tolerance = 1e-6},
      kWideFloats);
}

TEST(PointwiseCases, LimitsOfMixedFunctions) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{xlogy(x[0], x[1]), hypot(x[0], x[1]), heaviside(x[0], x[1]),
                                        nextafter(x[1], x[1])};
                       },
                   .inputs = {{0.0, 0.0, 0.0, 2, kInf, kNaN, -1}, {0.0, kInf, kNaN, 1, kNaN, 1, 5}},
                   .expected = {{0, 0, kNaN, 0, kNaN, kNaN, -1.6094379124341003},
                                {0, kInf, kNaN, 2.23606797749979, kInf, kNaN, 5.0990195135927845},
                                {0, kInf, kNaN, 1, 1, 0, 0},
                                {0, kInf, kNaN, 1, kNaN, 1, 5}},
                   .tolerance = 1e-6},
                  kWideFloats);
  check_pointwise({.function = [](const Tensors& x) { return Tensors{hypot(x[0], x[1])}; },
                   .inputs = {{3e30, 3e-30, 3e38}, {4e30, 4e-30, 4}},
                   .expected = {{5e30, 5e-30, 3e38}},
                   .tolerance = 1e-6},
                  kWideFloats);
  check_pointwise({.function = [](const Tensors& x) { return Tensors{nextafter(x[0], x[1])}; },
                   .inputs = {{0.0, 0.0, 1, kInf}, {1, -1, 2, 0.0}},
                   .expected = {{1.401298464324817e-45, -1.401298464324817e-45, 1.00000011920928955,
                                 3.4028234663852886e38}}},
                  {kFloat32});
}

TEST(PointwiseCases, ReplacedInfinitiesAreTheDTypesLargestNumbers) {
  for_each_mode([](const Mode& run) {
    const struct {
      DType dtype;
      double most;
    } kinds[] = {{kFloat64, 1.7976931348623157e308},
                 {kFloat32, 3.4028234663852886e38},
                 {kFloat16, 65504},
                 {kBFloat16, 3.3895313892515355e38}};
    for (const auto& [dtype, most] : kinds) {
      const Tensors got = run(
          [](const Tensors& x) {
            return Tensors{nan_to_num(x[0]), nan_to_num(x[0], 1.0, 2.0, -3.0)};
          },
          {make({kNaN, kInf, -kInf, 0.5}, dtype)});
      expect_values(got[0], {0, most, -most, 0.5});
      expect_values(got[1], {1, 2, -3, 0.5});
    }
  });
}

TEST(PointwiseCases, WhatIsNotSelectedDoesNotCount) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         const Tensor ok = x[0] > 0;
                         return Tensors{where(ok, log(x[0]), 0), where(ok, 1 / x[0], -1),
                                        masked_fill(sqrt(x[0]), ~ok, 7)};
                       },
                   .inputs = {{-1, 0.0, 1, kInf}},
                   .expected = {{0, 0, 0, kInf}, {-1, -1, 1, 0}, {7, 7, 1, kInf}}},
                  kFloats);
}

TEST(PointwiseCases, InterpolationReachesBothEnds) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{lerp(x[0], x[1], 0.0), lerp(x[0], x[1], 1.0), lerp(x[0], x[1], 0.5)};
                       },
                   .inputs = {{0.1, 1e6, -3}, {0.3, 1, 5}},
                   .expected = {{0.1, 1e6, -3}, {0.3, 1, 5}, {0.2, 500000.5, 1}},
                   .tolerance = 1e-7},
                  kWideFloats);
}

TEST(PointwiseCases, BoolsAddAsOrAndMultiplyAsAnd) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         const Tensor &a = x[0], &b = x[1];
                         return Tensors{a + b,         a * b,         a & b,
                                        a | b,         a ^ b,         ~a,
                                        maximum(a, b), minimum(a, b), logical_xor(a, b),
                                        a < b,         a == b,        abs(a)};
                       },
                   .inputs = {{0, 0, 1, 1}, {0, 1, 0, 1}},
                   .expected = {{0, 1, 1, 1},
                                {0, 0, 0, 1},
                                {0, 0, 0, 1},
                                {0, 1, 1, 1},
                                {0, 1, 1, 0},
                                {1, 1, 0, 0},
                                {0, 1, 1, 1},
                                {0, 0, 0, 1},
                                {0, 1, 1, 0},
                                {0, 1, 0, 0},
                                {1, 0, 0, 1},
                                {0, 0, 1, 1}}},
                  {kBool});
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& x) {
          return Tensors{x[0] + 1, x[0] * 2.5, x[0] / x[0], x[0] + x[1]};
        },
        {make({0, 1}, kBool), make({7, 250}, kUInt8)});
    expect_form(got[0], kInt64, {2});
    expect_whole(got[0], {1, 2});
    expect_form(got[1], kFloat32, {2});
    expect_values(got[1], {0, 2.5});
    expect_form(got[2], kFloat32, {2});
    expect_values(got[2], {kNaN, 1});
    expect_form(got[3], kUInt8, {2});
    expect_whole(got[3], {7, 251});
  });
}

TEST(PointwiseCases, DifferencesAndNegativesOfBoolsAreRefused) {
  const Tensor flag = make({0, 1}, kBool);
  expect_user_error([&] { return flag - flag; }, {"sub", "bool"});
  expect_user_error([&] { return -flag; }, {"neg", "bool"});
  expect_user_error([&] { return bitwise_and(make({1.0}), flag); }, {"bitwise_and", "float32"});
  expect_user_error([&] { return bitwise_left_shift(make({1.0}), 1); }, {"bitwise_left_shift", "float32"});
  expect_user_error([&] { return gcd(make({1.0}), make({1.0})); }, {"gcd", "float32"});
}

TEST(PointwiseCases, CommonDivisorsOfZeroAndNegatives) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{gcd(x[0], x[1]), lcm(x[0], x[1])};
                       },
                   .inputs = {{0, 0, -12, 18, 7}, {0, 5, 18, -12, 7}},
                   .expected = {{0, 5, 6, 6, 7}, {0, 0, 36, 36, 7}}},
                  {kInt64, kInt32, kInt16, kInt8});
}

TEST(PointwiseCases, PowersOfIntegersAndOfZero) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{pow(x[0], x[1]), pow(x[0], 2), pow(x[0], 0)};
                       },
                   .inputs = {{0, 2, -3, -1, 3}, {0, 6, 3, 5, 4}},
                   .expected = {{1, 64, -27, -1, 81}, {0, 4, 9, 1, 9}, {1, 1, 1, 1, 1}}},
                  {kInt64, kInt32, kInt16, kInt8});
  check_pointwise({.function = [](const Tensors& x) { return Tensors{pow(x[0], x[1])}; },
                   .inputs = {{0.0, 0.0, -0.0, -8, 1, kNaN, -2, kInf, -kInf, 0.5},
                              {0.0, -1, -1, 1.0 / 3, kNaN, 0.0, 3, -1, 3, kInf}},
                   .expected = {{1, kInf, -kInf, kNaN, 1, 1, -8, 0, -kInf, 0}},
                   .tolerance = 1e-6},
                  kWideFloats);
}

TEST(PointwiseCases, ZeroDimAndEmptyTensors) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& x) {
      return Tensors{x[0] + x[1], exp(x[0]) * x[1], maximum(x[0], x[1]), x[0] < x[1],
                     where(x[0] > 0, x[0], x[1])};
    });
    const Tensors point = f({tensor(2.0), tensor(3.0)});
    for (const Tensor& t : point) EXPECT_EQ(shape(t), std::vector<int64_t>{});
    expect_values(point[0], {5});
    expect_values(point[2], {3});
    for (const Tensor& t : f({zeros({0, 1}), zeros({1, 3})}))
      EXPECT_EQ(shape(t), (std::vector<int64_t>{0, 3}));
    for (const Tensor& t : f({zeros({2, 0}), tensor(1.0)})) EXPECT_EQ(shape(t), (std::vector<int64_t>{2, 0}));
  });
}

// As PyTorch has them, where NumPy's sign and heaviside of NaN are NaN.
TEST(PointwiseCases, TheSignOfNaNIsZero) {
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{sign(x[0]), sgn(x[0]), heaviside(x[0], x[1])};
                       },
                   .inputs = {{kNaN, -0.0, 0.0, -kInf, kInf, 1e-3}, {5, 6, 7, 8, 9, kNaN}},
                   .expected = {{0, 0, 0, -1, 1, 1}, {0, 0, 0, -1, 1, 1}, {0, 6, 7, 0, 1, 1}}},
                  kFloats);
}

TEST(PointwiseCases, QuotientsAreRoundedBeforeTheyAreTruncated) {
  // 0.25 lies below 250 times the float64 next to 0.001, 1 below 49 times that next to 1/49.
  check_pointwise({.function =
                       [](const Tensors& x) {
                         return Tensors{div(x[0], x[1], "trunc"), div(x[0], x[1], "floor")};
                       },
                   .inputs = {{-0.25, 0.25, 1}, {-0.001, -0.001, 0.1}},
                   .expected = {{250, -250, 10}, {249, -250, 9}}},
                  {kFloat64});
}

TEST(PointwiseCases, DivisorsAtTheEndsOfNarrowIntegers) {
  // |-128| is -128 in int8, and Euclid's steps keep its sign: -128 % 127 is -1. The multiple of -1113 and
  // 10701 is 3970171 in int32.
  check_pointwise({.function = [](const Tensors& x) { return Tensors{gcd(x[0], x[1])}; },
                   .inputs = {{127, -128, -128, 55, -1, 0}, {-128, 127, -128, -128, -128, -128}},
                   .expected = {{-1, -1, -128, 1, 1, -128}}},
                  {kInt8});
  check_pointwise({.function = [](const Tensors& x) { return Tensors{lcm(x[0], x[1])}; },
                   .inputs = {{-1113, 300, 7}, {10701, 301, 0}},
                   .expected = {{-27625, 24764, 0}}},
                  {kInt16});
}

TEST(PointwiseCases, SoftsignOfIntegersWrapsFirst) {
  check_pointwise({.function = [](const Tensors& x) { return Tensors{softsign(x[0])}; },
                   .inputs = {{-127, 127, -1, 0, 3}},
                   .expected = {{127.0 / 128, -127.0 / 128, -0.5, 0, 0.75}}},
                  {kInt8});
}

TEST(PointwiseCases, BesselOfTheLargestNumbers) {
  check_pointwise({.function = [](const Tensors& x) { return Tensors{i0(x[0])}; },
                   .inputs = {{1e308, -1.7e308, 0, 700}},
                   .expected = {{kInf, kInf, 1, 1.5295933476718737e302}},
                   .tolerance = 1e-12},
                  {kFloat64});
}

TEST(PointwiseCases, EqualityOfWholeTensors) {
  const Tensor a = make({1, 2, kNaN}), b = make({1, 2, 3});
  EXPECT_TRUE(equal(b, b.clone()) && b.equal(make({1, 2, 3}, kFloat64)) && equal(zeros({0}), zeros({0})));
  EXPECT_FALSE(equal(a, a) || equal(b, b.unsqueeze(1)) || equal(b, make({1, 2})) || equal(a, b));
  EXPECT_TRUE(allclose(b, b + 1e-6) && a.allclose(a, 1e-5, 1e-8, true) && allclose(b, make({1}), 0, 2));
  EXPECT_FALSE(allclose(a, a) || allclose(b, b + 1e-3) || allclose(b, make({1}), 0, 1.5));
}

TEST(PointwiseCases, IntegersHaveNoNegativePowers) {
  for_each_mode([](const Mode& run) {
    expect_user_error(
        [&] {
          run([](const Tensors& x) { return Tensors{pow(x[0], -2)}; }, {integers({1, 2})});
        },
        {"pow", "-2"});
    expect_values(run([](const Tensors& x) { return Tensors{pow(x[0], -2.0)}; }, {integers({1, 2})})[0],
                  {1, 0.25});
  });
}

TEST(PointwiseCases, IntegersHaveNoDecimals) {
  for_each_mode([](const Mode& run) {
    for (const int64_t decimals : {-1, 2}) {
      const auto f = [decimals](const Tensors& x) { return Tensors{x[0].round(decimals)}; };
      expect_user_error([&] { run(f, {integers({14, 17})}); }, {"round", "int64", std::to_string(decimals)});
    }
    expect_whole(run([](const Tensors& x) { return Tensors{x[0].round()}; }, {integers({14, 17})})[0],
                 {14, 17});
    expect_values(run([](const Tensors& x) { return Tensors{x[0].round(-1)}; }, {make({14, 17})})[0],
                  {10, 20});
  });
}

TEST(PointwiseCases, PowersOfBools) {
  for_each_mode([](const Mode& run) {
    const Tensors out = run(
        [](const Tensors& x) {
          return Tensors{pow(x[0], true), pow(x[0], false)};
        },
        {tensor({true, false})});
    for (const Tensor& t : out) expect_form(t, kBool, {2});
    expect_values(out[0], {1, 0});
    expect_values(out[1], {1, 1});
  });
}

}  // namespace
}  // namespace stax::cases

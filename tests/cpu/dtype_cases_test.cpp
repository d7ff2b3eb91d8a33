// DTypes: promotion, casts at the ends of a type, and the one value that a rounded number has everywhere.
#include <gtest/gtest.h>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

TEST(DTypeCases, ARoundedHalfIsTheSameForEveryConsumer) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor y = t[0] * 1.001;
          const Tensor copy = y.view({16, 32}).t().contiguous().t().reshape({512});
          return Tensors{sum(y - copy), y, copy, sum(y.to(kFloat32) - copy.to(kFloat32))};
        },
        {arange(1, 513).to(kFloat16)});
    EXPECT_EQ(numbers(got[1]), numbers(got[2]));
    expect_values(got[3], {0});
    expect_values(got[0], {0});
  });
}

TEST(DTypeCases, ExplicitCastsRound) {
  for_each_mode([](const Mode& run) {
    for (const size_t times : {1u, 9u}) {
      Numbers x, expected, brain;
      for (size_t i = 0; i < times; ++i) {
        x.insert(x.end(), {65504, 65519, 65520, 65536, -1e6, 1.0009765625, 1.00048828125, 6e-8, 2e-8, kNaN});
        expected.insert(expected.end(),
                        {65504, 65504, kInf, kInf, -kInf, 1.0009765625, 1, 5.960464477539063e-08, 0, kNaN});
        brain.insert(brain.end(), {65536, 65536, 65536, 65536, -999424, 1, 1, 6.00703060626984e-08,
                                   2.002343535423279e-08, kNaN});
      }
      const Tensors got = run(
          [](const Tensors& t) {
            return Tensors{t[0].to(kFloat16), t[0].to(kFloat16).to(kFloat32) * 1, t[0].to(kBFloat16),
                           t[0].to(kBFloat16).to(kFloat32) + 0};
          },
          {make(x)});
      expect_form(got[0], kFloat16, {static_cast<int64_t>(x.size())});
      expect_values(got[0], expected);
      expect_values(got[1], expected);
      expect_values(got[2], brain, 1e-7);
      expect_values(got[3], brain, 1e-7);
    }
    const Tensors ends = run(
        [](const Tensors& t) {
          return Tensors{t[0].to(kFloat32), t[0].to(kBFloat16), t[0].to(kFloat16)};
        },
        {make({1e300, -1e300, 3.4028235677973366e38, 1e-320, 3.3961775292304607e38}, kFloat64)});
    expect_values(ends[0], {kInf, -kInf, kInf, 0, 3.3961775292304607e38}, 1e-7);
    expect_values(ends[1], {kInf, -kInf, kInf, 0, kInf});
    expect_values(ends[2], {kInf, -kInf, kInf, 0, kInf});
  });
}

TEST(DTypeCases, BytesCountAndSumAsDocumented) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor a = any(t[0]);
          return Tensors{a, all(t[0]), any(t[0], 1), sum(t[1]), a * 200 + 100, a.to(kUInt8) * 200 + 100};
        },
        {integers({0, 3, 0, 0}, kUInt8).view({2, 2}), integers({200, 100}, kUInt8)});
    // As PyTorch: any and all of uint8 are uint8, so what follows wraps.
    expect_form(got[0], kUInt8, {});
    expect_form(got[1], kUInt8, {});
    expect_whole(got[2], {1, 0});
    expect_form(got[3], kInt64, {});
    expect_whole(got[3], {300});
    expect_form(got[4], kUInt8, {});
    expect_whole(got[4], {44});
    expect_whole(got[5], {44});
  });
}

TEST(DTypeCases, IntegersMeetFractions) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{clamp_min(t[0], 1.5),
                         t[1] / 2,
                         t[1] * 0.5,
                         clamp(t[0], 0.5, 2.5),
                         t[0] + 0.25,
                         clamp_max(t[0], 1.5),
                         t[1] > 6.5,
                         pow(t[0], 0.5),
                         where(t[0] > 1, t[0], 0.5),
                         maximum(t[0], tensor(1.5))};
        },
        {integers({0, 1, 2, 3}), integers({7, -7})});
    const std::pair<size_t, Numbers> floats[] = {{0, {1.5, 1.5, 2, 3}},
                                                 {1, {3.5, -3.5}},
                                                 {2, {3.5, -3.5}},
                                                 {3, {0.5, 1, 2, 2.5}},
                                                 {4, {0.25, 1.25, 2.25, 3.25}},
                                                 {5, {0, 1, 1.5, 1.5}},
                                                 {7, {0, 1, 1.4142135, 1.7320508}},
                                                 {8, {0.5, 0.5, 2, 3}},
                                                 {9, {1.5, 1.5, 2, 3}}};
    for (const auto& [i, expected] : floats) {
      SCOPED_TRACE(i);
      EXPECT_EQ(got[i].dtype(), kFloat32);
      expect_values(got[i], expected, 1e-6);
    }
    expect_form(got[6], kBool, {2});
    expect_whole(got[6], {1, 0});
  });
}

TEST(DTypeCases, BoolResultsOfDifferentSourcesCombine) {
  for_each_mode([](const Mode& run) {
    for (const size_t n : {3u, 40u}) {
      std::vector<int64_t> a(n), b(n), expected(n), either(n);
      for (size_t i = 0; i < n; ++i) {
        a[i] = static_cast<int64_t>(i % 3) + 1;
        b[i] = i % 3 == 2 ? 0 : 2;
        expected[i] = i % 3 == 1;
        either[i] = 1;
      }
      const Tensors got = run(
          [](const Tensors& t) {
            const Tensor x = t[0] > 1, y = t[1] > 1, z = t[2] > 1;
            return Tensors{x & y, x | y, logical_and(x, y), (x & z) ^ y, where(x & y, t[2], t[0])};
          },
          {integers(a), integers(b, kUInt8), integers(a).to(kFloat16)});
      expect_form(got[0], kBool, {static_cast<int64_t>(n)});
      expect_whole(got[0], expected);
      expect_whole(got[1], either);
      expect_whole(got[2], expected);
      for (size_t i = 0; i < n; ++i) expected[i] = (i % 3 > 0) ^ (i % 3 != 2);
      expect_whole(got[3], expected);
      expect_form(got[4], kFloat16, {static_cast<int64_t>(n)});
    }
  });
}

TEST(DTypeCases, FloatsOutsideTheIntegersAreCastByOneRule) {
  // Truncate; int32 and int64 saturate; narrower types wrap what int32 holds and are 0 for the rest; NaN
  // gives 0.
  for_each_mode([](const Mode& run) {
    const Numbers x{-1.7, 0.5,  255.9, 300.0, kNaN,      kInf, -kInf,
                    3e9,  -3e9, 1e20,  -1e20, 65536 + 3, -129, 2147483520.0};
    const std::vector<int64_t> int32{-1,        0,         255,       300,       0,
                                     INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX,
                                     INT32_MIN, 65539,     -129,      2147483520};
    const std::vector<int64_t> int64{-1,        0,         255,        300,         0,
                                     INT64_MAX, INT64_MIN, 3000000000, -3000000000, INT64_MAX,
                                     INT64_MIN, 65539,     -129,       2147483520};
    const std::pair<DType, std::function<int64_t(int64_t)>> narrow[] = {
        {kUInt8, [](int64_t v) { return static_cast<uint8_t>(v); }},
        {kInt8, [](int64_t v) { return static_cast<int8_t>(v); }},
        {kInt16, [](int64_t v) { return static_cast<int16_t>(v); }},
        {kInt32, [](int64_t v) { return v; }}};
    for (const size_t times : {1u, 5u}) {
      for (const DType from : {kFloat32, kFloat64}) {
        SCOPED_TRACE(name(from));
        Numbers input;
        for (size_t i = 0; i < times; ++i) input.insert(input.end(), x.begin(), x.end());
        const Tensors got = run(
            [](const Tensors& t) {
              return Tensors{t[0].to(kUInt8), t[0].to(kInt8),  t[0].to(kInt16),
                             t[0].to(kInt32), t[0].to(kInt64), t[0].to(kBool)};
            },
            {make(input, from)});
        for (size_t k = 0; k < 4; ++k) {
          SCOPED_TRACE(name(narrow[k].first));
          std::vector<int64_t> expected;
          for (size_t i = 0; i < input.size(); ++i) {
            const bool held = std::abs(input[i]) < 0x1p31 || narrow[k].first == kInt32;
            expected.push_back(held ? narrow[k].second(int32[i % x.size()]) : 0);
          }
          expect_whole(got[k], expected);
        }
        std::vector<int64_t> expected;
        for (size_t i = 0; i < input.size(); ++i) expected.push_back(int64[i % x.size()]);
        expect_whole(got[4], expected);
        expect_whole(got[5], std::vector<int64_t>(input.size(), 1));
      }
    }
  });
}

TEST(DTypeCases, IntegersAreCastExactlyAndWrap) {
  for_each_mode([](const Mode& run) {
    const std::vector<int64_t> x{INT64_MAX, INT64_MIN, -1, 256, 32768, int64_t{1} << 32, 16777217};
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{t[0].to(kInt32), t[0].to(kInt16),   t[0].to(kInt8),    t[0].to(kUInt8),
                         t[0].to(kBool),  t[0].to(kFloat32), t[0].to(kFloat64), t[0].to(kFloat16)};
        },
        {integers(x)});
    expect_whole(got[0], {-1, 0, -1, 256, 32768, 0, 16777217});
    expect_whole(got[1], {-1, 0, -1, 256, -32768, 0, 1});
    expect_whole(got[2], {-1, 0, -1, 0, 0, 0, 1});
    expect_whole(got[3], {255, 0, 255, 0, 0, 0, 1});
    expect_whole(got[4], std::vector<int64_t>(7, 1));
    expect_values(got[5],
                  {9223372036854775808.0, -9223372036854775808.0, -1, 256, 32768, 4294967296, 16777216});
    expect_values(got[6],
                  {9223372036854775808.0, -9223372036854775808.0, -1, 256, 32768, 4294967296, 16777217});
    expect_values(got[7], {kInf, -kInf, -1, 256, 32768, kInf, kInf});
  });
}

TEST(DTypeCases, TruthOfFloats) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{t[0].to(kBool), logical_not(t[0]), logical_and(t[0], 1), t[0] != 0};
        },
        {make({0.0, -0.0, kNaN, 1e-40, kInf, 0.25})});
    expect_whole(got[0], {0, 0, 1, 1, 1, 1});
    expect_whole(got[1], {1, 1, 0, 0, 0, 0});
    expect_whole(got[2], {0, 0, 1, 1, 1, 1});
    expect_whole(got[3], {0, 0, 1, 1, 1, 1});
  });
}

TEST(DTypeCases, CategoriesDecideBeforeWidths) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor &half = t[0], &i32 = t[1], &u8 = t[2], &i8 = t[3], &f64_point = t[4],
                       &i64_point = t[5], &bf = t[6], &flag = t[7];
          return Tensors{half + i32,
                         u8 + i8,
                         half + f64_point,
                         i32 + f64_point,
                         u8 + i64_point,
                         half + bf,
                         flag + u8,
                         i32 * 2.0,
                         u8 * 2,
                         half * 2,
                         flag + 1,
                         half + 1e-3,
                         u8 / u8,
                         i64_point + u8,
                         exp(i8),
                         half > i32,
                         f64_point + i64_point};
        },
        {ones({2}, kFloat16), ones({2}, kInt32), ones({2}, kUInt8), ones({2}, kInt8), tensor(1.0, kFloat64),
         tensor(int64_t{1}), ones({2}, kBFloat16), ones({2}, kBool)});
    const DType expected[] = {kFloat16, kInt16,   kFloat16, kFloat64, kUInt8,  kFloat32,
                              kUInt8,   kFloat32, kUInt8,   kFloat16, kInt64,  kFloat16,
                              kFloat32, kUInt8,   kFloat32, kBool,    kFloat64};
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i].dtype(), expected[i]) << i << ": " << name(got[i].dtype());
  });
}

/// The number that 16 bits stand for, with so many of them for the exponent.
double half_of_bits(int64_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1 << exponent_bits) - 1));
  const auto mantissa = static_cast<double>(bits & ((1 << mantissa_bits) - 1));
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? kNaN : sign * kInf;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

TEST(DTypeCases, BitsOfHalfTypesInBothDirections) {
  const std::pair<DType, int> types[] = {{kFloat16, 5}, {kBFloat16, 8}};
  const Tensor bits = (arange(65536) - 32768).to(kInt16);
  for (const auto& [type, exponent_bits] : types) {
    SCOPED_TRACE(std::string(name(type)));
    Numbers expected(65536), whole_numbers(65536);
    for (int64_t i = 0; i < 65536; ++i) {
      expected[i] = half_of_bits((i - 32768) & 0xffff, exponent_bits);
      whole_numbers[i] = std::isnan(expected[i]) ? 0 : static_cast<double>(i - 32768);
    }
    for_each_mode([&](const Mode& run) {
      const Tensors got = run(
          [dtype = type](const Tensors& t) {
            const Tensor seen = t[0].view(dtype);
            const Tensor computed = (t[0].to(kInt32) + 0).to(kInt16).view(dtype);  // memory of the program
            return Tensors{seen * 1, where(computed.isnan(), 0, computed.view(kInt16))};
          },
          {bits});
      expect_signed(got[0], expected);
      expect_values(got[1], whole_numbers);
    });
  }
}

TEST(DTypeCases, BitsOfAHalfAreThoseOfTheRoundedNumber) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor negated = t[0] * 1;
          const Tensor bits = negated.view(kInt16);
          bits.copy_(bits.bitwise_xor(full_like(bits, -32768)));  // a write through the view
          return Tensors{(t[0] * 1.1).view(kInt16) + 0, t[0].view(kUInt8) + 0, t[1].view(kBFloat16) * 1,
                         negated};
        },
        {make({1, 3}, kFloat16), make({1}, kFloat32)});
    expect_whole(got[0], {15462, 17050});  // 1.0996094 and 3.3007812, rounded
    expect_whole(got[1], {0x00, 0x3c, 0x00, 0x42});
    expect_values(got[2], {0, 1});
    expect_values(got[3], {-1, -3});
  });
}

TEST(DTypeCases, RangesOfIntegersFromFractions) {
  for_each_mode([](const Mode& run) {
    const Tensors out = run(
        [](const Tensors&) {
          return Tensors{arange(1.0, 5.000001, 2.0, kInt32), arange(1.0, 5.000001, 2.0, kInt64),
                         arange(2.1, -2.9, -1.0, kInt16),    linspace(4.3, -3, 8, kInt64),
                         linspace(4.3, 5.9, 3, kInt32),      linspace(-1.5, 1.5, 3, kFloat32)};
        },
        {});
    expect_whole(out[0], {1, 3, 5});  // counted before the bounds are truncated, but in int64 after
    expect_whole(out[1], {1, 3});
    expect_whole(out[2], {2, 1, 0, -1, -2});
    expect_whole(out[3], {4, 3, 2, 1, 0, -1, -2, -3});
    expect_whole(out[4], {4, 4, 5});
    expect_values(out[5], {-1.5, 0, 1.5});
  });
}

}  // namespace
}  // namespace stax::cases

// Constants, scalars, index values, selection, random numbers; casts between all dtypes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "unit/codegen/compiled.h"

namespace stax::codegen {
namespace {

using loops::Constant;

TEST(Values, ConstantsAndScalars) {
  const Compiled c(R"(
buffer o0 float32 [5] output
buffer o1 float64 [5] output
buffer o2 int64 [5] output
scalars [float64, int64, bool]
node op0 "constants" [i0 < 5]
  v0 = constant float32 0.1
  v1 = constant float32 -0.0
  v2 = constant float32 inf
  v3 = constant float32 nan
  v4 = constant float32 1e-45
  v5 = constant float64 0.1
  v6 = scalar float64 0
  v7 = constant int64 -9223372036854775808
  v8 = scalar int64 1
  v9 = constant int64 9223372036854775807
  store o0[0] v0
  store o0[1] v1
  store o0[2] v2
  store o0[3] v3
  store o0[4] v4
  store o1[0] v5
  store o1[1] v6
  store o2[0] v7
  store o2[1] v8
  store o2[2] v9
)");
  float o0[5] = {};
  double o1[5] = {};
  int64_t o2[5] = {};
  c.run({{"o0", o0}, {"o1", o1}, {"o2", o2}},
        {Constant::of(1.0 / 3), Constant::of(int64_t{-7000000000}), Constant::of(int64_t{1})});
  EXPECT_EQ(o0[0], 0.1f);
  EXPECT_TRUE(o0[1] == 0 && std::signbit(o0[1]));
  EXPECT_EQ(o0[2], INFINITY);
  EXPECT_TRUE(std::isnan(o0[3]));
  EXPECT_EQ(o0[4], std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(o1[0], 0.1);
  EXPECT_EQ(o1[1], 1.0 / 3);
  EXPECT_EQ(o2[0], INT64_MIN);
  EXPECT_EQ(o2[1], -7000000000);
  EXPECT_EQ(o2[2], INT64_MAX);
}

TEST(Values, IndexValues) {
  const Compiled c(R"(
buffer o0 int64 [7, 19] output
buffer o1 int64 [7, 19] output
node op0 "index" [i0 < 7, i1 < 19]
  v0 = index_value int64 100*i0 + 3*i1 - 5
  v1 = index_value int64 (i1 - 4)//3 + 10*((2*i1 - 7) % 5)
  store o0[19*i0 + i1] v0
  store o1[19*i0 + i1] v1
)");
  std::vector<int64_t> o0(7 * 19), o1(7 * 19);
  c.run({{"o0", o0.data()}, {"o1", o1.data()}}, {}, 3);
  for (int64_t i = 0; i < 7; ++i)
    for (int64_t j = 0; j < 19; ++j) {
      EXPECT_EQ(o0[i * 19 + j], 100 * i + 3 * j - 5);
      const int64_t quotient = static_cast<int64_t>(std::floor((j - 4) / 3.0));
      const int64_t rest = ((2 * j - 7) % 5 + 5) % 5;
      EXPECT_EQ(o1[i * 19 + j], quotient + 10 * rest) << j;
    }
}

TEST(Values, Fma) {
  auto a = numbers<double>(37, -2, 2, 1), b = numbers<double>(37, -2, 2, 2),
       d = numbers<double>(37, -2, 2, 3);
  std::vector<double> out(37);
  const Compiled c(R"(
buffer in0 float64 [37] input
buffer in1 float64 [37] input
buffer in2 float64 [37] input
buffer out0 float64 [37] output
node op0 "fma" [i0 < 37]
  v0 = load float64 in0[i0]
  v1 = load float64 in1[i0]
  v2 = load float64 in2[i0]
  v3 = fma float64 v0 v1 v2
  store out0[i0] v3
)");
  c.run({{"in0", a.data()}, {"in1", b.data()}, {"in2", d.data()}, {"out0", out.data()}});
  for (size_t i = 0; i < 37; ++i) EXPECT_NEAR(out[i], std::fma(a[i], b[i], d[i]), 1e-15);
}

TEST(Values, Gcd) {
  std::vector<int32_t> a, b, out(200);
  for (int i = 0; i < 200; ++i) a.push_back(i * 37 % 101 - 50), b.push_back(i * 53 % 89 - 44);
  a[0] = b[0] = 0;
  const Compiled c(R"(
buffer in0 int32 [200] input
buffer in1 int32 [200] input
buffer out0 int32 [200] output
node op0 "gcd" [i0 < 200]
  v0 = load int32 in0[i0]
  v1 = load int32 in1[i0]
  v2 = gcd int32 v0 v1
  store out0[i0] v2
)");
  c.run({{"in0", a.data()}, {"in1", b.data()}, {"out0", out.data()}});
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(out[i], std::gcd(a[i], b[i])) << a[i] << " " << b[i];
}

TEST(Values, IntegerPower) {
  std::vector<int32_t> a = {0, 2, -3, 7, 1, -1, -1, 2, 0, 10, 5}, b = {0, 10, 3, 40, -5, -3, -4, -1, 5, 9, 0},
                       out(11);
  const std::vector<int32_t> want = {1, 1024,       -27, static_cast<int32_t>(0x5b1e3c21), 1, -1, 1, 0,
                                     0, 1000000000, 1};
  const Compiled c(R"(
buffer in0 int32 [11] input
buffer in1 int32 [11] input
buffer out0 int32 [11] output
node op0 "pow" [i0 < 11]
  v0 = load int32 in0[i0]
  v1 = load int32 in1[i0]
  v2 = pow int32 v0 v1
  store out0[i0] v2
)");
  c.run({{"in0", a.data()}, {"in1", b.data()}, {"out0", out.data()}});
  for (size_t i = 0; i < 11; ++i) {
    if (i == 3) {
      uint32_t power = 1;
      for (int k = 0; k < 40; ++k) power *= 7;
      EXPECT_EQ(static_cast<uint32_t>(out[i]), power);
    } else {
      EXPECT_EQ(out[i], want[i]) << a[i] << " ^ " << b[i];
    }
  }
}

TEST(Values, Where) {
  auto a = numbers<double>(33), b = numbers<double>(33, -2, 2, 4);
  std::vector<uint8_t> m(33);
  for (size_t i = 0; i < 33; ++i) m[i] = i % 3 == 0;
  std::vector<double> out(33);
  std::vector<uint8_t> picked(33);
  const Compiled c(R"(
buffer in0 bool [33] input
buffer in1 float64 [33] input
buffer in2 float64 [33] input
buffer out0 float64 [33] output
buffer out1 bool [33] output
node op0 "where" [i0 < 33]
  v0 = load bool in0[i0]
  v1 = load float64 in1[i0]
  v2 = load float64 in2[i0]
  v3 = where float64 v0 v1 v2
  v4 = lt bool v1 v2
  v5 = where bool v0 v4 v0
  store out0[i0] v3
  store out1[i0] v5
)");
  c.run({{"in0", m.data()},
         {"in1", a.data()},
         {"in2", b.data()},
         {"out0", out.data()},
         {"out1", picked.data()}});
  for (size_t i = 0; i < 33; ++i) {
    EXPECT_EQ(out[i], m[i] ? a[i] : b[i]);
    EXPECT_EQ(picked[i], m[i] && a[i] < b[i]);
  }
}

/// Philox-4x32-10 as published, one block at a time.
void philox(uint64_t seed, uint64_t counter, uint32_t out[4]) {
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(q),
                              static_cast<uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  std::copy(c, c + 4, out);
}

TEST(Values, RandomBits) {
  uint32_t zero[4];
  philox(0, 0, zero);  // published test vector
  ASSERT_EQ(zero[0], 0x6627e8d5u);
  ASSERT_EQ(zero[3], 0x9b00dbd8u);
  std::string text =
      "scalars [int64]\nbuffer o0 int64 [21] output\nbuffer o1 int64 [21] output\nbuffer o2 int64 [21] "
      "output\nbuffer o3 int64 [21] output\n"
      "node op0 \"random\" [i0 < 21]\n  v0 = scalar int64 0\n  v1 = index_value int64 i0*3000000000\n";
  for (int w = 0; w < 4; ++w) text += fmt::format("  v{} = random_bits int64 v0 v1 number {}\n", w + 2, w);
  for (int w = 0; w < 4; ++w) text += fmt::format("  store o{}[i0] v{}\n", w, w + 2);
  const Compiled c(text);
  std::vector<std::vector<int64_t>> o(4, std::vector<int64_t>(21));
  const int64_t seed = 0x123456789abcdef;
  c.run({{"o0", o[0].data()}, {"o1", o[1].data()}, {"o2", o[2].data()}, {"o3", o[3].data()}},
        {Constant::of(seed)});
  for (size_t i = 0; i < 21; ++i) {
    uint32_t want[4];
    philox(seed, i * 3000000000u, want);
    for (int w = 0; w < 4; ++w) EXPECT_EQ(o[w][i], want[w]) << i << " word " << w;
  }
}

struct DTypeName {
  const char* name;
  int size;
};
constexpr DTypeName kTypes[] = {{"bool", 1},  {"uint8", 1}, {"int8", 1},    {"int16", 2},
                                {"int32", 4}, {"int64", 8}, {"float32", 4}, {"float64", 8}};

double read(const void* p, int type, size_t i) {
  switch (type) {
    case 0:
    case 1:
      return static_cast<const uint8_t*>(p)[i];
    case 2:
      return static_cast<const int8_t*>(p)[i];
    case 3:
      return static_cast<const int16_t*>(p)[i];
    case 4:
      return static_cast<const int32_t*>(p)[i];
    case 5:
      return static_cast<double>(static_cast<const int64_t*>(p)[i]);
    case 6:
      return static_cast<const float*>(p)[i];
    default:
      return static_cast<const double*>(p)[i];
  }
}

template <class T>
int64_t wrapped(int64_t x) {
  return static_cast<T>(x);
}

/// What a cast gives, from the rules of the table of instructions.
double cast_of(double x, bool from_float, int to) {
  if (to == 0) return x != 0;
  if (to == 6) return static_cast<float>(x);
  if (to == 7) return x;
  int64_t whole = 0;
  if (from_float) {
    const double low = to == 5 ? -9223372036854775808.0 : -2147483648.0;
    const double high = to == 5 ? 9223372036854775808.0 : 2147483647.0;
    whole = std::isnan(x) || (to < 4 && std::abs(x) >= 2147483648.0) ? 0
            : x >= high                                              ? (to == 5 ? INT64_MAX : INT32_MAX)
            : x <= low                                               ? (to == 5 ? INT64_MIN : INT32_MIN)
                                                                     : static_cast<int64_t>(x);
  } else {
    whole = static_cast<int64_t>(x);
  }
  constexpr int64_t (*wrap[])(int64_t) = {nullptr,          wrapped<uint8_t>, wrapped<int8_t>,
                                          wrapped<int16_t>, wrapped<int32_t>, wrapped<int64_t>};
  return static_cast<double>(wrap[to](whole));
}

TEST(Dtypes, Casts) {
  const std::vector<double> floats = {0,   -0.0, 1,     -1,  1.9,  -1.9, 127.5, 128, 255,      256,
                                      300, -129, 40000, 3e9, -3e9, 1e19, -1e19, NAN, INFINITY, -INFINITY};
  for (int from = 0; from < 8; ++from) {
    const bool is_float = from >= 6;
    const size_t n = floats.size();
    std::vector<char> in(n * 8);
    for (size_t i = 0; i < n; ++i) {
      const double x = is_float ? floats[i] : std::isfinite(floats[i]) ? std::fmod(floats[i], 1e9) : 77;
      const auto k = static_cast<int64_t>(is_float ? 0 : x);
      if (from == 0) reinterpret_cast<uint8_t*>(in.data())[i] = k != 0;
      if (from == 1 || from == 2) reinterpret_cast<uint8_t*>(in.data())[i] = static_cast<uint8_t>(k);
      if (from == 3) reinterpret_cast<int16_t*>(in.data())[i] = static_cast<int16_t>(k);
      if (from == 4) reinterpret_cast<int32_t*>(in.data())[i] = static_cast<int32_t>(k);
      if (from == 5) reinterpret_cast<int64_t*>(in.data())[i] = k * 5;
      if (from == 6) reinterpret_cast<float*>(in.data())[i] = static_cast<float>(x);
      if (from == 7) reinterpret_cast<double*>(in.data())[i] = x;
    }
    std::string text = fmt::format("buffer in0 {} [{}] input\n", kTypes[from].name, n), nodes;
    std::map<std::string, void*> buffers = {{"in0", in.data()}};
    std::vector<std::vector<char>> out(8, std::vector<char>(n * 8));
    for (int to = 0; to < 8; ++to) {
      if (to == from) continue;
      text += fmt::format("buffer o{} {} [{}] output\n", to, kTypes[to].name, n);
      nodes += fmt::format(
          "node op{0} \"cast\" [i0 < {1}]\n  v0 = load {2} in0[i0]\n  v1 = cast {3} v0\n  store o{0}[i0] "
          "v1\n",
          to, n, kTypes[from].name, kTypes[to].name);
      buffers[fmt::format("o{}", to)] = out[to].data();
    }
    const Compiled c(text + nodes);
    c.run(buffers);
    for (int to = 0; to < 8; ++to)
      for (size_t i = 0; to != from && i < n; ++i) {
        const double x = read(in.data(), from, i), got = read(out[to].data(), to, i),
                     want = cast_of(x, is_float, to);
        EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
            << kTypes[from].name << " " << x << " to " << kTypes[to].name << ": " << got << ", not " << want;
      }
  }
}

TEST(Dtypes, Bitcasts) {
  auto a = numbers<float>(19);
  auto d = numbers<double>(19);
  std::vector<int32_t> o0(19);
  std::vector<int64_t> o1(19);
  const Compiled c(R"(
buffer in0 float32 [19] input
buffer in1 float64 [19] input
buffer out0 int32 [19] output
buffer out1 int64 [19] output
node op0 "bits" [i0 < 19]
  v0 = load float32 in0[i0]
  v1 = bitcast int32 v0
  v2 = load float64 in1[i0]
  v3 = bitcast int64 v2
  store out0[i0] v1
  store out1[i0] v3
)");
  c.run({{"in0", a.data()}, {"in1", d.data()}, {"out0", o0.data()}, {"out1", o1.data()}});
  EXPECT_EQ(0, std::memcmp(a.data(), o0.data(), 19 * 4));
  EXPECT_EQ(0, std::memcmp(d.data(), o1.data(), 19 * 8));
}

/// Rounds to `digits` bits of mantissa, halves to even, no range limit.
float round_to(float x, int digits) {
  int e = 0;
  const float m = std::frexp(x, &e);
  return std::ldexp(std::nearbyint(std::ldexp(m, digits)), e - digits);
}

TEST(Dtypes, HalfRoundings) {
  auto a = numbers<float>(67, -100, 100);
  const Compiled c(R"(
buffer in0 float32 [67] input
buffer o0 float32 [67] output
buffer o1 float32 [67] output
buffer o2 float16 [67] output
buffer o3 bfloat16 [67] output
buffer o4 float32 [67] output
node op0 "round" [i0 < 67]
  v0 = load float32 in0[i0]
  v1 = to_float16 float32 v0
  v2 = to_bfloat16 float32 v0
  store o0[i0] v1
  store o1[i0] v2
  store o2[i0] v0
  store o3[i0] v0
node op1 "add" [i0 < 67]
  v0 = load float32 o2[i0]
  v1 = load float32 o3[i0]
  v2 = add float32 v0 v1
  store o4[i0] v2
)");
  std::vector<float> o0(67), o1(67), o4(67);
  std::vector<uint16_t> o2(67), o3(67);
  c.run({{"in0", a.data()},
         {"o0", o0.data()},
         {"o1", o1.data()},
         {"o2", o2.data()},
         {"o3", o3.data()},
         {"o4", o4.data()}});
  for (size_t i = 0; i < 67; ++i) {
    EXPECT_EQ(o0[i], round_to(a[i], 11)) << a[i];
    EXPECT_EQ(o1[i], round_to(a[i], 8)) << a[i];
    const uint32_t bits = uint32_t{o3[i]} << 16;
    float widened;
    std::memcpy(&widened, &bits, 4);
    EXPECT_EQ(widened, o1[i]);
    // Readers of a stored value see it rounded, also those in the same kernel.
    EXPECT_EQ(o4[i], o0[i] + o1[i]);
    const int exponent = (o2[i] >> 10) & 31;
    const float half =
        std::ldexp(static_cast<float>((o2[i] & 1023) | 1024), exponent - 25) * (o2[i] >> 15 ? -1.f : 1.f);
    if (exponent > 0) {
      EXPECT_EQ(half, o0[i]);
    }
  }
}

}  // namespace
}  // namespace stax::codegen

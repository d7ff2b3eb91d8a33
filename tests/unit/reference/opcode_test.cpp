// Every instruction against plain C++ in long double or 64-bit integers, at lengths around the block.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "unit/reference/run_text.h"

namespace stax::reference {
namespace {

using loops::OpCode;
using Real = long double;

const std::vector<size_t> kLengths = {0, 1, 7, 2047, 2048, 2049};
constexpr Real kInf = std::numeric_limits<Real>::infinity();

std::string unary_text(std::string_view op, size_t n, std::string_view in, std::string_view out) {
  return fmt::format(
      "buffer a {2} [{1}] input\nbuffer o {3} [{1}] output\nnode n \"t\" [i0 < {1}]\n"
      "v0 = load {2} a[i0]\nv1 = {0} {3} v0\nstore o[i0] v1\n",
      op, n, in, out);
}
std::string binary_text(std::string_view op, size_t n, std::string_view in, std::string_view out) {
  return fmt::format(
      "buffer a {2} [{1}] input\nbuffer b {2} [{1}] input\nbuffer o {3} [{1}] output\nnode n \"t\" [i0 < "
      "{1}]\n"
      "v0 = load {2} a[i0]\nv1 = load {2} b[i0]\nv2 = {0} {3} v0 v1\nstore o[i0] v2\n",
      op, n, in, out);
}

template <class T>
void expect_close(T got, Real want, Real ulps, const std::string& what) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << what << " gave " << got;
    return;
  }
  const T rounded = static_cast<T>(want);
  if (std::isinf(rounded) || rounded == 0) {
    EXPECT_EQ(got, rounded) << what;
    return;
  }
  const Real unit = std::max<Real>(std::fabs(Real(std::nextafter(rounded, T(INFINITY)) - rounded)),
                                   std::numeric_limits<T>::denorm_min());
  EXPECT_LE(std::fabs(Real(got) - want), ulps * unit) << what << " gave " << got << ", not " << double(want);
}

template <class T>
std::vector<T> cycle(std::vector<double> values, size_t n) {
  std::vector<T> out;
  for (size_t i = 0; i < n; ++i) out.push_back(static_cast<T>(values[i % values.size()]));
  return out;
}

struct Unary {
  std::string_view name;
  std::vector<double> points;
  std::function<Real(Real)> f;
  Real ulps = 1;
};

const std::vector<double> kAny = {0.0, -0.0, 1,     -1,     0.5, -0.75,    2.5,      -2.5,
                                  3.5, 1e-8, 10.25, -7.125, NAN, INFINITY, -INFINITY};
const std::vector<double> kModerate = {0.0, 1, -1, 0.5, -0.75, 2.5, 1e-8, 5.25, -4.125, NAN};
const std::vector<double> kPositive = {1, 0.5, 0.75, 2.5, 1e-8, 10.25, 100, NAN, 0.0, INFINITY};
const std::vector<double> kUnit = {0.0, 0.5, -0.75, 1e-8, 0.99, -0.125, NAN};

Real digamma_by_recurrence(Real x) {
  Real r = 0;
  if (x < 0) return digamma_by_recurrence(1 - x) - M_PIl / std::tan(M_PIl * x);
  for (; x < 60; x += 1) r -= 1 / x;
  const Real z = 1 / (x * x);
  return r + std::log(x) - 0.5L / x - z * (1 / 12.0L - z * (1 / 120.0L - z / 252));
}
Real i0_series(Real x) {
  Real term = 1, sum = 1;
  for (int k = 1; k < 400; ++k) sum += term *= x * x / 4 / (Real(k) * k);
  return sum;
}

const std::vector<Unary> kUnary = {
    {"abs", kAny, [](Real x) { return std::fabs(x); }},
    {"neg", kAny, [](Real x) { return -x; }},
    {"reciprocal", kAny, [](Real x) { return 1 / x; }},
    {"sign", kAny, [](Real x) { return Real((x > 0) - (x < 0)); }},
    {"relu", kAny, [](Real x) { return std::isnan(x) ? x
                                       : x > 0       ? x
                                                     : 0; }},
    {"sqrt", kPositive, [](Real x) { return std::sqrt(x); }},
    {"rsqrt", kPositive, [](Real x) { return 1 / std::sqrt(x); }, 2},
    {"exp", kAny, [](Real x) { return std::exp(x); }},
    {"exp2", kAny, [](Real x) { return std::exp2(x); }},
    {"expm1", kAny, [](Real x) { return std::expm1(x); }},
    {"log", kPositive, [](Real x) { return std::log(x); }},
    {"log2", kPositive, [](Real x) { return std::log2(x); }},
    {"log10", kPositive, [](Real x) { return std::log10(x); }, 2},
    {"log1p", kUnit, [](Real x) { return std::log1p(x); }},
    {"sin", kModerate, [](Real x) { return std::sin(x); }},
    {"cos", kModerate, [](Real x) { return std::cos(x); }},
    {"tan", kModerate, [](Real x) { return std::tan(x); }},
    {"asin", kUnit, [](Real x) { return std::asin(x); }},
    {"acos", kUnit, [](Real x) { return std::acos(x); }},
    {"atan", kAny, [](Real x) { return std::atan(x); }},
    {"sinh", kModerate, [](Real x) { return std::sinh(x); }, 2},
    {"cosh", kModerate, [](Real x) { return std::cosh(x); }, 2},
    {"tanh", kAny, [](Real x) { return std::tanh(x); }, 2},
    {"asinh", kModerate, [](Real x) { return std::asinh(x); }, 2},
    {"acosh", {1, 1.5, 2.5, 100, NAN}, [](Real x) { return std::acosh(x); }, 2},
    {"atanh", kUnit, [](Real x) { return std::atanh(x); }, 2},
    {"sigmoid", kAny, [](Real x) { return 1 / (1 + std::exp(-x)); }, 2},
    {"erf", kAny, [](Real x) { return std::erf(x); }},
    {"erfc", kModerate, [](Real x) { return std::erfc(x); }, 3},
    {"lgamma", {0.5, 1, 2, 2.5, 10.25, -0.5, -2.25, 1e-8, NAN}, [](Real x) { return std::lgamma(x); }, 4},
    {"digamma",
     {0.5, 1, 2, 2.5, 10.25, -0.25, 100, NAN, -1.00390625, -2.9962890625},
     digamma_by_recurrence,
     16},
    {"i0", {0.0, 1, -1, 5.5, 29, 31, 80, NAN}, i0_series, 8},
    {"floor", kAny, [](Real x) { return std::floor(x); }},
    {"ceil", kAny, [](Real x) { return std::ceil(x); }},
    {"trunc", kAny, [](Real x) { return std::trunc(x); }},
    {"round", kAny, [](Real x) { return std::nearbyint(x); }},
};

struct Binary {
  std::string_view name;
  std::function<Real(Real, Real)> f;
  Real ulps = 1;
};

Real floor_quotient(Real a, Real b) {
  const Real r = std::fmod(a, b);
  Real q = std::nearbyint((a - r) / b);
  return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}
const std::vector<Binary> kBinary = {
    {"add", [](Real x, Real y) { return x + y; }},
    {"sub", [](Real x, Real y) { return x - y; }},
    {"mul", [](Real x, Real y) { return x * y; }},
    {"div", [](Real x, Real y) { return x / y; }},
    {"div_relaxed", [](Real x, Real y) { return x / y; }},
    {"floor_div", floor_quotient},
    {"trunc_div", [](Real x, Real y) { return std::nearbyint((x - std::fmod(x, y)) / y); }},
    {"fmod", [](Real x, Real y) { return std::fmod(x, y); }},
    {"remainder",
     [](Real x, Real y) {
       const Real r = std::fmod(x, y);
       return r != 0 && (r < 0) != (y < 0) ? r + y : r;
     }},
    {"maximum", [](Real x, Real y) { return std::isnan(x)   ? x
                                            : std::isnan(y) ? y
                                                            : std::max(x, y); }},
    {"minimum", [](Real x, Real y) { return std::isnan(x)   ? x
                                            : std::isnan(y) ? y
                                                            : std::min(x, y); }},
    {"fmax", [](Real x, Real y) { return std::fmax(x, y); }},
    {"fmin", [](Real x, Real y) { return std::fmin(x, y); }},
    {"pow", [](Real x, Real y) { return std::pow(x, y); }, 1},
    {"atan2", [](Real x, Real y) { return std::atan2(x, y); }},
    {"hypot", [](Real x, Real y) { return std::hypot(x, y); }},
    {"copysign", [](Real x, Real y) { return std::copysign(x, y); }},
};

template <class T>
void check_unary(std::string_view dtype) {
  for (const Unary& u : kUnary) {
    for (size_t n : kLengths) {
      const auto x = cycle<T>(u.points, n);
      const auto y = run_one<T>(unary_text(u.name, n, dtype, dtype), {Data::of(x)}, n);
      for (size_t i = 0; i < std::min<size_t>(n, 20); ++i) {
        expect_close(y[i], u.f(x[i]), u.ulps, fmt::format("{}({}) {}", u.name, double(x[i]), dtype));
      }
      if (n > 20) expect_close(y[n - 1], u.f(x[n - 1]), u.ulps, fmt::format("{} at the end", u.name));
    }
  }
}
TEST(Opcodes, UnaryFloat32) {
  check_unary<float>("float32");
}
TEST(Opcodes, UnaryFloat64) {
  check_unary<double>("float64");
}

template <class T>
void check_binary(std::string_view dtype) {
  std::vector<T> x, y;
  for (double a : {1.5, -1.5, 7.0, -7.25, 0.0, 100.125}) {
    for (double b : {2.0, -2.0, 0.75, 3.0, -0.3}) x.push_back(T(a)), y.push_back(T(b));
  }
  for (const Binary& op : kBinary) {
    const auto z =
        run_one<T>(binary_text(op.name, x.size(), dtype, dtype), {Data::of(x), Data::of(y)}, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      expect_close(z[i], op.f(x[i], y[i]), op.ulps,
                   fmt::format("{}({}, {}) {}", op.name, double(x[i]), double(y[i]), dtype));
    }
  }
}
TEST(Opcodes, BinaryFloat32) {
  check_binary<float>("float32");
}
TEST(Opcodes, BinaryFloat64) {
  check_binary<double>("float64");
}

TEST(Opcodes, NaNWinsOnEitherSide) {
  const float nan = NAN;
  for (size_t n : {size_t{4}, size_t{37}}) {
    const auto p = cycle<float>({NAN, -2, 0.5, 3}, n), q = cycle<float>({1, NAN, 0.25, NAN}, n);
    const auto hi =
        run_one<float>(binary_text("maximum", n, "float32", "float32"), {Data::of(p), Data::of(q)}, n);
    const auto fm =
        run_one<float>(binary_text("fmax", n, "float32", "float32"), {Data::of(p), Data::of(q)}, n);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(std::isnan(hi[i]), i % 4 != 2);
      EXPECT_EQ(fm[i], std::vector<float>({1, -2, 0.5, 3})[i % 4]);
    }
  }
  EXPECT_TRUE(std::isnan(nan));
}

TEST(Opcodes, FloorDivisionIsExact) {
  const std::vector<double> num = {2.0, 0.9, -2.0, 0.7, 3.0}, den = {0.1, 0.3, 0.1, 0.1, 0.2};
  EXPECT_EQ(
      run_one<double>(binary_text("floor_div", 5, "float64", "float64"), {Data::of(num), Data::of(den)}, 5),
      (std::vector<double>{19, 3, -20, 6, 14}));
  const auto fnum = cycle<float>(num, 5), fden = cycle<float>(den, 5);
  EXPECT_EQ(
      run_one<float>(binary_text("floor_div", 5, "float32", "float32"), {Data::of(fnum), Data::of(fden)}, 5),
      (std::vector<float>{19, 2, -20, 6, 14}));
}

TEST(Opcodes, RemaindersOfHugeQuotientsAreExact) {
  const std::vector<float> big = {0x1p30f, -0x1p30f, 1e8f}, small = {3, 3, 0.3f};
  const auto f =
      run_one<float>(binary_text("fmod", 3, "float32", "float32"), {Data::of(big), Data::of(small)}, 3);
  const auto r =
      run_one<float>(binary_text("remainder", 3, "float32", "float32"), {Data::of(big), Data::of(small)}, 3);
  EXPECT_EQ(f[0], 1);
  EXPECT_EQ(f[1], -1);
  EXPECT_EQ(r[1], 2);
  EXPECT_FLOAT_EQ(f[2], 0.026357174f);
  EXPECT_FLOAT_EQ(r[2], 0.026357174f);
}

/// Values and what a wide reference says, wrapped to the type.
template <class T>
void check_integers(std::string_view dtype) {
  using Wide = __int128;
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  std::vector<T> x, y;
  for (T a : {low, high, T(0), T(1), T(7), T(-7), T(5)}) {
    for (T b : {low, high, T(0), T(1), T(2), T(-2), T(-1)}) x.push_back(a), y.push_back(b);
  }
  const auto floor_div = [](Wide a, Wide b) {
    return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
  };
  const std::pair<std::string_view, std::function<Wide(Wide, Wide)>> ops[] = {
      {"add", [](Wide a, Wide b) { return a + b; }},
      {"sub", [](Wide a, Wide b) { return a - b; }},
      {"mul", [](Wide a, Wide b) { return a * b; }},
      {"div", floor_div},
      {"floor_div", floor_div},
      {"trunc_div", [](Wide a, Wide b) { return b == 0 ? 0 : a / b; }},
      {"remainder", [&](Wide a, Wide b) { return a - floor_div(a, b) * b; }},
      {"fmod", [](Wide a, Wide b) { return b == 0 ? a : a % b; }},
      {"maximum", [](Wide a, Wide b) { return std::max(a, b); }},
      {"minimum", [](Wide a, Wide b) { return std::min(a, b); }},
      {"bitwise_and", [](Wide a, Wide b) { return a & b; }},
      {"bitwise_or", [](Wide a, Wide b) { return a | b; }},
      {"bitwise_xor", [](Wide a, Wide b) { return a ^ b; }},
      {"shift_left", [](Wide a, Wide b) { return b < 0 || b >= Wide(8 * sizeof(T)) ? 0 : a << int(b); }},
      {"shift_right", [](Wide a, Wide b) { return a >> int(b < 0 || b >= 64 ? 64 : b); }},
      {"gcd",
       [](Wide a, Wide b) {
         const auto magnitude = [](Wide v) { return Wide(static_cast<T>(v < 0 ? -v : v)); };
         a = magnitude(a), b = magnitude(b);
         while (a != 0) b = std::exchange(a, b % a);
         return b;
       }},
  };
  for (const auto& [name, f] : ops) {
    const auto z =
        run_one<T>(binary_text(name, x.size(), dtype, dtype), {Data::of(x), Data::of(y)}, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(+z[i], +static_cast<T>(f(x[i], y[i])))
          << name << " " << +x[i] << " " << +y[i] << " " << dtype;
    }
  }
  const std::pair<std::string_view, std::function<Wide(Wide)>> unary[] = {
      {"neg", [](Wide a) { return -a; }},
      {"abs", [](Wide a) { return a < 0 ? -a : a; }},
      {"bitwise_not", [](Wide a) { return ~a; }},
      {"sign", [](Wide a) { return Wide((a > 0) - (a < 0)); }},
      {"relu", [](Wide a) { return a < 0 ? 0 : a; }},
      {"floor", [](Wide a) { return a; }}};
  for (const auto& [name, f] : unary) {
    const auto z = run_one<T>(unary_text(name, x.size(), dtype, dtype), {Data::of(x)}, x.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(+z[i], +static_cast<T>(f(x[i]))) << name << " " << +x[i];
  }
}
TEST(Opcodes, Integers) {
  check_integers<uint8_t>("uint8");
  check_integers<int8_t>("int8");
  check_integers<int16_t>("int16");
  check_integers<int32_t>("int32");
  check_integers<int64_t>("int64");
}

TEST(Opcodes, IntegerPowers) {
  const std::vector<int32_t> x = {3, -2, 2, 1, -1, -1, 0}, y = {4, 3, 32, -5, -3, -2, 0};
  EXPECT_EQ(run_one<int32_t>(binary_text("pow", 7, "int32", "int32"), {Data::of(x), Data::of(y)}, 7),
            (std::vector<int32_t>{81, -8, 0, 1, -1, 1, 1}));
}

TEST(Opcodes, ComparisonsAndPredicates) {
  const std::vector<float> x = {1, 2, 2, NAN, -0.0f, INFINITY}, y = {2, 2, 1, 1, 0.0f, INFINITY};
  using B = std::vector<uint8_t>;
  const auto compare = [&](std::string_view op) {
    return run_one<uint8_t>(binary_text(op, 6, "float32", "bool"), {Data::of(x), Data::of(y)}, 6);
  };
  EXPECT_EQ(compare("eq"), (B{0, 1, 0, 0, 1, 1}));
  EXPECT_EQ(compare("ne"), (B{1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(compare("lt"), (B{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(compare("le"), (B{1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(compare("gt"), (B{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(compare("ge"), (B{0, 1, 1, 0, 1, 1}));
  const auto test = [&](std::string_view op) {
    return run_one<uint8_t>(unary_text(op, 6, "float32", "bool"), {Data::of(x)}, 6);
  };
  EXPECT_EQ(test("isnan"), (B{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(test("isinf"), (B{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(test("logical_not"), (B{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(test("signbit")[4], 1);
}

TEST(Opcodes, InverseErf) {
  const std::vector<double> y = {0, 1e-10, 0.1, -0.5, 0.9, 0.999999, -0.99999999999};
  const auto x =
      run_one<double>(unary_text("erfinv", y.size(), "float64", "float64"), {Data::of(y)}, y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const Real back =
        std::fabs(y[i]) > 0.5 ? 1 - std::erfc(std::fabs(Real(x[i]))) : std::erf(std::fabs(Real(x[i])));
    EXPECT_NEAR(double(back), std::fabs(y[i]), 1e-15 * std::fabs(y[i])) << y[i];
  }
  const std::vector<double> edge = {1, -1, 1.5, NAN};
  const auto e = run_one<double>(unary_text("erfinv", 4, "float64", "float64"), {Data::of(edge)}, 4);
  EXPECT_EQ(e[0], INFINITY);
  EXPECT_EQ(e[1], -INFINITY);
  EXPECT_TRUE(std::isnan(e[2]) && std::isnan(e[3]));
}

TEST(Opcodes, BesselFunctionOfInfinity) {
  const std::vector<double> x = {INFINITY, -INFINITY};  // NaN, as NumPy, SciPy and PyTorch have it
  for (const double got : run_one<double>(unary_text("i0", 2, "float64", "float64"), {Data::of(x)}, 2))
    EXPECT_TRUE(std::isnan(got)) << got;
}

TEST(Opcodes, NextAfterWhereFma) {
  const std::vector<float> x = {1, 0, -1}, y = {2, -1, -1};
  const auto z =
      run_one<float>(binary_text("nextafter", 3, "float32", "float32"), {Data::of(x), Data::of(y)}, 3);
  EXPECT_EQ(z[0], 1 + 0x1p-23f);
  EXPECT_EQ(z[1], -0x1p-149f);
  EXPECT_EQ(z[2], -1);
  const std::string three =
      "buffer a float32 [3] input\nbuffer b float32 [3] input\nbuffer o float32 [3] output\n"
      "node n \"t\" [i0 < 3]\nv0 = load float32 a[i0]\nv1 = load float32 b[i0]\nv2 = lt bool v0 v1\n"
      "v3 = constant float32 9.0\n";
  EXPECT_EQ(
      run_one<float>(three + "v4 = where float32 v2 v0 v3\nstore o[i0] v4", {Data::of(x), Data::of(y)}, 3),
      (std::vector<float>{1, 9, 9}));
  // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24; only a fused operation keeps the last term.
  const std::vector<float> s = {1 + 0x1p-12f, 2, 3}, t = {-1 - 0x1p-11f, 1, 1};
  const auto f =
      run_one<float>(three + "v4 = fma float32 v0 v0 v1\nstore o[i0] v4", {Data::of(s), Data::of(t)}, 3);
  EXPECT_EQ(f, (std::vector<float>{0x1p-24f, 5, 10}));
}

TEST(Opcodes, Casts) {
  for (size_t n : {size_t{4}, size_t{40}}) {
    const auto x = cycle<float>({-1.7, 0.5, 255.9, 300.0}, n),
               w = cycle<float>({NAN, INFINITY, 3e9, -3e9}, n);
    const auto y = run_one<uint8_t>(unary_text("cast", n, "float32", "uint8"), {Data::of(x)}, n);
    const auto z = run_one<int32_t>(unary_text("cast", n, "float32", "int32"), {Data::of(w)}, n);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(y[i], (std::vector<int>{255, 0, 255, 44})[i % 4]);
      EXPECT_EQ(z[i], (std::vector<int32_t>{0, INT32_MAX, INT32_MAX, INT32_MIN})[i % 4]);
    }
  }
  const std::vector<double> d = {1e300, -1e300, NAN, -2147483648.5, 0.1};
  EXPECT_EQ(run_one<int64_t>(unary_text("cast", 5, "float64", "int64"), {Data::of(d)}, 5),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, -2147483648, 0}));
  EXPECT_EQ(run_one<uint8_t>(unary_text("cast", 5, "float64", "bool"), {Data::of(d)}, 5),
            (std::vector<uint8_t>{1, 1, 1, 1, 1}));
  const std::vector<float> one = {1.0f};
  EXPECT_EQ(run_one<int32_t>(unary_text("bitcast", 1, "float32", "int32"), {Data::of(one)}, 1)[0],
            0x3f800000);
}

TEST(Opcodes, HalfTypesWidenAndRound) {
  std::vector<uint16_t> all;
  for (int i = 0; i < 65536; ++i) all.push_back(static_cast<uint16_t>(i));
  const auto text = [](std::string_view half) {
    return fmt::format(
        "buffer a {0} [65536] input\nbuffer o float32 [65536] output\nbuffer p {0} [65536] output\n"
        "node n \"t\" [i0 < 65536]\nv0 = load float32 a[i0]\nstore o[i0] v0\nstore p[i0] v0\n",
        half);
  };
  std::vector<Data> in = {Data::of(all)};
  const auto f16 = run_text(text("float16"), in, 65536 * 4);
  const auto bf16 = run_text(text("bfloat16"), in, 65536 * 4);
  const auto f = f16[0].as<float>(65536), b = bf16[0].as<float>(65536);
  for (int i = 0; i < 65536; ++i) {
    const int exponent = (i >> 10) & 31, mantissa = i & 1023;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(f[i]));
    } else {
      const double m = exponent == 31  ? INFINITY
                       : exponent == 0 ? std::ldexp(mantissa, -24)
                                       : std::ldexp(1024 + mantissa, exponent - 25);
      ASSERT_EQ(f[i], float(i >> 15 ? -m : m)) << i;
      ASSERT_EQ(f16[1].as<uint16_t>(65536)[i], i) << i;
      if (i % 257 != 0) i += 3;
    }
  }
  EXPECT_EQ(b[0x3f80], 1.0f);
  // Ties go to even; the largest finite value's neighbour rounds to infinity; subnormals keep their grid.
  const std::vector<float> x = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65519.0f, 65520.0f,
                                0x1p-25f,     0x1.8p-24f,       NAN};
  const auto h = run_one<float>(unary_text("to_float16", 7, "float32", "float32"), {Data::of(x)}, 7);
  EXPECT_EQ(h[0], 1);
  EXPECT_EQ(h[1], 1 + 0x1p-9f);
  EXPECT_EQ(h[2], 65504);
  EXPECT_EQ(h[3], INFINITY);
  EXPECT_EQ(h[4], 0);
  EXPECT_EQ(h[5], 0x1p-23f);
  EXPECT_TRUE(std::isnan(h[6]));
  const std::vector<float> y = {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 3.4e38f};
  const auto r = run_one<float>(unary_text("to_bfloat16", 3, "float32", "float32"), {Data::of(y)}, 3);
  EXPECT_EQ(r[0], 1);
  EXPECT_EQ(r[1], 1 + 0x1p-6f);
  EXPECT_EQ(r[2], INFINITY);
}

TEST(Opcodes, RandomBitsArePhilox) {
  // The published vectors of Philox-4x32-10: zero key and counter, and all ones.
  const auto text = [](int word) {
    return fmt::format(
        "buffer s int64 [1] input\nbuffer c int64 [2] input\nbuffer o int64 [2] output\nnode n \"t\" [i0 < "
        "2]\n"
        "v0 = load int64 s[0]\nv1 = load int64 c[i0]\nv2 = random_bits int64 v0 v1 number {}\nstore o[i0] "
        "v2\n",
        word);
  };
  const std::vector<int64_t> zero = {0}, counters = {0, 1};
  const int64_t want[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int word = 0; word < 4; ++word) {
    const auto got = run_one<int64_t>(text(word), {Data::of(zero), Data::of(counters)}, 2);
    EXPECT_EQ(got[0], want[word]);
    EXPECT_NE(got[1], got[0]);
  }
}

/// Fails for an instruction that no test of this folder computes.
TEST(Opcodes, EveryInstructionHasANumericTest) {
  std::set<std::string_view> tested = {
      "load", "constant", "index_value", "scalar", "store", "where", "fma", "cast", "bitcast", "erfinv",
      "isnan", "isinf", "signbit", "logical_not", "bitwise_not", "to_float16", "to_bfloat16", "nextafter",
      "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left",
      "shift_right", "gcd", "random_bits",
      // access_test.cpp
      "check_index", "atomic_add",
      // reduction_test.cpp
      "result", "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all",
      "reduce_xor", "reduce_argmax", "reduce_argmin", "reduce_welford", "reduce_welford_combine",
      "reduce_softmax", "scan_sum", "scan_prod", "scan_max", "scan_min", "scan_logaddexp", "scan_sort"};
  for (const Unary& u : kUnary) tested.insert(u.name);
  for (const Binary& b : kBinary) tested.insert(b.name);
  for (int i = 0; i < loops::kOpCount; ++i) {
    EXPECT_TRUE(tested.count(loops::info(static_cast<OpCode>(i)).name))
        << loops::info(static_cast<OpCode>(i)).name;
  }
}

}  // namespace
}  // namespace stax::reference

// Every instruction, on every dtype that has it, against scalar code: the standard library in double (long
// double for float64), integers by hand. The last test fails for an instruction that no test names.
#include "loops/opcode.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "unit/codegen/compiled.h"

namespace stax::codegen {
namespace {

using loops::info;
using loops::OpCode;
using loops::OpKind;
using Real = long double;

struct FloatRow {
  OpCode op;
  int arity;
  double ulp;  // allowed error, of float32
  std::function<Real(Real, Real, Real)> value;
};

Real digamma(Real x) {
  if (std::isnan(x) || x == -INFINITY) return NAN;
  if (x == 0) return std::signbit(x) ? INFINITY : -INFINITY;
  if (x < 0 && x == std::floor(x)) return NAN;
  if (x < 0) return digamma(1 - x) - M_PIl / std::tan(M_PIl * (x - std::floor(x)));
  Real sum = 0;
  for (; x < 40; ++x) sum -= 1 / x;
  const Real y = 1 / (x * x);
  return sum + std::log(x) - 0.5L / x -
         y * (1 / 12.L - y * (1 / 120.L - y * (1 / 252.L - y * (1 / 240.L - y / 132.L))));
}

Real erfinv(Real y) {
  if (std::isnan(y) || std::fabs(y) > 1) return NAN;
  if (std::fabs(y) == 1) return y * INFINITY;
  if (y < 0) return -erfinv(-y);
  Real x = 0;
  for (int k = 0; k < 200; ++k) {
    const Real error = y > 0.5L ? std::erfc(x) - (1 - y) : y - std::erf(x);
    x += error * std::sqrt(M_PIl) / 2 * std::exp(x * x) * 0.7L;
  }
  return x;
}

Real sign(Real x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}
Real pick(Real a, Real b, bool larger) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return (a > b) == larger ? a : b;
}
Real remainder_of(Real a, Real b) {
  Real r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define ROW1(op, ulp, expr)                                             \
  {                                                                     \
    OpCode::op, 1, ulp, [](Real a, Real, Real) -> Real { return expr; } \
  }
#define ROW2(op, ulp, expr)                                               \
  {                                                                       \
    OpCode::op, 2, ulp, [](Real a, Real b, Real) -> Real { return expr; } \
  }

/// Instructions on floats. Arguments out of range are covered by the special values among the inputs.
const std::vector<FloatRow>& float_rows() {
  static const std::vector<FloatRow> rows = {
      ROW1(abs, 0, std::fabs(a)),
      ROW1(neg, 0, -a),
      ROW1(reciprocal, 0.51, 1 / a),
      ROW1(sign, 0, sign(a)),
      ROW1(relu, 0, std::isnan(a) ? a : std::max<Real>(a, 0)),
      ROW1(sqrt, 0.51, std::sqrt(a)),
      ROW1(rsqrt, 2, 1 / std::sqrt(a)),
      ROW1(exp, 2, std::exp(a)),
      ROW1(exp2, 2, std::exp2(a)),
      ROW1(expm1, 4, std::expm1(a)),
      ROW1(log, 2, std::log(a)),
      ROW1(log2, 4, std::log2(a)),
      ROW1(log10, 4, std::log10(a)),
      ROW1(log1p, 4, std::log1p(a)),
      ROW1(sin, 4, std::sin(a)),
      ROW1(cos, 4, std::cos(a)),
      ROW1(tan, 6, std::tan(a)),
      ROW1(asin, 4, std::asin(a)),
      ROW1(acos, 4, std::acos(a)),
      ROW1(atan, 4, std::atan(a)),
      ROW1(sinh, 4, std::sinh(a)),
      ROW1(cosh, 4, std::cosh(a)),
      ROW1(tanh, 4, std::tanh(a)),
      ROW1(asinh, 4, std::asinh(a)),
      ROW1(acosh, 4, std::acosh(a)),
      ROW1(atanh, 4, std::atanh(a)),
      ROW1(sigmoid, 4, 1 / (1 + std::exp(-a))),
      ROW1(erf, 4, std::erf(a)),
      ROW1(erfc, 16, std::erfc(a)),
      ROW1(erfinv, 16, erfinv(a)),
      ROW1(i0, 4,
           std::isnan(a)   ? a
           : std::isinf(a) ? Real(NAN)
                           : std::cyl_bessel_i(0.0L, std::fabs(a))),
      ROW1(floor, 0, std::floor(a)),
      ROW1(ceil, 0, std::ceil(a)),
      ROW1(trunc, 0, std::trunc(a)),
      ROW1(round, 0, std::nearbyint(a)),
      ROW1(isnan, 0, std::isnan(a)),
      ROW1(isinf, 0, std::isinf(a)),
      ROW1(signbit, 0, std::signbit(a)),
      ROW1(logical_not, 0, a == 0),
      ROW2(add, 0.51, a + b),
      ROW2(sub, 0.51, a - b),
      ROW2(mul, 0.51, a * b),
      ROW2(div, 0.51, a / b),
      ROW2(div_relaxed, 2, a / b),
      ROW2(remainder, 0.51, remainder_of(a, b)),
      ROW2(fmod, 0.51, std::fmod(a, b)),
      ROW2(maximum, 0, pick(a, b, true)),
      ROW2(minimum, 0, pick(a, b, false)),
      ROW2(fmax, 0, std::fmax(a, b)),
      ROW2(fmin, 0, std::fmin(a, b)),
      ROW2(pow, 4, std::pow(a, b)),
      ROW2(atan2, 4, std::atan2(a, b)),
      ROW2(hypot, 4, std::hypot(a, b)),
      ROW2(copysign, 0, std::copysign(a, b)),
      ROW2(eq, 0, a == b),
      ROW2(ne, 0, a != b),
      ROW2(lt, 0, a < b),
      ROW2(le, 0, a <= b),
      ROW2(gt, 0, a > b),
      ROW2(ge, 0, a >= b),
  };
  return rows;
}

bool gives_bool(OpCode op) {
  return (op >= OpCode::eq && op <= OpCode::ge) || (op >= OpCode::isnan && op <= OpCode::logical_not);
}

template <class T>
double opcode_ulps(T got, Real want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) == std::isnan(rounded) ? 0 : INFINITY;
  if (got == rounded) return 0;
  if (std::isinf(got) || std::isinf(rounded)) return INFINITY;
  // Below the smallest normal number results may be flushed.
  const Real least = std::numeric_limits<T>::min();
  if (std::fabs(static_cast<Real>(got)) <= least && std::fabs(want) <= least) return 0;
  int exponent = 0;
  std::frexp(static_cast<T>(std::max(std::fabs(want), least)), &exponent);
  const Real unit = std::ldexp(static_cast<Real>(1), exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<Real>(got) - want) / unit);
}

template <class T>
std::vector<T> interesting() {
  std::vector<T> v = {0.0, -0.0, 1,    -1,    0.5,   -0.5,  0.75,     1.5,       2.5, -2.5,
                      3,   -7,   1e-6, 20.25, -33.3, 100.7, INFINITY, -INFINITY, NAN, 0.999};
  for (T x : numbers<T>(41, -6, 6)) v.push_back(x);
  return v;
}

template <class T>
void check_floats(const char* dtype, double scale) {
  const std::vector<T> values = interesting<T>();
  std::vector<T> a, b;
  for (T x : values)
    for (T y : values) a.push_back(x), b.push_back(y);
  const size_t n = a.size();
  std::string text = fmt::format("buffer in0 {0} [{1}] input\nbuffer in1 {0} [{1}] input\n", dtype, n), nodes;
  for (const FloatRow& row : float_rows()) {
    const auto op = info(row.op).name;
    const char* result = gives_bool(row.op) ? "bool" : dtype;
    text += fmt::format("buffer {} {} [{}] output\n", op, result, n);
    nodes += fmt::format("node {0} \"{0}\" [i0 < {1}]\n  v0 = load {2} in0[i0]\n", op, n, dtype);
    if (row.arity == 2) nodes += fmt::format("  v1 = load {} in1[i0]\n", dtype);
    nodes += fmt::format("  v{0} = {1} {2} v0{3}\n  store {1}[i0] v{0}\n", row.arity, op, result,
                         row.arity == 2 ? " v1" : "");
  }
  const Compiled c(text + nodes);
  std::vector<std::vector<T>> out(float_rows().size(), std::vector<T>(n));
  std::map<std::string, void*> buffers = {{"in0", a.data()}, {"in1", b.data()}};
  for (size_t k = 0; k < out.size(); ++k) buffers[std::string(info(float_rows()[k].op).name)] = out[k].data();
  c.run(buffers);
  for (size_t k = 0; k < out.size(); ++k) {
    const FloatRow& row = float_rows()[k];
    int failures = 0;
    for (size_t i = 0; i < n && failures < 3; ++i) {
      const Real want = row.value(a[i], b[i], 0);
      const bool predicate = gives_bool(row.op);
      const T got =
          predicate ? static_cast<T>(reinterpret_cast<const uint8_t*>(out[k].data())[i]) : out[k][i];
      const double error = opcode_ulps<T>(got, want);
      if (error <= (predicate ? 0 : std::max(row.ulp > 1 ? row.ulp * scale : row.ulp, 0.0))) continue;
      ++failures;
      ADD_FAILURE() << info(row.op).name << "(" << a[i] << ", " << b[i] << ") = " << got << ", not "
                    << static_cast<double>(want) << ": " << error << " ulp of " << dtype;
    }
  }
}

TEST(Opcode, Float32) {
  check_floats<float>("float32", 1);
}
TEST(Opcode, Float64) {
  check_floats<double>("float64", 4);
}

struct IntRow {
  OpCode op;
  int arity;
  std::function<int64_t(int64_t, int64_t, int bits, bool is_signed)> value;  // wrapped by the caller
};

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

#define INT(op, arity, expr)                                                           \
  {                                                                                    \
    OpCode::op, arity, [](int64_t a, int64_t b, int bits, bool is_signed) -> int64_t { \
      (void)b, (void)bits, (void)is_signed;                                            \
      return expr;                                                                     \
    }                                                                                  \
  }

const std::vector<IntRow>& int_rows() {
  static const std::vector<IntRow> rows = {
      INT(abs, 1, a < 0 ? minus(0, a) : a),
      INT(neg, 1, minus(0, a)),
      INT(sign, 1, (a > 0) - (a < 0)),
      INT(relu, 1, a > 0 ? a : 0),
      INT(logical_not, 1, a == 0),
      INT(bitwise_not, 1, ~a),
      INT(add, 2, minus(a, minus(0, b))),
      INT(sub, 2, minus(a, b)),
      INT(mul, 2, times(a, b)),
      INT(floor_div, 2, floor_quotient(a, b)),
      INT(trunc_div, 2,
          b == 0    ? 0
          : b == -1 ? minus(0, a)
                    : a / b),
      INT(remainder, 2, b == 0 ? a : minus(a, times(floor_quotient(a, b), b))),
      INT(fmod, 2,
          b == 0    ? a
          : b == -1 ? 0
                    : a % b),
      INT(maximum, 2, std::max(a, b)),
      INT(minimum, 2, std::min(a, b)),
      INT(fmax, 2, std::max(a, b)),
      INT(fmin, 2, std::min(a, b)),
      INT(eq, 2, a == b),
      INT(ne, 2, a != b),
      INT(lt, 2, a < b),
      INT(le, 2, a <= b),
      INT(gt, 2, a > b),
      INT(ge, 2, a >= b),
      INT(bitwise_and, 2, a & b),
      INT(bitwise_or, 2, a | b),
      INT(bitwise_xor, 2, a ^ b),
      INT(shift_left, 2, b < 0 || b >= bits ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b)),
      INT(shift_right, 2, b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b),
  };
  return rows;
}

template <class T>
void check_integers(const char* dtype) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           1,
                           2,
                           3,
                           7,
                           8,
                           31,
                           63,
                           100,
                           Limits::max(),
                           Limits::min(),
                           static_cast<T>(-1),
                           static_cast<T>(-2),
                           static_cast<T>(-7),
                           static_cast<T>(-100),
                           static_cast<T>(Limits::min() + 1)};
  std::vector<T> a, b;
  for (T x : values)
    for (T y : values) a.push_back(x), b.push_back(y);
  a.push_back(5), b.push_back(3);
  const size_t n = a.size();
  std::string text = fmt::format("buffer in0 {0} [{1}] input\nbuffer in1 {0} [{1}] input\n", dtype, n), nodes;
  for (const IntRow& row : int_rows()) {
    const auto op = info(row.op).name;
    const char* result = gives_bool(row.op) ? "bool" : dtype;
    text += fmt::format("buffer {} {} [{}] output\n", op, result, n);
    nodes += fmt::format("node {0} \"{0}\" [i0 < {1}]\n  v0 = load {2} in0[i0]\n", op, n, dtype);
    if (row.arity == 2) nodes += fmt::format("  v1 = load {} in1[i0]\n", dtype);
    nodes += fmt::format("  v{0} = {1} {2} v0{3}\n  store {1}[i0] v{0}\n", row.arity, op, result,
                         row.arity == 2 ? " v1" : "");
  }
  const Compiled c(text + nodes);
  std::vector<std::vector<T>> out(int_rows().size(), std::vector<T>(n));
  std::map<std::string, void*> buffers = {{"in0", a.data()}, {"in1", b.data()}};
  for (size_t k = 0; k < out.size(); ++k) buffers[std::string(info(int_rows()[k].op).name)] = out[k].data();
  c.run(buffers);
  for (size_t k = 0; k < out.size(); ++k) {
    const IntRow& row = int_rows()[k];
    for (size_t i = 0; i < n; ++i) {
      const int64_t want = row.value(a[i], b[i], sizeof(T) * 8, std::is_signed_v<T>);
      const bool predicate = gives_bool(row.op);
      const int64_t got = predicate ? reinterpret_cast<const uint8_t*>(out[k].data())[i] : out[k][i];
      ASSERT_EQ(got, static_cast<T>(want))
          << info(row.op).name << "(" << +a[i] << ", " << +b[i] << ") of " << dtype;
    }
  }
}

TEST(Opcode, Uint8) {
  check_integers<uint8_t>("uint8");
}
TEST(Opcode, Int8) {
  check_integers<int8_t>("int8");
}
TEST(Opcode, Int16) {
  check_integers<int16_t>("int16");
}
TEST(Opcode, Int32) {
  check_integers<int32_t>("int32");
}
TEST(Opcode, Int64) {
  check_integers<int64_t>("int64");
}

TEST(Opcode, Bool) {
  std::vector<uint8_t> a, b;
  for (int k = 0; k < 37; ++k) a.push_back(k % 2), b.push_back(k / 2 % 2);
  const std::vector<std::pair<const char*, std::function<bool(bool, bool)>>> rows = {
      {"bitwise_and", [](bool x, bool y) { return x && y; }},
      {"bitwise_or", [](bool x, bool y) { return x || y; }},
      {"bitwise_xor", [](bool x, bool y) { return x != y; }},
      {"eq", [](bool x, bool y) { return x == y; }},
      {"ne", [](bool x, bool y) { return x != y; }},
      {"lt", [](bool x, bool y) { return x < y; }},
      {"le", [](bool x, bool y) { return x <= y; }},
      {"gt", [](bool x, bool y) { return x > y; }},
      {"ge", [](bool x, bool y) { return x >= y; }},
      {"maximum", [](bool x, bool y) { return x || y; }},
      {"minimum", [](bool x, bool y) { return x && y; }},
      {"logical_not", [](bool x, bool) { return !x; }},
      {"bitwise_not", [](bool x, bool) { return !x; }}};
  std::string text = "buffer in0 bool [37] input\nbuffer in1 bool [37] input\n", nodes;
  for (const auto& [op, f] : rows) {
    const bool unary = std::string_view(op).ends_with("_not");
    text += fmt::format("buffer {} bool [37] output\n", op);
    nodes += fmt::format(
        "node {0} \"{0}\" [i0 < 37]\n  v0 = load bool in0[i0]\n  v1 = load bool in1[i0]\n"
        "  v2 = {0} bool v0{1}\n  store {0}[i0] v2\n",
        op, unary ? "" : " v1");
  }
  const Compiled c(text + nodes);
  std::vector<std::vector<uint8_t>> out(rows.size(), std::vector<uint8_t>(37, 7));
  std::map<std::string, void*> buffers = {{"in0", a.data()}, {"in1", b.data()}};
  for (size_t k = 0; k < rows.size(); ++k) buffers[rows[k].first] = out[k].data();
  c.run(buffers);
  for (size_t k = 0; k < rows.size(); ++k)
    for (size_t i = 0; i < 37; ++i)
      EXPECT_EQ(out[k][i], rows[k].second(a[i], b[i])) << rows[k].first << " at " << i;
}

/// Instructions with a test of their own elsewhere in this folder, by the name of that test.
const std::map<OpCode, const char*>& tested_elsewhere() {
  static const std::map<OpCode, const char*> tests = {
      {OpCode::load, "Pointwise.EverySizeAndSplit"},
      {OpCode::store, "Pointwise.EverySizeAndSplit"},
      {OpCode::constant, "Values.ConstantsAndScalars"},
      {OpCode::scalar, "Values.ConstantsAndScalars"},
      {OpCode::index_value, "Values.IndexValues"},
      {OpCode::lgamma, "Values.LgammaDigammaNextafterFloorDiv"},
      {OpCode::digamma, "Values.LgammaDigammaNextafterFloorDiv"},
      {OpCode::nextafter, "Values.LgammaDigammaNextafterFloorDiv"},
      {OpCode::floor_div, "Opcode.Int32"},
      {OpCode::trunc_div, "Opcode.Int32"},
      {OpCode::fma, "Values.Fma"},
      {OpCode::gcd, "Values.Gcd"},
      {OpCode::where, "Values.Where"},
      {OpCode::to_float16, "Dtypes.HalfRoundings"},
      {OpCode::to_bfloat16, "Dtypes.HalfRoundings"},
      {OpCode::cast, "Dtypes.Casts"},
      {OpCode::bitcast, "Dtypes.Bitcasts"},
      {OpCode::check_index, "Indirect.CheckIndex"},
      {OpCode::random_bits, "Values.RandomBits"},
      {OpCode::atomic_add, "Indirect.AtomicAdd"},
      {OpCode::result, "Reduce.ArgExtrema"},
      {OpCode::reduce_sum, "Reduce.EveryFold"},
      {OpCode::reduce_prod, "Reduce.EveryFold"},
      {OpCode::reduce_max, "Reduce.EveryFold"},
      {OpCode::reduce_min, "Reduce.EveryFold"},
      {OpCode::reduce_any, "Reduce.BoolsAndBits"},
      {OpCode::reduce_all, "Reduce.BoolsAndBits"},
      {OpCode::reduce_xor, "Reduce.BoolsAndBits"},
      {OpCode::reduce_argmax, "Reduce.ArgExtrema"},
      {OpCode::reduce_argmin, "Reduce.ArgExtrema"},
      {OpCode::reduce_welford, "Reduce.Welford"},
      {OpCode::reduce_welford_combine, "Reduce.WelfordCombine"},
      {OpCode::reduce_softmax, "Reduce.OnlineSoftmax"},
      {OpCode::scan_sum, "Scan.Folds"},
      {OpCode::scan_prod, "Scan.Folds"},
      {OpCode::scan_max, "Scan.Extrema"},
      {OpCode::scan_min, "Scan.Extrema"},
      {OpCode::scan_logaddexp, "Scan.Logaddexp"},
      {OpCode::scan_sort, "PlainEvaluation.Orders"},
  };
  return tests;
}

TEST(Opcode, EveryInstructionHasATest) {
  std::set<OpCode> covered;
  for (const FloatRow& row : float_rows()) covered.insert(row.op);
  for (const IntRow& row : int_rows()) covered.insert(row.op);
  for (const auto& [op, test] : tested_elsewhere()) {
    covered.insert(op);
    const std::string name(test);
    const auto dot = name.find('.');
    bool exists = false;
    const auto* unit = testing::UnitTest::GetInstance();
    for (int s = 0; s < unit->total_test_suite_count(); ++s) {
      const auto* suite = unit->GetTestSuite(s);
      for (int t = 0; t < suite->total_test_count(); ++t)
        exists = exists || (suite->name() == name.substr(0, dot) &&
                            suite->GetTestInfo(t)->name() == name.substr(dot + 1));
    }
    EXPECT_TRUE(exists) << "no test is named " << name;
  }
#define X(op, ...) EXPECT_TRUE(covered.count(OpCode::op)) << #op << " has no numeric test of generated code";
  STAX_LOOP_OPS(X)
#undef X
}

Real lgamma_of(Real x) {
  return std::lgamma(x);
}

TEST(Values, LgammaDigammaNextafterFloorDiv) {
  auto a = numbers<float>(101, 0.1, 30), b = numbers<float>(101, -3, 3, 9);
  a[0] = 5242881, b[0] = 1.25;              // 4194304.8, which float32 rounds to 4194305
  a[1] = 5242881.0f * 16, b[1] = 1.25 * 3;  // 22369625.6
  const Compiled c(R"(
buffer in0 float32 [101] input
buffer in1 float32 [101] input
buffer o0 float32 [101] output
buffer o1 float32 [101] output
buffer o2 float32 [101] output
buffer o3 float32 [101] output
buffer o4 float32 [101] output
node op0 "all" [i0 < 101]
  v0 = load float32 in0[i0]
  v1 = load float32 in1[i0]
  v2 = lgamma float32 v0
  v3 = digamma float32 v0
  v4 = nextafter float32 v0 v1
  v5 = floor_div float32 v0 v1
  v6 = trunc_div float32 v0 v1
  store o0[i0] v2
  store o1[i0] v3
  store o2[i0] v4
  store o3[i0] v5
  store o4[i0] v6
)");
  std::vector<std::vector<float>> o(5, std::vector<float>(101));
  c.run({{"in0", a.data()},
         {"in1", b.data()},
         {"o0", o[0].data()},
         {"o1", o[1].data()},
         {"o2", o[2].data()},
         {"o3", o[3].data()},
         {"o4", o[4].data()}});
  for (size_t i = 0; i < 101; ++i) {
    EXPECT_NEAR(o[0][i], lgamma_of(a[i]), 2e-6 * (1 + std::fabs(o[0][i]))) << a[i];
    EXPECT_NEAR(o[1][i], digamma(a[i]), 2e-6 * (1 + std::fabs(o[1][i]))) << a[i];
    EXPECT_EQ(o[2][i], std::nextafter(a[i], b[i])) << a[i];
    EXPECT_EQ(o[3][i], static_cast<float>(std::floor(static_cast<Real>(a[i]) / b[i])))
        << a[i] << " // " << b[i];
    EXPECT_EQ(o[4][i], static_cast<float>(std::trunc(static_cast<Real>(a[i]) / b[i])))
        << a[i] << " / " << b[i];
  }
}

}  // namespace
}  // namespace stax::codegen

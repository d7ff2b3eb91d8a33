// Accuracy and special values of the prelude's mathematics, against the standard library one precision up.
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "unit/codegen/prelude_harness.h"

namespace stax::codegen {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

long double erfinv_reference(double x) {
  // Newton on erfc of the distance to 1, which keeps its digits; independent of the start.
  if (std::fabs(x) > 1) return NAN;
  if (std::fabs(x) == 1) return x * INFINITY;
  long double y = 0, m = std::fabs(x);
  for (int i = 0; i < 200; ++i) {
    const long double e = m < 0.5L ? std::erf(y) - m : (1 - m) - std::erfc(y);
    const long double step = e * 0.886226925452758013649083741671L * std::exp(y * y);
    y -= step > 0.5L ? 0.5L : step < -0.5L ? -0.5L : step;
  }
  return std::copysign(y, static_cast<long double>(x));
}

/// psi as the derivative of the Weierstrass product's logarithm after a long recurrence.
long double digamma_reference(double value) {
  long double x = value;
  if (x == 0) return std::copysign(INFINITY, -value);
  long double result = 0;
  const long double pi = 3.141592653589793238462643383279503L;
  if (x < 0) {
    if (x == std::floor(x)) return NAN;
    const long double f = x - std::trunc(x);
    result = -pi / std::tan(pi * f);
    x = 1 - x;
  }
  if (std::isinf(x)) return x;
  for (; x < 2000; x += 1) result -= 1 / x;
  return result + std::log(x) - 1 / (2 * x) - 1 / (12 * x * x) + 1 / (120 * x * x * x * x);
}

struct Unary {
  const char* name;
  std::function<long double(double)> reference;
  double max_ulp_f32;
  double max_ulp_f64;
};

template <class F>
std::function<long double(double)> wide(F f) {
  return [f](double x) { return f(static_cast<long double>(x)); };
}
#define STAX_WIDE(f) wide([](long double x) { return std::f(x); })

const std::vector<Unary>& unary_functions() {
  static const std::vector<Unary> rows = {
      {"exp", STAX_WIDE(exp), 1.1, 4},
      {"exp2", STAX_WIDE(exp2), 1.1, 4},
      {"expm1", STAX_WIDE(expm1), 1.5, 4},
      {"log", STAX_WIDE(log), 1.1, 4},
      {"log2", STAX_WIDE(log2), 1.1, 4},
      {"log10", STAX_WIDE(log10), 1.1, 4},
      {"log1p", STAX_WIDE(log1p), 1.5, 4},
      {"sin", STAX_WIDE(sin), 1.5, 4},
      {"cos", STAX_WIDE(cos), 1.5, 4},
      {"tan", STAX_WIDE(tan), 2.5, 4},
      {"tanh", STAX_WIDE(tanh), 1.5, 4},
      {"sigmoid", wide([](long double x) { return 1 / (1 + std::exp(-x)); }), 2.5, 4},
      {"erf", STAX_WIDE(erf), 1.5, 4},
      {"asin", STAX_WIDE(asin), 4, 4},
      {"acos", STAX_WIDE(acos), 4, 4},
      {"atan", STAX_WIDE(atan), 4, 4},
      {"sinh", STAX_WIDE(sinh), 4, 4},
      {"cosh", STAX_WIDE(cosh), 4, 4},
      {"asinh", STAX_WIDE(asinh), 4, 4},
      {"acosh", STAX_WIDE(acosh), 4, 4},
      {"atanh", STAX_WIDE(atanh), 4, 4},
      {"erfc", STAX_WIDE(erfc), 4, 5},
      {"cbrt", STAX_WIDE(cbrt), 4, 4},
      {"sqrt", STAX_WIDE(sqrt), 0.501, 0.501},
      {"rsqrt", wide([](long double x) { return 1 / std::sqrt(x); }), 1.5, 1.5},
      {"recip", wide([](long double x) { return 1 / x; }), 0.501, 0.501},
      {"floor", STAX_WIDE(floor), 0, 0},
      {"ceil", STAX_WIDE(ceil), 0, 0},
      {"trunc", STAX_WIDE(trunc), 0, 0},
      {"round", STAX_WIDE(rint), 0, 0},
  };
  return rows;
}

/// Kernels NAME_T(const T* in, T* out, long n) for one-argument functions; the tail goes through partial
/// access.
std::string unary_kernel(const std::string& name, const std::string& t) {
  const std::string call = name + "_" + t;
  return "STAX_EXPORT void k_" + call + "(const " + t + "* x, " + t +
         "* y, long n) { long i = 0; const long N = sizeof(v" + t + ") / sizeof(" + t +
         "); for (; i + N <= n; i += N) store_" + t + "(y + i, " + call + "(load_" + t +
         "(x + i))); if (i < n) storen_" + t + "(y + i, " + call + "(loadn_" + t +
         "(x + i, n - i)), n - i); }\n";
}

template <class T>
std::vector<T> run_unary(const runtime::Module& module, const std::string& call, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  reinterpret_cast<void (*)(const T*, T*, long)>(module.symbol("k_" + call))(x.data(), y.data(),
                                                                             static_cast<long>(x.size()));
  return y;
}

/// Distance in units of the last place of the reference rounded to T.
template <class T>
double ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  if (rounded == got || (std::isinf(rounded) && rounded == got)) return 0;
  if (!std::isfinite(got) || std::isinf(rounded)) {
    // One step short of overflow, or one past it, is an error of one unit.
    const T largest = std::numeric_limits<T>::max();
    return std::fabs(rounded) >= largest && std::fabs(got) >= largest &&
                   std::signbit(got) == std::signbit(rounded)
               ? 1
               : 1e30;
  }
  int exponent = 0;
  std::frexp(want, &exponent);
  const int smallest = std::numeric_limits<T>::min_exponent;
  if (exponent < smallest) exponent = smallest;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) /
                             std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits));
}

/// Float bit patterns at a fixed step, then specials and neighbours of 0, 1 and the ends of exp's range.
std::vector<float> sweep_f32() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 400009)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float v : {0.0f,   -0.0f,      1.0f,      -1.0f,      0.5f,       -0.5f,
                  kInf,   -kInf,      kNaN,      FLT_MAX,    -FLT_MAX,   FLT_MIN,
                  1e-45f, 88.72283f,  88.72284f, -87.33654f, -87.33655f, 88.3762626647949f,
                  0.625f, 1.5707964f, 100000.0f, 2.5f,       3.5f,       -2.5f,
                  128.0f, -126.0f,    8388609.0f})
    x.insert(x.end(), {v, std::nextafter(v, kInf), std::nextafter(v, -kInf)});
  return x;
}
std::vector<double> sweep_f64() {
  std::mt19937_64 random(7);
  std::vector<double> x;
  for (int i = 0; i < 4000; ++i) {
    x.push_back(std::bit_cast<double>(random()));
    x.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                           -static_cast<int>(54 + random() % 24)));
  }
  x.insert(x.end(), {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, INFINITY, -INFINITY, NAN, DBL_MAX, -DBL_MAX, DBL_MIN,
                     2.5, 3.5, -2.5, 709.5, -708.5});
  return x;
}

/// exp-like results below the smallest normal number may be flushed to zero.
template <class T>
bool is_flushed(T got, long double want) {
  return got == 0 && std::fabs(want) < std::numeric_limits<T>::min();
}

template <class T>
void check_unary(const Unary& row, const std::vector<T>& x, const std::vector<T>& y, double bound,
                 const char* shape) {
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = row.reference(x[i]);
    if (is_flushed(y[i], want)) continue;
    const double error = ulps(y[i], want);
    if (error > worst) worst = error, at = i;
    if (want == 0) {
      EXPECT_EQ(std::signbit(y[i]), std::signbit(want)) << row.name << "(" << x[i] << ")";
    }
  }
  EXPECT_LE(worst, bound) << row.name << " " << shape << " at " << std::hexfloat << x[at] << " gives "
                          << y[at] << ", not " << static_cast<double>(row.reference(x[at]));
  ::testing::Test::RecordProperty(std::string(row.name) + shape, std::to_string(worst));
}

class PreludeMath : public PreludeTest {};

TEST_P(PreludeMath, OneArgumentFloat32) {
  std::string body;
  for (const Unary& row : unary_functions()) body += unary_kernel(row.name, "f32");
  auto module = compile(body);
  const std::vector<float> x = sweep_f32();
  for (const Unary& row : unary_functions())
    check_unary(row, x, run_unary(*module, std::string(row.name) + "_f32", x), row.max_ulp_f32, "f32");
}

TEST_P(PreludeMath, OneArgumentFloat64) {
  if (lanes() * 8 > GetParam().vector_bytes) GTEST_SKIP() << "a kernel with float64 has fewer lanes";
  std::string body;
  for (const Unary& row : unary_functions()) body += unary_kernel(row.name, "f64");
  auto module = compile(body);
  const std::vector<double> x = sweep_f64();
  for (const Unary& row : unary_functions())
    check_unary(row, x, run_unary(*module, std::string(row.name) + "_f64", x), row.max_ulp_f64, "f64");
}

// Slow references: fewer points. lgamma and digamma have zeros, where the error is absolute.
TEST_P(PreludeMath, ErfinvLgammaDigamma) {
  auto module = compile(unary_kernel("erfinv", "f32") + unary_kernel("erfinv", "f64") +
                        unary_kernel("lgamma", "f32") + unary_kernel("lgamma", "f64") +
                        unary_kernel("digamma", "f32") + unary_kernel("digamma", "f64"));
  std::vector<double> x = {0.0, -0.0,   1.0,       -1.0, 2.0,  -2.0, INFINITY,
                           NAN, 1e-300, 0.9999999, 1e-4, 10.0, 1e10, 1.4616321449683623};
  for (double v = -12.37; v < 30; v += 0.173) x.push_back(v);
  for (double v = -0.999; v < 1; v += 0.0317) x.push_back(v);
  std::vector<float> xf(x.begin(), x.end());
  auto inverse = run_unary(*module, "erfinv_f64", x), gamma = run_unary(*module, "lgamma_f64", x),
       psi = run_unary(*module, "digamma_f64", x);
  auto inverse_f = run_unary(*module, "erfinv_f32", xf), gamma_f = run_unary(*module, "lgamma_f32", xf),
       psi_f = run_unary(*module, "digamma_f32", xf);
  auto close = [](auto got, long double want, double tolerance) {
    if (std::isnan(want)) return std::isnan(got);
    if (std::isinf(static_cast<decltype(got)>(want))) return got == static_cast<decltype(got)>(want);
    return std::fabs(got - want) <= tolerance * std::max(1.0L, std::fabs(want));
  };
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(ulps(inverse[i], erfinv_reference(x[i])), 4) << "erfinv " << x[i] << " gives " << inverse[i];
    EXPECT_LE(ulps(inverse_f[i], erfinv_reference(xf[i])), 1)
        << "erfinv " << xf[i] << " gives " << inverse_f[i];
    EXPECT_TRUE(close(gamma[i], std::lgamma(static_cast<long double>(x[i])), 1e-15))
        << x[i] << " " << gamma[i];
    EXPECT_TRUE(close(gamma_f[i], std::lgamma(static_cast<long double>(xf[i])), 5e-7))
        << xf[i] << " " << gamma_f[i];
    EXPECT_TRUE(close(psi[i], digamma_reference(x[i]), 1e-13)) << x[i] << " " << psi[i];
    EXPECT_TRUE(close(psi_f[i], digamma_reference(xf[i]), 2e-7)) << xf[i] << " " << psi_f[i];
  }
}

std::string binary_kernel(const std::string& name, const std::string& t) {
  const std::string call = name + "_" + t;
  return "STAX_EXPORT void k_" + call + "(const " + t + "* x, const " + t + "* z, " + t +
         "* y, long n) { const long N = sizeof(v" + t + ") / sizeof(" + t +
         "); for (long i = 0; i < n; i += N) { int m = n - i < N ? n - i : N; storen_" + t + "(y + i, " +
         call + "(loadn_" + t + "(x + i, m), loadn_" + t + "(z + i, m)), m); } }\n";
}

struct Binary {
  const char* name;
  long double (*reference)(long double, long double);
  double max_ulp;
};

long double floor_modulo(long double x, long double y) {
  long double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

template <class T>
void check_binary(const runtime::Module& module, const Binary& row, const std::string& t) {
  std::vector<T> x, y;
  const T values[] = {T(0.0),
                      T(-0.0),
                      T(1),
                      T(-1),
                      T(3),
                      T(-3),
                      T(0.3),
                      T(-2.5),
                      T(7),
                      T(1e8),
                      T(1073741824.0),
                      T(-1073741824.0),
                      T(1e-8),
                      T(1e30),
                      T(-1e30),
                      T(INFINITY),
                      T(-INFINITY),
                      T(NAN),
                      std::numeric_limits<T>::min(),
                      std::numeric_limits<T>::denorm_min(),
                      std::numeric_limits<T>::max(),
                      T(12.75),
                      T(0.5)};
  for (T a : values)
    for (T b : values) x.push_back(a), y.push_back(b);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    x.push_back(std::ldexp(T(random()) - T(2147483648.0), -int(random() % 40)));
    y.push_back(std::ldexp(T(random()) - T(2147483648.0), -int(random() % 40)));
  }
  std::vector<T> got(x.size());
  reinterpret_cast<void (*)(const T*, const T*, T*, long)>(module.symbol(
      "k_" + std::string(row.name) + "_" + t))(x.data(), y.data(), got.data(), static_cast<long>(x.size()));
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_LE(ulps(got[i], row.reference(x[i], y[i])), row.max_ulp)
        << row.name << "(" << x[i] << ", " << y[i] << ") gives " << got[i] << ", not "
        << T(row.reference(x[i], y[i]));
}

TEST_P(PreludeMath, TwoArguments) {
  const Binary rows[] = {{"pow", [](long double a, long double b) { return std::pow(a, b); }, 4},
                         {"atan2", [](long double a, long double b) { return std::atan2(a, b); }, 4},
                         {"hypot", [](long double a, long double b) { return std::hypot(a, b); }, 4},
                         {"copysign", [](long double a, long double b) { return std::copysign(a, b); }, 0},
                         {"fmod", [](long double a, long double b) { return std::fmod(a, b); }, 0},
                         {"mod", floor_modulo, 0.5},
                         {"div", [](long double a, long double b) { return a / b; }, 0.5001}};
  std::string body;
  const bool doubles = lanes() * 8 <= GetParam().vector_bytes;
  for (const Binary& row : rows)
    body += binary_kernel(row.name, "f32") + (doubles ? binary_kernel(row.name, "f64") : "");
  body += binary_kernel("nextafter", "f32") + binary_kernel("nextafter", "f64");
  auto module = compile(body);
  for (const Binary& row : rows) {
    check_binary<float>(*module, row, "f32");
    if (doubles) check_binary<double>(*module, row, "f64");
  }
  auto next =
      reinterpret_cast<void (*)(const float*, const float*, float*, long)>(module->symbol("k_nextafter_f32"));
  const float values[] = {0.0f,     -0.0f,  1.0f,    -1.0f,   kInf, -kInf, FLT_MAX,
                          -FLT_MAX, 1e-45f, -1e-45f, FLT_MIN, kNaN, 2.0f};
  for (float a : values)
    for (float b : values) {
      float got;
      next(&a, &b, &got, 1);
      const float want = std::nextafter(a, b);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got));
      else
        EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << a << " towards " << b;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PreludeMath, ::testing::ValuesIn(runnable_shapes()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stax::codegen

// Functions of libmvec and libm, and those that have no library: erfinv and digamma.
#include <fmt/core.h>

#include "codegen/cpp/prelude_table.h"

namespace stax::codegen {

namespace {

/// A call of the library's vector function where it has one for this register, else of the scalar one for
/// each lane. Only the AVX2 and AVX-512 names are used; half-filled AVX2 registers repeat their lanes.
std::string library_call(SnippetTable& table, std::string_view function, std::string_view token,
                         int arguments) {
  const VectorShape& shape = table.shape();
  const int size = token_info(token).size;
  const int bytes = shape.lanes * size;
  const std::string scalar = std::string(function) + (size == 4 ? "f" : "");
  const bool two = arguments == 2;
  int lanes = 0;  // of the library's function
  if (bytes == 64 && shape.avx512())
    lanes = shape.lanes;
  else if (bytes <= 32 && shape.avx2())
    lanes = 32 / size;
  if (lanes == 0) {
    if (!table.has(scalar))
      table.raw(scalar, fmt::format("// link: m\nextern \"C\" {0} {1}({0}{2}) noexcept;\n", token, scalar,
                                    two ? fmt::format(", {}", token) : ""));
    return "return (v$T){" + per_lane(shape.lanes, fmt::format("{}(a[#]{})", scalar, two ? ", b[#]" : "")) +
           "};";
  }
  const std::string name =
      fmt::format("_ZGV{}N{}{}_{}", bytes == 64 ? 'e' : 'd', lanes, two ? "vv" : "v", scalar);
  const std::string vector = fmt::format("p_mvec_{}", token);
  if (!table.has(vector))
    table.raw(vector,
              fmt::format("typedef {} {} __attribute__((vector_size({})));\n", token, vector, lanes * size));
  if (!table.has(name))
    table.raw(name, fmt::format("// link: mvec\nextern \"C\" {0} {1}({0}{2}) noexcept;\n", vector, name,
                                two ? ", " + vector : ""));
  if (lanes == shape.lanes) return fmt::format("return {}(a{});", name, two ? ", b" : "");
  std::string widen, narrow;
  for (int lane = 0; lane < lanes; ++lane) widen += fmt::format(", {}", lane % shape.lanes);
  for (int lane = 0; lane < shape.lanes; ++lane) narrow += fmt::format(", {}", lane);
  auto wide = [&](char argument) {
    return fmt::format("__builtin_shufflevector({0}, {0}{1})", argument, widen);
  };
  return fmt::format("{} y = {}({}{}); return __builtin_shufflevector(y, y{});", vector, name, wide('a'),
                     two ? ", " + wide('b') : "", narrow);
}

void add_library(SnippetTable& table, std::string_view names, std::string_view token, int arguments) {
  for_each_token(names, [&](std::string_view name) {
    table.value(name, token, arguments == 2 ? "vvv" : "vv", library_call(table, name, token, arguments));
  });
}

/// Halley's iteration on erf(y) = x, or on erfc for |x| near 1 where 1 - |x| is exact. The start is within 1
/// % for all x, from erf(y)^2 = 1 - exp(-y^2 (4/pi + c y^2) / (1 + c y^2)) solved for y^2, with c = 0.147
/// fitted by hand.
constexpr std::string_view kErfinv =
    "STAX_NOINLINE f64 p_erfinv(f64 x) {"
    " f64 m = __builtin_fabs(x); if (!(m < 1)) return m == 1 ? x * __builtin_inf() : __builtin_nan(\"\");"
    " f64 l = log1p(-m * m), b = 4.330746750799873 + l * 0.5;"
    " f64 y = m < 0x1p-10 ? m * 0.886226925452758 : __builtin_sqrt(__builtin_sqrt(b * b - l * "
    "6.802721088435374) - b);"
    " for (int i = 0; i < 3; ++i) {"
    "  f64 e = m < 0.5 ? erf(y) - m : (1 - m) - erfc(y);"
    "  f64 u = e * 0.886226925452758 * exp(y * y); y -= u / (1 + y * u); }"
    " return __builtin_copysign(y, x); }\n";

/// psi(x) = psi(x + 1) - 1/x up to x >= 10, there log x - 1/(2x) - sum B_2k / (2k x^2k); psi(1 - x) - pi /
/// tan(pi x) for negative x.
constexpr std::string_view kDigamma =
    "STAX_NOINLINE f64 p_digamma(f64 x) {"
    " if (x == 0) return __builtin_copysign(__builtin_inf(), -x);"
    " f64 r = 0;"
    " if (x < 0) { f64 f = x - __builtin_rint(x); if (f == 0 || f != f) return __builtin_nan(\"\");"
    "  r = -3.141592653589793 / tan(3.141592653589793 * f); x = 1 - x; }"
    " for (; x < 10; x += 1) r -= 1 / x;"
    " if (x == __builtin_inf()) return x;"
    " f64 z = 1 / (x * x);"
    " f64 s = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / "
    "32760 - z / 12))))));"
    " return r + (log(x) - 0.5 / x - s); }\n";

void add_scalar_functions(SnippetTable& table) {
  const int n = table.shape().lanes;
  // p_ names: the library's functions with the sign of gamma kept off the global variable `signgam`.
  table.raw("lgamma_r", "// link: m\nextern \"C\" double lgamma_r(double, int*) noexcept;\n");
  table.raw("lgammaf_r", "// link: m\nextern \"C\" float lgammaf_r(float, int*) noexcept;\n");
  table.raw("p_lgamma_f64", "STAX_INLINE f64 p_lgamma_f64(f64 x) { int sign; return lgamma_r(x, &sign); }\n");
  table.raw("p_lgamma_f32",
            "STAX_INLINE f32 p_lgamma_f32(f32 x) { int sign; return lgammaf_r(x, &sign); }\n");
  for_each_token("log log1p erf erfc exp tan", [&](std::string_view name) {
    if (!table.has(name))
      table.raw(std::string(name),
                fmt::format("// link: m\nextern \"C\" double {}(double) noexcept;\n", name));
  });
  table.raw("p_erfinv", std::string(kErfinv));
  table.raw("p_digamma", std::string(kDigamma));
  auto per = [&](std::string_view call) { return "return (v$T){" + per_lane(n, call) + "};"; };
  table.value("lgamma", "f32 f64", "vv", per("p_lgamma_$T(a[#])"), false);
  table.value("erfinv", "f32 f64", "vv", per("($T)p_erfinv(a[#])"), false);
  table.value("digamma", "f32 f64", "vv", per("($T)p_digamma(a[#])"), false);
}

void add_library_of(SnippetTable& table, std::string_view token) {
  if (token == "f32") {
    add_library(table, "asin acos atan sinh cosh asinh acosh atanh erfc cbrt", token, 1);
    return add_library(table, "pow atan2 hypot", token, 2);
  }
  add_library(table,
              "exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
              "erf erfc cbrt",
              token, 1);
  add_library(table, "pow atan2 hypot", token, 2);
  // The library is slow on arguments whose result is subnormal, zero or infinite, as a masked softmax has
  // them.
  std::string exponential = library_call(table, "exp", token, 1);
  table.value("p_exp", "f64", "vv", exponential);
  table.value("exp", "f64", "vv",
              "v$I low = a < -0x1.6232bdd7abcd2p+9, high = a > 0x1.62e42fefa39efp+9;"
              " v$T y = p_exp_$T(low | high ? (v$T){} : a); return low ? (v$T){} : (high ? "
              "splat_$T(__builtin_inf()) : y);");
  table.value("sigmoid", "f64", "vv", "return 1 / (exp_f64(-a) + 1);");
}

}  // namespace

void add_library_snippets(SnippetTable& table) {
  add_scalar_functions(table);
  table.each(kFloats, add_library_of);
}

}  // namespace stax::codegen

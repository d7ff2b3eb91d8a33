// Exponentials, logarithms, trigonometric and error functions of float32, free of branches, so that unusual
// inputs cost no more than others. The polynomials are from tools/fit_prelude.py. Those of float64 are in
// prelude_library.cpp.
#include <fmt/core.h>

#include <iterator>
#include <span>

#include "codegen/cpp/prelude_table.h"

namespace stax::codegen {

namespace {

constexpr double kExp[] = {0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558aep-5, 0x1.12398p-7, 0x1.6a4f28p-10};
constexpr double kExp2[] = {0x1.62e43p-1,  0x1.ebfbdcp-3,  0x1.c6af7ap-5,
                            0x1.3b2dd2p-7, 0x1.5f0948p-10, 0x1.417a6cp-13};
constexpr double kExpm1[] = {0x1p-1,        0x1.555554p-3,  0x1.5554f8p-5,
                             0x1.1112dap-7, 0x1.6d3a3ap-10, 0x1.9e6ef4p-13};
constexpr double kLog[] = {0x1.555548p-2, -0x1.000006p-2, 0x1.99a478p-3,  -0x1.555c4ap-3, 0x1.233b68p-3,
                           -0x1.fc274p-4, 0x1.e6c298p-4,  -0x1.de0e4cp-4, 0x1.147cbep-4};
constexpr double kSin[] = {-0x1.555556p-3, 0x1.111174p-7, -0x1.a0595cp-13, 0x1.7c327cp-19};
constexpr double kCos[] = {0x1.55554ap-5, -0x1.6c0c2ap-10, 0x1.99e91p-16};
constexpr double kTan[] = {0x1.55556p-2,  0x1.110d9ep-3,  0x1.bad9bep-5, 0x1.5cc134p-6,
                           0x1.62c81ap-7, 0x1.9eb54ap-14, 0x1.1e8b3cp-8};
constexpr double kTanh[] = {-0x1.555532p-2, 0x1.1106fcp-3, -0x1.b83738p-5, 0x1.5207b8p-6, -0x1.75619ap-8};
constexpr double kErf[] = {0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2ce6p-4, -0x1.b7f71ap-6,
                           0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fep-14};
constexpr double kLogErfc[] = {0x1.f34c0ep-14,  -0x1.211138p+0, -0x1.44c07ep-1, -0x1.b5a0c6p-4,
                               0x1.84d242p-6,   -0x1.b08244p-9, 0x1.4aedfcp-14, 0x1.24ba3ep-14,
                               -0x1.bacca6p-17, 0x1.bcf00ep-21};

/// Horner's scheme in `variable`, as an expression of vectors.
std::string horner(std::span<const double> coefficients, std::string_view variable) {
  auto literal = [](double value) { return fmt::format("splat_f32({:a}f)", value); };
  std::string text = literal(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    text = fmt::format("fma_f32({}, {}, {})", text, variable, literal(coefficients[i]));
  return text;
}

/// n = rint(x * log2(e)) as float, and r = x - n * ln 2 in two steps. Needs |x| below about 2^21.
constexpr std::string_view kReduceLn2 =
    "vf32 n = round_f32(x * 0x1.715476p+0f);"
    " vf32 r = fma_f32(n, splat_f32(-0x1.62e4p-1f), x); r = fma_f32(n, splat_f32(-0x1.7f7d1cp-20f), r);";

/// 2^n * p through the exponent's bits: right while the result is a normal number.
constexpr std::string_view kScale = "(vf32)((vi32)p + (__builtin_convertvector(n, vi32) << 23))";

/// n comes from adding 1.5 * 2^23, which leaves it in the low bits of t as well: an exponent needs no
/// conversion. Below the smallest normal result is 0; above the largest, and for NaN, a + inf. What the lanes
/// in between compute on the way there is dropped.
void add_exp(SnippetTable& table) {
  const VectorShape& shape = table.shape();
  const std::string reduced = fmt::format(
      "vf32 t = fma_f32(x, splat_f32(0x1.715476p+0f), splat_f32(0x1.8p+23f)), n = t - 0x1.8p+23f;"
      " vf32 r = fma_f32(n, splat_f32(-0x1.62e4p-1f), x); r = fma_f32(n, splat_f32(-0x1.7f7d1cp-20f), r);"
      " vf32 p = fma_f32(fma_f32({}, r, splat_f32(1)), r, splat_f32(1));",
      horner(kExp, "r"));
  std::string text = fmt::format(
      "vf32 x = a; {} p = (vf32)((vi32)p + ((vi32)t << 23)); p = a <= 0x1.62e42ep+6f ? p : a + "
      "__builtin_inff(); return a < -0x1.5d589ep+6f ? (vf32){{}} : p;",
      reduced);
  const int bytes = shape.lanes * 4;
  if (shape.avx512() && (bytes == 64 || bytes == 32)) {
    // scalef overflows to infinity, and its mask makes small results 0 without computing a subnormal number.
    const std::string_view mask = bytes == 64 ? "u16" : "u8", rounding = bytes == 64 ? ", 4" : "";
    text = fmt::format(
        "\n#ifdef __clang__\n{}\n#else\nvf32 x = p_min_f32(splat_f32(89), a); {} return "
        "__builtin_ia32_scalefps{}_mask(p, n, (vf32){{}}, __builtin_ia32_cmpps{}_mask(a, "
        "splat_f32(-0x1.5d589ep+6f), 5, ({})-1{}){});\n#endif\n",
        text, reduced, bytes * 8, bytes * 8, mask, rounding, rounding);
  }
  table.value("exp", "f32", "vv", text);
}

void add_exponentials(SnippetTable& table) {
  add_exp(table);
  table.value(
      "exp2", "f32", "vv",
      fmt::format("vf32 x = a > 129.0f ? splat_f32(129.0f) : a; x = x > -127.0f ? x : splat_f32(-127.0f);"
                  " vf32 n = round_f32(x), r = x - n; vf32 p = fma_f32({}, r, splat_f32(1)); p = {};"
                  " p = a >= 128 ? splat_f32(__builtin_inff()) : p; p = a < -126 ? (vf32){{}} : p;"
                  " return a != a ? a : p;",
                  horner(kExp2, "r"), kScale));
  // (2^n - 1) + 2^n expm1(r); from n = 25 on the -1 is lost, and at n = 128 the factor 2^n is taken in two
  // steps.
  table.value(
      "expm1", "f32", "vv",
      fmt::format("vf32 x = a > 89.0f ? splat_f32(89.0f) : a; x = x > -20.0f ? x : splat_f32(-20.0f); {}"
                  " vf32 q = fma_f32(r * r, {}, r); vf32 h = n > 127 ? splat_f32(127) : n;"
                  " vf32 s = (vf32)((__builtin_convertvector(h, vi32) + 127) << 23);"
                  " vf32 p = fma_f32(s, q, s - 1); vf32 t = s * (q + 1); p = n > 127 ? t + t : p;"
                  " p = a > 0x1.62e42ep+6f ? splat_f32(__builtin_inff()) : p;"
                  " return (a != a) | (a == 0) ? a : p;",
                  kReduceLn2, horner(kExpm1, "r")));
  table.value("sigmoid", "f32", "vv", "return 1 / (exp_f32(-a) + 1);");
}

/// x = m * 2^e with m in [sqrt(1/2), sqrt(2)), subnormal numbers included; f = m - 1; y = log(m) - f.
std::string reduce_log() {
  return "vi32 tiny = a < 0x1p-126f; vf32 x = tiny ? a * 0x1p25f : a;"
         " vi32 i = (vi32)x - 0x3f3504f3; vf32 e = __builtin_convertvector(i >> 23, vf32) - (tiny ? "
         "splat_f32(25) : (vf32){});"
         " vf32 f = (vf32)((i & 0x7fffff) + 0x3f3504f3) - 1;";
}
std::string log_tail() {
  return fmt::format(" vf32 s = f * f; vf32 y = fma_f32(s * f, {}, s * -0.5f);", horner(kLog, "f"));
}
/// Zero, negative numbers, infinity and NaN.
constexpr std::string_view kLogSpecials =
    " r = a == 0 ? splat_f32(-__builtin_inff()) : r; r = a == __builtin_inff() ? a : r;"
    " return (a < 0) | (a != a) ? splat_f32(__builtin_nanf(\"\")) : r;";

void add_logarithms(SnippetTable& table) {
  table.value("log", "f32", "vv",
              reduce_log() + log_tail() +
                  " vf32 r = fma_f32(e, splat_f32(0x1.7f7d1cp-20f), y); r = fma_f32(e, "
                  "splat_f32(0x1.62e4p-1f), f + r);" +
                  std::string(kLogSpecials));
  // f is split so that its high part times the constant's is exact.
  auto other_base = [&](std::string_view name, std::string_view high, std::string_view low,
                        std::string_view e_high, std::string_view e_low) {
    table.value(
        name, "f32", "vv",
        reduce_log() + log_tail() +
            fmt::format(
                " vf32 h = (vf32)((vi32)f & ~0xfff), l = (f - h) + y;"
                " vf32 r = fma_f32(l, splat_f32({1}), h * {1} + e * {3}); r = fma_f32(l, splat_f32({0}), r);"
                " vf32 b = h * {0}, c = e * {2}, t = c + b; r = r + ((c - t) + b); r = t + r;",
                high, low, e_high, e_low) +
            std::string(kLogSpecials));
  };
  other_base("log2", "0x1.714p+0f", "0x1.47652cp-12f", "1.0f", "0.0f");
  other_base("log10", "0x1.bcap-2f", "0x1.7b1526p-14f", "0x1.344p-2f", "0x1.3509f8p-18f");
  // log(u) for u = 1 + a; what the sum lost comes back into f, scaled as u was.
  table.value("log1p", "f32", "vv",
              "vf32 u = a + 1; vf32 lost = a < 1 ? a - (u - 1) : 1 - (u - a);"
              " vi32 i = (vi32)u - 0x3f3504f3; vi32 k = i >> 23; vf32 e = __builtin_convertvector(k, vf32);"
              " vi32 m = 127 - k; vf32 scale = (vf32)((m > 0 ? m : splat_i32(0)) << 23);"
              " vf32 f = ((vf32)((i & 0x7fffff) + 0x3f3504f3) - 1) + lost * scale;" +
                  log_tail() +
                  " vf32 r = fma_f32(e, splat_f32(0x1.7f7d1cp-20f), y); r = fma_f32(e, "
                  "splat_f32(0x1.62e4p-1f), f + r);"
                  " r = a == 0 ? a : r; r = a == -1 ? splat_f32(-__builtin_inff()) : r; r = a == "
                  "__builtin_inff() ? a : r;"
                  " return (a < -1) | (a != a) ? splat_f32(__builtin_nanf(\"\")) : r;");
}

/// x = n * pi/2 + r, |r| <= pi/4, with pi/2 in four parts; n as integer in k. Larger arguments go to the
/// library.
constexpr std::string_view kReducePi =
    "vf32 n = round_f32(a * 0x1.45f306p-1f); vi32 k = __builtin_convertvector(near ? n : (vf32){}, vi32);"
    " vf32 r = fma_f32(n, splat_f32(-0x1.92p+0f), a); r = fma_f32(n, splat_f32(-0x1.fb4p-12f), r);"
    " r -= fma_f32(n, splat_f32(0x1.444p-24f), n * 0x1.68c234p-39f); vf32 s = r * r;";

void add_trigonometry(SnippetTable& table) {
  const std::string sine = fmt::format("fma_f32(s * r, {}, r)", horner(kSin, "s"));
  const std::string cosine =
      fmt::format("fma_f32(s * s, {}, fma_f32(s, splat_f32(-0.5f), splat_f32(1)))", horner(kCos, "s"));
  // Without fused products, n times a part of pi/2 must fit a float.
  const std::string_view limit = table.shape().avx2() ? "0x1p17f" : "0x1p13f";
  auto add = [&](std::string_view name, std::string_view value) {
    table.raw(fmt::format("{}f", name),
              fmt::format("// link: m\nextern \"C\" float {}f(float) noexcept;\n", name));
    table.raw(fmt::format("p_big_{}", name),
              fmt::format("STAX_NOINLINE vf32 p_big_{0}(vf32 a, vf32 y, vi32 big) {{"
                          " for (int i = 0; i < {1}; ++i) if (big[i]) y[i] = {0}f(a[i]); return y; }}\n",
                          name, table.shape().lanes));
    table.value(
        name, "f32", "vv",
        fmt::format("vf32 m = abs_f32(a); vi32 near = m < {3}, big = ~near & (m < __builtin_inff()); {0} {1}"
                    " if (__builtin_expect(hany_b8(__builtin_convertvector(big, vm)), 0)) return "
                    "p_big_{2}(a, y, big);"
                    " return y;",
                    kReducePi, value, name, limit));
  };
  add("sin",
      fmt::format(
          "vf32 y = (k & 1) != 0 ? {} : {}; y = (vf32)((vi32)y ^ ((k & 2) << 30)); y = a == 0 ? a : y;",
          cosine, sine));
  add("cos", fmt::format("vf32 y = (k & 1) != 0 ? {} : {}; y = (vf32)((vi32)y ^ (((k + 1) & 2) << 30));",
                         sine, cosine));
  add("tan",
      fmt::format("vf32 t = fma_f32(s * r, {}, r); vf32 y = (k & 1) != 0 ? -1 / t : t; y = a == 0 ? a : y;",
                  horner(kTan, "s")));
}

void add_sigmoidal(SnippetTable& table) {
  table.value("tanh", "f32", "vv",
              fmt::format("vf32 x = abs_f32(a), s = x * x; vf32 small = fma_f32(s * x, {}, x);"
                          " vf32 large = 1 - 2 / (exp_f32(x + x) + 1);"
                          " return copysign_f32(x < 0.625f ? small : large, a);",
                          horner(kTanh, "s")));
  table.value("erf", "f32", "vv",
              fmt::format("vf32 x = abs_f32(a), s = x * x; vf32 small = fma_f32(x, {}, x);"
                          " vf32 t = x > 4.1f ? splat_f32(4.1f) : x; vf32 large = 1 - exp_f32({});"
                          " large = x > 3.95f ? splat_f32(1) : large;"
                          " return copysign_f32(x < 1 ? small : large, a);",
                          horner(kErf, "s"), horner(kLogErfc, "t")));
}

}  // namespace

void add_math_snippets(SnippetTable& table) {
  add_exponentials(table);
  add_logarithms(table);
  add_trigonometry(table);
  add_sigmoidal(table);
}

}  // namespace stax::codegen

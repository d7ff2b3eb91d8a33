// Floating-point operations that are exact or correctly rounded: rounding to integers, square root,
// remainders, signs.
#include <fmt/core.h>

#include "codegen/cpp/prelude_table.h"

namespace stax::codegen {

namespace {

/// The suffix of GCC's names for whole-register instructions on T ("512", "256", ""), or "no" where N
/// elements of T are no register of the target.
std::string_view native(const VectorShape& shape, std::string_view token) {
  const int bytes = shape.lanes * token_info(token).size;
  if (bytes == 64 && shape.avx512()) return "512";
  if (bytes == 32 && shape.avx2()) return "256";
  if (bytes == 16 && shape.avx2()) return "";
  return "no";
}

std::string call_per_lane(int lanes, std::string_view function, std::string_view arguments) {
  return fmt::format("return (v$T){{{}}};", per_lane(lanes, fmt::format("{}({})", function, arguments)));
}

void add_roots(SnippetTable& table, std::string_view token) {
  const VectorShape& shape = table.shape();
  const bool single = token == "f32";
  const std::string_view kind = single ? "ps" : "pd";
  const std::string_view width = native(shape, token);
  const std::string_view mask = single ? "(unsigned short)-1" : "(u8)-1";
  std::string root = call_per_lane(shape.lanes, single ? "__builtin_sqrtf" : "__builtin_sqrt", "a[#]");
  // One lane's product and sum fuse only where the target does so in hardware; elsewhere fma would call the
  // library.
  std::string fused = shape.avx2() ? call_per_lane(shape.lanes, single ? "__builtin_fmaf" : "__builtin_fma",
                                                   "a[#], b[#], c[#]")
                                   : "return a * b + c;";
  if (width == "512") {
    root = gcc_or(fmt::format("return __builtin_ia32_sqrt{}512_mask(a, a, {}, 4);", kind, mask), root);
    fused = gcc_or(fmt::format("return __builtin_ia32_vfmadd{}512_mask(a, b, c, {}, 4);", kind, mask), fused);
  } else if (width != "no") {
    root = gcc_or(fmt::format("return __builtin_ia32_sqrt{}{}(a);", kind, width), root);
    fused = gcc_or(fmt::format("return __builtin_ia32_vfmadd{}{}(a, b, c);", kind, width), fused);
  }
  table.value("sqrt", token, "vv", root);
  table.value("fma", token, "vvvv", fused);
}

void add_rounding(SnippetTable& table, std::string_view token) {
  struct Row {
    std::string_view name, generic;
    int immediate;  // of the rounding instructions, with exceptions suppressed
  };
  // From 2^23 (2^52) on every number is an integer; `big` is also true for NaN.
  constexpr Row rows[] = {
      {"trunc",
       "v$I big = ~(abs_$T(a) < LIMIT); v$T t = __builtin_convertvector(__builtin_convertvector(big ? "
       "(v$T){} : a, v$I), v$T);"
       " return big ? a : copysign_$T(t, a);",
       11},
      {"floor", "v$T t = trunc_$T(a); return t - (t > a ? splat_$T(1) : (v$T){});", 9},
      {"ceil", "v$T t = trunc_$T(a); return copysign_$T(t + (t < a ? splat_$T(1) : (v$T){}), a);", 10},
      {"round",
       "v$I big = ~(abs_$T(a) < LIMIT); v$T m = copysign_$T(splat_$T(LIMIT), a);"
       " return big ? a : copysign_$T((a + m) - m, a);",
       8}};
  const std::string_view width = native(table.shape(), token);
  const bool single = token == "f32";
  for (const Row& row : rows) {
    std::string generic(row.generic);
    for (size_t at = generic.find("LIMIT"); at != std::string::npos; at = generic.find("LIMIT"))
      generic.replace(at, 5, single ? "0x1p23f" : "0x1p52");
    std::string text = generic;
    const std::string_view kind = single ? "ps" : "pd";
    if (width == "512")
      text = gcc_or(fmt::format("return __builtin_ia32_rndscale{}_mask(a, {}, a, {}, 4);", kind,
                                row.immediate, single ? "(unsigned short)-1" : "(u8)-1"),
                    generic);
    else if (width != "no")
      text =
          gcc_or(fmt::format("return __builtin_ia32_round{}{}(a, {});", kind, width, row.immediate), generic);
    table.value(row.name, token, "vv", text);
  }
}

void add_signs(SnippetTable& table) {
  table.value("abs", kFloats, "vv", "return (v$T)((v$I)a & ~splat_$I(($I)(($U)1 << ($B - 1))));");
  table.value("copysign", kFloats, "vvv",
              "v$I s = splat_$I(($I)(($U)1 << ($B - 1))); return (v$T)(((v$I)a & ~s) | ((v$I)b & s));");
  table.value("signbit", kFloats, "mv", "return __builtin_convertvector((v$I)a < 0, vm);");
  table.value("isnan", kFloats, "mv", "return __builtin_convertvector(a != a, vm);");
  table.value("isinf", "f32", "mv", "return __builtin_convertvector(abs_$T(a) == __builtin_inff(), vm);");
  table.value("isinf", "f64", "mv", "return __builtin_convertvector(abs_$T(a) == __builtin_inf(), vm);");
  table.value("isfinite", "f32", "mv", "return __builtin_convertvector(abs_$T(a) < __builtin_inff(), vm);");
  table.value("isfinite", "f64", "mv", "return __builtin_convertvector(abs_$T(a) < __builtin_inf(), vm);");
  table.value("sign", kFloats, "vv", "return a > 0 ? splat_$T(1) : (a < 0 ? splat_$T(-1) : (v$T){});");
}

/// p_max(a, b) is a > b ? a : b, so it is b when either is NaN: one instruction on x86, where it is not spelt
/// as a comparison, because GCC makes no more than a comparison and a blend of that. max and min add the NaN
/// of a; under AVX-512 that is a mask on the same instruction.
void add_extrema(SnippetTable& table, std::string_view token) {
  const std::string_view width = native(table.shape(), token);
  const bool single = token == "f32";
  for (const std::string_view name : {"max", "min"}) {
    std::string text = fmt::format("return a {} b ? a : b;", name == "max" ? ">" : "<");
    const std::string kind = single ? "ps" : "pd";
    if (width == "512")
      text = gcc_or(fmt::format("return __builtin_ia32_{}{}512_mask(a, b, a, {}, 4);", name, kind,
                                single ? "(u16)-1" : "(u8)-1"),
                    text);
    else if (width != "no")
      text = gcc_or(fmt::format("return __builtin_ia32_{}{}{}(a, b);", name, kind, width), text);
    const std::string function = fmt::format("p_{}_{}", name, token);
    table.raw(function,
              fmt::format("STAX_INLINE v{0} {1}(v{0} a, v{0} b) {{ {2} }}\n", token, function, text));
    table.value(name, token, "vvv", fmt::format("v$T m = p_{}_$T(a, b); return a == a ? m : a;", name));
  }
  // The second operand is the result for NaN and for two zeros.
  table.value("relu", token, "vv", "return p_max_$T((v$T){}, a);");
}

void add_division(SnippetTable& table) {
  const int n = table.shape().lanes;
  table.raw("fmodf", "// link: m\nextern \"C\" float fmodf(float, float) noexcept;\n");
  table.raw("fmod", "// link: m\nextern \"C\" double fmod(double, double) noexcept;\n");
  // A quotient below 2^29 times a float fits a double, so the remainder is exact; the quotient may have been
  // rounded up to the next integer, which the sign of the remainder tells.
  table.raw("p_fmod_f32",
            "STAX_INLINE f32 p_fmod_f32(f32 a, f32 b) {"
            " f64 x = a, y = b, q = x / y;"
            " if (!(__builtin_fabs(q) < 0x1p29) || y - y != 0) return fmodf(a, b);"
            " f64 r = x - (f64)(i32)q * y; if (r != 0 && (r < 0) != (x < 0)) r += x < 0 ? -__builtin_fabs(y) "
            ": __builtin_fabs(y);"
            " return __builtin_copysignf((f32)r, a); }\n");
  table.raw("p_fmod_f64", "STAX_INLINE f64 p_fmod_f64(f64 a, f64 b) { return fmod(a, b); }\n");
  table.value("div", kFloats, "vvv", "return a / b;");
  // A quotient that is rounded can reach the next integer. That of two floats does not in double; doubles
  // take the exact remainder off first.
  table.value("truncdiv", "f32", "vvv",
              "return __builtin_convertvector(trunc_f64(__builtin_convertvector(a, vf64)"
              " / __builtin_convertvector(b, vf64)), vf32);");
  table.value("truncdiv", "f64", "vvv",
              "vf64 q = a / b, t = round_f64((a - fmod_f64(a, b)) / b);"
              " return (q - q == 0) & (b - b == 0) ? copysign_f64(t, q) : trunc_f64(q);",
              false);
  table.value("recip", kFloats, "vv", "return 1 / a;");
  table.value("rsqrt", kFloats, "vv", "return 1 / sqrt_$T(a);");
  table.value("fmod", kFloats, "vvv", call_per_lane(n, "p_fmod_$T", "a[#], b[#]"), false);
  table.value("mod", kFloats, "vvv",
              "v$T r = fmod_$T(a, b); return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r;");
  // The quotient after the exact remainder is taken off is an integer up to rounding.
  // Of floats it is taken in double, which holds every integer that float32 rounds.
  table.value("floordiv", "f32", "vvv",
              "return __builtin_convertvector(floordiv_f64(__builtin_convertvector(a, vf64),"
              " __builtin_convertvector(b, vf64)), vf32);");
  table.value("floordiv", "f64", "vvv",
              "v$T r = fmod_$T(a, b), q = (a - r) / b;"
              " q = (r != 0) & ((r < 0) != (b < 0)) ? q - 1 : q;"
              " v$T f = floor_$T(q); f = q - f > (__typeof__(a[0] + 0))0.5 ? f + 1 : f;"
              " f = q == 0 ? copysign_$T((v$T){}, a / b) : f;"
              " return b == 0 ? a / b : f;",
              false);
  table.value(
      "nextafter", kFloats, "vvv",
      "v$I i = (v$I)a; v$I up = (v$I)((a < b) == (a > 0)) & 1; v$T one = copysign_$T((v$T)splat_$I(1), b);"
      " v$T r = (v$T)(i + (up + up - 1)); r = a == 0 ? one : r; r = a == b ? b : r;"
      " return (a != a) | (b != b) ? a + b : r;");
}

}  // namespace

void add_float_snippets(SnippetTable& table) {
  for_each_token(kFloats, [&](std::string_view token) {
    add_roots(table, token);
    add_rounding(table, token);
    add_extrema(table, token);
  });
  add_signs(table);
  add_division(table);
}

}  // namespace stax::codegen

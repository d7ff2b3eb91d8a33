// Conversions between element types, and the widening and narrowing of half types.
#include <fmt/core.h>

#include "codegen/cpp/prelude_table.h"

namespace stax::codegen {

namespace {

/// float16 to float32 by F16C or AVX-512; otherwise on the bits, with the exponent rebased by a product that
/// is exact for subnormal numbers too.
std::string widen_f16(const VectorShape& shape) {
  std::string bits =
      "vu32 h = __builtin_convertvector(a, vu32); vu32 m = (h & 0x7fffu) << 13;"
      " vu32 r = (vu32)((vf32)m * 0x1p112f); r |= (vu32)(m >= (0x7c00u << 13)) & 0x7f800000u;"
      " return (vf32)(r | ((h & 0x8000u) << 16));";
  if (!shape.avx2()) return bits;
  const std::string_view cast = "typedef short q __attribute__((vector_size({})));";
  switch (shape.lanes) {
    case 16:
      if (!shape.avx512()) return bits;
      return gcc_or(fmt::format(fmt::runtime(cast), 32) +
                        " return (vf32)__builtin_ia32_vcvtph2ps512_mask((q)a, (vf32){}, (short)-1, 4);",
                    bits);
    case 8:
      return gcc_or(fmt::format(fmt::runtime(cast), 16) + " return (vf32)__builtin_ia32_vcvtph2ps256((q)a);",
                    bits);
    case 4:
      return gcc_or(fmt::format(fmt::runtime(cast), 16) +
                        " return (vf32)__builtin_ia32_vcvtph2ps((q){(short)a[0], (short)a[1], (short)a[2], "
                        "(short)a[3]});",
                    bits);
  }
  return bits;
}

/// float32 to float16, to nearest even. On the bits: numbers below the smallest normal half are rounded by an
/// addition that puts their last bit where the sum's is; others carry a rounding increment into the kept
/// bits.
std::string narrow_f16(const VectorShape& shape) {
  std::string bits =
      "vu32 x = (vu32)a, s = x & 0x80000000u, m = x ^ s;"
      " vu32 small = (vu32)((vf32)m + 0.5f) - 0x3f000000u;"
      " vu32 normal = (m + 0xc8000fffu + ((m >> 13) & 1u)) >> 13;"
      " vu32 r = (vi32)(m < 0x38800000u) ? small : normal;"
      " r = (vi32)(m >= 0x47800000u) ? splat_u32(0x7c00u) : r;"
      " r = (vi32)(m > 0x7f800000u) ? ((m >> 13) & 0x3ffu) | 0x7e00u : r;"
      " return __builtin_convertvector(r | (s >> 16), vu16);";
  if (!shape.avx2()) return bits;
  switch (shape.lanes) {
    case 16:
      if (!shape.avx512()) return bits;
      return gcc_or(
          "typedef short q __attribute__((vector_size(32)));"
          " return (vu16)__builtin_ia32_vcvtps2ph512_mask(a, 0, (q){}, (short)-1);",
          bits);
    case 8:
      return gcc_or("return (vu16)__builtin_ia32_vcvtps2ph256(a, 0);", bits);
    case 4:
      return gcc_or(
          "auto h = __builtin_ia32_vcvtps2ph(a, 0); return (vu16){(u16)h[0], (u16)h[1], (u16)h[2], "
          "(u16)h[3]};",
          bits);
  }
  return bits;
}

constexpr std::string_view kWidenBf16 = "return (vf32)(__builtin_convertvector(a, vu32) << 16);";
constexpr std::string_view kNarrowBf16 =
    "vu32 x = (vu32)a; vu32 r = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;"
    " r = (vi32)(a != a) ? (x >> 16) | 0x40u : r; return __builtin_convertvector(r, vu16);";

/// float to integer: truncated, NaN to 0; saturated to `wide` (i32 or i64), or, where only the low bits are
/// `kept`, 0 where `wide` does not hold it (so are the low bits of its lowest number).
std::string saturating(std::string_view from, std::string_view wide, bool kept) {
  const std::string limit =
      fmt::format("{}{}", wide == "i32" ? "0x1p31" : "0x1p63", from == "f32" ? "f" : "");
  const std::string_view top = wide == "i32" ? "0x7fffffff" : "0x7fffffffffffffffl";
  std::string text = fmt::format(
      "v$I nan = a != a, high = a >= {0}; v$T t = nan | high ? (v$T){{}} : a; t = t < -{0} ? splat_$T(-{0}) "
      ": t;"
      " v{1} r = __builtin_convertvector(t, v{1});",
      limit, wide);
  if (!kept) text += fmt::format(" r = __builtin_convertvector(high, v{0}) ? splat_{0}({1}) : r;", wide, top);
  return expand(text, from, 0);
}

std::string conversion_body(std::string_view from, std::string_view to) {
  const TokenInfo& source = token_info(from);
  const TokenInfo& target = token_info(to);
  if (from == to) return "return a;";
  if (to == "f16" || to == "bf16")
    return fmt::format("return p_widen_{0}(p_narrow_{0}(cvt_{1}_f32(a)));", to, from);
  if (from == "f16" || from == "bf16") return fmt::format("return cvt_f32_{}(a);", to);
  if (from == "b8" && to == "f32") return "return (vf32)(__builtin_convertvector(a, vi32) & 0x3f800000);";
  if (from == "b8") return fmt::format("return __builtin_convertvector(a & 1, v{});", to);
  if (to == "b8") return fmt::format("return ne_{0}(a, (v{0}){{}});", from);
  if (!source.is_float || target.is_float) return fmt::format("return __builtin_convertvector(a, v{});", to);
  const std::string_view wide = to == "i64" ? "i64" : "i32";
  return saturating(from, wide, to != "i32" && to != "i64") +
         fmt::format(" return __builtin_convertvector(r, v{});", to);
}

bool is_half_token(std::string_view token) {
  return token == "f16" || token == "bf16";
}
std::string vector_of(std::string_view token) {
  return token == "b8" ? "vm" : is_half_token(token) ? "vf32" : fmt::format("v{}", token);
}
std::string_view scalar_of(std::string_view token) {
  return token == "b8" ? "bool" : is_half_token(token) ? "f32" : token;
}

constexpr std::string_view kAll = "b8 u8 i8 i16 i32 i64 f16 bf16 f32 f64";

void add_conversions_to(SnippetTable& table, std::string_view to) {
  for_each_token(kAll, [&](std::string_view from) {
    const std::string name = fmt::format("cvt_{}_{}", from, to);
    table.raw(name, fmt::format("STAX_INLINE {} {}({} a) {{ {} }}\n", vector_of(to), name, vector_of(from),
                                conversion_body(from, to)));
    table.raw("s_" + name,
              fmt::format("STAX_INLINE {} s_{}({} a) {{ return {}(splat_{}(a))[0]{}; }}\n", scalar_of(to),
                          name, scalar_of(from), name, from, to == "b8" ? " != 0" : ""));
  });
}

}  // namespace

void add_conversion_snippets(SnippetTable& table) {
  const VectorShape& shape = table.shape();
  auto half = [&](std::string_view token, std::string_view widen, std::string_view narrow) {
    table.raw(fmt::format("p_widen_{}", token),
              fmt::format("STAX_INLINE vf32 p_widen_{}(vu16 a) {{ {} }}\n", token, widen));
    table.raw(fmt::format("p_narrow_{}", token),
              fmt::format("STAX_INLINE vu16 p_narrow_{}(vf32 a) {{ {} }}\n", token, narrow));
  };
  half("f16", widen_f16(shape), narrow_f16(shape));
  half("bf16", kWidenBf16, kNarrowBf16);
  table.each(kAll, add_conversions_to);
  for_each_token("f32 f64", [&](std::string_view token) {
    table.raw(expand("bits_$T_$I", token, 0),
              expand("STAX_INLINE v$I bits_$T_$I(v$T a) { return (v$I)a; }\n", token, 0));
    table.raw(expand("bits_$I_$T", token, 0),
              expand("STAX_INLINE v$T bits_$I_$T(v$I a) { return (v$T)a; }\n", token, 0));
  });
}

}  // namespace stax::codegen

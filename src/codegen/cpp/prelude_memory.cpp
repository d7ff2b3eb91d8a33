// Loads, stores, gathers, splats and masks of tails.
#include <fmt/core.h>

#include "codegen/cpp/prelude_table.h"

namespace stax::codegen {

namespace {

constexpr std::string_view kInsnSuffix[9] = {"", "qi", "hi", "", "si", "", "", "", "di"};
constexpr std::string_view kInsnElement[9] = {"", "char", "short", "", "int", "", "", "", "long long"};
bool is_register(int bytes) {
  return bytes == 16 || bytes == 32 || bytes == 64;
}

std::string lane_bits(int lanes) {
  if (lanes == 64) return "(n >= 64 ? ~0ul : (1ul << n) - 1)";
  return fmt::format("({})((1ul << n) - 1)", lanes <= 8 ? "u8" : lanes == 16 ? "u16" : "u32");
}

/// Body of the load of the first n lanes.
std::string partial_load(const VectorShape& shape, const TokenInfo& t) {
  const int bytes = shape.lanes * t.size;
  std::string plain = "$T r[$N] = {}; for (int i = 0; i < n; ++i) r[i] = p[i]; return *(const v$T_u*)r;";
  if (!is_register(bytes) || bytes > shape.vector_bytes) return plain;
  const std::string_view suffix = kInsnSuffix[t.size], element = kInsnElement[t.size];
  const std::string type = fmt::format("typedef {} q __attribute__((vector_size({})));", element, bytes);
  if (shape.avx512())
    return gcc_or(fmt::format("{} return (v$T)__builtin_ia32_loaddqu{}{}_mask((const {}*)p, (q){{}}, {});",
                              type, suffix, bytes * 8, element, lane_bits(shape.lanes)),
                  plain);
  if (shape.avx2() && t.size >= 4)
    return gcc_or(
        fmt::format("{} return (v$T)__builtin_ia32_maskload{}{}((const q*)p, (q)(v$I)(iota_$I() < ($I)n));",
                    type, t.size == 4 ? "d" : "q", bytes == 32 ? "256" : ""),
        plain);
  return plain;
}

std::string partial_store(const VectorShape& shape, const TokenInfo& t) {
  const int bytes = shape.lanes * t.size;
  std::string plain = "$T r[$N]; *(v$T_u*)r = v; for (int i = 0; i < n; ++i) p[i] = r[i];";
  if (!is_register(bytes) || bytes > shape.vector_bytes) return plain;
  const std::string_view suffix = kInsnSuffix[t.size], element = kInsnElement[t.size];
  const std::string type = fmt::format("typedef {} q __attribute__((vector_size({})));", element, bytes);
  if (shape.avx512())
    return gcc_or(fmt::format("{} __builtin_ia32_storedqu{}{}_mask(({}*)p, (q)v, {});", type, suffix,
                              bytes * 8, element, lane_bits(shape.lanes)),
                  plain);
  if (shape.avx2() && t.size >= 4)
    return gcc_or(fmt::format("{} __builtin_ia32_maskstore{}{}((q*)p, (q)(v$I)(iota_$I() < ($I)n), (q)v);",
                              type, t.size == 4 ? "d" : "q", bytes == 32 ? "256" : ""),
                  plain);
  return plain;
}

/// Body of the load (or, with a value, the store) of the lanes of mask m.
std::string masked_access(const VectorShape& shape, const TokenInfo& t, bool store) {
  const int bytes = shape.lanes * t.size;
  const std::string plain = store ? per_lane(shape.lanes, "if (m[#]) p[#] = v[#];", " ")
                                  : "return (v$T){" + per_lane(shape.lanes, "m[#] ? p[#] : ($T)0") + "};";
  if (!is_register(bytes) || bytes > shape.vector_bytes) return plain;
  const std::string_view suffix = kInsnSuffix[t.size], element = kInsnElement[t.size];
  const std::string type = fmt::format("typedef {} q __attribute__((vector_size({})));", element, bytes);
  if (shape.avx512()) {
    const std::string call =
        store
            ? fmt::format("__builtin_ia32_storedqu{}{}_mask(({}*)p, (q)v, p_bits_b8(m));", suffix, bytes * 8,
                          element)
            : fmt::format("return (v$T)__builtin_ia32_loaddqu{}{}_mask((const {}*)p, (q){{}}, p_bits_b8(m));",
                          suffix, bytes * 8, element);
    return gcc_or(type + " " + call, plain);
  }
  if (!shape.avx2() || t.size < 4) return plain;
  const std::string lanes = "(q)__builtin_convertvector(m, v$I)";
  const std::string name = fmt::format("{}{}", t.size == 4 ? "d" : "q", bytes == 32 ? "256" : "");
  const std::string call =
      store ? fmt::format("__builtin_ia32_maskstore{}((q*)p, {}, (q)v);", name, lanes)
            : fmt::format("return (v$T)__builtin_ia32_maskload{}((const q*)p, {});", name, lanes);
  return gcc_or(type + " " + call, plain);
}

/// The lanes of a mask as bits.
std::string mask_bits(const VectorShape& shape) {
  const int size = shape.vector_bytes / shape.lanes;
  const std::string_view insn = size == 1 ? "b" : size == 2 ? "w" : size == 4 ? "d" : "q";
  const std::string_view bits = shape.lanes <= 8    ? "u8"
                                : shape.lanes == 16 ? "u16"
                                : shape.lanes == 32 ? "u32"
                                                    : "u64";
  return fmt::format(
      "STAX_INLINE {0} p_bits_b8(vm m) {{\n#ifdef __clang__\n{0} r = 0; for (int i = 0; i < {1}; ++i) r |= "
      "({0})(({0})(m[i] & 1) << i); return r;\n#else\ntypedef {2} q __attribute__((vector_size(64))); return "
      "__builtin_ia32_cvt{3}2mask512((q)m);\n#endif\n}}\n",
      bits, shape.lanes, kInsnElement[size], insn);
}

std::string stream_store(const VectorShape& shape, const TokenInfo& t) {
  const int bytes = shape.lanes * t.size;
  if (!is_register(bytes) || bytes > shape.vector_bytes) return "*(v$T_u*)p = v;";
  const std::string suffix = bytes == 16 ? "" : fmt::format("{}", bytes * 8);
  std::string store = fmt::format(
      "typedef float q __attribute__((vector_size({}))); __builtin_ia32_movntps{}((float*)p, (q)v);", bytes,
      suffix);
  if (!shape.avx2()) store = "\n#ifdef __SSE2__\n" + store + "\n#else\n*(v$T_u*)p = v;\n#endif\n";
  return gcc_or(store, "__builtin_nontemporal_store(v, (v$T*)p);");
}

/// Memory access of a type whose register form is its memory form.
void add_plain(SnippetTable& table, std::string_view token) {
  const VectorShape& shape = table.shape();
  const TokenInfo& t = token_info(token);
  auto add = [&](std::string_view name, std::string_view head, std::string_view body) {
    table.raw(expand(name, token, shape.lanes),
              expand(fmt::format("{} {{ {} }}\n", head, body), token, shape.lanes));
  };
  const int n = shape.lanes;
  add("load_$T", "STAX_INLINE v$T load_$T(const $T* p)", "return *(const v$T_u*)p;");
  add("loadn_$T", "STAX_INLINE v$T loadn_$T(const $T* p, int n)", partial_load(shape, t));
  add("store_$T", "STAX_INLINE void store_$T($T* p, v$T v)", "*(v$T_u*)p = v;");
  add("storen_$T", "STAX_INLINE void storen_$T($T* p, v$T v, int n)", partial_store(shape, t));
  add("loadm_$T", "STAX_INLINE v$T loadm_$T(const $T* p, vm m)", masked_access(shape, t, false));
  add("storem_$T", "STAX_INLINE void storem_$T($T* p, v$T v, vm m)", masked_access(shape, t, true));
  add("stream_$T", "STAX_INLINE void stream_$T($T* p, v$T v)", stream_store(shape, t));
  add("gather_$T", "STAX_INLINE v$T gather_$T(const $T* p, i64 s)",
      "return (v$T){" + per_lane(n, "p[# * s]") + "};");
  add("gathern_$T", "STAX_INLINE v$T gathern_$T(const $T* p, i64 s, int n)",
      "$T r[$N] = {}; for (int i = 0; i < n; ++i) r[i] = p[i * s]; return *(const v$T_u*)r;");
  add("gatheri_$T", "template <class I> STAX_INLINE v$T gatheri_$T(const $T* p, I i)",
      "return (v$T){" + per_lane(n, "p[i[#]]") + "};");
  add("gatherm_$T", "template <class I> STAX_INLINE v$T gatherm_$T(const $T* p, I i, vm m)",
      "return (v$T){" + per_lane(n, "m[#] ? p[i[#]] : ($T)0") + "};");
  add("scatter_$T", "STAX_INLINE void scatter_$T($T* p, i64 s, v$T v)", per_lane(n, "p[# * s] = v[#];", " "));
  add("scattern_$T", "STAX_INLINE void scattern_$T($T* p, i64 s, v$T v, int n)",
      "$T r[$N]; *(v$T_u*)r = v; for (int i = 0; i < n; ++i) p[i * s] = r[i];");
  add("scatteri_$T", "template <class I> STAX_INLINE void scatteri_$T($T* p, I i, v$T v)",
      per_lane(n, "p[i[#]] = v[#];", " "));
  add("scatterm_$T", "template <class I> STAX_INLINE void scatterm_$T($T* p, I i, v$T v, vm m)",
      per_lane(n, "if (m[#]) p[i[#]] = v[#];", " "));
  // x - 0 and not 0 + x: only the first is x for every x, so only it costs nothing.
  add("splat_$T", "STAX_INLINE v$T splat_$T($T s)", "return s - (v$T){};");
  add("iota_$T", "STAX_INLINE v$T iota_$T()", "return (v$T){" + per_lane(n, "#") + "};");
}

/// Memory access of bool, f16 and bf16: that of `stored`, widened and narrowed by p_widen_T and p_narrow_T.
void add_narrow(SnippetTable& table, std::string_view token, std::string_view stored,
                std::string_view vector) {
  auto loads = [&](std::string_view name, std::string_view prefix, std::string_view parameters,
                   std::string_view arguments) {
    table.raw(fmt::format("{}_{}", name, token),
              fmt::format("{}STAX_INLINE {} {}_{}(const {}* p{}) {{ return p_widen_{}({}_{}(p{})); }}\n",
                          prefix, vector, name, token, token, parameters, token, name, stored, arguments));
  };
  auto stores = [&](std::string_view name, std::string_view prefix, std::string_view before,
                    std::string_view after, std::string_view arguments_before,
                    std::string_view arguments_after) {
    table.raw(fmt::format("{}_{}", name, token),
              fmt::format("{}STAX_INLINE void {}_{}({}* p{}, {} v{}) {{ {}_{}(p{}, p_narrow_{}(v){}); }}\n",
                          prefix, name, token, token, before, vector, after, name, stored, arguments_before,
                          token, arguments_after));
  };
  constexpr std::string_view kTemplate = "template <class I> ";
  loads("load", "", "", "");
  loads("loadn", "", ", int n", ", n");
  loads("loadm", "", ", vm m", ", m");
  loads("gather", "", ", i64 s", ", s");
  loads("gathern", "", ", i64 s, int n", ", s, n");
  loads("gatheri", kTemplate, ", I i", ", i");
  loads("gatherm", kTemplate, ", I i, vm m", ", i, m");
  stores("store", "", "", "", "", "");
  stores("storen", "", "", ", int n", "", ", n");
  stores("storem", "", "", ", vm m", "", ", m");
  stores("stream", "", "", "", "", "");
  stores("scatter", "", ", i64 s", "", ", s", "");
  stores("scattern", "", ", i64 s", ", int n", ", s", ", n");
  stores("scatteri", kTemplate, ", I i", "", ", i", "");
  stores("scatterm", kTemplate, ", I i", ", vm m", ", i", ", m");
}

}  // namespace

void add_memory_snippets(SnippetTable& table) {
  const int n = table.shape().lanes;
  if (table.shape().avx512()) table.raw("p_bits_b8", mask_bits(table.shape()));
  table.each("u8 i8 i16 i32 i64 f32 f64 u16", add_plain);
  for_each_token("u32 u64", [&](std::string_view token) {
    table.raw(expand("splat_$T", token, n),
              expand("STAX_INLINE v$T splat_$T($T s) { return s - (v$T){}; }\n", token, n));
  });
  const std::string mask_token = fmt::format("i{}", table.shape().vector_bytes / n * 8);
  table.raw("p_widen_b8", fmt::format("STAX_INLINE vm p_widen_b8(vu8 a) {{ return "
                                      "__builtin_convertvector(a, vm) != 0; }}\n"));
  table.raw("p_narrow_b8",
            "STAX_INLINE vu8 p_narrow_b8(vm a) { return __builtin_convertvector(a & 1, vu8); }\n");
  table.each("b8", [](SnippetTable& t, std::string_view token) { add_narrow(t, token, "u8", "vm"); });
  table.each("f16 bf16",
             [](SnippetTable& t, std::string_view token) { add_narrow(t, token, "u16", "vf32"); });
  table.raw("splat_b8", fmt::format("STAX_INLINE vm splat_b8(bool s) {{ return ({})-(int)s - (vm){{}}; }}\n",
                                    mask_token));
  table.raw("splat_f16", "STAX_INLINE vf32 splat_f16(f32 s) { return splat_f32(s); }\n");
  table.raw("splat_bf16", "STAX_INLINE vf32 splat_bf16(f32 s) { return splat_f32(s); }\n");
  for_each_token("f16 bf16", [&](std::string_view t) {
    table.raw(
        fmt::format("sload_{}", t),
        fmt::format("STAX_INLINE f32 sload_{0}(const {0}* p) {{ return p_widen_{0}(splat_u16(*p))[0]; }}\n",
                    t));
    table.raw(
        fmt::format("sstore_{}", t),
        fmt::format("STAX_INLINE void sstore_{0}({0}* p, f32 v) {{ *p = p_narrow_{0}(splat_f32(v))[0]; }}\n",
                    t));
  });
  table.raw("tail_b8", fmt::format("STAX_INLINE vm tail_b8(int n) {{ return (vm){{{}}} < ({})n; }}\n",
                                   per_lane(n, "#"), mask_token));
  table.raw("p_fence",
            "STAX_INLINE void p_fence() {\n#ifdef __SSE2__\n__builtin_ia32_sfence();\n#endif\n}\n");
  table.raw("prefetch", "STAX_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }\n");
}

}  // namespace stax::codegen

// Functions that kernels need and the prelude does not offer: integers of loops, status, random numbers, and
// what is rare enough to go lane by lane.
#include <set>

#include "codegen/cpp/spelling.h"

namespace stax::codegen {

namespace {

struct Helper {
  const char* name;  // up to the token, with its underscore, where it has one
  const char* text;  // $T: token; $V: vector type
};

constexpr Helper kHelpers[] = {
    {"k_div",
     "static inline long k_div(long a, long b) { long q = a / b; return q - (a % b != 0 && (a ^ b) < 0); "
     "}\n"},
    {"k_mod",
     "static inline long k_mod(long a, long b) { long r = a % b; return r + (r != 0 && (r ^ b) < 0 ? b : 0); "
     "}\n"},
    {"k_min", "static inline long k_min(long a, long b) { return a < b ? a : b; }\n"},
    {"k_max", "static inline long k_max(long a, long b) { return a > b ? a : b; }\n"},
    {"k_room",
     "static inline long k_room(const void* p, long size, long lanes) {\n"
     "  return lanes - ((long)p & (size * lanes - 1)) / size;\n}\n"},
    {"k_fmax_",
     "STAX_INLINE $V k_fmax_$T($V a, $V b) {\n"
     "  return select_$T(isnan_$T(a), b, select_$T(isnan_$T(b), a, max_$T(a, b)));\n}\n"},
    {"k_fmin_",
     "STAX_INLINE $V k_fmin_$T($V a, $V b) {\n"
     "  return select_$T(isnan_$T(a), b, select_$T(isnan_$T(b), a, min_$T(a, b)));\n}\n"},
    {"k_logaddexp_",
     "STAX_INLINE $V k_logaddexp_$T($V a, $V b) {\n"
     "  $V r = add_$T(max_$T(a, b), log1p_$T(exp_$T(sub_$T(min_$T(a, b), max_$T(a, b)))));\n"
     "  return select_$T(and_b8(eq_$T(a, b), isinf_$T(a)), a, r);\n}\n"},
    // Integer power by squaring; negative exponents leave 1 for 1, +-1 for -1, and 0.
    {"k_pow_",
     "STAX_NOINLINE $V k_pow_$T($V a, $V b) {\n"
     "  $V r = a;\n"
     "  for (unsigned k = 0; k < sizeof(a) / sizeof(a[0]); ++k) {\n"
     "    $T x = a[k], y = 1; long e = b[k];\n"
     "    if (e < 0) { y = x == 1 ? 1 : x == ($T)-1 ? (e % 2 ? ($T)-1 : 1) : 0; e = 0; }\n"
     "    for (; e > 0; e >>= 1, x = x * x) if (e & 1) y = y * x;\n"
     "    r[k] = y;\n  }\n  return r;\n}\n"},
    {"k_gcd_",
     "STAX_NOINLINE $V k_gcd_$T($V a, $V b) {\n"
     "  a = abs_$T(a); b = abs_$T(b);\n"
     "  while (hany_b8(ne_$T(a, splat_$T(0)))) {\n"
     "    $V r = rem_$T(b, a); vm on = ne_$T(a, splat_$T(0));\n"
     "    b = select_$T(on, a, b); a = select_$T(on, r, a);\n  }\n  return b;\n}\n"},
    {"k_hxor_",
     "STAX_INLINE $T k_hxor_$T($V a) {\n"
     "  $T r = 0; for (unsigned k = 0; k < sizeof(a) / sizeof(a[0]); ++k) r ^= a[k]; return r;\n}\n"},
    {"k_hxor_b8",
     "STAX_INLINE bool k_hxor_b8(vm a) {\n"
     "  bool r = false; for (unsigned k = 0; k < sizeof(a) / sizeof(a[0]); ++k) r ^= a[k] != 0; return "
     "r;\n}\n"},
    // The extreme lane; a NaN is more extreme than any number; ties take the lowest position.
    {"k_argmax_",
     "STAX_NOINLINE i64 k_argmax_$T($V a, vi64 at) {\n"
     "  int w = 0;\n"
     "  for (unsigned k = 1; k < sizeof(a) / sizeof(a[0]); ++k) {\n"
     "    bool n = a[k] != a[k], m = a[w] != a[w];\n"
     "    if ((n && !m) || (!m && a[k] > a[w]) || ((a[k] == a[w] || (n && m)) && at[k] < at[w])) w = k;\n"
     "  }\n  return at[w];\n}\n"},
    {"k_argmin_",
     "STAX_NOINLINE i64 k_argmin_$T($V a, vi64 at) {\n"
     "  int w = 0;\n"
     "  for (unsigned k = 1; k < sizeof(a) / sizeof(a[0]); ++k) {\n"
     "    bool n = a[k] != a[k], m = a[w] != a[w];\n"
     "    if ((n && !m) || (!m && a[k] < a[w]) || ((a[k] == a[w] || (n && m)) && at[k] < at[w])) w = k;\n"
     "  }\n  return at[w];\n}\n"},
    // Bits of bool are lanes of 0 or -1, which do not compare like bool.
    {"k_argmax_b8",
     "STAX_INLINE i64 k_argmax_b8(vm a, vi64 at) { return k_argmax_i64(cvt_b8_i64(a), at); }\n"},
    {"k_argmin_b8",
     "STAX_INLINE i64 k_argmin_b8(vm a, vi64 at) { return k_argmin_i64(cvt_b8_i64(a), at); }\n"},
    {"k_atomic_",
     "STAX_INLINE void k_atomic_$T($T* p, vi64 at, $V v, vm on) {\n"
     "  for (unsigned k = 0; k < sizeof(at) / sizeof(at[0]); ++k) if (on[k]) p[at[k]] += v[k];\n}\n"},
    {"k_atomic_b8",
     "STAX_INLINE void k_atomic_b8(b8* p, vi64 at, vm v, vm on) {\n"
     "  for (unsigned k = 0; k < sizeof(at) / sizeof(at[0]); ++k) if (on[k] && v[k]) p[at[k]] = 1;\n}\n"},
    {"k_atomic_f16",
     "STAX_INLINE void k_atomic_f16(f16* p, vi64 at, vf32 v, vm on) {\n"
     "  for (unsigned k = 0; k < sizeof(at) / sizeof(at[0]); ++k)\n"
     "    if (on[k]) sstore_f16(p + at[k], sload_f16(p + at[k]) + v[k]);\n}\n"},
    {"k_atomic_bf16",
     "STAX_INLINE void k_atomic_bf16(bf16* p, vi64 at, vf32 v, vm on) {\n"
     "  for (unsigned k = 0; k < sizeof(at) / sizeof(at[0]); ++k)\n"
     "    if (on[k]) sstore_bf16(p + at[k], sload_bf16(p + at[k]) + v[k]);\n}\n"},
    {"k_check_failed",
     "static __attribute__((noinline, cold, unused)) void k_check_failed(long* status, long node, vi64 i, vm "
     "bad, long size) {\n"
     "  if (__atomic_exchange_n(&status[3], 1, __ATOMIC_ACQ_REL) != 0) return;\n"
     "  unsigned k = 0; while (!bad[k]) ++k;\n"
     "  status[0] = node; status[1] = i[k]; status[2] = size;\n}\n"},
    {"k_check",
     "STAX_INLINE vi64 k_check(long* status, long node, bool wrap, vi64 i, long size, vm on) {\n"
     "  vi64 zero = splat_i64(0), j = wrap ? select_i64(lt_i64(i, zero), add_i64(i, splat_i64(size)), i) : "
     "i;\n"
     "  vm bad = and_b8(on, or_b8(lt_i64(j, zero), ge_i64(j, splat_i64(size))));\n"
     "  if (hany_b8(bad)) {\n"
     "    k_check_failed(status, node, i, bad, size);\n"
     "    j = max_i64(min_i64(j, splat_i64(size - 1)), zero);\n  }\n"
     "  return select_i64(on, j, zero);\n}\n"},
    // Philox-4x32-10 (Salmon et al., 2011): key = seed, counter in the low half of the block.
    {"k_philox",
     "STAX_NOINLINE vi64 k_philox(vi64 seed, vi64 counter, int word) {\n"
     "  const u64 low = 0xfffffffful; vu64 k0 = (vu64)seed & low, k1 = (vu64)seed >> 32;\n"
     "  vu64 a = (vu64)counter & low, b = (vu64)counter >> 32, c = {}, d = {};\n"
     "  for (int k = 0; k < 10; ++k) {\n"
     "    vu64 p = a * 0xD2511F53ul, q = c * 0xCD9E8D57ul;\n"
     "    a = (q >> 32) ^ b ^ k0; b = q & low; c = (p >> 32) ^ d ^ k1; d = p & low;\n"
     "    k0 = (k0 + 0x9E3779B9ul) & low; k1 = (k1 + 0xBB67AE85ul) & low;\n  }\n"
     "  return (vi64)(word == 0 ? a : word == 1 ? b : word == 2 ? c : d);\n}\n"},
    // Modified Bessel function of order 0: sum of (x/2)^2k / (k!)^2 for |x| <= 15, its asymptotic series
    // beyond.
    {"k_i0_",
     "STAX_NOINLINE $V k_i0_$T($V v) {\n"
     "  $V out = v;\n"
     "  for (unsigned k = 0; k < sizeof(v) / sizeof(v[0]); ++k) {\n"
     "    double x = v[k] < 0 ? -(double)v[k] : (double)v[k], sum = 1, term = 1;\n"
     "    if (x != x) continue;\n"
     "    if (x <= 30) {\n"
     "      for (int j = 1; j < 80; ++j) { term *= x * x / (4.0 * j * j); sum += term; }\n"
     "      out[k] = ($T)sum;\n"
     "    } else if (x > 750) {\n"
     "      out[k] = ($T)(__builtin_inf() + (x - x));\n"
     "    } else {\n"
     "      for (int j = 1; j < 25; ++j) { term *= (2.0 * j - 1) * (2.0 * j - 1) / (8.0 * x * j); sum += "
     "term; }\n"
     "      double half = s_exp_f64(x * 0.5);\n"
     "      out[k] = ($T)(half * (sum / s_sqrt_f64(6.283185307179586 * x)) * half);\n"
     "    }\n  }\n  return out;\n}\n"},
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// The helper's text, or nothing if there is none of that name.
std::string helper_text(std::string_view word) {
  for (const Helper& helper : kHelpers)
    if (word == helper.name) return helper.text;
  const size_t cut = word.rfind('_') + 1;
  for (const Helper& helper : kHelpers) {
    if (word.substr(0, cut) != helper.name) continue;
    const std::string_view type = word.substr(cut);
    std::string text = helper.text;
    replace(text, "$V", type == "b8" ? "vm" : "v" + std::string(type));
    replace(text, "$T", type);
    return text;
  }
  return {};
}

void append(std::string_view text, std::set<std::string, std::less<>>& done, std::string& out) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != 'k' || text[i + 1] != '_' || (i > 0 && is_word(text[i - 1]))) continue;
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    i = end;
    if (done.count(word)) continue;
    const std::string helper = helper_text(word);
    if (helper.empty()) continue;
    done.emplace(word);
    append(helper, done, out);
    out += helper;
  }
}

}  // namespace

std::string helpers_for(std::string_view text) {
  std::set<std::string, std::less<>> done;
  std::string out;
  append(text, done, out);
  return out;
}

}  // namespace stax::codegen

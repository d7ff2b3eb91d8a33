// Arithmetic, comparisons, selection, integer division and shifts, reductions over lanes.
#include <fmt/core.h>

#include "codegen/cpp/prelude_table.h"

namespace stax::codegen {

namespace {

void add_comparisons(SnippetTable& table) {
  struct Row {
    std::string_view name, op;
  };
  constexpr Row rows[] = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"le", "<="}, {"gt", ">"}, {"ge", ">="}};
  for (const Row& row : rows)
    table.value(row.name, kNumbers, "mvv",
                fmt::format("return __builtin_convertvector((v$I)(a {} b), vm);", row.op));
  table.value("select", kNumbers, "vmvv", "return __builtin_convertvector(a, v$I) ? b : c;");
  table.value("select", "b8", "mmmm", "return (a & b) | (~a & c);");
  table.value("and", "b8", "mmm", "return a & b;");
  table.value("or", "b8", "mmm", "return a | b;");
  table.value("xor", "b8", "mmm", "return a ^ b;");
  table.value("not", "b8", "mm", "return ~a;");
}

void add_integers(SnippetTable& table) {
  table.value("abs", "u8", "vv", "return a;");
  table.value("abs", "i8 i16 i32 i64", "vv", "return a < 0 ? -a : a;");
  table.value("sign", kIntegers, "vv", "return (v$T)((a < 0) - (a > 0));");
  table.value("max", kIntegers, "vvv", "return a > b ? a : b;");
  table.value("min", kIntegers, "vvv", "return a < b ? a : b;");
  table.value("and", kIntegers, "vvv", "return a & b;");
  table.value("or", kIntegers, "vvv", "return a | b;");
  table.value("xor", kIntegers, "vvv", "return a ^ b;");
  table.value("not", kIntegers, "vv", "return ~a;");
  // The divisor is replaced by 1 where the processor would trap.
  table.value("truncdiv", "u8", "vvv",
              "v$I z = b == 0; v$T q = a / (z ? splat_$T(1) : b); return z ? (v$T){} : q;");
  table.value("truncdiv", "i8 i16 i32 i64", "vvv",
              "v$I z = b == 0; v$I w = (a == ($T)(($U)1 << ($B - 1))) & (b == ($T)-1);"
              " v$T q = a / ((z | w) ? splat_$T(1) : b); return z ? (v$T){} : q;");
  table.value("rem", kIntegers, "vvv", "return a - truncdiv_$T(a, b) * b;");
  table.value("floordiv", "u8", "vvv", "return truncdiv_u8(a, b);");
  table.value("floordiv", "i8 i16 i32 i64", "vvv",
              "v$T q = truncdiv_$T(a, b), r = a - q * b;"
              " return q + (v$T)((b != 0) & (r != 0) & ((r ^ b) < 0));");
  table.value("mod", "u8", "vvv", "return rem_u8(a, b);");
  table.value("mod", "i8 i16 i32 i64", "vvv",
              "v$T r = rem_$T(a, b); return r + ((v$T)((r != 0) & ((r ^ b) < 0)) & b);");
  table.value("shl", kIntegers, "vvv",
              "v$I in = (v$U)b < ($U)$B; return in ? (v$T)((v$U)a << ((v$U)b & ($U)($B - 1))) : (v$T){};");
  table.value("shr", "u8", "vvv", "v$I in = b < ($T)$B; return in ? a >> (b & ($T)($B - 1)) : (v$T){};");
  table.value("shr", "i8 i16 i32 i64", "vvv",
              "v$I in = (v$U)b < ($U)$B; return a >> (in ? b : splat_$T($B - 1));");
}

/// Halves the vector log2(N) times; each step combines lane i with lane i + width, modulo N.
std::string tree(int lanes, std::string_view combine) {
  std::string text;
  for (int width = lanes / 2; width > 0; width /= 2) {
    std::string indices;
    for (int lane = 0; lane < lanes; ++lane) indices += fmt::format(", {}", (lane + width) % lanes);
    text += fmt::format("b = __builtin_shufflevector(a, a{}); a = {}; ", indices, combine);
  }
  return text;
}

/// The body of a scan over the lanes of b, on from a. Integers take log2(N) steps, each of which combines
/// lane i with lane i - width, or with `neutral`; floats go from the left, since parts may overflow,
/// underflow or cancel.
std::string prefix(int lanes, bool floats, std::string_view neutral, std::string_view op) {
  if (floats)
    return fmt::format(
        "v$T r = b; $T c = a[0]; for (int k = 0; k < {}; ++k) {{ c = c {} b[k]; r[k] = c; }} return r;",
        lanes, op);
  std::string text = fmt::format("v$T e = {}; ", neutral);
  for (int width = 1; width < lanes; width *= 2) {
    std::string indices;
    for (int lane = 0; lane < lanes; ++lane)
      indices += fmt::format(", {}", lane < width ? lane : lanes + lane - width);
    text += fmt::format("b = __builtin_shufflevector(e, b{}) {} b; ", indices, op);
  }
  return text + fmt::format("return a {} b;", op);
}

void add_scans_of(SnippetTable& table, std::string_view token) {
  const int n = table.shape().lanes;
  const bool floats = token.starts_with('f');
  auto add = [&](std::string_view name, std::string_view parameters, const std::string& body) {
    table.raw(fmt::format("{}_{}", name, token),
              expand(fmt::format("STAX_INLINE v$T {}_$T({}) {{ {} }}\n", name, parameters, body), token, n));
  };
  add("psum", "v$T a, v$T b", prefix(n, floats, "{}", "+"));
  add("pprod", "v$T a, v$T b", prefix(n, floats, "splat_$T(1)", "*"));
  std::string last;
  for (int lane = 0; lane < n; ++lane) last += fmt::format(", {}", n - 1);
  add("last", "v$T a", fmt::format("return __builtin_shufflevector(a, a{});", last));
}

void add_reductions_of(SnippetTable& table, std::string_view token) {
  const int n = table.shape().lanes;
  struct Row {
    std::string_view name, combine;
  };
  constexpr Row rows[] = {
      {"hsum", "a + b"}, {"hprod", "a * b"}, {"hmax", "max_$T(a, b)"}, {"hmin", "min_$T(a, b)"}};
  for (const Row& row : rows)
    table.raw(fmt::format("{}_{}", row.name, token),
              expand(fmt::format("STAX_INLINE $T {}_$T(v$T a) {{ v$T b; {}return a[0]; }}\n", row.name,
                                 tree(n, row.combine)),
                     token, n));
}

void add_reductions(SnippetTable& table) {
  const int n = table.shape().lanes;
  table.each(kNumbers, add_reductions_of);
  table.each(kNumbers, add_scans_of);
  table.raw("hany_b8",
            "STAX_INLINE bool hany_b8(vm a) { vm b; " + tree(n, "a | b") + "return a[0] != 0; }\n");
  table.raw("hall_b8",
            "STAX_INLINE bool hall_b8(vm a) { vm b; " + tree(n, "a & b") + "return a[0] != 0; }\n");
}

}  // namespace

void add_arithmetic_snippets(SnippetTable& table) {
  table.value("add", kNumbers, "vvv", "return a + b;");
  table.value("sub", kNumbers, "vvv", "return a - b;");
  table.value("mul", kNumbers, "vvv", "return a * b;");
  table.value("sq", kNumbers, "vv", "return a * a;");
  table.value("neg", kNumbers, "vv", "return -a;");
  add_comparisons(table);
  add_integers(table);
  add_reductions(table);
}

}  // namespace stax::codegen

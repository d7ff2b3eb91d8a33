#include "codegen/cpp/spelling.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "codegen/cpp/prelude.h"
#include "codegen/pattern.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Constant;
using loops::OpCode;

namespace {

/// Spellings for float, integer and bool operands; null where the instruction does not exist. $T is the
/// dtype's token, $0, $1, $2 are the operands.
struct Row {
  OpCode op;
  const char *floats, *integers, *bools;
};

constexpr const char* kNone = nullptr;

#define UNARY_FLOAT(name) \
  { OpCode::name, #name "_$T($0)", kNone, kNone }
#define BINARY_FLOAT(name) \
  { OpCode::name, #name "_$T($0, $1)", kNone, kNone }

constexpr Row kRows[] = {
    {OpCode::abs, "abs_$T($0)", "abs_$T($0)", "$0"},
    {OpCode::neg, "neg_$T($0)", "neg_$T($0)", "$0"},
    {OpCode::reciprocal, "recip_$T($0)", kNone, kNone},
    {OpCode::sign, "sign_$T($0)", "sign_$T($0)", "$0"},
    {OpCode::relu, "relu_$T($0)", "max_$T($0, splat_$T(0))", "$0"},
    UNARY_FLOAT(sqrt),
    UNARY_FLOAT(rsqrt),
    UNARY_FLOAT(exp),
    UNARY_FLOAT(exp2),
    UNARY_FLOAT(expm1),
    UNARY_FLOAT(log),
    UNARY_FLOAT(log2),
    UNARY_FLOAT(log10),
    UNARY_FLOAT(log1p),
    UNARY_FLOAT(sin),
    UNARY_FLOAT(cos),
    UNARY_FLOAT(tan),
    UNARY_FLOAT(asin),
    UNARY_FLOAT(acos),
    UNARY_FLOAT(atan),
    UNARY_FLOAT(sinh),
    UNARY_FLOAT(cosh),
    UNARY_FLOAT(tanh),
    UNARY_FLOAT(asinh),
    UNARY_FLOAT(acosh),
    UNARY_FLOAT(atanh),
    UNARY_FLOAT(sigmoid),
    UNARY_FLOAT(erf),
    UNARY_FLOAT(erfc),
    UNARY_FLOAT(erfinv),
    UNARY_FLOAT(lgamma),
    UNARY_FLOAT(digamma),
    {OpCode::i0, "k_i0_$T($0)", kNone, kNone},
    {OpCode::floor, "floor_$T($0)", "$0", "$0"},
    {OpCode::ceil, "ceil_$T($0)", "$0", "$0"},
    {OpCode::trunc, "trunc_$T($0)", "$0", "$0"},
    {OpCode::round, "round_$T($0)", "$0", "$0"},
    {OpCode::isnan, "isnan_$T($0)", "ne_$T($0, $0)", "xor_b8($0, $0)"},
    {OpCode::isinf, "isinf_$T($0)", "ne_$T($0, $0)", "xor_b8($0, $0)"},
    {OpCode::signbit, "signbit_$T($0)", "lt_$T($0, splat_$T(0))", "xor_b8($0, $0)"},
    {OpCode::logical_not, "eq_$T($0, splat_$T(0))", "eq_$T($0, splat_$T(0))", "not_b8($0)"},
    {OpCode::bitwise_not, kNone, "not_$T($0)", "not_b8($0)"},
    {OpCode::to_float16, "cvt_$T_f16($0)", kNone, kNone},
    {OpCode::to_bfloat16, "cvt_$T_bf16($0)", kNone, kNone},
    {OpCode::add, "add_$T($0, $1)", "add_$T($0, $1)", "or_b8($0, $1)"},
    {OpCode::sub, "sub_$T($0, $1)", "sub_$T($0, $1)", "xor_b8($0, $1)"},
    {OpCode::mul, "mul_$T($0, $1)", "mul_$T($0, $1)", "and_b8($0, $1)"},
    {OpCode::div, "div_$T($0, $1)", "truncdiv_$T($0, $1)", kNone},
    {OpCode::div_relaxed, "div_$T($0, $1)", "truncdiv_$T($0, $1)", kNone},
    {OpCode::floor_div, "floordiv_$T($0, $1)", "floordiv_$T($0, $1)", kNone},
    {OpCode::trunc_div, "truncdiv_$T($0, $1)", "truncdiv_$T($0, $1)", kNone},
    {OpCode::remainder, "mod_$T($0, $1)", "mod_$T($0, $1)", kNone},
    {OpCode::fmod, "fmod_$T($0, $1)", "rem_$T($0, $1)", kNone},
    {OpCode::maximum, "max_$T($0, $1)", "max_$T($0, $1)", "or_b8($0, $1)"},
    {OpCode::minimum, "min_$T($0, $1)", "min_$T($0, $1)", "and_b8($0, $1)"},
    {OpCode::fmax, "k_fmax_$T($0, $1)", "max_$T($0, $1)", "or_b8($0, $1)"},
    {OpCode::fmin, "k_fmin_$T($0, $1)", "min_$T($0, $1)", "and_b8($0, $1)"},
    {OpCode::pow, "pow_$T($0, $1)", "k_pow_$T($0, $1)", kNone},
    BINARY_FLOAT(atan2),
    BINARY_FLOAT(hypot),
    BINARY_FLOAT(copysign),
    BINARY_FLOAT(nextafter),
    {OpCode::eq, "eq_$T($0, $1)", "eq_$T($0, $1)", "not_b8(xor_b8($0, $1))"},
    {OpCode::ne, "ne_$T($0, $1)", "ne_$T($0, $1)", "xor_b8($0, $1)"},
    {OpCode::lt, "lt_$T($0, $1)", "lt_$T($0, $1)", "and_b8(not_b8($0), $1)"},
    {OpCode::le, "le_$T($0, $1)", "le_$T($0, $1)", "or_b8(not_b8($0), $1)"},
    {OpCode::gt, "gt_$T($0, $1)", "gt_$T($0, $1)", "and_b8($0, not_b8($1))"},
    {OpCode::ge, "ge_$T($0, $1)", "ge_$T($0, $1)", "or_b8($0, not_b8($1))"},
    {OpCode::bitwise_and, kNone, "and_$T($0, $1)", "and_b8($0, $1)"},
    {OpCode::bitwise_or, kNone, "or_$T($0, $1)", "or_b8($0, $1)"},
    {OpCode::bitwise_xor, kNone, "xor_$T($0, $1)", "xor_b8($0, $1)"},
    {OpCode::shift_left, kNone, "shl_$T($0, $1)", kNone},
    {OpCode::shift_right, kNone, "shr_$T($0, $1)", kNone},
    {OpCode::gcd, kNone, "k_gcd_$T($0, $1)", kNone},
    {OpCode::where, "select_$T($0, $1, $2)", "select_$T($0, $1, $2)", "select_b8($0, $1, $2)"},
    {OpCode::fma, "fma_$T($0, $1, $2)", kNone, kNone},
    {OpCode::scan_logaddexp, "k_logaddexp_$T($0, $1)", kNone, kNone},
};

#undef UNARY_FLOAT
#undef BINARY_FLOAT

constexpr LaneSpelling kLanes[] = {
    {OpCode::reduce_sum, "hsum", "hsum"},
    {OpCode::reduce_prod, "hprod", "hprod"},
    {OpCode::reduce_max, "hmax", "hany"},
    {OpCode::reduce_min, "hmin", "hall"},
    {OpCode::reduce_any, "hany", "hany"},
    {OpCode::reduce_all, "hall", "hall"},
    {OpCode::reduce_xor, "k_hxor", "k_hxor"},
    {OpCode::reduce_argmax, "hmax", "hany", "k_argmax"},
    {OpCode::reduce_argmin, "hmin", "hall", "k_argmin"},
    {.op = OpCode::scan_sum, .prefix = "psum"},
    {.op = OpCode::scan_prod, .prefix = "pprod"},
};

std::string spell_bitcast(DType dtype, DType from, const std::string& arg) {
  STAX_ASSERT(itemsize(dtype) == itemsize(from), "bitcast from {} to {}", name(from), name(dtype));
  if (dtype == from) return arg;
  const bool changes_kind = is_floating_point(dtype) != is_floating_point(from);
  return fmt::format("{}_{}_{}({})", changes_kind ? "bits" : "cvt", compute_token(from), compute_token(dtype),
                     arg);
}

}  // namespace

std::string spell(OpCode op, DType dtype, DType from, const std::vector<std::string>& args) {
  if (op == OpCode::cast)
    return fmt::format("cvt_{}_{}({})", compute_token(from), compute_token(dtype), args.at(0));
  if (op == OpCode::bitcast) return spell_bitcast(dtype, from, args.at(0));
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    const char* pattern = dtype == DType::boolean    ? row.bools
                          : is_floating_point(dtype) ? row.floats
                                                     : row.integers;
    STAX_ASSERT(pattern != kNone, "{} does not exist for {}", loops::info(op).name, name(dtype));
    return fill_pattern(pattern, [&](char c) {
      return c == 'T' ? std::string(compute_token(dtype)) : args.at(static_cast<size_t>(c - '0'));
    });
  }
  STAX_ASSERT(false, "{} is not a function of values", loops::info(op).name);
}

const LaneSpelling& lane_spelling(OpCode op) {
  const auto* const row = std::ranges::find(kLanes, op, &LaneSpelling::op);
  STAX_ASSERT(row != std::end(kLanes), "lanes of {} cannot be merged", loops::info(op).name);
  return *row;
}

std::string spell_constant(DType dtype, Constant constant) {
  if (dtype == DType::boolean) return constant.as_int() != 0 ? "true" : "false";
  if (!is_floating_point(dtype)) {
    const int64_t value = constant.as_int();
    if (value == INT64_MIN) return "(-9223372036854775807l - 1)";
    return fmt::format("{}{}", value, dtype == DType::int64 ? "l" : "");
  }
  const bool narrow = loops::compute_dtype(dtype) == DType::float32;
  const double value = constant.as_double();
  if (std::isnan(value)) return narrow ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
  if (std::isinf(value)) return fmt::format("{}__builtin_inf{}()", value < 0 ? "-" : "", narrow ? "f" : "");
  // Hexadecimal digits are exact.
  return narrow ? fmt::format("{:a}f", static_cast<float>(value)) : fmt::format("{:a}", value);
}

std::string spell(Symbol symbol) {
  if (symbol == Symbol{SymbolKind::block, 0}) return "n";
  if (symbol == Symbol{SymbolKind::block, 1}) return "begin";
  if (symbol == Symbol{SymbolKind::block, 2}) return "end";
  // i8, i16, ... are types.
  if (symbol.kind == SymbolKind::index && symbol.number >= 8) return fmt::format("i_{}", symbol.number);
  constexpr std::array<const char*, 6> letters = {"s", "q", "i", "r", "t", "x"};
  return fmt::format("{}{}", letters[static_cast<size_t>(symbol.kind)], symbol.number);
}

std::string spell(Expr e) {
  auto joined = [&](const char* separator) {
    std::string out = "(";
    for (size_t k = 0; k < e.args().size(); ++k) out += (k > 0 ? separator : "") + spell(e.args()[k]);
    return out + ")";
  };
  auto call = [&](const char* function) {
    std::string out = spell(e.args()[0]);
    for (size_t k = 1; k < e.args().size(); ++k)
      out = fmt::format("{}({}, {})", function, out, spell(e.args()[k]));
    return out;
  };
  switch (e.kind()) {
    case ExprKind::constant:
      return spell_constant(DType::int64, Constant::of(e.value()));
    case ExprKind::symbol:
      return spell(e.symbol());
    case ExprKind::add:
      return joined(" + ");
    case ExprKind::mul:
      return joined(" * ");
    case ExprKind::floor_div:
      return call("k_div");
    case ExprKind::mod:
      return call("k_mod");
    case ExprKind::min:
      return call("k_min");
    case ExprKind::max:
      return call("k_max");
  }
  return {};
}

}  // namespace stax::codegen

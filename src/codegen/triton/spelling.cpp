#include "codegen/triton/spelling.h"

#include <cmath>

#include "codegen/pattern.h"
#include "loops/constant_text.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Constant;
using loops::OpCode;

namespace {

/// Spellings for float32, float64, integer and bool operands; null where the instruction does not exist.
/// $0, $1, $2 are the operands. What Triton lacks, or computes by other rules, stands in
/// stax_triton/helpers.py.
struct Row {
  OpCode op;
  const char *f32, *f64, *integers, *bools;
};

constexpr const char* kNone = nullptr;

#define LIBDEVICE(name) \
  { OpCode::name, "libdevice." #name "($0)", "libdevice." #name "($0)", kNone, kNone }
#define LIBDEVICE_2(name) \
  { OpCode::name, "libdevice." #name "($0, $1)", "libdevice." #name "($0, $1)", kNone, kNone }
#define HELPER(name) \
  { OpCode::name, "triton_helpers." #name "($0)", "triton_helpers." #name "($0)", kNone, kNone }
#define COMPARE(name, sign) \
  { OpCode::name, "($0 " sign " $1)", "($0 " sign " $1)", "($0 " sign " $1)", "($0 " sign " $1)" }

constexpr Row kRows[] = {
    {OpCode::abs, "tl.abs($0)", "tl.abs($0)", "tl.abs($0)", "$0"},
    {OpCode::neg, "($0 * -1.0)", "($0 * -1.0)", "-$0", "$0"},
    {OpCode::reciprocal, "tl.div_rn(1.0, $0)", "(1.0 / $0)", kNone, kNone},
    {OpCode::sign, "triton_helpers.sign($0)", "triton_helpers.sign($0)", "triton_helpers.sign_int($0)", "$0"},
    // operand 0 is the zero
    {OpCode::relu, "tl.maximum($0, $1, tl.PropagateNan.ALL)", "tl.maximum($0, $1, tl.PropagateNan.ALL)",
     "tl.maximum($0, $1)", "$1"},
    {OpCode::sqrt, "tl.sqrt_rn($0)", "libdevice.sqrt($0)", kNone, kNone},
    LIBDEVICE(rsqrt),
    LIBDEVICE(exp),
    LIBDEVICE(exp2),
    LIBDEVICE(expm1),
    LIBDEVICE(log),
    LIBDEVICE(log2),
    LIBDEVICE(log10),
    LIBDEVICE(log1p),
    LIBDEVICE(sin),
    LIBDEVICE(cos),
    LIBDEVICE(tan),
    LIBDEVICE(asin),
    LIBDEVICE(acos),
    LIBDEVICE(atan),
    LIBDEVICE(sinh),
    LIBDEVICE(cosh),
    LIBDEVICE(tanh),
    LIBDEVICE(asinh),
    LIBDEVICE(acosh),
    LIBDEVICE(atanh),
    HELPER(sigmoid),
    LIBDEVICE(erf),
    LIBDEVICE(erfc),
    LIBDEVICE(erfinv),
    LIBDEVICE(lgamma),
    HELPER(digamma),
    HELPER(i0),
    {OpCode::floor, "libdevice.floor($0)", "libdevice.floor($0)", "$0", "$0"},
    {OpCode::ceil, "libdevice.ceil($0)", "libdevice.ceil($0)", "$0", "$0"},
    {OpCode::trunc, "libdevice.trunc($0)", "libdevice.trunc($0)", "$0", "$0"},
    {OpCode::round, "libdevice.rint($0)", "libdevice.rint($0)", "$0", "$0"},
    {OpCode::isnan, "($0 != $0)", "($0 != $0)", "($0 != $0)", "($0 != $0)"},
    {OpCode::isinf, "(tl.abs($0) == float(\"inf\"))", "(tl.abs($0) == float(\"inf\"))", "($0 != $0)",
     "($0 != $0)"},
    {OpCode::signbit, "triton_helpers.signbit($0)", "triton_helpers.signbit($0)", "($0 < 0)", "($0 != $0)"},
    {OpCode::logical_not, "($0 == 0)", "($0 == 0)", "($0 == 0)", "($0 == 0)"},
    {OpCode::bitwise_not, kNone, kNone, "(-$0 - 1)", "($0 == 0)"},
    {OpCode::to_float16, "$0.to(tl.float16).to(tl.float32)", kNone, kNone, kNone},
    {OpCode::to_bfloat16, "$0.to(tl.bfloat16).to(tl.float32)", kNone, kNone, kNone},
    {OpCode::add, "($0 + $1)", "($0 + $1)", "($0 + $1)", "($0 | $1)"},
    {OpCode::sub, "($0 - $1)", "($0 - $1)", "($0 - $1)", "($0 ^ $1)"},
    {OpCode::mul, "($0 * $1)", "($0 * $1)", "($0 * $1)", "($0 & $1)"},
    {OpCode::div, "tl.div_rn($0, $1)", "($0 / $1)", "triton_helpers.trunc_div_int($0, $1)", kNone},
    {OpCode::div_relaxed, "($0 / $1)", "($0 / $1)", "triton_helpers.trunc_div_int($0, $1)", kNone},
    {OpCode::floor_div, "triton_helpers.floor_div($0, $1)", "triton_helpers.floor_div($0, $1)",
     "triton_helpers.floor_div_int($0, $1)", kNone},
    {OpCode::trunc_div, "triton_helpers.trunc_div($0, $1)", "triton_helpers.trunc_div($0, $1)",
     "triton_helpers.trunc_div_int($0, $1)", kNone},
    {OpCode::remainder, "triton_helpers.remainder($0, $1)", "triton_helpers.remainder($0, $1)",
     "triton_helpers.remainder_int($0, $1)", kNone},
    {OpCode::fmod, "libdevice.fmod($0, $1)", "libdevice.fmod($0, $1)", "triton_helpers.fmod_int($0, $1)",
     kNone},
    {OpCode::maximum, "tl.maximum($0, $1, tl.PropagateNan.ALL)", "tl.maximum($0, $1, tl.PropagateNan.ALL)",
     "tl.maximum($0, $1)", "($0 | $1)"},
    {OpCode::minimum, "tl.minimum($0, $1, tl.PropagateNan.ALL)", "tl.minimum($0, $1, tl.PropagateNan.ALL)",
     "tl.minimum($0, $1)", "($0 & $1)"},
    {OpCode::fmax, "tl.maximum($0, $1)", "tl.maximum($0, $1)", "tl.maximum($0, $1)", "($0 | $1)"},
    {OpCode::fmin, "tl.minimum($0, $1)", "tl.minimum($0, $1)", "tl.minimum($0, $1)", "($0 & $1)"},
    {OpCode::pow, "libdevice.pow($0, $1)", "libdevice.pow($0, $1)", "triton_helpers.pow_int($0, $1)", kNone},
    LIBDEVICE_2(atan2),
    LIBDEVICE_2(hypot),
    LIBDEVICE_2(copysign),
    LIBDEVICE_2(nextafter),
    COMPARE(eq, "=="),
    COMPARE(ne, "!="),
    COMPARE(lt, "<"),
    COMPARE(le, "<="),
    COMPARE(gt, ">"),
    COMPARE(ge, ">="),
    {OpCode::bitwise_and, kNone, kNone, "($0 & $1)", "($0 & $1)"},
    {OpCode::bitwise_or, kNone, kNone, "($0 | $1)", "($0 | $1)"},
    {OpCode::bitwise_xor, kNone, kNone, "($0 ^ $1)", "($0 ^ $1)"},
    {OpCode::shift_left, kNone, kNone, "triton_helpers.shift_left($0, $1)", kNone},
    {OpCode::shift_right, kNone, kNone, "triton_helpers.shift_right($0, $1)", kNone},
    {OpCode::gcd, kNone, kNone, "triton_helpers.gcd($0, $1)", kNone},
    {OpCode::where, "tl.where($0, $1, $2)", "tl.where($0, $1, $2)", "tl.where($0, $1, $2)",
     "tl.where($0, $1, $2)"},
    {OpCode::fma, "libdevice.fma($0, $1, $2)", "libdevice.fma($0, $1, $2)", kNone, kNone},
};

#undef LIBDEVICE
#undef LIBDEVICE_2
#undef HELPER
#undef COMPARE

/// Functions of float32 that cost less where only a half type's digits are asked for.
struct RelaxedRow {
  OpCode op;
  const char* f32;
};
constexpr RelaxedRow kRelaxed[] = {{OpCode::exp, "tl.exp($0)"},
                                   {OpCode::reciprocal, "(1.0 / $0)"},
                                   {OpCode::div, "($0 / $1)"},
                                   {OpCode::sigmoid, "triton_helpers.sigmoid_relaxed($0)"},
                                   {OpCode::erfc, "triton_helpers.erfc_relaxed($0)"}};

constexpr TritonFold kFolds[] = {
    {OpCode::reduce_sum, "($A + $0)", "tl.sum($0, $d)"},
    {OpCode::reduce_prod, "($A * $0)", "triton_helpers.prod($0, $d)"},
    {OpCode::reduce_max, "triton_helpers.maximum($A, $0)", "triton_helpers.max2($0, $d)"},
    {OpCode::reduce_min, "triton_helpers.minimum($A, $0)", "triton_helpers.min2($0, $d)"},
    {OpCode::reduce_any, "($A | $0)", "triton_helpers.any($0, $d)"},
    {OpCode::reduce_all, "($A & $0)", "triton_helpers.all($0, $d)"},
    {OpCode::reduce_xor, "($A ^ $0)", "triton_helpers.xor($0, $d)"},
    {OpCode::reduce_argmax, "triton_helpers.maximum_with_index($A, $B, $p, $0)",
     "triton_helpers.max_with_index($0, $1, $d)"},
    {OpCode::reduce_argmin, "triton_helpers.minimum_with_index($A, $B, $p, $0)",
     "triton_helpers.min_with_index($0, $1, $d)"},
    {OpCode::reduce_welford, "triton_helpers.welford_step($A, $B, $C, $0)",
     "triton_helpers.welford($0, $1, $2, $d)", "triton_helpers.welford_rows($A, $B, $C, $0, $m, $d)"},
    {OpCode::reduce_welford_combine, "triton_helpers.welford_merge($A, $B, $C, $0, $1, $2)",
     "triton_helpers.welford($0, $1, $2, $d)"},
    {OpCode::reduce_softmax, nullptr, nullptr, "triton_helpers.online_softmax($A, $B, $0, $d)"},
    {OpCode::scan_sum, "($A + $0)", "tl.cumsum($0, $d)"},
    {OpCode::scan_prod, "($A * $0)", "tl.cumprod($0, $d)"},
    {OpCode::scan_logaddexp, "triton_helpers.logaddexp($A, $0)", "triton_helpers.cumlogaddexp($0, $d)"},
    {OpCode::scan_max, "triton_helpers.later_larger($A, $B, $0, $1)", "triton_helpers.cummax($0, $1, $d)"},
    {OpCode::scan_min, "triton_helpers.later_smaller($A, $B, $0, $1)", "triton_helpers.cummin($0, $1, $d)"},
    {OpCode::scan_sort, nullptr, "tl.sort($0, $d)"},
};

std::string spell_cast(DType dtype, DType from, const std::string& arg) {
  if (dtype == from) return arg;
  if (dtype == DType::boolean) return fmt::format("({} != 0)", arg);
  const bool to_integer = !is_floating_point(dtype);
  if (to_integer && is_floating_point(from))
    return fmt::format("triton_helpers.to_int({}, {})", arg, triton_dtype(dtype));
  return fmt::format("{}.to({})", arg, triton_dtype(dtype));
}

}  // namespace

std::string spell_fold(const char* pattern, const std::vector<std::string>& args,
                       const std::vector<std::string>& carried, FoldAlong along) {
  return fill_pattern(pattern, [&](char c) {
    if (c == 'd') return std::to_string(along.dimension);
    if (c == 'p') return std::string(along.position);
    if (c == 'm') return std::string(along.mask);
    const bool accumulator = c >= 'A' && c <= 'C';
    return accumulator ? carried.at(static_cast<size_t>(c - 'A')) : args.at(static_cast<size_t>(c - '0'));
  });
}

std::string triton_dtype(DType dtype) {
  return dtype == DType::boolean ? "tl.int1" : fmt::format("tl.{}", name(dtype));
}

std::string triton_constant(DType dtype, Constant constant) {
  if (dtype == DType::boolean) return constant.as_int() != 0 ? "True" : "False";
  if (!is_floating_point(dtype)) return std::to_string(constant.as_int());
  const double value = constant.as_double();
  if (!std::isfinite(value)) return fmt::format("float(\"{}\")", loops::constant_text(dtype, constant));
  // The shortest decimal of the double: Triton rounds it to the block's dtype.
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string spell_triton(OpCode op, DType dtype, DType from, const std::vector<std::string>& args,
                         bool relaxed) {
  if (op == OpCode::cast) return spell_cast(dtype, from, args.at(0));
  if (op == OpCode::bitcast) return fmt::format("{}.to({}, bitcast=True)", args.at(0), triton_dtype(dtype));
  const auto filled = [&](const char* pattern) {
    return fill_pattern(pattern, [&](char c) { return args.at(static_cast<size_t>(c - '0')); });
  };
  for (const RelaxedRow& row : kRelaxed)
    if (relaxed && row.op == op && from == DType::float32) return filled(row.f32);
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    const char* pattern = from == DType::boolean    ? row.bools
                          : from == DType::float64  ? row.f64
                          : is_floating_point(from) ? row.f32
                                                    : row.integers;
    STAX_ASSERT(pattern != kNone, "{} does not exist for {}", loops::info(op).name, name(from));
    return filled(pattern);
  }
  STAX_ASSERT(false, "{} is not a function of values", loops::info(op).name);
}

const TritonFold& triton_fold(OpCode op) {
  for (const TritonFold& fold : kFolds)
    if (fold.op == op) return fold;
  STAX_ASSERT(false, "{} is not a reduction", loops::info(op).name);
}

}  // namespace stax::codegen

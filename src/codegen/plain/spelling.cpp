#include "codegen/plain/spelling.h"

#include <cmath>

#include "codegen/pattern.h"
#include "loops/constant_text.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Constant;
using loops::OpCode;

namespace {

/// Spellings for floats, integers and bool; null where the instruction does not exist. $0, $1, $2 are the
/// operands. What NumPy lacks, or computes by other rules, stands in stax_triton/plain.py.
struct NumpyRow {
  OpCode op;
  const char *floats, *integers, *bools;
};

constexpr const char* kNo = nullptr;

#define FLOATS(name, function) \
  { OpCode::name, function "($0)", kNo, kNo }
#define FLOATS_2(name, function) \
  { OpCode::name, function "($0, $1)", kNo, kNo }
#define COMPARE(name, sign) \
  { OpCode::name, "$0 " sign " $1", "$0 " sign " $1", "$0 " sign " $1" }
#define NUMBERS(name, function) \
  { OpCode::name, function "($0, $1)", function "($0, $1)", kNo }

constexpr NumpyRow kNumpyRows[] = {
    {OpCode::abs, "np.abs($0)", "np.abs($0)", "$0"},
    {OpCode::neg, "-$0", "-$0", "$0"},
    {OpCode::reciprocal, "1 / $0", kNo, kNo},
    {OpCode::sign, "plain.sign($0)", "np.sign($0)", "$0"},
    {OpCode::relu, "np.maximum($0, 0)", "np.maximum($0, 0)", "$0"},
    FLOATS(sqrt, "np.sqrt"),
    FLOATS(rsqrt, "1 / np.sqrt"),
    FLOATS(exp, "np.exp"),
    FLOATS(exp2, "np.exp2"),
    FLOATS(expm1, "np.expm1"),
    FLOATS(log, "np.log"),
    FLOATS(log2, "np.log2"),
    FLOATS(log10, "np.log10"),
    FLOATS(log1p, "np.log1p"),
    FLOATS(sin, "np.sin"),
    FLOATS(cos, "np.cos"),
    FLOATS(tan, "np.tan"),
    FLOATS(asin, "np.arcsin"),
    FLOATS(acos, "np.arccos"),
    FLOATS(atan, "np.arctan"),
    FLOATS(sinh, "np.sinh"),
    FLOATS(cosh, "np.cosh"),
    FLOATS(tanh, "np.tanh"),
    FLOATS(asinh, "np.arcsinh"),
    FLOATS(acosh, "np.arccosh"),
    FLOATS(atanh, "np.arctanh"),
    FLOATS(sigmoid, "plain.sigmoid"),
    FLOATS(erf, "plain.erf"),
    FLOATS(erfc, "plain.erfc"),
    FLOATS(erfinv, "plain.erfinv"),
    FLOATS(lgamma, "plain.lgamma"),
    FLOATS(digamma, "plain.digamma"),
    FLOATS(i0, "plain.i0"),
    {OpCode::floor, "np.floor($0)", "$0", "$0"},
    {OpCode::ceil, "np.ceil($0)", "$0", "$0"},
    {OpCode::trunc, "np.trunc($0)", "$0", "$0"},
    {OpCode::round, "np.rint($0)", "$0", "$0"},
    {OpCode::isnan, "np.isnan($0)", "$0 != $0", "$0 != $0"},
    {OpCode::isinf, "np.isinf($0)", "$0 != $0", "$0 != $0"},
    {OpCode::signbit, "np.signbit($0)", "$0 < 0", "$0 != $0"},
    {OpCode::logical_not, "$0 == 0", "$0 == 0", "$0 == 0"},
    {OpCode::bitwise_not, kNo, "~$0", "~$0"},
    FLOATS(to_float16, "plain.float16"),
    FLOATS(to_bfloat16, "plain.bfloat16"),
    {OpCode::add, "$0 + $1", "$0 + $1", "$0 | $1"},
    {OpCode::sub, "$0 - $1", "$0 - $1", "$0 ^ $1"},
    {OpCode::mul, "$0 * $1", "$0 * $1", "$0 & $1"},
    {OpCode::div, "$0 / $1", "plain.floor_div($0, $1)", kNo},
    {OpCode::div_relaxed, "$0 / $1", "plain.floor_div($0, $1)", kNo},
    NUMBERS(floor_div, "plain.floor_div"),
    NUMBERS(trunc_div, "plain.trunc_div"),
    NUMBERS(remainder, "plain.remainder"),
    NUMBERS(fmod, "plain.fmod"),
    {OpCode::maximum, "np.maximum($0, $1)", "np.maximum($0, $1)", "$0 | $1"},
    {OpCode::minimum, "np.minimum($0, $1)", "np.minimum($0, $1)", "$0 & $1"},
    {OpCode::fmax, "np.fmax($0, $1)", "np.maximum($0, $1)", "$0 | $1"},
    {OpCode::fmin, "np.fmin($0, $1)", "np.minimum($0, $1)", "$0 & $1"},
    NUMBERS(pow, "plain.power"),
    FLOATS_2(atan2, "np.arctan2"),
    FLOATS_2(hypot, "np.hypot"),
    FLOATS_2(copysign, "np.copysign"),
    FLOATS_2(nextafter, "np.nextafter"),
    COMPARE(eq, "=="),
    COMPARE(ne, "!="),
    COMPARE(lt, "<"),
    COMPARE(le, "<="),
    COMPARE(gt, ">"),
    COMPARE(ge, ">="),
    {OpCode::bitwise_and, kNo, "$0 & $1", "$0 & $1"},
    {OpCode::bitwise_or, kNo, "$0 | $1", "$0 | $1"},
    {OpCode::bitwise_xor, kNo, "$0 ^ $1", "$0 ^ $1"},
    {OpCode::shift_left, kNo, "plain.shift_left($0, $1)", kNo},
    {OpCode::shift_right, kNo, "plain.shift_right($0, $1)", kNo},
    {OpCode::gcd, kNo, "np.gcd($0, $1)", kNo},
    {OpCode::where, "np.where($0, $1, $2)", "np.where($0, $1, $2)", "np.where($0, $1, $2)"},
    {OpCode::fma, "plain.fma($0, $1, $2)", "$0 * $1 + $2", kNo},
};

#undef FLOATS
#undef FLOATS_2
#undef COMPARE
#undef NUMBERS

struct NumpyFold {
  OpCode op;
  std::string_view function;
};

constexpr NumpyFold kNumpyFolds[] = {
    {OpCode::reduce_sum, "total"},
    {OpCode::reduce_prod, "product"},
    {OpCode::reduce_max, "largest"},
    {OpCode::reduce_min, "smallest"},
    {OpCode::reduce_any, "any_of"},
    {OpCode::reduce_all, "all_of"},
    {OpCode::reduce_xor, "xor_of"},
    {OpCode::reduce_argmax, "largest_at"},
    {OpCode::reduce_argmin, "smallest_at"},
    {OpCode::reduce_welford, "mean_and_squares"},
    {OpCode::reduce_welford_combine, "merged_mean_and_squares"},
    {OpCode::reduce_softmax, "largest_and_exponentials"},
    {OpCode::scan_sum, "running_total"},
    {OpCode::scan_prod, "running_product"},
    {OpCode::scan_max, "running_largest"},
    {OpCode::scan_min, "running_smallest"},
    {OpCode::scan_logaddexp, "running_log_of_exponentials"},
    {OpCode::scan_sort, "in_order"},
};

std::string spell_numpy_cast(DType dtype, DType from, const std::string& arg) {
  if (dtype == from) return arg;
  if (dtype == DType::boolean) return arg + " != 0";
  if (is_floating_point(from) && !is_floating_point(dtype))
    return fmt::format("plain.to_integer({}, {})", arg, numpy_dtype(dtype));
  return fmt::format("{}.astype({})", arg, numpy_dtype(dtype));
}

}  // namespace

std::string numpy_dtype(DType dtype) {
  return dtype == DType::boolean ? "np.bool_" : fmt::format("np.{}", name(dtype));
}

std::string numpy_constant(DType dtype, Constant constant, bool typed) {
  std::string text;
  if (dtype == DType::boolean) {
    text = constant.as_int() != 0 ? "True" : "False";
  } else if (!is_floating_point(dtype)) {
    text = std::to_string(constant.as_int());
  } else {
    const double value = constant.as_double();
    text = std::isnan(value)   ? "np.nan"
           : std::isinf(value) ? (value < 0 ? "-np.inf" : "np.inf")
                               : loops::constant_text(dtype, constant);
  }
  return typed ? fmt::format("{}({})", numpy_dtype(dtype), text) : text;
}

std::string spell_numpy(OpCode op, DType dtype, DType from, const std::vector<std::string>& args) {
  if (op == OpCode::cast) return spell_numpy_cast(dtype, from, args.at(0));
  if (op == OpCode::bitcast) return fmt::format("{}.view({})", args.at(0), numpy_dtype(dtype));
  for (const NumpyRow& row : kNumpyRows) {
    if (row.op != op) continue;
    const char* pattern = from == DType::boolean    ? row.bools
                          : is_floating_point(from) ? row.floats
                                                    : row.integers;
    STAX_ASSERT(pattern != kNo, "{} does not exist for {}", loops::info(op).name, name(from));
    return fill_pattern(pattern, [&](char c) { return args.at(static_cast<size_t>(c - '0')); });
  }
  STAX_ASSERT(false, "{} is not a function of values", loops::info(op).name);
}

std::string_view numpy_fold(OpCode op) {
  for (const NumpyFold& fold : kNumpyFolds)
    if (fold.op == op) return fold.function;
  STAX_ASSERT(false, "{} is no reduction or scan", loops::info(op).name);
}

}  // namespace stax::codegen

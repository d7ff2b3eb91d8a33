// The instructions of a loop body: one row each. Everything that lists instructions expands this table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stax::loops {

enum class OpKind : uint8_t {
  leaf,  // no operand: load, constant, index value, run-time scalar
  unary,
  binary,
  ternary,
  cast,     // changes the dtype
  special,  // check_index, random numbers, result selection: described at the row
  reduce,   // from iteration x reduction space to iteration space
  scan,     // stays in iteration x reduction space; runs along the reduction variables, in order
  store,    // no result
};

/// The dtype of the result.
enum class OpResult : uint8_t {
  stated,   // the instruction says it
  operand,  // that of the operands; of where, that of the last two
  boolean,  // comparisons and predicates, whatever the operands are
  int64,
};

/// What an element takes.
enum class OpCost : uint8_t {
  cheap,     // about an instruction of the machine, which is rather repeated than its result stored
  moderate,  // a few, or ones with a long latency
  costly,    // tens: results that are needed again are kept
};

// X(name, kind, operands, result, cost): `operands` besides an optional mask. What is known of reductions and
// scans alone stands in the table of loops/fold.h.
//
// Operands have one common dtype unless said otherwise; the result has the dtype stored in the instruction.
// Half types never occur as dtype of a value: loads widen them to float32, stores round (to nearest even),
// and to_float16 and to_bfloat16 are the explicit roundings. Integers wrap at their own width. Comparisons
// and predicates give bool. Floats follow IEEE 754; maximum, minimum, relu and the max/min reductions
// propagate NaN, fmax/fmin prefer the number.
//
// load: buffer[index]; optional operand 0 = bool mask: where it is false memory is not touched and the value
// is 0. index_value: the integer expression `index`, as int64. scalar: run-time scalar `number` of the
// program. round: half to even. sign of NaN is 0. to_float16, to_bfloat16: float32 rounded to the half
// type, still float32. div_relaxed: a division that may be approximate on a GPU (softmax's own). shift counts
// at or past the width: 0, or the sign for right shifts of signed types. floor_div, remainder (sign of the
// divisor), trunc_div, fmod (sign of the dividend): exact for floats; integers never trap: x/0 is 0, x%0 is
// x, INT_MIN/-1 is INT_MIN. cast: float to integer truncates; int32 and int64 saturate, narrower types
// wrap what int32 holds and are 0 for the rest; NaN is 0. check_index: operand 0 an int64 index, optional
// operand 1 a bool mask; `index` is the size. Negative values count from the end when `number` is 1. A value
// out of range is recorded (raised when the program ends) and clamped; where the mask is false the result is
// 0 and nothing is recorded. random_bits: int64 seed (operand 0), int64 counter (operand 1): word `number` of
// Philox-4x32-10, int64 in [0, 2^32). result: result `number` of the reduction or scan in operand 0 (result 0
// is the value itself). reduce_argmax, reduce_argmin: result 0 the int64 position in the flattened reduction
// ranges (ties take the lowest, NaN wins), result 1 the value. reduce_welford: (mean, sum of squared
// deviations, count). reduce_welford_combine merges operands (mean, m2, count). reduce_softmax: (maximum m,
// sum of exp(x - m)), the sum 0 when m is -inf. scans are inclusive; scan_max, scan_min: result 1 is the
// int64 position of the last extremum, NaN wins. scan_sort: at position k the k-th smallest of all int64
// operands of the reduction space, not only of those up to there. store: operand 0 into buffer[index],
// optional operand 1 a bool mask.
#define STAX_LOOP_OPS(X)                                  \
  X(load, leaf, 0, stated, cheap)                         \
  X(constant, leaf, 0, stated, cheap)                     \
  X(index_value, leaf, 0, int64, cheap)                   \
  X(scalar, leaf, 0, stated, cheap)                       \
  X(abs, unary, 1, operand, cheap)                        \
  X(neg, unary, 1, operand, cheap)                        \
  X(reciprocal, unary, 1, operand, moderate)              \
  X(sign, unary, 1, operand, moderate)                    \
  X(relu, unary, 1, operand, cheap)                       \
  X(sqrt, unary, 1, operand, moderate)                    \
  X(rsqrt, unary, 1, operand, moderate)                   \
  X(exp, unary, 1, operand, costly)                       \
  X(exp2, unary, 1, operand, costly)                      \
  X(expm1, unary, 1, operand, costly)                     \
  X(log, unary, 1, operand, costly)                       \
  X(log2, unary, 1, operand, costly)                      \
  X(log10, unary, 1, operand, costly)                     \
  X(log1p, unary, 1, operand, costly)                     \
  X(sin, unary, 1, operand, costly)                       \
  X(cos, unary, 1, operand, costly)                       \
  X(tan, unary, 1, operand, costly)                       \
  X(asin, unary, 1, operand, costly)                      \
  X(acos, unary, 1, operand, costly)                      \
  X(atan, unary, 1, operand, costly)                      \
  X(sinh, unary, 1, operand, costly)                      \
  X(cosh, unary, 1, operand, costly)                      \
  X(tanh, unary, 1, operand, costly)                      \
  X(asinh, unary, 1, operand, costly)                     \
  X(acosh, unary, 1, operand, costly)                     \
  X(atanh, unary, 1, operand, costly)                     \
  X(sigmoid, unary, 1, operand, costly)                   \
  X(erf, unary, 1, operand, costly)                       \
  X(erfc, unary, 1, operand, costly)                      \
  X(erfinv, unary, 1, operand, costly)                    \
  X(lgamma, unary, 1, operand, costly)                    \
  X(digamma, unary, 1, operand, costly)                   \
  X(i0, unary, 1, operand, costly)                        \
  X(floor, unary, 1, operand, moderate)                   \
  X(ceil, unary, 1, operand, moderate)                    \
  X(trunc, unary, 1, operand, moderate)                   \
  X(round, unary, 1, operand, moderate)                   \
  X(isnan, unary, 1, boolean, cheap)                      \
  X(isinf, unary, 1, boolean, moderate)                   \
  X(signbit, unary, 1, boolean, moderate)                 \
  X(logical_not, unary, 1, boolean, cheap)                \
  X(bitwise_not, unary, 1, operand, cheap)                \
  X(to_float16, unary, 1, operand, moderate)              \
  X(to_bfloat16, unary, 1, operand, moderate)             \
  X(add, binary, 2, operand, cheap)                       \
  X(sub, binary, 2, operand, cheap)                       \
  X(mul, binary, 2, operand, cheap)                       \
  X(div, binary, 2, operand, cheap)                       \
  X(div_relaxed, binary, 2, operand, cheap)               \
  X(floor_div, binary, 2, operand, costly)                \
  X(trunc_div, binary, 2, operand, cheap)                 \
  X(remainder, binary, 2, operand, costly)                \
  X(fmod, binary, 2, operand, costly)                     \
  X(maximum, binary, 2, operand, cheap)                   \
  X(minimum, binary, 2, operand, cheap)                   \
  X(fmax, binary, 2, operand, cheap)                      \
  X(fmin, binary, 2, operand, cheap)                      \
  X(pow, binary, 2, operand, costly)                      \
  X(atan2, binary, 2, operand, costly)                    \
  X(hypot, binary, 2, operand, moderate)                  \
  X(copysign, binary, 2, operand, cheap)                  \
  X(nextafter, binary, 2, operand, cheap)                 \
  X(eq, binary, 2, boolean, cheap)                        \
  X(ne, binary, 2, boolean, cheap)                        \
  X(lt, binary, 2, boolean, cheap)                        \
  X(le, binary, 2, boolean, cheap)                        \
  X(gt, binary, 2, boolean, cheap)                        \
  X(ge, binary, 2, boolean, cheap)                        \
  X(bitwise_and, binary, 2, operand, cheap)               \
  X(bitwise_or, binary, 2, operand, cheap)                \
  X(bitwise_xor, binary, 2, operand, cheap)               \
  X(shift_left, binary, 2, operand, cheap)                \
  X(shift_right, binary, 2, operand, cheap)               \
  X(gcd, binary, 2, operand, costly)                      \
  X(where, ternary, 3, operand, cheap)                    \
  X(fma, ternary, 3, operand, cheap)                      \
  X(cast, cast, 1, stated, cheap)                         \
  X(bitcast, cast, 1, stated, cheap)                      \
  X(check_index, special, 1, int64, moderate)             \
  X(random_bits, special, 2, int64, costly)               \
  X(result, special, 1, stated, moderate)                 \
  X(reduce_sum, reduce, 1, operand, moderate)             \
  X(reduce_prod, reduce, 1, operand, moderate)            \
  X(reduce_max, reduce, 1, operand, moderate)             \
  X(reduce_min, reduce, 1, operand, moderate)             \
  X(reduce_any, reduce, 1, operand, moderate)             \
  X(reduce_all, reduce, 1, operand, moderate)             \
  X(reduce_xor, reduce, 1, operand, moderate)             \
  X(reduce_argmax, reduce, 1, int64, moderate)            \
  X(reduce_argmin, reduce, 1, int64, moderate)            \
  X(reduce_welford, reduce, 1, operand, moderate)         \
  X(reduce_welford_combine, reduce, 3, operand, moderate) \
  X(reduce_softmax, reduce, 1, operand, moderate)         \
  X(scan_sum, scan, 1, operand, moderate)                 \
  X(scan_prod, scan, 1, operand, moderate)                \
  X(scan_max, scan, 1, operand, moderate)                 \
  X(scan_min, scan, 1, operand, moderate)                 \
  X(scan_logaddexp, scan, 1, operand, moderate)           \
  X(scan_sort, scan, 1, int64, costly)                    \
  X(store, store, 1, operand, moderate)                   \
  X(atomic_add, store, 1, operand, moderate)

enum class OpCode : uint8_t {
#define X(name, ...) name,
  STAX_LOOP_OPS(X)
#undef X
};

#define X(...) +1
inline constexpr int kOpCount = STAX_LOOP_OPS(X);
#undef X

struct OpInfo {
  std::string_view name;
  OpKind kind;
  int8_t operands;
  OpResult result;
  OpCost cost;
};

/// The row of an instruction.
const OpInfo& info(OpCode op);

/// The instruction called `name`, if there is one.
std::optional<OpCode> find_op(std::string_view name);

/// True for comparisons and predicates, whose result is bool whatever the operands are.
inline bool is_predicate(OpCode op) {
  return info(op).result == OpResult::boolean;
}
inline bool is_reduction(OpCode op) {
  return info(op).kind == OpKind::reduce;
}
inline bool is_scan(OpCode op) {
  return info(op).kind == OpKind::scan;
}
inline bool is_store(OpCode op) {
  return info(op).kind == OpKind::store;
}

}  // namespace stax::loops

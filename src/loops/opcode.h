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

// X(name, kind)
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
// int64 position of the last extremum, NaN wins. store: operand 0 into buffer[index], optional operand 1 a
// bool mask.
#define STAX_LOOP_OPS(X)            \
  X(load, leaf)                     \
  X(constant, leaf)                 \
  X(index_value, leaf)              \
  X(scalar, leaf)                   \
  X(abs, unary)                     \
  X(neg, unary)                     \
  X(reciprocal, unary)              \
  X(sign, unary)                    \
  X(relu, unary)                    \
  X(sqrt, unary)                    \
  X(rsqrt, unary)                   \
  X(exp, unary)                     \
  X(exp2, unary)                    \
  X(expm1, unary)                   \
  X(log, unary)                     \
  X(log2, unary)                    \
  X(log10, unary)                   \
  X(log1p, unary)                   \
  X(sin, unary)                     \
  X(cos, unary)                     \
  X(tan, unary)                     \
  X(asin, unary)                    \
  X(acos, unary)                    \
  X(atan, unary)                    \
  X(sinh, unary)                    \
  X(cosh, unary)                    \
  X(tanh, unary)                    \
  X(asinh, unary)                   \
  X(acosh, unary)                   \
  X(atanh, unary)                   \
  X(sigmoid, unary)                 \
  X(erf, unary)                     \
  X(erfc, unary)                    \
  X(erfinv, unary)                  \
  X(lgamma, unary)                  \
  X(digamma, unary)                 \
  X(i0, unary)                      \
  X(floor, unary)                   \
  X(ceil, unary)                    \
  X(trunc, unary)                   \
  X(round, unary)                   \
  X(isnan, unary)                   \
  X(isinf, unary)                   \
  X(signbit, unary)                 \
  X(logical_not, unary)             \
  X(bitwise_not, unary)             \
  X(to_float16, unary)              \
  X(to_bfloat16, unary)             \
  X(add, binary)                    \
  X(sub, binary)                    \
  X(mul, binary)                    \
  X(div, binary)                    \
  X(div_relaxed, binary)            \
  X(floor_div, binary)              \
  X(trunc_div, binary)              \
  X(remainder, binary)              \
  X(fmod, binary)                   \
  X(maximum, binary)                \
  X(minimum, binary)                \
  X(fmax, binary)                   \
  X(fmin, binary)                   \
  X(pow, binary)                    \
  X(atan2, binary)                  \
  X(hypot, binary)                  \
  X(copysign, binary)               \
  X(nextafter, binary)              \
  X(eq, binary)                     \
  X(ne, binary)                     \
  X(lt, binary)                     \
  X(le, binary)                     \
  X(gt, binary)                     \
  X(ge, binary)                     \
  X(bitwise_and, binary)            \
  X(bitwise_or, binary)             \
  X(bitwise_xor, binary)            \
  X(shift_left, binary)             \
  X(shift_right, binary)            \
  X(gcd, binary)                    \
  X(where, ternary)                 \
  X(fma, ternary)                   \
  X(cast, cast)                     \
  X(bitcast, cast)                  \
  X(check_index, special)           \
  X(random_bits, special)           \
  X(result, special)                \
  X(reduce_sum, reduce)             \
  X(reduce_prod, reduce)            \
  X(reduce_max, reduce)             \
  X(reduce_min, reduce)             \
  X(reduce_any, reduce)             \
  X(reduce_all, reduce)             \
  X(reduce_xor, reduce)             \
  X(reduce_argmax, reduce)          \
  X(reduce_argmin, reduce)          \
  X(reduce_welford, reduce)         \
  X(reduce_welford_combine, reduce) \
  X(reduce_softmax, reduce)         \
  X(scan_sum, scan)                 \
  X(scan_prod, scan)                \
  X(scan_max, scan)                 \
  X(scan_min, scan)                 \
  X(scan_logaddexp, scan)           \
  X(store, store)                   \
  X(atomic_add, store)

enum class OpCode : uint8_t {
#define X(name, kind) name,
  STAX_LOOP_OPS(X)
#undef X
};

#define X(name, kind) +1
inline constexpr int kOpCount = STAX_LOOP_OPS(X);
#undef X

struct OpInfo {
  std::string_view name;
  OpKind kind;
};

/// Name and kind of an instruction.
const OpInfo& info(OpCode op);

/// The instruction called `name`, if there is one.
std::optional<OpCode> find_op(std::string_view name);

/// True for comparisons and predicates, whose result is bool whatever the operands are.
constexpr bool is_predicate(OpCode op) {
  return (op >= OpCode::isnan && op <= OpCode::logical_not) || (op >= OpCode::eq && op <= OpCode::ge);
}

}  // namespace stax::loops

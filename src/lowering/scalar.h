// Formulas over scalar values of a loop body: operators and functions on V. Operands are brought to a common
// dtype by the caller (promotion happened at the operator); numbers take the dtype of the value they meet.
#pragma once

#include "lowering/lowering.h"

namespace stax::lowering {

V unary(loops::OpCode op, V a);
V binary(loops::OpCode op, V a, V b);
V where(V condition, V a, V b);
V cast(V a, DType dtype);
/// The bits of a as a value of `dtype`, which is as wide.
V bitcast(V a, DType dtype);
/// float32 value rounded to the half type `dtype`; a plain cast for other dtypes.
V round_to(V a, DType dtype);
/// `v` times the number argument `name`, or `v` itself when that is 1.
V scaled(V v, const PointwiseArgs& args, std::string_view name);
/// A constant of a's dtype.
V like(V a, double value);

// One function for each unary and binary instruction: exp(v), erf(v), maximum(a, b), pow(a, b), ...
#define STAX_FORMULA_unary(name)          \
  inline V name(V a) {                    \
    return unary(loops::OpCode::name, a); \
  }
#define STAX_FORMULA_binary(name)                      \
  inline V name(V a, V b) {                            \
    return binary(loops::OpCode::name, a, b);          \
  }                                                    \
  inline V name(V a, double b) {                       \
    return binary(loops::OpCode::name, a, like(a, b)); \
  }                                                    \
  inline V name(double a, V b) {                       \
    return binary(loops::OpCode::name, like(b, a), b); \
  }
#define STAX_FORMULA_leaf(name)
#define STAX_FORMULA_ternary(name)
#define STAX_FORMULA_cast(name)
#define STAX_FORMULA_special(name)
#define STAX_FORMULA_reduce(name)
#define STAX_FORMULA_scan(name)
#define STAX_FORMULA_store(name)
#define X(name, kind, ...) STAX_FORMULA_##kind(name)
STAX_LOOP_OPS(X)
#undef X
#undef STAX_FORMULA_unary
#undef STAX_FORMULA_binary
#undef STAX_FORMULA_leaf
#undef STAX_FORMULA_ternary
#undef STAX_FORMULA_cast
#undef STAX_FORMULA_special
#undef STAX_FORMULA_reduce
#undef STAX_FORMULA_scan
#undef STAX_FORMULA_store

inline V operator+(V a, V b) {
  return add(a, b);
}
inline V operator-(V a, V b) {
  return sub(a, b);
}
inline V operator*(V a, V b) {
  return mul(a, b);
}
inline V operator/(V a, V b) {
  return div(a, b);
}
inline V operator+(V a, double b) {
  return add(a, b);
}
inline V operator-(V a, double b) {
  return sub(a, b);
}
inline V operator*(V a, double b) {
  return mul(a, b);
}
inline V operator/(V a, double b) {
  return div(a, b);
}
inline V operator+(double a, V b) {
  return add(a, b);
}
inline V operator-(double a, V b) {
  return sub(a, b);
}
inline V operator*(double a, V b) {
  return mul(a, b);
}
inline V operator/(double a, V b) {
  return div(a, b);
}
inline V operator-(V a) {
  return neg(a);
}

}  // namespace stax::lowering

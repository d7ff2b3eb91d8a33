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
#define STAX_UNARY(name)                  \
  inline V name(V a) {                    \
    return unary(loops::OpCode::name, a); \
  }
#define STAX_BINARY(name)                              \
  inline V name(V a, V b) {                            \
    return binary(loops::OpCode::name, a, b);          \
  }                                                    \
  inline V name(V a, double b) {                       \
    return binary(loops::OpCode::name, a, like(a, b)); \
  }                                                    \
  inline V name(double a, V b) {                       \
    return binary(loops::OpCode::name, like(b, a), b); \
  }
STAX_UNARY(abs);
STAX_UNARY(neg);
STAX_UNARY(reciprocal);
STAX_UNARY(sign);
STAX_UNARY(relu);
STAX_UNARY(sqrt);
STAX_UNARY(rsqrt);
STAX_UNARY(exp);
STAX_UNARY(exp2);
STAX_UNARY(expm1);
STAX_UNARY(log);
STAX_UNARY(log2);
STAX_UNARY(log10);
STAX_UNARY(log1p);
STAX_UNARY(sin);
STAX_UNARY(cos);
STAX_UNARY(tan);
STAX_UNARY(asin);
STAX_UNARY(acos);
STAX_UNARY(atan);
STAX_UNARY(sinh);
STAX_UNARY(cosh);
STAX_UNARY(tanh);
STAX_UNARY(asinh);
STAX_UNARY(acosh);
STAX_UNARY(atanh);
STAX_UNARY(sigmoid);
STAX_UNARY(erf);
STAX_UNARY(erfc);
STAX_UNARY(erfinv);
STAX_UNARY(lgamma);
STAX_UNARY(digamma);
STAX_UNARY(i0);
STAX_UNARY(floor);
STAX_UNARY(ceil);
STAX_UNARY(trunc);
STAX_UNARY(round);
STAX_UNARY(isnan);
STAX_UNARY(isinf);
STAX_UNARY(signbit);
STAX_UNARY(logical_not);
STAX_UNARY(bitwise_not);
STAX_BINARY(add);
STAX_BINARY(sub);
STAX_BINARY(mul);
STAX_BINARY(div);
STAX_BINARY(div_relaxed);
STAX_BINARY(floor_div);
STAX_BINARY(trunc_div);
STAX_BINARY(remainder);
STAX_BINARY(fmod);
STAX_BINARY(maximum);
STAX_BINARY(minimum);
STAX_BINARY(fmax);
STAX_BINARY(fmin);
STAX_BINARY(pow);
STAX_BINARY(atan2);
STAX_BINARY(hypot);
STAX_BINARY(copysign);
STAX_BINARY(nextafter);
STAX_BINARY(eq);
STAX_BINARY(ne);
STAX_BINARY(lt);
STAX_BINARY(le);
STAX_BINARY(gt);
STAX_BINARY(ge);
STAX_BINARY(bitwise_and);
STAX_BINARY(bitwise_or);
STAX_BINARY(bitwise_xor);
STAX_BINARY(shift_left);
STAX_BINARY(shift_right);
STAX_BINARY(gcd);
#undef STAX_UNARY
#undef STAX_BINARY

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

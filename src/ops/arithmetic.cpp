// Arithmetic of two tensors and more: sums, products, quotients, powers, bounds, interpolation, parts of
// floats.
#include <cmath>
#include <numbers>

#include "ops/pointwise_rules.h"
#include "ops/table.h"

namespace stax::ops {
namespace {

#define BOUND(instruction) \
  [](const PointwiseArgs& a) { return lowering::instruction(saturated(a[0], a), saturated(a[1], a)); }

// x^n by a number: the exponents for which a shorter formula gives PyTorch's own result.
V power(V x, V n, const Number* exponent) {
  if (exponent && is_integer(x) && !exponent->is_float() && exponent->integer.is_constant()) {
    STAX_CHECK(exponent->integer.value() >= 0,
               "pow: an integer has no integer power {}; convert it to a float", exponent->integer.value());
  }
  if (exponent && is_floating_point(x.dtype())) {
    const double e =
        exponent->is_float() || exponent->integer.is_constant() ? exponent->as_double() : std::nan("");
    if (e == 2.0) return x * x;
    if (e == 3.0) return x * x * x;
    if (e == 1.0) return x;
    if (e == 0.5) return lowering::sqrt(x);
    if (e == -0.5) return lowering::rsqrt(x);
    if (e == -1.0) return lowering::reciprocal(x);
    if (e == 0.0) return lowering::like(x, 1);
  }
  if (x.dtype() == DType::boolean) return lowering::bitwise_or(x, lowering::logical_not(n));
  return lowering::pow(x, n);
}

V difference(V a, V b, const char* op) {
  STAX_CHECK(a.dtype() != DType::boolean,
             "{}: bool has no difference; use bitwise_xor, or logical_not for 1 - x", op);
  return a - b;
}

const Number* number_at(const PointwiseArgs& a, size_t position) {
  const auto& argument = (*a.args)[position];
  return argument.is_number() ? &argument.number() : nullptr;
}

// Floats: the floor of the exact quotient, but the integer part of the rounded one.
V divide_rounding(const PointwiseArgs& a, bool floor) {
  if (floor) return lowering::floor_div(a[0], a[1]);
  return is_integer(a[0]) ? lowering::trunc_div(a[0], a[1]) : lowering::trunc(a[0] / a[1]);
}

// log(exp(a) + exp(b)) without overflow; equal infinities give themselves.
V logaddexp(V a, V b) {
  const V high = lowering::maximum(a, b), low = lowering::minimum(a, b);
  const V same = lowering::bitwise_and(lowering::eq(a, b), lowering::isinf(a));
  return lowering::where(same, a, high + lowering::log1p(lowering::exp(low - high)));
}

V logaddexp2(V a, V b) {
  const V high = lowering::maximum(a, b), low = lowering::minimum(a, b);
  const V same = lowering::bitwise_and(lowering::eq(a, b), lowering::isinf(a));
  return lowering::where(same, a,
                         high + lowering::log1p(lowering::exp2(low - high)) * (1 / std::numbers::ln2));
}

// x * log(y), 0 where x is 0, NaN where y is NaN.
V xlogy(V x, V y) {
  const V product = lowering::where(lowering::eq(x, 0.0), lowering::like(x, 0), x * lowering::log(y));
  return lowering::where(lowering::isnan(y), y, product);
}

// An operand of a bound that is computed wider than the result: outside the result's type it is that type's
// end, and does not wrap.
V saturated(V v, const PointwiseArgs& a) {
  if (is_floating_point(v.dtype()) || v.dtype() == a.result) return v;
  const double end = std::ldexp(1.0, 8 * static_cast<int>(itemsize(a.result)) - 1);
  const bool is_unsigned = a.result == DType::uint8;
  return lowering::minimum(lowering::maximum(v, is_unsigned ? 0.0 : -end), is_unsigned ? 255.0 : end - 1);
}

V clamp(const PointwiseArgs& a) {
  // As PyTorch: the upper bound wins where the bounds cross. NaN values and bounds give NaN.
  V v = a[0];
  if (a[1].id >= 0) v = lowering::maximum(v, saturated(a[1], a));
  if (a[2].id >= 0) v = lowering::minimum(v, saturated(a[2], a));
  return v;
}

Vars clamp_checked(Builder& b, const VarArgs& a) {
  STAX_CHECK(!a[1].is_none() || !a[2].is_none(), "clamp: expected a lower or an upper bound, got neither");
  return {b.call("clamp_bounds", {a[0], a[1], a[2]})};
}

// The magnitude of the product of narrow integers is that in int32, which then wraps.
V lcm(V a, V b) {
  const V g = lowering::gcd(a, b);
  const DType dtype = a.dtype(), wide = graph::promote_types(dtype, DType::int32);
  const auto widened = [&](V v) { return lowering::cast(v, wide); };
  const V multiple = lowering::abs(lowering::trunc_div(widened(a), widened(g)) * widened(b));
  return lowering::where(lowering::eq(g, 0.0), g, lowering::cast(multiple, dtype));
}

// From the nearer end, so that weight 1 gives `end` exactly.
V lerp(const PointwiseArgs& a) {
  const V w = a[2], d = a[1] - a[0];
  return lowering::where(lowering::lt(lowering::abs(w), 0.5), a[0] + w * d, a[1] - d * (1 - w));
}

// x = mantissa * 2^exponent with the mantissa in [0.5, 1), from the bits of x. Numbers below the normal range
// are scaled into it first; zeros, infinities and NaN have the exponent 0 and are their own mantissa.
struct Parts {
  V mantissa, exponent;
};

Parts parts_of(V x) {
  const bool wide = x.dtype() == DType::float64;
  const DType integer = wide ? DType::int64 : DType::int32;
  const int64_t fraction_bits = wide ? 52 : 23, bias = wide ? 1022 : 126;
  const int64_t below = wide ? 54 : 25;
  const V small = lowering::lt(lowering::abs(x), wide ? 0x1p-1022 : 0x1p-126);
  const auto number = [&](int64_t n) { return V{x.body, x.body->int_constant(integer, n)}; };
  const V bits =
      lowering::bitcast(lowering::where(small, x * std::ldexp(1.0, static_cast<int>(below)), x), integer);
  const int64_t exponent_mask = wide ? int64_t{0x7ff} << 52 : int64_t{0xff} << 23;
  const V raw =
      lowering::shift_right(lowering::bitwise_and(bits, number(exponent_mask)), number(fraction_bits));
  const V exponent = raw - number(bias) - lowering::where(small, number(below), number(0));
  const V mantissa =
      lowering::bitcast(lowering::bitwise_or(lowering::bitwise_and(bits, number(~exponent_mask)),
                                             number(bias << fraction_bits)),
                        x.dtype());
  const V plain = lowering::bitwise_and(lowering::lt(lowering::abs(x), HUGE_VAL), lowering::ne(x, 0.0));
  return {lowering::where(plain, mantissa, x), lowering::where(plain, exponent, number(0))};
}

Vars frexp(Builder& b, const VarArgs& a) {
  STAX_CHECK(is_floating_point(a.tensor(0).dtype()), "frexp: expected a floating dtype, got {}",
             name(a.tensor(0).dtype()));
  return {b.call("_frexp_mantissa", {a[0]}), b.call("_frexp_exponent", {a[0], DType::int32})};
}

}  // namespace

Ops arithmetic_rows() {
  return {
      in_place(pointwise("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return a[0] + lowering::scaled(a[1], a, "alpha"); })),
      in_place(pointwise("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           return difference(a[0], lowering::scaled(a[1], a, "alpha"), "sub");
                         })),
      in_place(composite("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           return {b.call("sub.Tensor", {a[0], a[1], a[2]})};
                         })),
      pointwise("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                [](const PointwiseArgs& a) {
                  return difference(a[1], lowering::scaled(a[0], a, "alpha"), "rsub");
                }),
      in_place(pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote, BODY2(mul))),
      in_place(composite("multiply.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("mul.Tensor"))),
      in_place(pointwise("div.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote_float, BODY2(div))),
      in_place(composite("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           if (a[2].is_none()) return {b.call("div.Tensor", {a[0], a[1]})};
                           const std::string& mode = a[2].string();
                           STAX_CHECK(mode == "floor" || mode == "trunc",
                                      "div: expected rounding_mode None, 'floor' or 'trunc', got '{}'", mode);
                           return {b.call(mode == "floor" ? "floor_divide" : "trunc_divide", {a[0], a[1]})};
                         })),
      in_place(composite("true_divide.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("div.Tensor"))),
      in_place(composite("divide.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("div.Tensor"))),
      in_place(pointwise("floor_divide(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return divide_rounding(a, true); })),
      internal(pointwise("trunc_divide(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return divide_rounding(a, false); })),
      in_place(pointwise("remainder.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         BODY2(remainder))),
      in_place(pointwise("fmod.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote, BODY2(fmod))),
      in_place(pointwise("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return power(a[0], a[1], number_at(a, 1)); })),
      in_place(
          composite("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", ALIAS("pow.Tensor_Tensor"))),
      composite("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", ALIAS("pow.Tensor_Tensor")),
      composite("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  const auto wide = [&](const graph::VarArg& v) -> graph::VarArg {
                    if (v.is_number()) return graph::VarArg(v.floating());
                    return b.call("to.dtype", {v, DType::float64});
                  };
                  return {b.call("pow.Tensor_Tensor", {wide(a[0]), wide(a[1])})};
                }),
      in_place(pointwise("atan2(Tensor self, Tensor other) -> Tensor", Rule::promote_float, BODY2(atan2))),
      in_place(composite("arctan2(Tensor self, Tensor other) -> Tensor", ALIAS("atan2"))),
      in_place(pointwise("hypot(Tensor self, Tensor other) -> Tensor", Rule::promote, BODY2(hypot))),
      in_place(pointwise("copysign.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote_float,
                         BODY2(copysign))),
      in_place(pointwise("nextafter(Tensor self, Tensor other) -> Tensor", Rule::promote, BODY2(nextafter))),
      pointwise("maximum(Tensor self, Tensor other) -> Tensor", Rule::bound, BOUND(maximum)),
      pointwise("minimum(Tensor self, Tensor other) -> Tensor", Rule::bound, BOUND(minimum)),
      pointwise("fmax(Tensor self, Tensor other) -> Tensor", Rule::bound, BOUND(fmax)),
      pointwise("fmin(Tensor self, Tensor other) -> Tensor", Rule::bound, BOUND(fmin)),
      pointwise("logaddexp(Tensor self, Tensor other) -> Tensor", Rule::promote_float,
                [](const PointwiseArgs& a) { return logaddexp(a[0], a[1]); }),
      pointwise("logaddexp2(Tensor self, Tensor other) -> Tensor", Rule::promote_float,
                [](const PointwiseArgs& a) { return logaddexp2(a[0], a[1]); }),
      in_place(pointwise("xlogy.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) { return xlogy(a[0], a[1]); })),
      in_place(pointwise("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) { return a[0] * lowering::pow(2.0, a[1]); })),
      in_place(pointwise("heaviside(Tensor self, Tensor values) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           const V step = lowering::cast(lowering::gt(a[0], 0.0), a[0].dtype());
                           return lowering::where(lowering::eq(a[0], 0.0), a[1], step);
                         })),
      composite("frexp.Tensor(Tensor self) -> (Tensor, Tensor)", frexp),
      internal(pointwise("_frexp_mantissa(Tensor self) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return parts_of(a[0]).mantissa; })),
      internal(pointwise("_frexp_exponent(Tensor self, ScalarType? dtype) -> Tensor", Rule::argument,
                         [](const PointwiseArgs& a) { return parts_of(a[0]).exponent; })),
      in_place(pointwise("gcd(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "gcd");
                           return lowering::gcd(a[0], a[1]);
                         })),
      in_place(pointwise("lcm(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "lcm");
                           return lcm(a[0], a[1]);
                         })),
      in_place(
          pointwise("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", Rule::promote, lerp)),
      in_place(
          pointwise("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", Rule::promote, lerp)),
      in_place(pointwise(
          "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", Rule::promote,
          [](const PointwiseArgs& a) { return a[0] + lowering::scaled(a[1], a, "value") * a[2]; })),
      in_place(pointwise(
          "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", Rule::promote,
          [](const PointwiseArgs& a) { return a[0] + lowering::scaled(a[1], a, "value") / a[2]; })),
      internal(pointwise("clamp_bounds(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                         Rule::bound, clamp)),
      in_place(composite("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp_checked)),
      in_place(composite("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                         clamp_checked)),
      in_place(composite("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp_checked)),
      in_place(
          composite("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp_checked)),
      in_place(pointwise("clamp_min(Tensor self, Tensor min) -> Tensor", Rule::bound, BOUND(maximum))),
      in_place(pointwise("clamp_max(Tensor self, Tensor max) -> Tensor", Rule::bound, BOUND(minimum))),
  };
}

}  // namespace stax::ops

// Pointwise operators: arithmetic, exponentials, trigonometry, rounding, comparisons, logic, bits.
#include <cmath>
#include <numbers>

#include "ops/loop_vocabulary.h"
#include "ops/table.h"
#include "support/check.h"

namespace stax::ops {
namespace {

// Bodies that apply one instruction.
#define BODY(instruction) [](const PointwiseArgs& a) { return lowering::instruction(a[0]); }
#define BOUND(instruction) \
  [](const PointwiseArgs& a) { return lowering::instruction(saturated(a[0], a), saturated(a[1], a)); }
#define BODY2(instruction) [](const PointwiseArgs& a) { return lowering::instruction(a[0], a[1]); }
// A composite that calls another row with the same arguments.
#define ALIAS(target) [](Builder& b, const VarArgs& a) -> Vars { return {b.call(target, {a[0], a[1]})}; }
#define ALIAS1(target) [](Builder& b, const VarArgs& a) -> Vars { return {b.call(target, {a[0]})}; }

bool is_integer(V v) {
  return !is_floating_point(v.dtype());
}

V as_bool(V v) {
  return lowering::cast(v, DType::boolean);
}

// Predicates of floats that integers answer with a constant.
template <class F>
V for_floats(const PointwiseArgs& a, double integers, F&& f) {
  return is_integer(a[0]) ? lowering::cast(lowering::like(a[0], integers), DType::boolean) : f(a[0]);
}

// Rounding functions leave integers as they are.
template <class F>
V keep_integers(const PointwiseArgs& a, F&& f) {
  return is_integer(a[0]) ? a[0] : f(a[0]);
}

void require_integers(const PointwiseArgs& a, const char* op) {
  STAX_CHECK(is_integer(a[0]), "{}: expected integers or bool, got {}", op, name(a[0].dtype()));
}

// x^n by a number: the exponents for which a shorter formula gives PyTorch's own result.
V power(V x, V n, const Number* exponent) {
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

V divide_rounding(const PointwiseArgs& a, bool floor) {
  return floor ? lowering::floor_div(a[0], a[1]) : lowering::trunc_div(a[0], a[1]);
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

// sin(pi x) / (pi x), 1 at 0.
V sinc(V x) {
  const V t = x * std::numbers::pi;
  return lowering::where(lowering::eq(x, 0.0), lowering::like(x, 1), lowering::sin(t) / t);
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

V nan_to_num(const PointwiseArgs& a) {
  if (is_integer(a[0])) return a[0];
  const DType stored = a.result;
  const double largest = stored == DType::float16    ? 65504.0
                         : stored == DType::bfloat16 ? 0x1.fep127
                         : stored == DType::float32  ? 0x1.fffffep127
                                                     : 0x1.fffffffffffffp1023;
  const auto value = [&](size_t position, double absent) {
    const auto& argument = (*a.args)[position];
    return lowering::like(a[0], argument.is_none() ? absent : argument.floating());
  };
  const V inf = lowering::like(a[0], HUGE_VAL);
  V v = lowering::where(lowering::isnan(a[0]), value(1, 0.0), a[0]);
  v = lowering::where(lowering::eq(a[0], inf), value(2, largest), v);
  return lowering::where(lowering::eq(a[0], -inf), value(3, -largest), v);
}

// Rounds to `decimals` digits as PyTorch does: scaled by the power of ten, rounded half to even, scaled back.
V round_decimals(const PointwiseArgs& a) {
  if (is_integer(a[0])) return a[0];
  const int64_t decimals = (*a.args)["decimals"].integer().value();
  if (decimals == 0) return lowering::round(a[0]);
  const V power = lowering::like(a[0], std::pow(10.0, std::abs(static_cast<double>(decimals))));
  return decimals > 0 ? lowering::round(a[0] * power) / power : lowering::round(a[0] / power) * power;
}

V isclose(const PointwiseArgs& a) {
  const auto& args = *a.args;
  for (const char* tolerance : {"rtol", "atol"}) {
    STAX_CHECK(args[tolerance].floating() >= 0, "isclose: {} must not be negative, got {}", tolerance,
               args[tolerance].floating());
  }
  const V x = a[0], y = a[1];
  V close = lowering::eq(x, y);
  if (args["equal_nan"].boolean() && !is_integer(x)) {
    close = lowering::bitwise_or(close, lowering::bitwise_and(lowering::isnan(x), lowering::isnan(y)));
  }
  const DType wide = is_integer(x) ? DType::float64 : x.dtype();
  const V xf = lowering::cast(x, wide), yf = lowering::cast(y, wide);
  const V allowed = lowering::abs(yf * args["rtol"].floating()) + args["atol"].floating();
  const V difference = lowering::abs(xf - yf);
  const V finite = lowering::lt(difference, lowering::like(difference, HUGE_VAL));
  return lowering::bitwise_or(close, lowering::bitwise_and(finite, lowering::le(difference, allowed)));
}

V lcm(V a, V b) {
  const V g = lowering::gcd(a, b);
  return lowering::where(lowering::eq(g, 0.0), g, lowering::abs(lowering::trunc_div(a, g) * b));
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

V where_nonzero(V condition, V a, V b) {
  return lowering::where(as_bool(condition), a, b);
}

Ops unary_rows() {
  return {
      in_place(pointwise("abs(Tensor self) -> Tensor", Rule::promote, BODY(abs))),
      composite("absolute(Tensor self) -> Tensor", ALIAS1("abs")),
      in_place(pointwise("neg(Tensor self) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           STAX_CHECK(a[0].dtype() != DType::boolean,
                                      "neg: bool has no negative; use logical_not");
                           return lowering::neg(a[0]);
                         })),
      composite("negative(Tensor self) -> Tensor", ALIAS1("neg")),
      composite("positive(Tensor self) -> Tensor",
                [](Builder&, const VarArgs& a) -> Vars { return {a.tensor(0)}; }),
      in_place(pointwise("exp(Tensor self) -> Tensor", Rule::promote_float, BODY(exp))),
      in_place(pointwise("exp2(Tensor self) -> Tensor", Rule::promote_float, BODY(exp2))),
      in_place(pointwise("expm1(Tensor self) -> Tensor", Rule::promote_float, BODY(expm1))),
      in_place(pointwise("log(Tensor self) -> Tensor", Rule::promote_float, BODY(log))),
      in_place(pointwise("log2(Tensor self) -> Tensor", Rule::promote_float, BODY(log2))),
      in_place(pointwise("log10(Tensor self) -> Tensor", Rule::promote_float, BODY(log10))),
      in_place(pointwise("log1p(Tensor self) -> Tensor", Rule::promote_float, BODY(log1p))),
      in_place(pointwise("sqrt(Tensor self) -> Tensor", Rule::promote_float, BODY(sqrt))),
      in_place(pointwise("rsqrt(Tensor self) -> Tensor", Rule::promote_float, BODY(rsqrt))),
      in_place(pointwise("reciprocal(Tensor self) -> Tensor", Rule::promote_float, BODY(reciprocal))),
      in_place(composite("square(Tensor self) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           return {b.call("pow.Tensor_Scalar", {a[0], 2})};
                         })),
      in_place(pointwise("sin(Tensor self) -> Tensor", Rule::promote_float, BODY(sin))),
      in_place(pointwise("cos(Tensor self) -> Tensor", Rule::promote_float, BODY(cos))),
      in_place(pointwise("tan(Tensor self) -> Tensor", Rule::promote_float, BODY(tan))),
      in_place(pointwise("asin(Tensor self) -> Tensor", Rule::promote_float, BODY(asin))),
      in_place(pointwise("acos(Tensor self) -> Tensor", Rule::promote_float, BODY(acos))),
      in_place(pointwise("atan(Tensor self) -> Tensor", Rule::promote_float, BODY(atan))),
      in_place(pointwise("sinh(Tensor self) -> Tensor", Rule::promote_float, BODY(sinh))),
      in_place(pointwise("cosh(Tensor self) -> Tensor", Rule::promote_float, BODY(cosh))),
      in_place(pointwise("tanh(Tensor self) -> Tensor", Rule::promote_float, BODY(tanh))),
      in_place(pointwise("asinh(Tensor self) -> Tensor", Rule::promote_float, BODY(asinh))),
      in_place(pointwise("acosh(Tensor self) -> Tensor", Rule::promote_float, BODY(acosh))),
      in_place(pointwise("atanh(Tensor self) -> Tensor", Rule::promote_float, BODY(atanh))),
      in_place(pointwise("sigmoid(Tensor self) -> Tensor", Rule::promote_float, BODY(sigmoid))),
      in_place(pointwise("erf(Tensor self) -> Tensor", Rule::promote_float, BODY(erf))),
      in_place(pointwise("erfc(Tensor self) -> Tensor", Rule::promote_float, BODY(erfc))),
      in_place(pointwise("erfinv(Tensor self) -> Tensor", Rule::promote_float, BODY(erfinv))),
      in_place(pointwise("lgamma(Tensor self) -> Tensor", Rule::promote_float, BODY(lgamma))),
      in_place(pointwise("digamma(Tensor self) -> Tensor", Rule::promote_float, BODY(digamma))),
      in_place(pointwise("i0(Tensor self) -> Tensor", Rule::promote_float, BODY(i0))),
      in_place(pointwise("sinc(Tensor self) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) { return sinc(a[0]); })),
      in_place(pointwise("deg2rad(Tensor self) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) { return a[0] * (std::numbers::pi / 180); })),
      in_place(pointwise("rad2deg(Tensor self) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) { return a[0] * (180 / std::numbers::pi); })),
      in_place(pointwise("logit(Tensor self, float? eps=None) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) {
                           V x = a[0];
                           if (const auto& eps = (*a.args)["eps"]; !eps.is_none()) {
                             x = lowering::minimum(lowering::maximum(x, eps.floating()), 1 - eps.floating());
                           }
                           return lowering::log(x / (1 - x));
                         })),
      in_place(pointwise(
          "floor(Tensor self) -> Tensor", Rule::promote,
          [](const PointwiseArgs& a) { return keep_integers(a, [](V v) { return lowering::floor(v); }); })),
      in_place(pointwise(
          "ceil(Tensor self) -> Tensor", Rule::promote,
          [](const PointwiseArgs& a) { return keep_integers(a, [](V v) { return lowering::ceil(v); }); })),
      in_place(pointwise(
          "trunc(Tensor self) -> Tensor", Rule::promote,
          [](const PointwiseArgs& a) { return keep_integers(a, [](V v) { return lowering::trunc(v); }); })),
      in_place(pointwise("round(Tensor self, *, int decimals=0) -> Tensor", Rule::promote, round_decimals)),
      in_place(pointwise("frac(Tensor self) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) { return a[0] - lowering::trunc(a[0]); })),
      in_place(pointwise("sign(Tensor self) -> Tensor", Rule::promote, BODY(sign))),
      composite("sgn(Tensor self) -> Tensor", ALIAS1("sign")),
      pointwise("signbit(Tensor self) -> Tensor", Rule::compare,
                [](const PointwiseArgs& a) {
                  return is_integer(a[0]) ? lowering::lt(a[0], 0.0) : lowering::signbit(a[0]);
                }),
      pointwise(
          "isnan(Tensor self) -> Tensor", Rule::compare,
          [](const PointwiseArgs& a) { return for_floats(a, 0, [](V v) { return lowering::isnan(v); }); }),
      pointwise(
          "isinf(Tensor self) -> Tensor", Rule::compare,
          [](const PointwiseArgs& a) { return for_floats(a, 0, [](V v) { return lowering::isinf(v); }); }),
      pointwise("isfinite(Tensor self) -> Tensor", Rule::compare,
                [](const PointwiseArgs& a) {
                  return for_floats(a, 1, [](V v) { return lowering::lt(lowering::abs(v), HUGE_VAL); });
                }),
      pointwise("isposinf(Tensor self) -> Tensor", Rule::compare,
                [](const PointwiseArgs& a) {
                  return for_floats(a, 0, [](V v) { return lowering::eq(v, HUGE_VAL); });
                }),
      pointwise("isneginf(Tensor self) -> Tensor", Rule::compare,
                [](const PointwiseArgs& a) {
                  return for_floats(a, 0, [](V v) { return lowering::eq(v, -HUGE_VAL); });
                }),
      in_place(pointwise("logical_not(Tensor self) -> Tensor", Rule::compare,
                         [](const PointwiseArgs& a) { return lowering::logical_not(as_bool(a[0])); })),
      in_place(pointwise("bitwise_not(Tensor self) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "bitwise_not");
                           return lowering::bitwise_not(a[0]);
                         })),
      in_place(pointwise(
          "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
          Rule::promote, nan_to_num)),
  };
}

Ops binary_rows() {
  return {
      in_place(pointwise("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return a[0] + lowering::scaled(a[1], a, "alpha"); })),
      in_place(pointwise("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           return difference(a[0], lowering::scaled(a[1], a, "alpha"), "sub");
                         })),
      composite("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("sub.Tensor", {a[0], a[1], a[2]})};
                }),
      pointwise("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                [](const PointwiseArgs& a) {
                  return difference(a[1], lowering::scaled(a[0], a, "alpha"), "rsub");
                }),
      in_place(pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote, BODY2(mul))),
      composite("multiply.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("mul.Tensor")),
      in_place(pointwise("div.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote_float, BODY2(div))),
      in_place(composite("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           if (a[2].is_none()) return {b.call("div.Tensor", {a[0], a[1]})};
                           const std::string& mode = a[2].string();
                           STAX_CHECK(mode == "floor" || mode == "trunc",
                                      "div: expected rounding_mode None, 'floor' or 'trunc', got '{}'", mode);
                           return {b.call(mode == "floor" ? "floor_divide" : "trunc_divide", {a[0], a[1]})};
                         })),
      composite("true_divide.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("div.Tensor")),
      composite("divide.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("div.Tensor")),
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
      composite("arctan2(Tensor self, Tensor other) -> Tensor", ALIAS("atan2")),
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
      pointwise("heaviside(Tensor self, Tensor values) -> Tensor", Rule::promote,
                [](const PointwiseArgs& a) {
                  const V step = lowering::cast(lowering::gt(a[0], 0.0), a[0].dtype());
                  const V at_zero = lowering::where(lowering::eq(a[0], 0.0), a[1], step);
                  return is_integer(a[0]) ? at_zero : lowering::where(lowering::isnan(a[0]), a[0], at_zero);
                }),
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
      composite("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp_checked),
      composite("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp_checked),
      in_place(pointwise("clamp_min(Tensor self, Tensor min) -> Tensor", Rule::bound, BOUND(maximum))),
      in_place(pointwise("clamp_max(Tensor self, Tensor max) -> Tensor", Rule::bound, BOUND(minimum))),
  };
}

Ops comparison_rows() {
  return {
      in_place(pointwise("eq.Tensor(Tensor self, Tensor other) -> Tensor", Rule::compare, BODY2(eq))),
      in_place(pointwise("ne.Tensor(Tensor self, Tensor other) -> Tensor", Rule::compare, BODY2(ne))),
      in_place(pointwise("lt.Tensor(Tensor self, Tensor other) -> Tensor", Rule::compare, BODY2(lt))),
      in_place(pointwise("le.Tensor(Tensor self, Tensor other) -> Tensor", Rule::compare, BODY2(le))),
      in_place(pointwise("gt.Tensor(Tensor self, Tensor other) -> Tensor", Rule::compare, BODY2(gt))),
      in_place(pointwise("ge.Tensor(Tensor self, Tensor other) -> Tensor", Rule::compare, BODY2(ge))),
      composite("greater.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("gt.Tensor")),
      composite("greater_equal.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("ge.Tensor")),
      composite("less.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("lt.Tensor")),
      composite("less_equal.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("le.Tensor")),
      composite("not_equal.Tensor(Tensor self, Tensor other) -> Tensor", ALIAS("ne.Tensor")),
      pointwise("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
                "equal_nan=False) -> Tensor",
                Rule::compare, isclose),
      in_place(pointwise(
          "logical_and(Tensor self, Tensor other) -> Tensor", Rule::compare,
          [](const PointwiseArgs& a) { return lowering::bitwise_and(as_bool(a[0]), as_bool(a[1])); })),
      in_place(pointwise(
          "logical_or(Tensor self, Tensor other) -> Tensor", Rule::compare,
          [](const PointwiseArgs& a) { return lowering::bitwise_or(as_bool(a[0]), as_bool(a[1])); })),
      in_place(pointwise(
          "logical_xor(Tensor self, Tensor other) -> Tensor", Rule::compare,
          [](const PointwiseArgs& a) { return lowering::bitwise_xor(as_bool(a[0]), as_bool(a[1])); })),
      in_place(pointwise("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "bitwise_and");
                           return lowering::bitwise_and(a[0], a[1]);
                         })),
      in_place(pointwise("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "bitwise_or");
                           return lowering::bitwise_or(a[0], a[1]);
                         })),
      in_place(pointwise("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "bitwise_xor");
                           return lowering::bitwise_xor(a[0], a[1]);
                         })),
      in_place(pointwise("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "bitwise_left_shift");
                           return lowering::shift_left(a[0], a[1]);
                         })),
      in_place(pointwise("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           require_integers(a, "bitwise_right_shift");
                           return lowering::shift_right(a[0], a[1]);
                         })),
      pointwise("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", Rule::promote_tail,
                [](const PointwiseArgs& a) { return where_nonzero(a[0], a[1], a[2]); }),
      in_place(composite("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           STAX_CHECK(a.tensor(1).dtype() == DType::boolean,
                                      "masked_fill: expected a bool mask, got {}", name(a.tensor(1).dtype()));
                           STAX_CHECK(a[2].is_number() || a.tensor(2).dim() == 0,
                                      "masked_fill: expected a number or a zero-dim value, got {} dimensions",
                                      a[2].is_number() ? 0 : a.tensor(2).dim());
                           return {b.call("masked_fill_formula", {a[0], a[1], a[2]})};
                         })),
      internal(pointwise("masked_fill_formula(Tensor self, Tensor mask, Tensor value) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) { return where_nonzero(a[1], a[2], a[0]); })),
  };
}

Ops cast_rows() {
  const auto convert = [](const PointwiseArgs& a) { return lowering::round_to(a[0], a.result); };
  return {
      pointwise("to.dtype(Tensor self, ScalarType? dtype) -> Tensor", Rule::argument, convert),
      pointwise("clone(Tensor self) -> Tensor", Rule::promote, [](const PointwiseArgs& a) { return a[0]; }),
      composite("detach_copy(Tensor self) -> Tensor", ALIAS1("clone")),
      composite("type_as(Tensor self, Tensor other) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("to.dtype", {a[0], a.tensor(1).dtype()})};
                }),
  };
}

}  // namespace

Ops pointwise_rows() {
  Ops rows;
  for (const auto part : {unary_rows, binary_rows, comparison_rows, cast_rows}) {
    for (graph::Op& op : part()) rows.push_back(std::move(op));
  }
  return rows;
}

}  // namespace stax::ops

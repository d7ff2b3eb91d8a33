// Pointwise operators of one tensor: exponentials, trigonometry, rounding, signs, predicates.
#include <cmath>
#include <numbers>

#include "ops/pointwise_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/dtype_limits.h"

namespace stax::ops {
namespace {

// Predicates of floats that integers answer with a constant.
template <class F>
V for_floats(const PointwiseArgs& a, double integers, F&& f) {
  return is_integer(a[0]) ? lowering::cast(lowering::like(a[0], integers), DType::boolean) : f(a[0]);
}

// As in PyTorch.
void refuse_bool(const PointwiseArgs& a) {
  STAX_CHECK(a[0].dtype() != DType::boolean, "{}: expected numbers, got bool; convert it first",
             a.args->schema().name);
}

// Rounding functions leave integers as they are.
template <class F>
V keep_integers(const PointwiseArgs& a, F&& f) {
  refuse_bool(a);
  return is_integer(a[0]) ? a[0] : f(a[0]);
}

// sin(pi x) / (pi x), 1 at 0.
V sinc(V x) {
  const V t = x * std::numbers::pi;
  return lowering::where(lowering::eq(x, 0.0), lowering::like(x, 1), lowering::sin(t) / t);
}

V nan_to_num(const PointwiseArgs& a) {
  if (is_integer(a[0])) return a[0];
  const double largest = largest_finite(a.result);
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
  refuse_bool(a);
  const int64_t decimals = (*a.args)["decimals"].integer().value();
  if (is_integer(a[0])) {
    STAX_CHECK(decimals == 0, "round: {} has no decimals to round to {}; convert it to a float",
               name(a[0].dtype()), decimals);
    return a[0];
  }
  if (decimals == 0) return lowering::round(a[0]);
  const V power = lowering::like(a[0], std::pow(10.0, std::abs(static_cast<double>(decimals))));
  return decimals > 0 ? lowering::round(a[0] * power) / power : lowering::round(a[0] / power) * power;
}

}  // namespace

Ops unary_rows() {
  return {
      in_place(pointwise("abs(Tensor self) -> Tensor", Rule::promote, BODY(abs))),
      in_place(composite("absolute(Tensor self) -> Tensor", ALIAS1("abs"))),
      in_place(pointwise("neg(Tensor self) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) {
                           STAX_CHECK(a[0].dtype() != DType::boolean,
                                      "neg: bool has no negative; use logical_not");
                           return lowering::neg(a[0]);
                         })),
      in_place(composite("negative(Tensor self) -> Tensor", ALIAS1("neg"))),
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
      in_place(composite("sgn(Tensor self) -> Tensor", ALIAS1("sign"))),
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

}  // namespace stax::ops

// Comparisons, logic, bits, choices and casts.
#include <cmath>

#include "ops/pointwise_rules.h"
#include "ops/table.h"
#include "support/plural.h"

namespace stax::ops {
namespace {

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

V where_nonzero(V condition, V a, V b) {
  return lowering::where(as_bool(condition), a, b);
}

}  // namespace

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
                                      "masked_fill: expected a number or a zero-dim value, got {}",
                                      counted(a[2].is_number() ? 0 : a.tensor(2).dim(), "dimension"));
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

}  // namespace stax::ops

// Pointwise operators: arithmetic, exponentials, trigonometry, rounding, comparisons, logic, bits.
#include "graph/builder.h"
#include "lowering/scalar.h"
#include "ops/table.h"

namespace stax::ops {
namespace {

using graph::composite;
using graph::in_place;
using graph::pointwise;
using lowering::PointwiseArgs;
using lowering::V;
using Rule = graph::DTypeRule;

// For a unary instruction: a body that applies it.
#define BODY(instruction) [](const PointwiseArgs& a) { return lowering::instruction(a[0]); }
#define BODY2(instruction) [](const PointwiseArgs& a) { return lowering::instruction(a[0], a[1]); }

}  // namespace

std::vector<graph::Op> pointwise_rows() {
  return {
      in_place(pointwise("exp(Tensor self) -> Tensor", Rule::promote_float, BODY(exp))),
      in_place(pointwise("neg(Tensor self) -> Tensor", Rule::promote, BODY(neg))),
      in_place(pointwise("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return a[0] + lowering::scaled(a[1], a, "alpha"); })),
      in_place(pointwise("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return a[0] - lowering::scaled(a[1], a, "alpha"); })),
      in_place(pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote, BODY2(mul))),
      in_place(pointwise("div.Tensor(Tensor self, Tensor other) -> Tensor", Rule::promote_float, BODY2(div))),
      pointwise("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", Rule::promote,
                [](const PointwiseArgs& a) { return a[1] - lowering::scaled(a[0], a, "alpha"); }),
      pointwise("reciprocal(Tensor self) -> Tensor", Rule::promote_float, BODY(reciprocal)),
      composite(
          "square(Tensor self) -> Tensor",
          [](graph::Builder&, const graph::VarArgs& a) { return std::vector{a.tensor(0) * a.tensor(0)}; }),
  };
}

}  // namespace stax::ops

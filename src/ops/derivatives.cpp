// The derivative column of the op table: what each operator hands on to its arguments in reverse mode.
//
// A rule gets the call's arguments, its results and their gradients (unset where a result does not matter),
// and gives a gradient for every tensor among the arguments, in order; unset where there is none. Gradients
// have the dtypes and sizes of their tensors. The formulas are those of calculus; where a function has no
// derivative (ties of maxima, relu at 0) the choice is PyTorch's, and said at the rule.
#include <cmath>
#include <numbers>

#include "graph/broadcast.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "support/check.h"

namespace stax::ops {

using graph::DerivativeRule;

namespace {

#define RULE [](Builder & b, const VarArgs& a, const Vars& r, const Vars& g) -> Vars

/// The gradient of a tensor that was broadcast and converted to the sizes and dtype of `gradient`.
Var as_argument(Builder& b, Var gradient, const Var& argument) {
  const auto extra = static_cast<size_t>(gradient.dim() - argument.dim());
  Exprs summed;
  for (size_t d = 0; d < extra; ++d) summed.push_back(static_cast<int64_t>(d));
  for (size_t d = extra; d < static_cast<size_t>(gradient.dim()); ++d) {
    if (graph::repeats(b.env(), argument.sizes()[d - extra], gradient.sizes()[d]))
      summed.push_back(static_cast<int64_t>(d));
  }
  if (!summed.empty()) {
    gradient = b.call("sum.dim_IntList", {gradient, summed, true});
    if (extra > 0) gradient = b.call("view", {gradient, argument.sizes()});
  }
  if (gradient.dtype() != argument.dtype()) gradient = b.call("to.dtype", {gradient, argument.dtype()});
  return gradient;
}

Var unary(Builder& b, std::string_view op, const Var& x) {
  return b.call(op, {x});
}

/// dx = g f'(x), where the formula needs x or the result y.
#define POINTWISE(name, formula)                                                            \
  {                                                                                         \
    name, RULE {                                                                            \
      const Var x = a.tensor(0), y = r[0];                                                  \
      const auto call = [&](std::string_view op, const Var& v) { return unary(b, op, v); }; \
      (void)x, (void)y, (void)call;                                                         \
      return {as_argument(b, g[0] * (formula), x)};                                         \
    }                                                                                       \
  }

Var zero_like(Builder& b, const Var& x) {
  return b.call("zeros_like", {x});
}

Var scaled(const Var& x, const VarArg& factor) {
  return factor.floating() == 1 ? x : x * factor.number();
}

/// Ties share the gradient in halves.
Vars extremum(Builder& b, const VarArgs& a, const Vars& g, std::string_view better) {
  const Var x = a.tensor(0), y = a.tensor(1), half = g[0] * num(0.5), zero = zero_like(b, g[0]);
  const Var tie = b.call("eq.Tensor", {x, y});
  const auto part = [&](const Var& mine, const Var& other) {
    const Var wins = b.call(better, {mine, other});
    return as_argument(b, b.call("where.self", {tie, half, b.call("where.self", {wins, g[0], zero})}), mine);
  };
  return {part(x, y), part(y, x)};
}

/// A reduced gradient with its dims back, of size 1.
Var with_dims(Builder& b, const Var& gradient, const Var& x, const VarArg& dim, bool keepdim) {
  if (keepdim) return gradient;
  std::vector<bool> reduced(static_cast<size_t>(x.dim()), dim.is_none() || dim.integers().empty());
  if (!dim.is_none()) {
    for (const Expr& d : dim.integers())
      reduced[static_cast<size_t>(graph::wrap_dim(d.value(), x.dim(), "sum"))] = true;
  }
  Exprs sizes;
  for (size_t d = 0; d < reduced.size(); ++d) sizes.push_back(reduced[d] ? Expr(1) : x.sizes()[d]);
  return b.call("view", {gradient, sizes});
}

Var spread(Builder& b, const Var& gradient, const Var& x) {
  return as_argument(b, b.call("expand", {gradient, x.sizes()}), x);
}

Expr reduced_count(const Var& x, const Var& y) {
  return floor_div(x.numel(), max(y.numel(), 1));
}

Exprs inverse_permutation(const VarArg& dims, int64_t rank) {
  Exprs inverse(static_cast<size_t>(rank));
  for (int64_t k = 0; k < rank; ++k) {
    const int64_t d = graph::wrap_dim(dims.integers()[static_cast<size_t>(k)].value(), rank, "permute");
    inverse[static_cast<size_t>(d)] = k;
  }
  return inverse;
}

Var transposed(Builder& b, const Var& x) {
  return b.call("transpose.int", {x, -2, -1});
}

struct Row {
  std::string_view name;
  DerivativeRule rule;
};

const Row kRows[] = {
    // Arithmetic
    {"add.Tensor", RULE{(void)r;
return {as_argument(b, g[0], a.tensor(0)), as_argument(b, scaled(g[0], a[2]), a.tensor(1))};
}  // namespace
}  // namespace stax::ops
, {"sub.Tensor", RULE{(void)r;
return {as_argument(b, g[0], a.tensor(0)), as_argument(b, -scaled(g[0], a[2]), a.tensor(1))};
}
}
, {"mul.Tensor", RULE{(void)r;
const Var x = a.tensor(0), y = a.tensor(1);
return {as_argument(b, g[0] * y, x), as_argument(b, g[0] * x, y)};
}
}
, {"div.Tensor", RULE{const Var x = a.tensor(0), y = a.tensor(1);
return {as_argument(b, g[0] / y, x), as_argument(b, -g[0] * r[0] / y, y)};
}
}
, {"pow.Tensor_Scalar", RULE{(void)r;
const Var x = a.tensor(0);
const double n = a[1].floating();
if (n == 0) return {zero_like(b, x)};
const Var power = n == 2 ? x : b.call("pow.Tensor_Scalar", {x, n - 1});
return {as_argument(b, g[0] * (power * num(n)), x)};
}
}
, {"maximum", RULE{return (void)r, extremum(b, a, g, "gt.Tensor");
}
}
, {"minimum", RULE{return (void)r, extremum(b, a, g, "lt.Tensor");
}
}
, {"where.self", RULE{(void)r;
const Var zero = zero_like(b, g[0]), condition = a.tensor(0);
return {Var(), as_argument(b, b.call("where.self", {condition, g[0], zero}), a.tensor(1)),
        as_argument(b, b.call("where.self", {condition, zero, g[0]}), a.tensor(2))};
}
}
,
    // Functions of one variable
    POINTWISE("neg", num(-1.0)), POINTWISE("reciprocal", -(y* y)), POINTWISE("abs", call("sign", x)),
    POINTWISE("square", x* num(2.0)), POINTWISE("exp", y), POINTWISE("exp2", y* num(std::numbers::ln2)),
    POINTWISE("expm1", y + num(1.0)), POINTWISE("log", call("reciprocal", x)),
    POINTWISE("log2", call("reciprocal", x* num(std::numbers::ln2))),
    POINTWISE("log10", call("reciprocal", x* num(std::numbers::ln10))),
    POINTWISE("log1p", call("reciprocal", x + num(1.0))), POINTWISE("sqrt", call("reciprocal", y* num(2.0))),
    POINTWISE("rsqrt", (y * y * y) * num(-0.5)), POINTWISE("sin", call("cos", x)),
    POINTWISE("cos", -call("sin", x)), POINTWISE("tan", y* y + num(1.0)), POINTWISE("tanh", num(1.0) - y * y),
    POINTWISE("sigmoid", y*(num(1.0) - y)),
    POINTWISE("erf", call("exp", -(x* x)) * num(2 * std::numbers::inv_sqrtpi)),
    // 0 at 0.
    {"relu", RULE{return {b.call("where.self", {b.call("gt.Scalar", {r[0], 0}), g[0], zero_like(b, g[0])})};
(void)a;
}
}
, {"gelu", RULE{return (void)r, Vars{b.call("gelu_backward", {g[0], a[0], a[1]})};
}
}
, {"silu", RULE{(void)r;
const Var x = a.tensor(0), s = unary(b, "sigmoid", x);
return {g[0] * (s * (x * (num(1.0) - s) + num(1.0)))};
}
}
, {"leaky_relu", RULE{(void)r;
return {b.call("where.self", {b.call("gt.Scalar", {a[0], 0}), g[0], scaled(g[0], a[1])})};
}
}
, {"clone", RULE{return (void)r, Vars{as_argument(b, g[0], a.tensor(0))};
}
}
, {"to.dtype", RULE{return (void)r, Vars{as_argument(b, g[0], a.tensor(0))};
}
}
,
    // Reductions
    {"sum", RULE{return (void)r, Vars{spread(b, g[0], a.tensor(0))};
}
}
, {"sum.dim_IntList", RULE{(void)r;
return {spread(b, with_dims(b, g[0], a.tensor(0), a[1], a[2].boolean()), a.tensor(0))};
}
}
, {"mean", RULE{return {spread(b, g[0] / num(reduced_count(a.tensor(0), r[0])), a.tensor(0))};
}
}
, {"mean.dim", RULE{const Var share = g[0] / num(reduced_count(a.tensor(0), r[0]));
return {spread(b, with_dims(b, share, a.tensor(0), a[1], a[2].boolean()), a.tensor(0))};
}
}
,
    // Equal maxima share the gradient evenly.
    {"amax", RULE{const Var x = a.tensor(0);
const Var most = with_dims(b, r[0], x, a[1], a[2].boolean());
const Var there = b.call("to.dtype", {b.call("eq.Tensor", {x, most}), x.dtype()});
VarArg dims = a[1];
const Var count = b.call("sum.dim_IntList", {there, dims, true});
return {there / count * with_dims(b, g[0], x, a[1], a[2].boolean())};
}
}
, {"softmax.int", RULE{const Var y = r[0], weighted = g[0] * y;
const Var total = b.call("sum.dim_IntList", {weighted, Exprs{a[1].integer()}, true});
return {as_argument(b, weighted - y * total, a.tensor(0))};
}
}
, {"log_softmax.int", RULE{const Var total = b.call("sum.dim_IntList", {g[0], Exprs{a[1].integer()}, true});
return {as_argument(b, g[0] - unary(b, "exp", r[0]) * total, a.tensor(0))};
}
}
,
    // Views
    {"expand", RULE{return (void)r, Vars{as_argument(b, g[0], a.tensor(0))};
}
}
, {"view", RULE{return (void)r, Vars{b.call("reshape", {g[0], a.tensor(0).sizes()})};
}
}
, {"permute", RULE{return (void)r, Vars{b.call("permute", {g[0], inverse_permutation(a[1], g[0].dim())})};
}
}
, {"unsqueeze", RULE{return (void)r, Vars{b.call("reshape", {g[0], a.tensor(0).sizes()})};
}
}
, {"slice.Tensor", RULE{(void)r;
return {b.call("slice_scatter", {zero_like(b, a.tensor(0)), g[0], a[1], a[2], a[3], a[4]})};
}
}
, {"select.int",
   RULE{return (void)r, Vars{b.call("select_scatter", {zero_like(b, a.tensor(0)), g[0], a[1], a[2]})};
}
}
,
    // Products
    {"mm", RULE{(void)r;
return {b.call("mm", {g[0], transposed(b, a.tensor(1))}), b.call("mm", {transposed(b, a.tensor(0)), g[0]})};
}
}
, {"bmm", RULE{(void)r;
return {b.call("bmm", {g[0], transposed(b, a.tensor(1))}), b.call("bmm", {transposed(b, a.tensor(0)), g[0]})};
}
}
,
}
;

#undef RULE
#undef POINTWISE

}  // namespace

DerivativeRule derivative_of(std::string_view full_name) {
  for (const Row& row : kRows)
    if (row.name == full_name) return row.rule;
  return nullptr;
}

}  // namespace stax::ops

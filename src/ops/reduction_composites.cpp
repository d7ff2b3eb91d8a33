// Operators written in terms of reductions: logsumexp, nansum, diff, trapezoid.
#include "ops/reduction_rules.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "ops/widen.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

Var as_float(Builder& b, const Var& x) {
  return is_floating_point(x.dtype()) ? x : b.call("to.dtype", {x, DType::float32});
}

// log(sum(exp(x - m))) + m with m the maximum, or 0 where that is infinite.
Vars logsumexp(Builder& b, const VarArgs& a) {
  const Var x = as_float(b, a.tensor(0));
  const bool keep = a[2].boolean();
  const VarArg dims = all_dims_if_empty(x, a[1]);
  for (const int64_t d : reduced_dims(a)) {
    if (b.env().surely(eq(x.size(d), 0))) {
      return {b.call("log", {b.call("sum.dim_IntList", {b.call("exp", {x}), dims, keep})})};
    }
  }
  const Var high = row_max(b, x, dims.integers());
  const Var infinite = b.call("isinf", {high});
  const Var safe = b.call("where.self", {infinite, 0.0, high});
  const Var sum = b.call("sum.dim_IntList", {b.call("exp", {x - safe}), dims, keep});
  const Var m = keep || x.dim() == 0 ? safe : b.call("squeeze.dims", {safe, dims});
  return {b.call("log", {sum}) + m};
}

Vars nansum(Builder& b, const VarArgs& a) {
  Var x = a.tensor(0);
  if (is_floating_point(x.dtype())) {
    const Var missing = b.call("isnan", {x});
    x = b.call("masked_fill_formula", {x, missing, 0.0});
  }
  return {b.call("sum.dim_IntList", {x, a[1], a[2], a[3]})};
}

Vars nanmean(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  STAX_CHECK(is_floating_point(x.dtype()), "nanmean: expected a floating dtype, got {}", name(x.dtype()));
  const Var present = b.call("logical_not", {b.call("isnan", {x})});
  const Var count = b.call("sum.dim_IntList", {present, a[1], a[2]});
  return {b.call("nansum", {x, a[1], a[2], a[3]}) / count};
}

Vars count_nonzero(Builder& b, const VarArgs& a) {
  const Var nonzero = b.call("ne.Tensor", {a[0], 0});
  return {b.call("sum.dim_IntList", {nonzero, a[1]})};
}

Vars diff(Builder& b, const VarArgs& a) {
  Var x = a.tensor(0);
  STAX_CHECK(x.dim() > 0, "diff: expected a tensor with dimensions, got a zero-dim one");
  const int64_t order = a[1].integer().value(), dim = wrap_dim(a[2].integer().value(), x.dim(), "diff");
  STAX_CHECK(order >= 0, "diff: expected a non-negative order, got {}", order);
  if (order == 0) return {b.call("clone", {x})};
  VarArg::Tensors parts;
  if (!a[3].is_none()) parts.push_back(a[3].tensor());
  parts.push_back(x);
  if (!a[4].is_none()) parts.push_back(a[4].tensor());
  if (parts.size() > 1) x = b.call("cat", {parts, dim});
  for (int64_t k = 0; k < order; ++k) {
    const Expr size = x.size(dim);
    const Expr rest = at_least_zero(b.env(), size - 1);
    const Var high = b.call("narrow", {x, dim, size - rest, rest}), low = b.call("narrow", {x, dim, 0, rest});
    x = x.dtype() == DType::boolean ? b.call("logical_xor", {high, low}) : high - low;
  }
  return {x};
}

Vars trapezoid_parts(Builder& b, const Var& y, int64_t dim, const VarArg& x, const VarArg& dx) {
  const Expr n = y.size(dim);
  STAX_CHECK(b.env().expect(gt(n, 0)), "trapezoid: dimension {} has size 0", dim);
  const Var sum = b.call("narrow", {y, dim, 1, n - 1}) + b.call("narrow", {y, dim, 0, n - 1});
  if (!x.is_tensor()) return {sum * num(0.5) * (dx.is_number() ? dx.number() : num(1))};
  Var steps = x.tensor();
  const bool vector = steps.dim() == 1;
  steps = b.call("diff", {steps, 1, vector ? 0 : dim - y.dim()});
  if (vector) {
    Exprs sizes(y.dim() - dim, Expr(1));
    sizes[0] = steps.size(0);
    steps = b.call("reshape", {steps, sizes});
  }
  return {sum * steps * num(0.5)};
}

template <bool Cumulative>
Vars trapezoid(Builder& b, const VarArgs& a) {
  const Var y = a.tensor(0);
  const int64_t dim = wrap_dim(a["dim"].integer().value(), y.dim(), "trapezoid");
  const bool spaced = a.schema().position("x") >= 0;
  const Var parts = trapezoid_parts(b, y, dim, spaced ? a["x"] : VarArg(), spaced ? VarArg() : a["dx"])[0];
  return {Cumulative ? b.call("cumsum", {parts, dim}) : b.call("sum.dim_IntList", {parts, Exprs{dim}})};
}

Vars sum_to_size(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs& sizes = a[1].integers();
  STAX_CHECK(static_cast<int64_t>(sizes.size()) <= x.dim(),
             "sum_to_size: shape {} has more dimensions than {}", shape_text(sizes), shape_text(x.sizes()));
  if (sizes.empty()) return {b.call("sum", {x})};
  const int64_t lead = x.dim() - static_cast<int64_t>(sizes.size());
  Exprs dims;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool equal = d >= lead && b.env().decide(eq(sizes[d - lead], x.size(d)));
    if (equal) continue;
    STAX_CHECK(d < lead || b.env().decide(eq(sizes[d - lead], 1)), "sum_to_size: {} does not reduce to {}",
               shape_text(x.sizes()), shape_text(sizes));
    dims.emplace_back(d);
  }
  if (dims.empty()) return {b.call("view_as_is", {x})};
  const Var sum = b.call("sum.dim_IntList", {x, dims, true});
  return {b.call("view", {sum, sizes})};
}

}  // namespace

Ops reduction_composite_rows() {
  return {
      decomposed("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp),
      composite(
          "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          nansum),
      composite(
          "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          nanmean),
      composite("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor", count_nonzero),
      composite("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
                computed_wide<diff>),
      composite("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", computed_wide<trapezoid<false>>),
      composite("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
                computed_wide<trapezoid<false>>),
      composite("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", computed_wide<trapezoid<false>>),
      composite("trapz.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", computed_wide<trapezoid<false>>),
      composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
                computed_wide<trapezoid<true>>),
      composite("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
                computed_wide<trapezoid<true>>),
      composite("sum_to_size(Tensor self, int[] size) -> Tensor", sum_to_size),
      composite("trace(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  STAX_CHECK(a.tensor(0).dim() == 2, "trace: expected a matrix, got {}",
                             counted(a.tensor(0).dim(), "dimension"));
                  return {b.call("sum", {b.call("diagonal", {a[0]})})};
                }),
  };
}

}  // namespace stax::ops

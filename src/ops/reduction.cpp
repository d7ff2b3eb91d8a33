// Reductions and scans.
#include <algorithm>
#include <cmath>

#include "ops/loop_vocabulary.h"
#include "ops/reduction_rules.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// ---- dtype rules: of the result, from self's dtype and the `dtype` argument ----

DType dtype_argument(const auto& args, DType absent) {
  const bool has = args.schema().position("dtype") >= 0 && !args["dtype"].is_none();
  return has ? args["dtype"].dtype() : absent;
}

// Sums and products of integers and bool are int64.
DType sum_dtype(const auto& args, DType self) {
  return dtype_argument(args, is_floating_point(self) ? self : DType::int64);
}

DType require_float(const auto& args, DType self) {
  const DType dtype = dtype_argument(args, self);
  STAX_CHECK(is_floating_point(dtype), "{}: expected a floating dtype, got {}; pass dtype= or convert first",
             args.schema().name, name(dtype));
  return dtype;
}

// any and all of uint8 stay uint8, as in PyTorch.
DType bool_dtype(DType self) {
  return self == DType::uint8 ? DType::uint8 : DType::boolean;
}

// Extremum reductions have no value for no elements.
void require_elements(ShapeEnv& env, const MetaArgs& args, const std::vector<int64_t>& dims) {
  const TensorMeta& x = args.tensor(0);
  for (const int64_t d : dims) {
    STAX_CHECK(env.expect(gt(x.sizes[d], 0)),
               "{}: dimension {} has size 0, and the reduction has no identity; shape {}", args.schema().name,
               d, shape_text(x.sizes));
  }
}

// ---- sum, prod, mean, any, all ----

Metas sum_meta(ShapeEnv&, const MetaArgs& args) {
  return {
      reduced_meta(args.tensor(0), reduced_dims(args), keepdim(args), sum_dtype(args, args.tensor(0).dtype))};
}

template <OpCode Op>
Lazies lower_sum(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DType result = sum_dtype(args, x.dtype);
  const DimReduction reduction{.op = Op,
                               .accumulate = result == DType::boolean ? DType::int64 : compute_dtype(result),
                               .result = result,
                               .prepare = [&](V v) {
                                 return result == DType::boolean ? cast(v, DType::boolean)
                                                                 : round_to(v, result);
                               }};
  return {reduce_dims(lowering, x, reduced_dims(args), keepdim(args), reduction)};
}

Metas mean_meta(ShapeEnv&, const MetaArgs& args) {
  return {reduced_meta(args.tensor(0), reduced_dims(args), keepdim(args),
                       require_float(args, args.tensor(0).dtype))};
}

Lazies lower_mean(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DType result = require_float(args, x.dtype);
  const DimReduction reduction{
      .op = OpCode::reduce_sum,
      .accumulate = compute_dtype(result),
      .result = result,
      .finish = [&](V sum, Expr count) { return sum / lowering.number(num(count), sum.dtype()); }};
  return {reduce_dims(lowering, x, reduced_dims(args), keepdim(args), reduction)};
}

Metas bool_meta(ShapeEnv&, const MetaArgs& args) {
  return {reduced_meta(args.tensor(0), reduced_dims(args), keepdim(args), bool_dtype(args.tensor(0).dtype))};
}

template <OpCode Op>
Lazies lower_bool(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DimReduction reduction{.op = Op, .accumulate = DType::boolean, .result = bool_dtype(x.dtype)};
  return {reduce_dims(lowering, x, reduced_dims(args), keepdim(args), reduction)};
}

// ---- extrema ----

Metas extremum_meta(ShapeEnv& env, const MetaArgs& args) {
  const auto dims = reduced_dims(args);
  require_elements(env, args, dims);
  return {reduced_meta(args.tensor(0), dims, keepdim(args), args.tensor(0).dtype)};
}

template <OpCode Op>
Lazies lower_extremum(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DimReduction reduction{.op = Op, .accumulate = compute_dtype(x.dtype), .result = x.dtype};
  return {reduce_dims(lowering, x, reduced_dims(args), keepdim(args), reduction)};
}

Metas any_extremum_meta(ShapeEnv&, const MetaArgs& args) {
  return {reduced_meta(args.tensor(0), reduced_dims(args), keepdim(args), args.tensor(0).dtype)};
}

Metas arg_meta(ShapeEnv& env, const MetaArgs& args) {
  const auto dims = reduced_dims(args);
  require_elements(env, args, dims);
  return {reduced_meta(args.tensor(0), dims, keepdim(args), DType::int64)};
}

// Values and positions along one dim, or positions in the flattened tensor.
template <OpCode Op>
Lazies lower_arg(Lowering& lowering, const Lazy& x, const std::vector<int64_t>& dims, bool keep,
                 bool values) {
  Lowering::Reduction loops = reduction_over(lowering, x, dims, Op, compute_dtype(x.dtype));
  loops.results = values ? 2 : 1;
  loops.dtypes = values ? std::vector{x.dtype, DType::int64} : std::vector{DType::int64};
  loops.finish = [&](const std::vector<V>& r) {
    return values ? std::vector{r[1], r[0]} : std::vector{r[0]};
  };
  Lazies out = lowering.reduce(loops);
  if (keep) {
    for (Lazy& t : out) t = with_kept_dims(t, dims, x.sizes.size());
  }
  return out;
}

template <OpCode Op>
Lazies lower_position(Lowering& lowering, const LazyArgs& args) {
  return lower_arg<Op>(lowering, args.tensor(0), reduced_dims(args), keepdim(args), false);
}

Metas max_dim_meta(ShapeEnv& env, const MetaArgs& args) {
  const auto dims = reduced_dims(args);
  require_elements(env, args, dims);
  return {reduced_meta(args.tensor(0), dims, keepdim(args), args.tensor(0).dtype),
          reduced_meta(args.tensor(0), dims, keepdim(args), DType::int64)};
}

template <OpCode Op>
Lazies lower_max_dim(Lowering& lowering, const LazyArgs& args) {
  return lower_arg<Op>(lowering, args.tensor(0), reduced_dims(args), keepdim(args), true);
}

// ---- variance ----

double correction(const auto& args) {
  if (args.schema().position("unbiased") >= 0) return args["unbiased"].boolean() ? 1 : 0;
  const auto& c = args["correction"];
  return c.is_none() ? 1 : c.floating();
}

Metas var_mean_meta(ShapeEnv&, const MetaArgs& args) {
  const DType dtype = require_float(args, args.tensor(0).dtype);
  const TensorMeta m = reduced_meta(args.tensor(0), reduced_dims(args), keepdim(args), dtype);
  return {m, m};
}
Metas var_meta(ShapeEnv& env, const MetaArgs& args) {
  return {var_mean_meta(env, args)[0]};
}

// Which of (variance, mean) is wanted, and whether the root of the variance is.
template <bool Root, bool Mean>
Lazies lower_var(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const auto dims = reduced_dims(args);
  const double c = correction(args);
  // A root fits where its square does not: with the range of float32, squares are summed in float64.
  const bool wide = Root && x.dtype != DType::float16;
  const DType accumulate = wide ? DType::float64 : compute_dtype(x.dtype);
  Lowering::Reduction loops = reduction_over(lowering, x, dims, OpCode::reduce_welford, accumulate);
  loops.value = [&](const Index& i, const Index& r) {
    return std::vector<V>{cast(load_reduced(lowering, x, dims, i, r), accumulate)};
  };
  loops.results = 2;
  const Expr count = product(loops.reduced);
  loops.dtypes = Mean ? std::vector{x.dtype, x.dtype} : std::vector{x.dtype};
  loops.finish = [&](const std::vector<V>& r) {
    // Degrees of freedom below 0 count as 0: the quotient is infinite or NaN, as in PyTorch.
    const V n = lowering.number(num(count), r[1].dtype());
    V variance = r[1] / maximum(n - c, 0.0);
    if (Root) variance = sqrt(variance);
    const bool empty = count.is(0);
    const V mean = empty ? like(r[0], std::nan("")) : r[0];
    return Mean ? std::vector{variance, mean} : std::vector{variance};
  };
  Lazies out = lowering.reduce(loops);
  if (keepdim(args)) {
    for (Lazy& t : out) t = with_kept_dims(t, dims, x.sizes.size());
  }
  return out;
}

// ---- scans ----

DType scan_dtype(const auto& args, DType self) {
  return sum_dtype(args, self);
}

Metas scan_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  wrap_dim(args["dim"].integer().value(), x.dim(), args.schema().name);
  return {graph::dense(scan_dtype(args, x.dtype), x.sizes, x.device)};
}

// Scans run along the last dim; another one is moved there and back.
Lazies scan_along(Lowering& lowering, const Lazy& x, int64_t dim, OpCode op, DType accumulate,
                  std::vector<DType> dtypes) {
  const auto rank = static_cast<int64_t>(x.sizes.size());
  Exprs sizes = x.sizes;
  if (rank == 0) sizes = {Expr(1)};
  if (rank > 0) {
    sizes.erase(sizes.begin() + dim);
    sizes.push_back(x.sizes[dim]);
  }
  const auto in_place_of = [&](const Index& moved) {
    Index at(moved.begin(), moved.end() - 1);
    if (rank > 0) at.insert(at.begin() + dim, moved.back());
    return at;
  };
  Lazies out = lowering.scan(
      op, accumulate, sizes, [&](const Index& i) { return lowering.load(x, in_place_of(i)); }, dtypes);
  for (Lazy& t : out) {
    t.sizes = x.sizes;
    if (rank == 0) {
      t.strides.clear();
      continue;
    }
    const Expr stride = t.strides.back();
    t.strides.pop_back();
    t.strides.insert(t.strides.begin() + dim, stride);
  }
  return out;
}

template <OpCode Op>
Lazies lower_scan(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DType result = scan_dtype(args, x.dtype);
  const int64_t dim = wrap_dim(args["dim"].integer().value(), x.dim(), args.schema().name);
  // The values are converted to the result's dtype first, as PyTorch does.
  Lazy source = x;
  if (result != x.dtype) {
    source = lowering.pointwise(result, x.sizes,
                                [&](const Index& i) { return round_to(lowering.load(x, i), result); });
  }
  return scan_along(lowering, source, dim, Op, compute_dtype(result), {result});
}

Metas cummax_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  wrap_dim(args["dim"].integer().value(), x.dim(), args.schema().name);
  return {graph::dense(x.dtype, x.sizes, x.device), graph::dense(DType::int64, x.sizes, x.device)};
}

template <OpCode Op>
Lazies lower_cummax(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const int64_t dim = wrap_dim(args["dim"].integer().value(), x.dim(), args.schema().name);
  return scan_along(lowering, x, dim, Op, compute_dtype(x.dtype), {x.dtype, DType::int64});
}

Metas logcumsumexp_meta(ShapeEnv& env, const MetaArgs& args) {
  require_float(args, args.tensor(0).dtype);
  return scan_meta(env, args);
}

// ---- composites ----

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

Vars aminmax(Builder& b, const VarArgs& a) {
  for (const int64_t d : reduced_dims(a)) {
    STAX_CHECK(b.env().expect(gt(a.tensor(0).size(d), 0)),
               "aminmax: dimension {} has size 0, and there is no extremum of nothing; shape {}", d,
               shape_text(a.tensor(0).sizes()));
  }
  const auto dim = a[1].is_none() ? VarArg(Exprs{}) : VarArg(Exprs{a[1].integer()});
  return {b.call("amin", {a[0], dim, a[2]}), b.call("amax", {a[0], dim, a[2]})};
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

Ops reduce_rows() {
  constexpr auto sum = lower_sum<OpCode::reduce_sum>;
  constexpr auto prod = lower_sum<OpCode::reduce_prod>;
  constexpr auto any = lower_bool<OpCode::reduce_any>;
  constexpr auto all = lower_bool<OpCode::reduce_all>;
  return {
      lowered("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum_meta, sum),
      lowered("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
              "Tensor",
              sum_meta, sum),
      lowered("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum_meta, prod),
      lowered("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
              sum_meta, prod),
      lowered("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", mean_meta, lower_mean),
      lowered("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
              mean_meta, lower_mean),
      lowered("any(Tensor self) -> Tensor", bool_meta, any),
      lowered("any.dims(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor", bool_meta, any),
      lowered("all(Tensor self) -> Tensor", bool_meta, all),
      lowered("all.dims(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor", bool_meta, all),
      lowered("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", extremum_meta,
              lower_extremum<OpCode::reduce_max>),
      // For formulas that have a meaning for no elements too: their maximum is the lowest value.
      graph::internal(lowered("amax_or_lowest(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                              any_extremum_meta, lower_extremum<OpCode::reduce_max>)),
      lowered("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", extremum_meta,
              lower_extremum<OpCode::reduce_min>),
      lowered("max(Tensor self) -> Tensor", extremum_meta, lower_extremum<OpCode::reduce_max>),
      lowered("min(Tensor self) -> Tensor", extremum_meta, lower_extremum<OpCode::reduce_min>),
      lowered("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", max_dim_meta,
              lower_max_dim<OpCode::reduce_argmax>),
      lowered("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", max_dim_meta,
              lower_max_dim<OpCode::reduce_argmin>),
      composite("max.other(Tensor self, Tensor other) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("maximum", {a[0], a[1]})};
                }),
      composite("min.other(Tensor self, Tensor other) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("minimum", {a[0], a[1]})};
                }),
      lowered("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg_meta,
              lower_position<OpCode::reduce_argmax>),
      lowered("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg_meta,
              lower_position<OpCode::reduce_argmin>),
      composite("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor, Tensor)", aminmax),
  };
}

Ops variance_rows() {
#define VARIANCE(name, meta, lower, returns)                                                                \
  lowered(name "(Tensor self, bool unbiased) -> " returns, meta, lower),                                    \
      lowered(name ".dim(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> " returns, meta,   \
              lower),                                                                                       \
      lowered(name                                                                                          \
              ".correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) " \
              "-> " returns,                                                                                \
              meta, lower)
  return {
      VARIANCE("var", var_meta, (lower_var<false, false>), "Tensor"),
      VARIANCE("std", var_meta, (lower_var<true, false>), "Tensor"),
      VARIANCE("var_mean", var_mean_meta, (lower_var<false, true>), "(Tensor, Tensor)"),
      VARIANCE("std_mean", var_mean_meta, (lower_var<true, true>), "(Tensor, Tensor)"),
  };
#undef VARIANCE
}

Ops scan_rows() {
  return {
      lowered("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", scan_meta,
              lower_scan<OpCode::scan_sum>),
      lowered("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", scan_meta,
              lower_scan<OpCode::scan_prod>),
      lowered("cummax(Tensor self, int dim) -> (Tensor, Tensor)", cummax_meta,
              lower_cummax<OpCode::scan_max>),
      lowered("cummin(Tensor self, int dim) -> (Tensor, Tensor)", cummax_meta,
              lower_cummax<OpCode::scan_min>),
      lowered("logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp_meta,
              lower_scan<OpCode::scan_logaddexp>),
  };
}

Ops derived_rows() {
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
                diff),
      composite("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid<false>),
      composite("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid<false>),
      composite("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid<false>),
      composite("trapz.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid<false>),
      composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid<true>),
      composite("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid<true>),
      composite("sum_to_size(Tensor self, int[] size) -> Tensor", sum_to_size),
      composite("trace(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  STAX_CHECK(a.tensor(0).dim() == 2, "trace: expected a matrix, got {} dimensions",
                             a.tensor(0).dim());
                  return {b.call("sum", {b.call("diagonal", {a[0]})})};
                }),
  };
}

}  // namespace

Var row_max(Builder& b, const Var& x, const Exprs& dims) {
  bool decided = true;
  for (const Expr d : x.dim() == 0 ? Exprs{} : dims)
    decided &= b.env().decided(gt(x.size(d.value()), 0)).has_value();
  return b.call(decided ? "amax" : "amax_or_lowest", {x, dims, true});
}

Ops reduction_rows() {
  Ops rows;
  for (const auto part : {reduce_rows, variance_rows, scan_rows, derived_rows}) {
    for (graph::Op& op : part()) rows.push_back(std::move(op));
  }
  return rows;
}

}  // namespace stax::ops

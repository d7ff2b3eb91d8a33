// Reductions: sums, products, logic, extrema, variance.
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
    const auto known = count.constant();
    const V degrees = known ? like(r[1], std::max(static_cast<double>(*known) - c, 0.0))
                            : maximum(lowering.number(num(count), r[1].dtype()) - c, 0.0);
    V variance = r[1] / degrees;
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

Vars aminmax(Builder& b, const VarArgs& a) {
  for (const int64_t d : reduced_dims(a)) {
    STAX_CHECK(b.env().expect(gt(a.tensor(0).size(d), 0)),
               "aminmax: dimension {} has size 0, and there is no extremum of nothing; shape {}", d,
               shape_text(a.tensor(0).sizes()));
  }
  const auto dim = a[1].is_none() ? VarArg(Exprs{}) : VarArg(Exprs{a[1].integer()});
  return {b.call("amin", {a[0], dim, a[2]}), b.call("amax", {a[0], dim, a[2]})};
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

}  // namespace

Ops reduction_rows() {
  Ops rows;
  for (const auto part : {reduce_rows, variance_rows}) {
    for (graph::Op& op : part()) rows.push_back(std::move(op));
  }
  return rows;
}

}  // namespace stax::ops

// Scans: cumulative sums, products and extrema along a dimension.
#include "ops/loop_vocabulary.h"
#include "ops/reduction_rules.h"
#include "ops/table.h"

namespace stax::ops {
namespace {

Metas scan_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  wrap_dim(args["dim"].integer().value(), x.dim(), args.schema().name);
  return {graph::dense(sum_dtype(args, x.dtype), x.sizes, x.device)};
}

// A zero-dim tensor is scanned like a tensor of one element.
Lazies scan_along(Lowering& lowering, const Lazy& x, int64_t dim, OpCode op, DType accumulate,
                  std::vector<DType> dtypes) {
  const bool scalar = x.sizes.empty();
  Lazies out = lowering.scan({.op = op,
                              .accumulate = accumulate,
                              .sizes = scalar ? Exprs{Expr(1)} : x.sizes,
                              .dim = scalar ? 0 : static_cast<size_t>(dim),
                              .value = [&](const Index& i) { return lowering.load(x, scalar ? Index() : i); },
                              .dtypes = std::move(dtypes),
                              .finish = {}});
  for (Lazy& t : out) {
    t.sizes = x.sizes;
    if (scalar) t.strides.clear();
  }
  return out;
}

template <OpCode Op>
Lazies lower_scan(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DType result = sum_dtype(args, x.dtype);
  const int64_t dim = wrap_dim(args["dim"].integer().value(), x.dim(), args.schema().name);
  // The values are converted to the result's dtype first, as PyTorch does.
  Lazy source = x;
  if (result != x.dtype) {
    source = lowering.pointwise(result, x.sizes,
                                [&](const Index& i) { return round_to(lowering.load(x, i), result); });
  }
  // Running sums and products of floats are those of float64, as PyTorch's.
  const bool wide = is_floating_point(result) && Op != OpCode::scan_logaddexp;
  return scan_along(lowering, source, dim, Op, wide ? DType::float64 : compute_dtype(result), {result});
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

}  // namespace

Ops scan_rows() {
  return {
      in_place(lowered("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", scan_meta,
                       lower_scan<OpCode::scan_sum>)),
      in_place(lowered("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", scan_meta,
                       lower_scan<OpCode::scan_prod>)),
      lowered("cummax(Tensor self, int dim) -> (Tensor, Tensor)", cummax_meta,
              lower_cummax<OpCode::scan_max>),
      lowered("cummin(Tensor self, int dim) -> (Tensor, Tensor)", cummax_meta,
              lower_cummax<OpCode::scan_min>),
      lowered("logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp_meta,
              lower_scan<OpCode::scan_logaddexp>),
  };
}

}  // namespace stax::ops

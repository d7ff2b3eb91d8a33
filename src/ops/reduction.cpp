// Reductions and scans.
#include "lowering/scalar.h"
#include "ops/reduction_rules.h"
#include "ops/table.h"

namespace stax::ops {
namespace {

using graph::LazyArgs;
using graph::lowered;
using graph::MetaArgs;
using graph::TensorMeta;
using loops::OpCode;
using lowering::Index;
using lowering::Lazy;
using lowering::Lowering;
using lowering::V;

// sum and prod of integers and bool are int64; a dtype argument converts before the reduction.
DType sum_dtype(const MetaArgs& args) {
  if (const auto& dtype = args["dtype"]; !dtype.is_none()) return dtype.dtype();
  const DType self = args.tensor(0).dtype;
  return is_floating_point(self) ? self : DType::int64;
}

std::vector<TensorMeta> sum_meta(ShapeEnv&, const MetaArgs& args) {
  return {reduced_meta(args.tensor(0), reduced_dims(args), keepdim(args), sum_dtype(args))};
}

std::vector<Lazy> lower_sum(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DType result = !args["dtype"].is_none()     ? args["dtype"].dtype()
                       : is_floating_point(x.dtype) ? x.dtype
                                                    : DType::int64;
  return {
      reduce_dims(lowering, x, reduced_dims(args), keepdim(args),
                  {.op = OpCode::reduce_sum, .accumulate = loops::compute_dtype(result), .result = result})};
}

}  // namespace

std::vector<graph::Op> reduction_rows() {
  return {
      lowered("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum_meta, lower_sum),
      lowered("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
              "Tensor",
              sum_meta, lower_sum),
  };
}

}  // namespace stax::ops

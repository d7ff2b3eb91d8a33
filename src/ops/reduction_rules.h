// What the rows of reductions share: which dims are reduced, the shape of the result, and the lowering.
#pragma once

#include <functional>
#include <vector>

#include "graph/builder.h"
#include "lowering/lowering.h"
#include "support/check.h"

namespace stax::ops {

/// Dims to reduce, counted from the front and sorted: argument `dim` (absent, None or empty: all). UserError
/// for a dim that is out of range or given twice.
template <class T>
std::vector<int64_t> reduced_dims(const graph::Bound<T>& args);

/// Argument `keepdim`, false where the operator has none.
template <class T>
bool keepdim(const graph::Bound<T>& args) {
  return args.schema().position("keepdim") >= 0 && args["keepdim"].boolean();
}

/// A row-major result without (or, keepdim, with size 1 in) the reduced dims.
graph::TensorMeta reduced_meta(const graph::TensorMeta& self, const std::vector<int64_t>& dims, bool keepdim,
                               DType dtype);

/// Dtype rules of results, from self's dtype and the `dtype` argument.
DType dtype_argument(const auto& args, DType absent) {
  const bool has = args.schema().position("dtype") >= 0 && !args["dtype"].is_none();
  return has ? args["dtype"].dtype() : absent;
}

/// Sums and products of integers and bool are int64.
DType sum_dtype(const auto& args, DType self) {
  return dtype_argument(args, is_floating_point(self) ? self : DType::int64);
}

/// UserError unless the result is floating.
DType require_float(const auto& args, DType self) {
  const DType dtype = dtype_argument(args, self);
  STAX_CHECK(is_floating_point(dtype), "{}: expected a floating dtype, got {}; pass dtype= or convert first",
             args.schema().name, name(dtype));
  return dtype;
}

struct DimReduction {
  loops::OpCode op;
  DType accumulate;  // dtype that the values are converted to before they are reduced
  DType result;      // dtype of the stored result
  /// Applied to each value before it is converted; identity by default.
  std::function<lowering::V(lowering::V)> prepare;
  /// Applied to the reduction's result in its accumulating dtype; identity by default. `count` is the number
  /// of values.
  std::function<lowering::V(lowering::V result, Expr count)> finish;
};

/// Reduces `dims` of x. Long reductions with few results are split in two levels.
lowering::Lazy reduce_dims(lowering::Lowering& lowering, const lowering::Lazy& x,
                           const std::vector<int64_t>& dims, bool keepdim, const DimReduction& reduction);

/// A reduction of `dims` of x, with its ranges filled in and x itself as its value: x at index i of the kept
/// dims and r of the reduced ones, as load_reduced() gives it. `lowering`, x and dims have to outlive it.
lowering::Lowering::Reduction reduction_over(lowering::Lowering& lowering, const lowering::Lazy& x,
                                             const std::vector<int64_t>& dims, loops::OpCode op,
                                             DType accumulate);
lowering::V load_reduced(lowering::Lowering& lowering, const lowering::Lazy& x,
                         const std::vector<int64_t>& dims, const lowering::Index& i,
                         const lowering::Index& r);

/// `dim`, or all dims of x where it is None or empty.
graph::VarArg all_dims_if_empty(const graph::Var& x, const graph::VarArg& dim);

/// A stored row-major result seen with its reduced dims kept as size 1; `rank` is that of the tensor that was
/// reduced.
lowering::Lazy with_kept_dims(lowering::Lazy t, const std::vector<int64_t>& dims, size_t rank);

/// The maximum along `dims` (all where empty), kept as size 1. Where only data determines whether there are
/// elements, it is the lowest value for none.
graph::Var row_max(graph::Builder& b, const graph::Var& x, const std::vector<Expr>& dims);

}  // namespace stax::ops

// What the rows of indexing share.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "lowering/lowering.h"

namespace stax::ops {

/// UserError unless `index` holds positions: int64 or int32.
void check_index_dtype(const graph::TensorMeta& index, std::string_view op);

/// A zero-dim tensor seen as one of one dimension of size 1; others as they are.
lowering::Lazy at_least_1d(lowering::Lazy t);
std::vector<Expr> at_least_1d(std::vector<Expr> sizes);

/// An index into at_least_1d(t) for an index into t.
inline lowering::Index padded(lowering::Index i) {
  return i.empty() ? lowering::Index{Expr(0)} : i;
}

/// x[indices]: the dimensions that index tensors take, the shape that the tensors broadcast to, and where its
/// dimensions stand in the result: in place of adjacent index tensors, else in front.
struct AdvancedIndex {
  std::vector<int64_t> dims;  // of self that are indexed, in order
  std::vector<Expr> shape;    // that the index tensors broadcast to
  size_t front = 0;           // result dimensions before those of `shape`
  std::vector<Expr> sizes;    // of the result
};
AdvancedIndex advanced_index(ShapeEnv& env, const std::vector<Expr>& self,
                             const std::vector<std::optional<std::vector<Expr>>>& indices,
                             std::string_view op);

/// The index into self of element `i` of x[indices].
lowering::Index indexed_position(lowering::Lowering& lowering, const AdvancedIndex& plan,
                                 const lowering::Lazy& self, const Argument<lowering::Lazy>::Tensors& indices,
                                 const lowering::Index& i);

// Part of the family indexing_rows().
std::vector<graph::Op> scatter_rows();

}  // namespace stax::ops

// Triangles and diagonals of matrices.
#include <algorithm>

#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/view_rules.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

template <bool Upper>
Lazies lower_triangle(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const size_t rank = x.sizes.size();
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    const V column = lowering.index_value(i[rank - 1]);
    const V edge = lowering.index_value(i[rank - 2] + args[1].integer());
    return where(Upper ? ge(column, edge) : le(column, edge), lowering.load(x, i),
                 lowering.constant(x.dtype, int64_t{0}));
  })};
}

Metas triangle_meta(ShapeEnv& env, const MetaArgs& args) {
  STAX_CHECK(args.tensor(0).dim() >= 2, "{}: expected a tensor of at least 2 dimensions, got {}",
             args.schema().name, args.tensor(0).dim());
  return same_meta(env, args);
}

Metas fill_diagonal_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  STAX_CHECK(x.dim() >= 2, "fill_diagonal: expected at least 2 dimensions, got {}", x.dim());
  for (int64_t d = 1; x.dim() > 2 && d < x.dim(); ++d) {
    STAX_CHECK(env.expect(eq(x.sizes[d], x.sizes[0])),
               "fill_diagonal: more than 2 dimensions have to be of one size, got {}", shape_text(x.sizes));
  }
  return same_meta(env, args);
}

// With `wrap` the diagonal of a tall matrix starts again one row below its last element.
Lazies lower_fill_diagonal(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const bool wraps = args[2].boolean() && x.dim() == 2;
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    const Expr first = wraps ? mod(i[0], x.sizes[1] + 1) : i[0];
    V on = eq(lowering.index_value(first), lowering.index_value(i[1]));
    for (size_t d = 2; d < i.size(); ++d)
      on = bitwise_and(on, eq(lowering.index_value(first), lowering.index_value(i[d])));
    return where(on, lowering.number(args[1].number(), x.dtype), lowering.load(x, i));
  })};
}

Vars diag(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  STAX_CHECK(x.dim() == 1 || x.dim() == 2, "diag: expected 1 or 2 dimensions, got {}", x.dim());
  if (x.dim() == 2) return {b.call("clone", {b.call("diagonal", {x, a[1], 0, 1})})};
  return {b.call("diag_embed", {x, a[1], 0, 1})};
}

Vars diagflat(Builder& b, const VarArgs& a) {
  return {b.call("diag_embed", {b.call("reshape", {a[0], Exprs{-1}}), a[1], 0, 1})};
}

Exprs diag_embed_sizes(const Exprs& in, DiagonalDims dims, Expr offset) {
  const Expr side = in.back() + max(offset, -offset);
  Exprs sizes(in.begin(), in.end() - 1);
  sizes.insert(sizes.begin() + std::min(dims.dim1, dims.dim2), side);
  sizes.insert(sizes.begin() + std::max(dims.dim1, dims.dim2), side);
  return sizes;
}

Metas diag_embed_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  return {graph::dense(x.dtype,
                       diag_embed_sizes(x.sizes, diagonal_dims(args, x.dim() + 1), args["offset"].integer()),
                       x.device)};
}

Lazies lower_diag_embed(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const DiagonalDims dims = diagonal_dims(args, x.dim() + 1);
  const Expr offset = args["offset"].integer();
  const Exprs sizes = diag_embed_sizes(x.sizes, dims, offset);
  return {lowering.pointwise(x.dtype, sizes, [&](const Index& i) {
    Index at;
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      if (d != dims.dim1 && d != dims.dim2) at.push_back(i[d]);
    }
    const Expr k = min(i[dims.dim1], i[dims.dim2]);
    at.push_back(k);
    const V on = eq(lowering.index_value(i[dims.dim2] - i[dims.dim1]), lowering.index_value(offset));
    return lowering.masked_load(x, at, on, lowering.constant(x.dtype, int64_t{0}));
  })};
}

}  // namespace

Ops diagonal_rows() {
  return {
      in_place(lowered("tril(Tensor self, int diagonal=0) -> Tensor", triangle_meta, lower_triangle<false>)),
      in_place(lowered("triu(Tensor self, int diagonal=0) -> Tensor", triangle_meta, lower_triangle<true>)),
      in_place(lowered("fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
                       fill_diagonal_meta, lower_fill_diagonal)),
      composite("diag(Tensor self, int diagonal=0) -> Tensor", diag),
      composite("diagflat(Tensor self, int offset=0) -> Tensor", diagflat),
      lowered("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", diag_embed_meta,
              lower_diag_embed),
  };
}

}  // namespace stax::ops

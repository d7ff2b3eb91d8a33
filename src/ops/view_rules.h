// Where the elements of a view lie in its tensor. Views, and the functional forms of writes through them, go
// by the same rules.
#pragma once

#include <string_view>
#include <vector>

#include "graph/op.h"
#include "symbolic/shape_env.h"

namespace stax::ops {

/// Elements start, start + step, ... (length of them) along `dim`; they end before `end`.
struct SliceRange {
  int64_t dim;
  Expr start, end, length, step;
};

/// The arguments dim, start, end and step of a slice of a tensor of `sizes`: bounds count from the end where
/// negative, and are clamped to the dimension. UserError for a zero-dim tensor and for a step below 1.
template <class T>
SliceRange slice_range(ShapeEnv& env, const std::vector<Expr>& sizes, const graph::Bound<T>& args);

/// Element `index`, counted from the front, of dimension `dim`.
struct Selection {
  int64_t dim;
  Expr index;
};

/// The arguments dim and index of a selection from a tensor of `sizes`. UserError for a zero-dim tensor and
/// for an index that is out of range.
template <class T>
Selection selection(ShapeEnv& env, const std::vector<Expr>& sizes, const graph::Bound<T>& args);

struct DiagonalDims {
  int64_t dim1, dim2;
};

/// The arguments dim1 and dim2 of a diagonal of a tensor of `rank` dimensions. UserError unless they are two
/// different dimensions.
template <class T>
DiagonalDims diagonal_dims(const graph::Bound<T>& args, int64_t rank);

/// Elements (row + k, column + k) for k below `length`.
struct Diagonal : DiagonalDims {
  Expr row, column, length;
};

/// The arguments offset, dim1 and dim2 of a diagonal of a tensor of `sizes`.
Diagonal diagonal_of(ShapeEnv& env, const std::vector<Expr>& sizes, const graph::MetaArgs& args);

/// UserError unless `sizes` and `strides` are as many, and neither they nor `offset` are negative.
void check_strided(ShapeEnv& env, const std::vector<Expr>& sizes, const std::vector<Expr>& strides,
                   Expr offset, std::string_view op);

}  // namespace stax::ops

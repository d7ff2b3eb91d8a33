// Problems as oneDNN is given them: keys of caches, sizes and strides of operands, and the parts that the
// threads of the pool compute.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "kernels/convolution.h"
#include "kernels/onednn.h"

namespace stax::kernels::onednn {

struct MatmulHash {
  size_t operator()(const MatmulProblem& p) const;
};

struct ConvolutionHash {
  size_t operator()(const ConvolutionProblem& p) const;
};

/// How a product is shared out: products of `batch` x `m` x `n` elements, smaller ones at the ends.
struct Pieces {
  int64_t batch, m, n;
  int64_t batches, rows, columns;  // how many
  int64_t count() const { return batches * rows * columns; }
};
Pieces pieces_of(const MatmulProblem& p);

/// Sizes or strides of an operand, as oneDNN counts dimensions.
using Dims = std::vector<int64_t>;

/// The last `spatial` entries of `list`.
Dims tail(const std::array<int64_t, 3>& list, int32_t spatial);
Dims with_lead(std::initializer_list<int64_t> lead, const Dims& spatial);
/// Row-major strides; `sizes` is not empty.
Dims dense_strides(const Dims& sizes);
/// Strides of [batch, channels, spatial...].
Dims image_strides(const Dims& sizes, bool channels_last);
/// [batch, channels, spatial...] of the input and of the result.
Dims x_sizes(const ConvolutionProblem& p);
Dims y_sizes(const ConvolutionProblem& p);

/// A part of a convolution: some images, and some rows (positions of the first spatial dimension) of each.
struct Slice {
  int64_t image = 0, images = 1;
  int64_t row = 0, rows = 1;        // of the result
  int64_t in_row = 0, in_rows = 1;  // of the input
  int64_t before = 0, behind = 0;   // padding that it sees
  bool same_shape(const Slice& o) const {
    return images == o.images && rows == o.rows && in_rows == o.in_rows && before == o.before &&
           behind == o.behind;
  }
};
std::vector<Slice> slices_of(const ConvolutionProblem& p);

}  // namespace stax::kernels::onednn

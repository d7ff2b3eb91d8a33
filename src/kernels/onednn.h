// The one place that calls oneDNN. Primitives are made once for each problem and kept; any number of threads
// may use them at a time.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/convolution.h"

namespace stax::kernels::onednn {

/// c[b] = a[b] * e[b] for matrices of float32: a is m x k, e is k x n. Strides in elements: batch, row,
/// column.
struct MatmulProblem {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  std::array<int64_t, 3> a_strides{}, b_strides{}, c_strides{};
  friend bool operator==(const MatmulProblem&, const MatmulProblem&) = default;
};

/// Whether oneDNN reads matrices of these strides without a copy: rows or columns are dense and nothing
/// overlaps.
bool reads_directly(const std::array<int64_t, 3>& strides, int64_t batch, int64_t rows, int64_t columns);

/// Sizes are positive, strides such that reads_directly() holds, c's columns are dense. RuntimeError when
/// oneDNN fails.
void matmul(const MatmulProblem& problem, const float* a, const float* b, float* c);

/// The convolution of float32 tensors; `bias` has an element for each channel of y, or is null. False, with
/// nothing done, where oneDNN has no implementation. RuntimeError when oneDNN fails.
bool convolution(const ConvolutionProblem& problem, const float* x, const float* weight, const float* bias,
                 float* y);

}  // namespace stax::kernels::onednn

// The one place that calls oneDNN. Primitives are made once for each problem and kept; any number of threads
// may use them at a time. They compute on the threads of the pool.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/convolution.h"

namespace stax::kernels::onednn {

/// "2.7.3": of the library that is loaded.
std::string version();

/// Products of float32 matrices, c[i] = a[i] * b[i] for i below `batch`: a[i] is m x k, b[i] is k x n.
/// Strides in elements: batch, row, column.
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

/// A product whose right factor does not change: it is packed once. Thread-safe.
class PackedMatmul {
 public:
  /// As matmul(), for a batch of 1. `b` is not needed afterwards.
  static std::unique_ptr<const PackedMatmul> make(const MatmulProblem& problem, const float* b);
  ~PackedMatmul();
  void run(const float* a, float* c) const;

 private:
  struct State;
  explicit PackedMatmul(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The convolution of float32 tensors; `bias` has an element for each channel of y, or is null. False, with
/// nothing done, where oneDNN has no implementation. RuntimeError when oneDNN fails.
bool convolution(const ConvolutionProblem& problem, const float* x, const float* weight, const float* bias,
                 float* y);

/// A convolution whose weights do not change: they are packed once. Thread-safe.
class PackedConvolution {
 public:
  /// Null where oneDNN has no implementation. `weight` has to outlive the object.
  static std::unique_ptr<const PackedConvolution> make(const ConvolutionProblem& problem,
                                                       const float* weight);
  ~PackedConvolution();
  /// As convolution().
  void run(const float* x, const float* bias, float* y) const;

 private:
  struct State;
  explicit PackedConvolution(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stax::kernels::onednn

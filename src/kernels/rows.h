// Walks over the rows of tensors: all elements along one dimension, for every position in the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/thread_pool.h"
#include "tensor/tensor_view.h"

namespace stax::kernels {

inline int64_t wrapped(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
}

/// The rows of `tensor` along `dim`; a zero-dim tensor is one row of one element.
class Rows {
 public:
  Rows(const TensorView& tensor, int64_t dim) : sizes_(tensor.sizes) {
    if (sizes_.empty()) return;
    length_ = sizes_[dim];
    sizes_.erase(sizes_.begin() + dim);
    for (const int64_t s : sizes_) count_ *= s;
  }
  int64_t count() const { return count_; }
  int64_t length() const { return length_; }

  /// Offset of element 0 of row `row` in a tensor of these strides (those of the other dimensions).
  int64_t offset(int64_t row, const std::vector<int64_t>& strides) const {
    int64_t at = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      at += row % sizes_[d] * strides[d];
      row /= sizes_[d];
    }
    return at;
  }

  /// Calls f(row) for every row, long work on several threads.
  template <class F>
  void for_each(F&& f) const {
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(length_, 1));
    device::ThreadPool::global().parallel_for(0, count_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) f(row);
    });
  }

 private:
  std::vector<int64_t> sizes_;
  int64_t length_ = 1, count_ = 1;
};

/// The strides of the dimensions but `dim`, of a tensor of `rank` dimensions that may lack that dimension.
inline std::vector<int64_t> other_strides(const TensorView& t, int64_t dim, int64_t rank) {
  std::vector<int64_t> strides = t.strides;
  if (t.dim() == rank && rank > 0) strides.erase(strides.begin() + dim);
  return strides;
}

inline int64_t stride_along(const TensorView& t, int64_t dim) {
  return t.dim() == 0 ? 1 : t.strides[dim];
}

/// The order of sorting: NaN is the largest.
template <class T>
bool sorts_before(T a, T b) {
  return a < b || (b != b && a == a);
}

}  // namespace stax::kernels

// A raw strided array, as kernels and executors see it: no ownership, sizes are numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stax/device.h"
#include "stax/dtype.h"

namespace stax {

struct TensorView {
  void* data = nullptr;  // element 0: offsets are already applied
  DType dtype = DType::float32;
  std::vector<int64_t> sizes, strides;  // in elements
  Device device = {};

  int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
};

/// The part [start, start + length) of dimension `dim`.
inline TensorView part(TensorView view, size_t dim, int64_t start, int64_t length) {
  view.data = static_cast<std::byte*>(view.data) + start * view.strides[dim] * itemsize(view.dtype);
  view.sizes[dim] = length;
  return view;
}

}  // namespace stax

// What is known of a tensor without its data.
#pragma once

#include <string>
#include <vector>

#include "stax/device.h"
#include "stax/dtype.h"
#include "symbolic/expr.h"

namespace stax::graph {

struct TensorMeta {
  DType dtype = DType::float32;
  Device device;
  std::vector<Expr> sizes, strides;  // strides in elements
  Expr offset;                       // elements from the start of the storage; 0 for fresh results

  int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
  Expr numel() const { return product(sizes); }
  std::string str() const;  // "float32[64, 128]" and strides where they are not row-major
};

/// Row-major strides of a dense tensor.
std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes);

/// A fresh, row-major tensor.
TensorMeta dense(DType dtype, std::vector<Expr> sizes, Device device = {});

}  // namespace stax::graph

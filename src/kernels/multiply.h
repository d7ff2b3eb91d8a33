// Matrix products by plain loops: small ones, and the dtypes that oneDNN has no product for.
#pragma once

#include <cstdint>

namespace stax::kernels {

/// c = a * b; a is m x k with any strides, the columns of b (k x n) and c (m x n) are dense.
template <class T>
struct Product {
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  int64_t m, n, k;
};

/// The loops compiled for one instruction set. Unsigned integers wrap.
struct MultiplyKernels {
  void (*f32)(const Product<float>& product) = nullptr;
  void (*f64)(const Product<double>& product) = nullptr;
  void (*u32)(const Product<uint32_t>& product) = nullptr;
  void (*u64)(const Product<uint64_t>& product) = nullptr;
};

/// Those of the best instruction set that this machine has.
const MultiplyKernels& multiply_kernels();

void fill_multiply_baseline(MultiplyKernels& kernels);
void fill_multiply_v3(MultiplyKernels& kernels);
void fill_multiply_v4(MultiplyKernels& kernels);

}  // namespace stax::kernels

// Products of matrices on a GPU by cuBLASLt: how tensors are put to the library, and one product made ready.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/cuda_device.h"
#include "graph/activation.h"
#include "kernels/cublas_lt.h"
#include "tensor/tensor_view.h"

namespace stax::kernels {

/// A matrix as the library has it: columns lie one after another, `leading` elements apart.
struct LibraryMatrix {
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;  // the product takes its transpose
  int32_t alignment = 16;   // of its address, in bytes: a power of two, at most 16
  friend bool operator==(const LibraryMatrix&, const LibraryMatrix&) = default;
};

/// Everything that the library's answers depend on: result = activation(first * second + bias).
struct ProductProblem {
  DType dtype = DType::float32, result_dtype = DType::float32;
  bool tf32 = false;  // float32 operands may be rounded to 10 bits of mantissa
  int64_t batch = 1;
  LibraryMatrix first, second, result;
  graph::Activation activation = graph::Activation::none;  // before the result is rounded
  bool bias = false;  // one element for each row of the result, as the library has it
  DType bias_dtype = DType::float32;
  int32_t bias_alignment = 16;
  /// Each element is one sum, by an algorithm without workspace: none that splits k and adds up the parts.
  bool in_one_piece = false;
  /// The library is given b^T * a^T = result^T: first is b.
  bool swapped = false;
  friend bool operator==(const ProductProblem&, const ProductProblem&) = default;

  /// One line that tells problems apart, for records and logs.
  std::string str() const;
};
struct ProductProblemHash {
  size_t operator()(const ProductProblem& problem) const;
};

/// What a product is asked for besides its tensors.
struct ProductOptions {
  graph::Activation activation = graph::Activation::none;
  bool tf32 = false;
};

/// The problem of result = activation(a @ b + bias), for matrices or batches of them without empty
/// dimensions; `bias` has an element for each column of the result, or is null. Nothing where the library
/// cannot read an operand as it lies: neither rows nor columns are dense, or they overlap.
std::optional<ProductProblem> problem_of(const TensorView& a, const TensorView& b, const TensorView& result,
                                         const TensorView* bias, const ProductOptions& options);

/// Addresses of device memory.
struct ProductOperands {
  const void *a = nullptr, *b = nullptr, *bias = nullptr;
  void* result = nullptr;
};

/// A problem with the library's descriptions of it. Thread-safe.
class LibraryProduct {
 public:
  /// Bytes that an algorithm may use besides its operands.
  static constexpr size_t kMostWorkspace = size_t{32} << 20;

  /// RuntimeError where the library refuses the problem, or has no algorithm for it.
  LibraryProduct(const ProductProblem& problem, int32_t device);
  ~LibraryProduct();
  LibraryProduct(const LibraryProduct&) = delete;
  LibraryProduct& operator=(const LibraryProduct&) = delete;

  const ProductProblem& problem() const { return problem_; }
  size_t most_workspace() const { return problem_.in_one_piece ? 0 : kMostWorkspace; }
  /// The library's choices, the likeliest first: at least one and at most `most`.
  std::vector<CublasLtAnswer> answers(int32_t most) const;
  /// What the library says about an algorithm for this problem; nothing where it does not fit.
  std::optional<CublasLtAnswer> check(const CublasLtAlgorithm& algorithm) const;
  /// Puts the product into the device's current stream; workspace comes from the device's allocator.
  /// RuntimeError where the library refuses.
  void run(const ProductOperands& operands, const CublasLtAnswer& answer) const;
  /// Whether what the algorithm makes of NaN is NaN: some do relu by comparisons, and make it 0. Multiplies
  /// by NaN, into the result, and waits for the device.
  bool keeps_nan(const ProductOperands& operands, const CublasLtAnswer& answer) const;

 private:
  struct State;
  void multiply(const ProductOperands& operands, const CublasLtAnswer& answer, double factor) const;
  void multiply(const ProductOperands& operands, const CublasLtAnswer& answer, double factor,
                void* workspace) const;

  ProductProblem problem_;
  int32_t device_;
  CublasLtHandle handle_;
  std::unique_ptr<State> state_;
};

}  // namespace stax::kernels

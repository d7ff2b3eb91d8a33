// Products of matrices on a GPU whose elements do not depend on how many rows, columns and matrices there
// are.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "kernels/library_product.h"
#include "tensor/tensor_view.h"

namespace stax::tuning {

/// An element of a product is a sum in an order that the library's algorithm determines. So there is one
/// algorithm for a length of these sums, a pair of dtypes and a way in which the operands lie: the library's
/// first answer for a square result, among those that add up in one piece and use no workspace. Operands that
/// lie less regularly than that algorithm was chosen for (addresses or lines that are no multiples of 16
/// bytes) are copied. What the library refuses to do with it for a batch is done matrix by matrix, what it
/// refuses for a shape for multiples of 16 rows and columns, and what it refuses for these in blocks of that
/// square. Thread-safe.
class InvariantProduct {
 public:
  InvariantProduct(int32_t device, const kernels::ProductOptions& options)
      : device_(device), tf32_(options.tf32) {}

  /// result = a @ b, matrices or batches of them without empty dimensions, at most 2^30 long; rows of
  /// `result` are dense, and so are rows or columns of the others. RuntimeError where the library has no
  /// algorithm, or a call fails.
  void run(const TensorView& a, const TensorView& b, const TensorView& result) const;

 private:
  struct Ready {
    std::shared_ptr<const kernels::LibraryProduct> product;
    std::optional<kernels::CublasLtAnswer> answer;  // nothing: it does not fit
  };
  class Lines;
  class Staged;
  enum class Use : uint8_t;
  /// The problem as the library has it, by columns: result^T = b^T a^T.
  kernels::ProductProblem problem_of(const Lines& a, const Lines& b, const Lines& result) const;
  void multiply(const TensorView& a, const TensorView& b, const TensorView& result) const;
  /// False, with nothing done, where the algorithm does not fit.
  bool multiplied(const Staged& a, const Staged& b, const Staged& result) const;
  void multiply_blocks(const Lines& a, const Lines& b, const Lines& to) const;
  const Ready& square(const kernels::ProductProblem& problem) const;
  const Ready& ready(const kernels::ProductProblem& problem) const;

  int32_t device_;
  bool tf32_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<kernels::ProductProblem, Ready, kernels::ProductProblemHash> all_;
};

}  // namespace stax::tuning

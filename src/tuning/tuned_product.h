// Products of matrices on a GPU: a call of a plan that cuBLASLt does, by the algorithm that is fastest.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "kernels/external.h"
#include "runtime/code_cache.h"
#include "runtime/library_product.h"

namespace stax::tuning {

/// Whether `function` is a product that TunedProduct does.
bool is_product(std::string_view function);

/// Takes what the function of a product takes, over device memory: two matrices or batches of them, then the
/// bias where there is one. Each problem, by sizes, layouts and alignments, is made ready when it first
/// comes. Thread-safe.
class TunedProduct final : public kernels::PreparedExternal {
 public:
  /// `strategy`: as for TunedKernel. With "none" the library's first answer is taken; otherwise several are
  /// measured with the first call's arguments, and the fastest is recorded in `cache`, which outlives this.
  TunedProduct(const runtime::CodeCache& cache, int32_t device, std::string strategy,
               runtime::ProductOptions options);
  ~TunedProduct() override;

  void run(std::span<const Argument<TensorView>> arguments,
           std::span<const TensorView> results) const override;

 private:
  /// A problem and how it is done.
  struct Ready {
    explicit Ready(const runtime::ProductProblem& problem, int32_t device) : product(problem, device) {}
    runtime::LibraryProduct product;
    runtime::CublasLtAnswer answer;
  };

  const Ready& ready(const runtime::ProductProblem& problem, const runtime::ProductOperands& operands) const;
  runtime::CublasLtAnswer choose(const runtime::LibraryProduct& product,
                                 const runtime::ProductOperands& operands) const;
  runtime::CublasLtAnswer measured(const runtime::LibraryProduct& product,
                                   const runtime::ProductOperands& operands) const;
  std::string key(const runtime::ProductProblem& problem) const;

  const runtime::CodeCache& cache_;
  int32_t device_;
  std::string strategy_;
  runtime::ProductOptions options_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::unique_ptr<const Ready>> all_;  // by ProductProblem::str()
  mutable std::atomic<const Ready*> last_ = nullptr;
};

}  // namespace stax::tuning

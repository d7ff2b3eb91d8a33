// Products of matrices on a GPU: a call of a plan that cuBLASLt does, in the way that is fastest.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/external.h"
#include "kernels/library_product.h"
#include "tuning/invariant_product.h"
#include "tuning/records.h"

namespace stax::tuning {

/// What follows a product, by a kernel of its own that works on the product in place.
class ProductEpilogue {
 public:
  virtual ~ProductEpilogue() = default;
  /// Puts result = activation(result + bias) into the device's current stream.
  virtual void run(void* result, const void* bias) const = 0;
};

/// What it is made for: a row-major matrix, and a bias of that dtype with an element for each column.
struct EpilogueShape {
  int64_t rows = 0, columns = 0;
  DType dtype = DType::float32;
  bool bias = false;
  graph::Activation activation = graph::Activation::none;
};
using MakeEpilogue = std::function<std::shared_ptr<const ProductEpilogue>(const EpilogueShape& shape)>;

struct TunedProductOptions {
  /// As for TunedKernel. With "none" the library's first answer is taken; otherwise several are measured
  /// with the first call's arguments, and the fastest is recorded.
  std::string strategy = "none";
  /// Sizes change from call to call: only the first problem is measured, others take the library's first
  /// answer where there is no record.
  bool changes = false;
  kernels::ProductOptions product;
  /// As InvariantProduct does it; nothing is measured then, and nothing may follow the product.
  bool batch_invariant = false;
  /// The longest dimension that the library is given; what is longer goes in parts.
  int64_t longest = int64_t{1} << 30;
  /// Makes kernels for what follows the product, to be compared with the library's, and for what the library
  /// does not have. Without it the library does everything.
  MakeEpilogue make_epilogue;
};

/// Takes what the function of a product takes, over device memory: two matrices or batches of them, then the
/// bias where there is one. Each problem, by sizes, layouts and alignments, is made ready when it first
/// comes. Thread-safe.
class TunedProduct final : public kernels::PreparedExternal {
 public:
  /// Choices are recorded in `cache`, which outlives this.
  TunedProduct(const runtime::CodeCache& cache, int32_t device, TunedProductOptions options);
  ~TunedProduct() override;

  void run(std::span<const Argument<TensorView>> arguments,
           std::span<const TensorView> results) const override;

 private:
  /// One way to do a problem.
  struct Way {
    std::shared_ptr<const kernels::LibraryProduct> product;
    kernels::CublasLtAnswer answer;
    std::shared_ptr<const ProductEpilogue> after;  // null: the library does everything
    void run(const kernels::ProductOperands& operands) const;
    std::string str() const;
  };
  struct Ready {
    kernels::ProductProblem problem;
    Way way;
  };

  void multiply(const TensorView& a, const TensorView& b, const TensorView* bias,
                const TensorView& result) const;
  const Ready& ready(const kernels::ProductProblem& problem, const kernels::ProductOperands& operands) const;
  Way choose(const kernels::ProductProblem& problem, const kernels::ProductOperands& operands) const;
  /// The library's first answer that is allowed; else its first one without what follows, and a kernel.
  Way likeliest(const kernels::ProductProblem& problem, const kernels::ProductOperands& operands) const;
  /// Whether NaN stays NaN: some algorithms make 0 of it in relu. May overwrite the result.
  bool allowed(const Way& way, const kernels::ProductOperands& operands) const;
  std::optional<Way> recorded(const kernels::ProductProblem& problem) const;
  Way measured(const kernels::ProductProblem& problem, const kernels::ProductOperands& operands) const;
  /// The library's own ways, and those with a kernel after the product.
  std::vector<Way> by_library(const kernels::ProductProblem& problem, int32_t most) const;
  std::vector<Way> with_kernel(const kernels::ProductProblem& problem, int32_t most) const;
  /// Whether a kernel may do what follows the product.
  bool takes_kernel(const kernels::ProductProblem& problem) const;
  std::shared_ptr<const ProductEpilogue> epilogue(const kernels::ProductProblem& problem) const;
  /// What a record depends on.
  Json facts_of(const kernels::ProductProblem& problem) const;

  TuningRecords records_;
  int32_t device_;
  TunedProductOptions options_;
  InvariantProduct invariant_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<kernels::ProductProblem, std::unique_ptr<const Ready>,
                             kernels::ProductProblemHash>
      all_;
  mutable std::atomic<const Ready*> last_ = nullptr;
};

}  // namespace stax::tuning

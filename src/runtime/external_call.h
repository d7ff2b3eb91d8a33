// Arguments of an external call, made once and pointed at each call's memory.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "codegen/plan/plan.h"
#include "tensor/tensor_view.h"

namespace stax::runtime {

/// Views of one call. Holds pointers into itself, so it is moved but never copied.
class ExternalViews {
 public:
  /// `value` gives the value of a size, stride, offset or number of the call.
  ExternalViews(const codegen::PlanExternal& call, const std::function<int64_t(Expr)>& value);
  ExternalViews(ExternalViews&&) = default;
  ExternalViews(const ExternalViews&) = delete;
  ExternalViews& operator=(ExternalViews&&) = default;
  ExternalViews& operator=(const ExternalViews&) = delete;

  /// Sets the views' data from element 0 of each buffer; null where a buffer's is.
  void point_at(std::span<void* const> base);

  std::span<const Argument<TensorView>> arguments() const { return arguments_; }
  std::span<const TensorView> results() const { return results_; }

 private:
  struct Patch {
    TensorView* view;
    loops::BufferId buffer;
    int64_t offset_bytes;
  };
  std::vector<Argument<TensorView>> arguments_;
  std::vector<TensorView> results_;
  std::vector<Patch> patches_;
};

}  // namespace stax::runtime

// Arguments of an external call, made once and pointed at each call's memory.
#pragma once

#include <span>
#include <vector>

#include "codegen/plan/plan.h"
#include "tensor/tensor_view.h"

namespace stax::runtime {

/// Views of one call. Holds pointers into itself, so it is moved but never copied.
class ExternalViews {
 public:
  /// Of what changes from call to call nothing is set yet: see renew().
  explicit ExternalViews(const codegen::PlanExternal& call);
  ExternalViews(ExternalViews&&) = default;
  ExternalViews(const ExternalViews&) = delete;
  ExternalViews& operator=(ExternalViews&&) = default;
  ExternalViews& operator=(const ExternalViews&) = delete;

  /// The sizes, strides, numbers and offsets that are no constants.
  std::vector<Expr> changing() const;
  /// Sets them: numbers[ids[k]] is the value of changing()[k].
  void renew(std::span<const int32_t> ids, std::span<const int64_t> numbers);

  /// Sets the views' data from element 0 of each buffer; null where a buffer's is.
  void point_at(std::span<void* const> base);

  std::span<const Argument<TensorView>> arguments() const { return arguments_; }
  std::span<const TensorView> results() const { return results_; }

 private:
  struct Patch {
    TensorView* view;
    loops::BufferId buffer;
    Expr offset;  // in elements
    int64_t offset_bytes = 0;
  };
  /// Where the value of an expression stands.
  template <class T>
  struct Changing {
    T* place;
    Expr from;
  };
  void fill(TensorView& view, const loops::Operand& operand);
  void fill(Argument<TensorView>& argument, const Argument<loops::Operand>& from);
  template <class T>
  static void set(std::vector<Changing<T>>& changing, T& place, Expr from);

  std::vector<Argument<TensorView>> arguments_;
  std::vector<TensorView> results_;
  std::vector<Patch> patches_;
  std::vector<Changing<int64_t>> changing_sizes_;
  std::vector<Changing<Expr>> changing_numbers_;
};

}  // namespace stax::runtime

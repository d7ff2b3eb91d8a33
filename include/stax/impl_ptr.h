// The shared handle behind tensors.
#pragma once

#include <utility>

#include "stax/api.h"

namespace stax {

class TensorImpl;

namespace detail {

STAX_API void retain(TensorImpl* impl) noexcept;
STAX_API void release(TensorImpl* impl) noexcept;

/// Shared ownership of a TensorImpl by the count inside it.
class ImplPtr {
 public:
  ImplPtr() = default;
  /// Shares `impl` (its count grows).
  explicit ImplPtr(TensorImpl* impl) : impl_(impl) {
    if (impl_ != nullptr) retain(impl_);
  }
  /// Takes over a count that is already held.
  static ImplPtr adopt(TensorImpl* impl) {
    ImplPtr result;
    result.impl_ = impl;
    return result;
  }
  ImplPtr(const ImplPtr& other) : ImplPtr(other.impl_) {}
  ImplPtr(ImplPtr&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  ImplPtr& operator=(ImplPtr other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~ImplPtr() {
    if (impl_ != nullptr) release(impl_);
  }

  TensorImpl* get() const { return impl_; }
  TensorImpl* operator->() const { return impl_; }
  TensorImpl& operator*() const { return *impl_; }
  explicit operator bool() const { return impl_ != nullptr; }
  friend bool operator==(const ImplPtr& a, const ImplPtr& b) { return a.impl_ == b.impl_; }

 private:
  TensorImpl* impl_ = nullptr;
};

}  // namespace detail
}  // namespace stax

// An array of a length known at run time: on the stack up to N elements.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace stax::compiler {

template <class T, size_t N>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size) {
    if (size > N) heap_ = std::make_unique<T[]>(size);
  }
  SmallArray(const SmallArray&) = delete;
  T* data() { return heap_ ? heap_.get() : inline_; }
  const T* data() const { return heap_ ? heap_.get() : inline_; }
  T& operator[](size_t k) { return data()[k]; }
  size_t size() const { return size_; }
  operator std::span<T>() { return {data(), size_}; }        // NOLINT
  operator std::span<const T>() { return {data(), size_}; }  // NOLINT

 private:
  size_t size_;
  std::unique_ptr<T[]> heap_;
  T inline_[N];
};

}  // namespace stax::compiler

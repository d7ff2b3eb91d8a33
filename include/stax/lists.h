// Lists as arguments: cheap views of what the caller wrote, valid for the duration of the call.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stax/symint.h"

namespace stax {

class Tensor;

/// Integers or sizes: from one number, {1, 2}, a vector, an array or x.sizes(). A view: it owns nothing but a
/// single number.
class IntList {
 public:
  constexpr IntList() = default;
  template <std::integral T>
  requires(!std::same_as<T, bool>)  // x.var(true) means no dimension
      constexpr IntList(T value)
      : kind_(Kind::single), size_(1), single_(value) {}  // NOLINT: written plainly
  constexpr IntList(const SymInt& value) : kind_(Kind::single), size_(1), single_(value) {}  // NOLINT
  constexpr IntList(std::initializer_list<SymInt> values)
      : kind_(Kind::sizes), data_(values.begin()), size_(values.size()) {}
  constexpr IntList(std::span<const SymInt> values)  // NOLINT
      : kind_(Kind::sizes), data_(values.data()), size_(values.size()) {}
  constexpr IntList(std::span<const int64_t> values)  // NOLINT
      : kind_(Kind::int64s), data_(values.data()), size_(values.size()) {}
  IntList(const std::vector<SymInt>& values) : IntList(std::span<const SymInt>(values)) {}    // NOLINT
  IntList(const std::vector<int64_t>& values) : IntList(std::span<const int64_t>(values)) {}  // NOLINT
  IntList(const std::vector<int>& values)                                                     // NOLINT
      : kind_(Kind::ints), data_(values.data()), size_(values.size()) {}
  template <size_t N>
  constexpr IntList(const std::array<int64_t, N>& values)
      : IntList(std::span<const int64_t>(values)) {}  // NOLINT

  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  SymInt operator[](size_t i) const {
    switch (kind_) {
      case Kind::single:
        return single_;
      case Kind::sizes:
        return static_cast<const SymInt*>(data_)[i];
      case Kind::int64s:
        return static_cast<const int64_t*>(data_)[i];
      case Kind::ints:
        return static_cast<const int*>(data_)[i];
    }
    return {};
  }
  SymInt back() const { return (*this)[size_ - 1]; }
  SymInt front() const { return (*this)[0]; }
  std::vector<SymInt> vec() const {
    std::vector<SymInt> result;
    result.reserve(size_);
    for (size_t i = 0; i < size_; ++i) result.push_back((*this)[i]);
    return result;
  }

 private:
  enum class Kind : uint8_t { single, sizes, int64s, ints };
  Kind kind_ = Kind::sizes;
  const void* data_ = nullptr;
  size_t size_ = 0;
  SymInt single_;
};

/// The sizes or strides of a tensor: what sizes() and strides() return. Valid while the tensor lives.
class SizeList {
 public:
  constexpr SizeList() = default;
  constexpr SizeList(const SymInt* data, size_t size) : data_(data), size_(size) {}

  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const SymInt* data() const { return data_; }
  constexpr const SymInt* begin() const { return data_; }
  constexpr const SymInt* end() const { return data_ + size_; }
  const SymInt& operator[](size_t i) const { return data_[i]; }
  const SymInt& front() const { return data_[0]; }
  const SymInt& back() const { return data_[size_ - 1]; }
  SizeList slice(size_t start, size_t length) const { return {data_ + start, length}; }
  SizeList slice(size_t start) const { return {data_ + start, size_ - start}; }
  std::vector<SymInt> vec() const { return {begin(), end()}; }
  /// The numbers; while tracing this fixes them.
  std::vector<int64_t> values() const { return {begin(), end()}; }

  operator IntList() const { return std::span<const SymInt>(data_, size_); }  // NOLINT
  operator std::vector<int64_t>() const { return values(); }                  // NOLINT
  operator std::vector<SymInt>() const { return vec(); }                      // NOLINT
  operator std::span<const SymInt>() const { return {data_, size_}; }         // NOLINT

  friend bool operator==(const SizeList& a, const SizeList& b) { return a == IntList(b); }
  friend bool operator==(const SizeList& a, const IntList& b) {
    if (a.size_ != b.size()) return false;
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b[i])) return false;
    }
    return true;
  }
  friend bool operator==(const SizeList& a, const std::vector<int64_t>& b) { return a == IntList(b); }

 private:
  const SymInt* data_ = nullptr;
  size_t size_ = 0;
};

/// "[2, 3]".
STAX_API std::ostream& operator<<(std::ostream& out, const SizeList& list);
STAX_API std::ostream& operator<<(std::ostream& out, const IntList& list);

/// An IntList or nothing.
class OptionalIntList {
 public:
  constexpr OptionalIntList() = default;
  constexpr OptionalIntList(std::nullopt_t) {}  // NOLINT
  template <class T>
  requires std::convertible_to<T, IntList>
  constexpr OptionalIntList(const T& list) : list_(list), present_(true) {}  // NOLINT
  constexpr OptionalIntList(std::initializer_list<SymInt> values) : list_(values), present_(true) {}
  template <class T>
  requires std::convertible_to<T, IntList>
  constexpr OptionalIntList(const std::optional<T>& list) {  // NOLINT
    if (list) *this = OptionalIntList(*list);
  }

  constexpr bool has_value() const { return present_; }
  explicit constexpr operator bool() const { return present_; }
  constexpr const IntList& operator*() const { return list_; }

 private:
  IntList list_;
  bool present_ = false;
};

/// A bool that no number converts to, where an overload takes a number in the same place.
class ExactBool {
 public:
  template <std::same_as<bool> T>
  constexpr ExactBool(T value) : value_(value) {}  // NOLINT
  constexpr bool value() const { return value_; }

 private:
  bool value_;
};

/// A string that 0 does not convert to, as it does to a null pointer, where an overload takes a number in the
/// same place.
class ExactString {
 public:
  template <class T>
  requires std::convertible_to<const T&, std::string_view>
  constexpr ExactString(const T& value) : value_(value) {}  // NOLINT
  constexpr std::string_view value() const { return value_; }

 private:
  std::string_view value_;
};

namespace detail {

/// A plain integer or a size, where an overload takes a list or nothing in the same place.
template <class T>
concept WholeNumber = (std::integral<T> && !std::same_as<T, bool>) || std::same_as<T, SymInt>;

}  // namespace detail

/// Floating-point numbers.
class FloatList {
 public:
  constexpr FloatList() = default;
  constexpr FloatList(std::span<const double> values)
      : data_(values.data()), size_(values.size()) {}  // NOLINT
  constexpr FloatList(std::initializer_list<double> values)
      : FloatList(std::span<const double>(values.begin(), values.size())) {}
  FloatList(const std::vector<double>& values) : data_(values.data()), size_(values.size()) {}  // NOLINT
  constexpr size_t size() const { return size_; }
  constexpr double operator[](size_t i) const { return data_[i]; }
  constexpr const double* begin() const { return data_; }
  constexpr const double* end() const { return data_ + size_; }

 private:
  const double* data_ = nullptr;
  size_t size_ = 0;
};

/// A FloatList or nothing.
class OptionalFloatList {
 public:
  constexpr OptionalFloatList() = default;
  constexpr OptionalFloatList(std::nullopt_t) {}  // NOLINT
  constexpr OptionalFloatList(std::initializer_list<double> values) : list_(values), present_(true) {}
  OptionalFloatList(const std::vector<double>& values) : list_(values), present_(true) {}  // NOLINT
  constexpr bool has_value() const { return present_; }
  explicit constexpr operator bool() const { return present_; }
  constexpr const FloatList& operator*() const { return list_; }

 private:
  FloatList list_;
  bool present_ = false;
};

/// Tensors: {a, b}, a vector or an array.
class TensorList {
 public:
  constexpr TensorList() = default;
  inline TensorList(std::initializer_list<Tensor> values);
  inline TensorList(const std::vector<Tensor>& values);                                       // NOLINT
  TensorList(std::span<const Tensor> values) : data_(values.data()), size_(values.size()) {}  // NOLINT
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  inline const Tensor& operator[](size_t i) const;
  constexpr const Tensor* begin() const { return data_; }
  inline const Tensor* end() const;

 private:
  const Tensor* data_ = nullptr;
  size_t size_ = 0;
};

/// Tensors of which some may be missing, as index tensors are.
class OptionalTensorList {
 public:
  constexpr OptionalTensorList() = default;
  constexpr OptionalTensorList(const std::optional<Tensor>* data, size_t size) : data_(data), size_(size) {}
  inline OptionalTensorList(std::initializer_list<std::optional<Tensor>> values);
  inline OptionalTensorList(const std::vector<std::optional<Tensor>>& values);  // NOLINT
  constexpr size_t size() const { return size_; }
  inline const std::optional<Tensor>& operator[](size_t i) const;

 private:
  const std::optional<Tensor>* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stax

// New tensors from memory and from numbers. The factories that are operators (zeros, ones, full, arange, ...)
// are in functions.h.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "stax/tensor.h"

namespace stax {

/// A row-major tensor whose elements are undefined (zeros while tracing).
STAX_API Tensor empty(IntList size, TensorOptions options = {});

/// A tensor over memory of the caller, which stays valid while any tensor uses it; `deleter` is called with
/// `data` after the last one. Row-major, or with strides in elements.
STAX_API Tensor from_blob(void* data, IntList sizes, TensorOptions options = {});
STAX_API Tensor from_blob(void* data, IntList sizes, IntList strides, TensorOptions options = {});
STAX_API Tensor from_blob(void* data, IntList sizes, std::function<void(void*)> deleter,
                          TensorOptions options = {});

namespace detail {

/// Copies numbers into a new row-major tensor of the dtype that `options` name, else of `natural`.
STAX_API Tensor tensor_of(const void* data, DType stored, DType natural, IntList sizes,
                          TensorOptions options);

/// dtype of a tensor made from C++ numbers: integers give int64, floating-point numbers float32.
template <class T>
constexpr DType natural_dtype() {
  if (std::is_same_v<T, bool>) return DType::boolean;
  return std::is_integral_v<T> ? DType::int64 : DType::float32;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values, std::vector<int64_t> sizes, TensorOptions options) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return tensor_of(bytes.data(), DType::boolean, DType::boolean, sizes, options);
  } else {
    using Stored = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const std::vector<Stored> numbers(values.begin(), values.end());
    return tensor_of(numbers.data(), DTypeOf<Stored>::dtype, natural_dtype<T>(), sizes, options);
  }
}

STAX_API void check_rows(size_t expected, size_t got);

}  // namespace detail

/// A zero-dim tensor.
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, TensorOptions options = {}) {
  return detail::tensor_of(std::vector<T>{value}, {}, options);
}
/// tensor({1, 2, 3}): a vector. Integers give int64 and floating-point numbers float32, unless options say.
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(std::initializer_list<T> values, TensorOptions options = {}) {
  return detail::tensor_of(std::vector<T>(values), {static_cast<int64_t>(values.size())}, options);
}
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(const std::vector<T>& values, TensorOptions options = {}) {
  return detail::tensor_of(values, {static_cast<int64_t>(values.size())}, options);
}
/// tensor({{1, 2}, {3, 4}}): a matrix; rows have one length.
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(std::initializer_list<std::initializer_list<T>> rows,
                                               TensorOptions options = {}) {
  const size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  std::vector<T> values;
  for (const auto& row : rows) {
    detail::check_rows(columns, row.size());
    values.insert(values.end(), row.begin(), row.end());
  }
  return detail::tensor_of(values, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)},
                           options);
}
/// Three levels of braces.
template <class T>
requires std::is_arithmetic_v<T> Tensor
tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks,
       TensorOptions options = {}) {
  const size_t rows = blocks.size() == 0 ? 0 : blocks.begin()->size();
  const size_t columns = rows == 0 ? 0 : blocks.begin()->begin()->size();
  std::vector<T> values;
  for (const auto& block : blocks) {
    detail::check_rows(rows, block.size());
    for (const auto& row : block) {
      detail::check_rows(columns, row.size());
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  return detail::tensor_of(
      values,
      {static_cast<int64_t>(blocks.size()), static_cast<int64_t>(rows), static_cast<int64_t>(columns)},
      options);
}

}  // namespace stax

// Tensors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "stax/api.h"
#include "stax/device.h"
#include "stax/dtype.h"
#include "stax/impl_ptr.h"
#include "stax/lists.h"
#include "stax/options.h"
#include "stax/scalar.h"
#include "stax/symint.h"

namespace stax {

class TensorIndex;

namespace detail {
/// dtype that stores a C++ type.
template <class T>
struct DTypeOf;
#define STAX_DTYPE_OF(type, value)               \
  template <>                                    \
  struct DTypeOf<type> {                         \
    static constexpr DType dtype = DType::value; \
  };
STAX_DTYPE_OF(bool, boolean)
STAX_DTYPE_OF(uint8_t, uint8)
STAX_DTYPE_OF(int8_t, int8)
STAX_DTYPE_OF(int16_t, int16)
STAX_DTYPE_OF(int32_t, int32)
STAX_DTYPE_OF(int64_t, int64)
STAX_DTYPE_OF(float, float32)
STAX_DTYPE_OF(double, float64)
#undef STAX_DTYPE_OF
STAX_API void check_data_dtype(DType expected, DType got);
}  // namespace detail

/// A strided array of numbers that shares its storage with its copies and its views. A default-made tensor is
/// undefined: it may only be assigned, copied and asked for defined().
///
/// Operations are methods and functions of the same names; those whose name ends in `_` update the tensor in
/// place. Errors are UserError.
class STAX_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(detail::ImplPtr impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  DType dtype() const;
  DType scalar_type() const { return dtype(); }
  Device device() const;
  bool is_cpu() const { return device().type == DeviceType::cpu; }
  bool is_cuda() const { return device().type == DeviceType::cuda; }
  TensorOptions options() const { return TensorOptions(dtype()).device(device()); }
  int64_t dim() const;
  int64_t ndimension() const { return dim(); }
  /// Length of a dimension; negative ones count from the end.
  SymInt size(int64_t dim, std::source_location where = std::source_location::current()) const;
  SizeList sizes() const;
  /// Distance in elements between neighbours along a dimension.
  SymInt stride(int64_t dim) const;
  SizeList strides() const;
  /// Elements between the start of the storage and element 0.
  SymInt storage_offset() const;
  SymInt numel() const;
  int64_t itemsize() const { return stax::itemsize(dtype()); }
  int64_t element_size() const { return itemsize(); }
  /// Bytes of the elements, gaps not counted.
  SymInt nbytes() const { return numel() * itemsize(); }
  bool is_floating_point() const { return stax::is_floating_point(dtype()); }
  /// Row-major without gaps.
  bool is_contiguous() const;
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  /// True where both look at one storage.
  bool is_alias_of(const Tensor& other) const;
  /// Tensor handles that share this one's state.
  int64_t use_count() const;

  /// Element 0. While tracing, asking for it ends the trace.
  void* data_ptr() const;
  /// Element 0, as T, which must be the type that stores the dtype (half types: uint16_t).
  template <class T>
  T* data_ptr() const {
    if constexpr (!std::is_same_v<T, uint16_t>) detail::check_data_dtype(detail::DTypeOf<T>::dtype, dtype());
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  /// The only element of a tensor with one element. While tracing it stays symbolic.
  Scalar item(std::source_location where = std::source_location::current()) const;
  /// The only element, as T. While tracing this reads, which ends the trace.
  template <class T>
  T item(std::source_location where = std::source_location::current()) const {
    return item(where).template to<T>();
  }
  /// True where both have the same sizes and equal elements; NaN equals nothing. A read, as item<T>() is.
  bool equal(const Tensor& other) const;
  /// True where all elements are as isclose() asks. A read, as item<T>() is.
  bool allclose(const Tensor& other, double rtol = 1e-05, double atol = 1e-08, bool equal_nan = false) const;
  /// True where the only element is not zero.
  explicit operator bool() const { return item().to<bool>(); }

  /// The part that the indices select; see indexing.h. Numbers, slices, None and Ellipsis give a view, index
  /// tensors a copy.
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor index(const std::vector<TensorIndex>& indices) const;
  /// Writes `value`, broadcast, into the part that the indices select.
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value);
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value);
  Tensor& index_put_(const std::vector<TensorIndex>& indices, const Tensor& value);
  Tensor& index_put_(const std::vector<TensorIndex>& indices, const Scalar& value);
  /// With `accumulate` it adds instead, once for each time that an element is selected.
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value, bool accumulate);
  Tensor& index_put_(const std::vector<TensorIndex>& indices, const Tensor& value, bool accumulate);
  Tensor operator[](int64_t index) const;
  Tensor operator[](const SymInt& index) const;
  Tensor operator[](const Tensor& index) const;
  Tensor operator[](const TensorIndex& index) const;

  /// Copies `source`, converted and broadcast, into this tensor.
  Tensor& copy_(const Tensor& source, bool non_blocking = false) const;
  Tensor& fill_(const Scalar& value) const;
  Tensor& fill_(const Tensor& value) const;
  Tensor& zero_() const;
  /// Fills with random numbers: uniform in [from, to), or normally distributed.
  Tensor& uniform_(double from = 0, double to = 1) const;
  Tensor& normal_(double mean = 0, double std = 1) const;
  /// This tensor if it has that dtype and device, otherwise a converted copy. While tracing, a change of the
  /// device is a read, except of what the function computes of numbers alone.
  Tensor to(DType dtype, bool non_blocking = false, bool copy = false) const;
  Tensor to(Device device) const;
  Tensor to(TensorOptions options) const;
  /// This tensor if it is row-major, otherwise a row-major copy.
  Tensor contiguous() const;
  Tensor cpu() const { return to(kCPU); }
  /// On the current GPU.
  Tensor cuda() const;
  /// Tensors of this dtype and device.
  Tensor new_empty(IntList size, TensorOptions options = {}) const;
  Tensor new_zeros(IntList size, TensorOptions options = {}) const;
  Tensor new_ones(IntList size, TensorOptions options = {}) const;
  Tensor new_full(IntList size, const Scalar& value, TensorOptions options = {}) const;

  Tensor operator-() const;
  Tensor operator~() const;
  Tensor& operator+=(const Tensor& other);
  Tensor& operator+=(const Scalar& other);
  Tensor& operator-=(const Tensor& other);
  Tensor& operator-=(const Scalar& other);
  Tensor& operator*=(const Tensor& other);
  Tensor& operator*=(const Scalar& other);
  Tensor& operator/=(const Tensor& other);
  Tensor& operator/=(const Scalar& other);
  Tensor& operator&=(const Tensor& other);
  Tensor& operator|=(const Tensor& other);
  Tensor& operator^=(const Tensor& other);

  /// The values as text, as operator<< prints them.
  std::string str() const;

  /// The state behind the handle: internal.
  TensorImpl* impl() const { return impl_.get(); }
  const detail::ImplPtr& impl_ptr() const { return impl_; }

#include "stax/tensor_methods.inc"  // one declaration an operator, from the op table

 private:
  detail::ImplPtr impl_;
};

STAX_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

inline TensorList::TensorList(const std::vector<Tensor>& values)
    : TensorList(std::span<const Tensor>(values)) {}
inline TensorList::TensorList(std::initializer_list<Tensor> values)
    : TensorList(std::span<const Tensor>(values.begin(), values.size())) {}
inline const Tensor& TensorList::operator[](size_t i) const {
  return data_[i];
}
inline const Tensor* TensorList::end() const {
  return data_ + size_;
}
inline OptionalTensorList::OptionalTensorList(std::initializer_list<std::optional<Tensor>> values)
    : OptionalTensorList(values.size() == 0 ? nullptr : &*values.begin(), values.size()) {}
inline OptionalTensorList::OptionalTensorList(const std::vector<std::optional<Tensor>>& values)
    : data_(values.data()), size_(values.size()) {}
inline const std::optional<Tensor>& OptionalTensorList::operator[](size_t i) const {
  return data_[i];
}

}  // namespace stax

// The elements of tensors inside kernels: stored types, the types in which they are computed, walks over
// strided tensors.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "stax/dtype.h"
#include "support/half.h"
#include "tensor/tensor_view.h"

namespace stax::kernels {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <class T>
T widen(T v) {
  return v;
}
inline float widen(Float16 v) {
  return float16_to_float(v.bits);
}
inline float widen(BFloat16 v) {
  return bfloat16_to_float(v.bits);
}

/// A computed value as it is stored: the half types round to nearest even.
template <class Stored, class Compute>
Stored narrow(Compute v) {
  if constexpr (std::is_same_v<Stored, Float16>) {
    return {float_to_float16(static_cast<float>(v))};
  } else if constexpr (std::is_same_v<Stored, BFloat16>) {
    return {float_to_bfloat16(static_cast<float>(v))};
  } else {
    return static_cast<Stored>(v);
  }
}

template <class S>
struct ElementType {
  using Stored = S;
  using Compute = decltype(widen(S{}));
};

/// Calls f(ElementType<T>()) for the type that `dtype` is stored as.
template <class F>
decltype(auto) with_element_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
      return f(ElementType<bool>());
    case DType::uint8:
      return f(ElementType<uint8_t>());
    case DType::int8:
      return f(ElementType<int8_t>());
    case DType::int16:
      return f(ElementType<int16_t>());
    case DType::int32:
      return f(ElementType<int32_t>());
    case DType::int64:
      return f(ElementType<int64_t>());
    case DType::float16:
      return f(ElementType<Float16>());
    case DType::bfloat16:
      return f(ElementType<BFloat16>());
    case DType::float32:
      return f(ElementType<float>());
    case DType::float64:
      return f(ElementType<double>());
  }
  __builtin_unreachable();
}

/// Calls f(offset in elements) for every element of `view`, in row-major order.
template <class F>
void for_each_offset(const TensorView& view, F&& f) {
  const size_t rank = view.sizes.size();
  const int64_t count = view.numel();
  if (count == 0) return;
  std::vector<int64_t> index(rank, 0);
  int64_t offset = 0;
  for (int64_t done = 0;;) {
    f(offset);
    if (++done == count) return;
    for (size_t d = rank; d-- > 0;) {
      offset += view.strides[d];
      if (++index[d] < view.sizes[d]) break;
      offset -= index[d] * view.strides[d];
      index[d] = 0;
    }
  }
}

/// The elements of `view` in row-major order, in the type that they are computed in.
template <class Compute>
std::vector<Compute> read_all(const TensorView& view) {
  std::vector<Compute> out;
  out.reserve(static_cast<size_t>(view.numel()));
  with_element_type(view.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    const auto* data = static_cast<const Stored*>(view.data);
    for_each_offset(view, [&](int64_t at) { out.push_back(static_cast<Compute>(widen(data[at]))); });
  });
  return out;
}

}  // namespace stax::kernels

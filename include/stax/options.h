// How a new tensor is made.
#pragma once

#include <optional>

#include "stax/device.h"
#include "stax/dtype.h"

namespace stax {

/// dtype and device of a new tensor; what is absent takes the function's default. A dtype or a device alone
/// converts to it: zeros({2}, kInt64).
class TensorOptions {
 public:
  constexpr TensorOptions() = default;
  constexpr TensorOptions(DType dtype) : dtype_(dtype) {}                 // NOLINT: zeros({2}, kInt64)
  constexpr TensorOptions(std::optional<DType> dtype) : dtype_(dtype) {}  // NOLINT
  constexpr TensorOptions(Device device) : device_(device) {}             // NOLINT

  constexpr TensorOptions dtype(std::optional<DType> value) const {
    TensorOptions result = *this;
    result.dtype_ = value;
    return result;
  }
  constexpr TensorOptions device(std::optional<Device> value) const {
    TensorOptions result = *this;
    result.device_ = value;
    return result;
  }
  constexpr std::optional<DType> dtype_opt() const { return dtype_; }
  constexpr std::optional<Device> device_opt() const { return device_; }
  /// The dtype, float32 where none is given.
  constexpr DType dtype() const { return dtype_.value_or(DType::float32); }
  constexpr Device device() const { return device_.value_or(kCPU); }

 private:
  std::optional<DType> dtype_;
  std::optional<Device> device_;
};

/// Options with that dtype: zeros({2}, dtype(kInt64)).
constexpr TensorOptions dtype(DType value) {
  return TensorOptions(value);
}

}  // namespace stax

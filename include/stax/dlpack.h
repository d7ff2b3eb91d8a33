// Exchange of tensors with other libraries through DLPack 1.x, whose C structs are declared here as its
// specification gives them (inside stax, so that they never clash with a copy of the original header).
#pragma once

#include <cstdint>

#include "stax/tensor.h"

namespace stax {
namespace dlpack {

inline constexpr uint32_t kMajorVersion = 1, kMinorVersion = 0;

struct Version {
  uint32_t major, minor;
};
struct Device {
  int32_t device_type;  // 1: CPU
  int32_t device_id;
};
struct DataType {
  uint8_t code;  // 0: int, 1: unsigned int, 2: float, 4: bfloat, 6: bool
  uint8_t bits;
  uint16_t lanes;  // 1
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
/// DLManagedTensor, before version 1.
struct Managed {
  Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(Managed* self);
};
inline constexpr uint64_t kReadOnly = 1, kCopied = 2;
/// DLManagedTensorVersioned.
struct ManagedVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  Tensor dl_tensor;
};

}  // namespace dlpack

/// A struct that shares the tensor's memory until its deleter is called.
STAX_API dlpack::ManagedVersioned* to_dlpack(const Tensor& tensor);
/// The struct of DLPack before version 1; it cannot say that memory is read-only, so such tensors are
/// refused.
STAX_API dlpack::Managed* to_dlpack_unversioned(const Tensor& tensor);

/// A tensor over the memory that `managed` describes; takes it over and calls its deleter after the last use.
/// UserError, leaving `managed` with the caller, for another major version, device or dtype. Memory marked
/// read-only refuses in-place updates.
STAX_API Tensor from_dlpack(dlpack::ManagedVersioned* managed);
STAX_API Tensor from_dlpack(dlpack::Managed* managed);

}  // namespace stax

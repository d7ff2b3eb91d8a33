// Memory of a GPU. Freed blocks are kept and handed out again to the stream that they were made for: its work
// runs in order, so a block may be given away before the work that uses it has run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/allocator.h"
#include "device/cuda_device.h"

namespace stax::device {

/// The device has no more memory, after all that was kept for reuse went back to the driver.
class OutOfDeviceMemory : public CudaError {
 public:
  using CudaError::CudaError;
};

/// Blocks are aligned to 256 bytes and not initialised. allocate() gives blocks for the current stream of the
/// calling thread. Memory that another stream works on has to outlive that work: wait for it, or let the
/// streams wait for each other by events.
class CudaAllocator final : public Allocator {
 public:
  struct Stats {
    int64_t in_use_bytes = 0;     ///< handed out, rounded up to their size classes
    int64_t reserved_bytes = 0;   ///< taken from the driver: handed out, or kept for reuse
    int64_t driver_requests = 0;  ///< blocks taken from the driver so far
  };

  /// That of a device. UserError where there is no such device.
  static CudaAllocator& of(int32_t device);

  explicit CudaAllocator(int32_t device);
  ~CudaAllocator() override;

  /// Where the driver has no more memory, all kept blocks are returned to it first. OutOfDeviceMemory saying
  /// what is allocated when that does not help.
  void* allocate(int64_t bytes) override;
  void* allocate(int64_t bytes, const CudaStream& stream);
  void deallocate(void* block, int64_t bytes) noexcept override;
  /// Returns all kept blocks to the driver.
  void empty_cache();
  Stats stats() const;

 private:
  struct State;
  std::string shortage(int64_t bytes) const;
  int32_t device_;
  std::unique_ptr<State> state_;
};

/// Memory of a GPU's allocator for as long as the object lives.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// `bytes`, uninitialised, for the current stream of `device`, or for `stream`. Errors as those of
  /// CudaAllocator::allocate(). Memory goes back to the allocator without waiting for the device.
  DeviceMemory(int32_t device, int64_t bytes);
  DeviceMemory(int64_t bytes, const CudaStream& stream);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  void* data() const { return data_; }  ///< null where it holds none
  CudaAddress address() const { return reinterpret_cast<CudaAddress>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  CudaAllocator* allocator_ = nullptr;
  int64_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace stax::device

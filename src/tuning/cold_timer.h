// How long work on a GPU takes from a cold cache.
#pragma once

#include <functional>
#include <vector>

#include "device/cuda_allocator.h"
#include "device/cuda_device.h"

namespace stax::tuning {

/// Memory of the device for as long as the object lives.
class DeviceMemory {
 public:
  DeviceMemory(int32_t device, int64_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  device::CudaAddress address() const { return reinterpret_cast<device::CudaAddress>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  device::CudaAllocator& allocator_;
  int64_t bytes_;
  void* data_;
};

/// Measures work in the stream that is current when it is made.
class ColdTimer {
 public:
  explicit ColdTimer(int32_t device);

  /// The median of up to `repeats` runs of `work`, fewer where they are slow; each begins with `prepare`,
  /// which does not count, and finds nothing of its operands in the L2 cache.
  double seconds(int32_t repeats, const std::function<void()>& prepare, const std::function<void()>& work);

 private:
  std::vector<double> times(int32_t count, const std::function<void()>& prepare,
                            const std::function<void()>& work);

  device::CudaStream stream_;
  DeviceMemory flush_;
};

}  // namespace stax::tuning

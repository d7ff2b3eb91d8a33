// How long work on a GPU takes from a cold cache.
#pragma once

#include <functional>
#include <vector>

#include "device/cuda_allocator.h"
#include "device/cuda_device.h"

namespace stax::tuning {

/// Measures work in the stream that is current when it is made.
class ColdTimer {
 public:
  /// `flushed`: bytes that are written between runs; 0: as many as push all else out of the L2 cache.
  explicit ColdTimer(int32_t device, int64_t flushed = 0);

  /// The median of up to `repeats` runs of `work`, fewer where they are slow; each begins with `prepare`,
  /// which does not count, and finds nothing of its operands in the L2 cache.
  double seconds(int32_t repeats, const std::function<void()>& prepare, const std::function<void()>& work);
  /// One such run.
  double once(const std::function<void()>& prepare, const std::function<void()>& work);

 private:
  std::vector<double> times(int32_t count, const std::function<void()>& prepare,
                            const std::function<void()>& work);

  device::CudaStream stream_;
  device::DeviceMemory flush_;
};

}  // namespace stax::tuning

// Time that a GPU spends on calls.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "device/cuda_device.h"
#include "stax/stax.h"

namespace bench {

/// Milliseconds that the device spends on one call of each function, from a cold L2 cache: medians of 30
/// calls, taken in turns. Writing over the cache takes the device longer than the host needs for the call, so
/// that the launch is no part of the figures.
inline std::vector<double> device_milliseconds(const std::vector<std::function<void()>>& functions) {
  constexpr int64_t kFlushed = int64_t{1} << 28;
  static const stax::Tensor flush =
      stax::empty({kFlushed}, stax::TensorOptions(stax::kUInt8).device(stax::kCUDA));
  std::vector<std::vector<double>> all(functions.size());
  for (const auto& f : functions) f();
  for (int k = 0; k < 30; ++k) {
    for (size_t f = 0; f < functions.size(); ++f) {
      stax::cuda::Event start(true), end(true);
      STAX_CUDA(cuMemsetD8Async, reinterpret_cast<stax::device::CudaAddress>(flush.data_ptr()), 0,
                static_cast<size_t>(kFlushed), stax::device::current_cuda_stream(0).handle);
      start.record();
      functions[f]();
      end.record();
      end.synchronize();
      all[f].push_back(start.elapsed_time(end));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& times : all) {
    std::ranges::sort(times);
    medians.push_back(times[times.size() / 2]);
  }
  return medians;
}

}  // namespace bench

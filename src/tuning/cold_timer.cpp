#include "tuning/cold_timer.h"

#include <algorithm>

#include "support/median.h"

namespace stax::tuning {

using device::CudaStream;

namespace {

constexpr double kSecondsEach = 0.025;  // of work behind one figure, about
constexpr int32_t kFewest = 3;          // runs, however slow

/// Start and end of runs.
class Events {
 public:
  explicit Events(size_t count) : events_(count) {
    for (auto& e : events_) STAX_CUDA(cuEventCreate, &e, 0);
  }
  ~Events() {
    for (auto e : events_) device::cuda_driver().cuEventDestroy_v2(e);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  void record(size_t k, const CudaStream& stream) { STAX_CUDA(cuEventRecord, events_[k], stream.handle); }
  double seconds(size_t from, size_t to) const {
    float milliseconds = 0;
    STAX_CUDA(cuEventElapsedTime, &milliseconds, events_[from], events_[to]);
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  std::vector<device::CudaEventHandle> events_;
};

}  // namespace

ColdTimer::ColdTimer(int32_t device, int64_t flushed)
    : stream_(device::current_cuda_stream(device)),
      // Writing twice the cache pushes out whatever the last run left.
      flush_(device,
             flushed > 0 ? flushed : 2 * std::max<int64_t>(device::cuda_properties(device).cache_bytes, 1)) {}

std::vector<double> ColdTimer::times(int32_t count, const std::function<void()>& prepare,
                                     const std::function<void()>& work) {
  Events events(2 * static_cast<size_t>(count));
  for (int32_t k = 0; k < count; ++k) {
    prepare();
    STAX_CUDA(cuMemsetD8Async, flush_.address(), 0, static_cast<size_t>(flush_.bytes()), stream_.handle);
    events.record(2 * static_cast<size_t>(k), stream_);
    work();
    events.record(2 * static_cast<size_t>(k) + 1, stream_);
  }
  STAX_CUDA(cuStreamSynchronize, stream_.handle);
  std::vector<double> seconds;
  for (size_t k = 0; k < static_cast<size_t>(count); ++k) seconds.push_back(events.seconds(2 * k, 2 * k + 1));
  return seconds;
}

double ColdTimer::once(const std::function<void()>& prepare, const std::function<void()>& work) {
  return times(1, prepare, work)[0];
}

double ColdTimer::seconds(int32_t repeats, const std::function<void()>& prepare,
                          const std::function<void()>& work) {
  const double about = median(times(2, prepare, work));
  const auto wanted = static_cast<int32_t>(std::min<double>(repeats, kSecondsEach / std::max(about, 1e-7)));
  return median(times(std::max(wanted, kFewest), prepare, work));
}

}  // namespace stax::tuning

#include "tuning/tuned_kernel.h"

#include <algorithm>
#include <map>

#include "device/cuda_allocator.h"
#include "stax/error.h"
#include "support/check.h"
#include "support/log.h"

namespace stax::tuning {

using codegen::KernelCall;
using codegen::LaunchConfig;
using device::CudaAllocator;
using device::CudaStream;
using runtime::CudaKernel;

namespace {

constexpr double kSecondsEach = 0.025;  // of launches behind one figure, about
constexpr int32_t kFewest = 3;          // launches, however slow
constexpr int32_t kNoiseSamples = 5;

/// Memory of the device for as long as the object lives.
class DeviceMemory {
 public:
  DeviceMemory(int32_t device, int64_t bytes)
      : allocator_(CudaAllocator::of(device)), bytes_(bytes), data_(allocator_.allocate(bytes)) {}
  ~DeviceMemory() { allocator_.deallocate(data_, bytes_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  device::CudaAddress address() const { return reinterpret_cast<device::CudaAddress>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  CudaAllocator& allocator_;
  int64_t bytes_;
  void* data_;
};

/// Start and end of launches.
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

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

/// The kernel with the arguments of one call. What it changes is copied first, and put back before every
/// launch and at the end.
class TunedKernel::OnDevice final : public Bench {
 public:
  OnDevice(const TunedKernel& kernel, const KernelCall& call)
      : kernel_(kernel),
        call_(call),
        stream_(device::current_cuda_stream(kernel.device_)),
        // Twice the cache: writing it pushes out whatever the last launch left.
        flush_(kernel.device_,
               2 * std::max<int64_t>(device::cuda_properties(kernel.device_).cache_bytes, 1)) {
    for (size_t k = 0; k < kernel.kernel_.pointers.size(); ++k) {
      if (kernel.kernel_.pointers[k].role != codegen::PointerRole::in_out) continue;
      const int64_t bytes = call.evaluate(kernel.bytes_[k]);
      if (bytes == 0) continue;
      const auto original = reinterpret_cast<device::CudaAddress>(call.buffers[k]);
      saved_.push_back({original, std::make_unique<DeviceMemory>(kernel.device_, bytes)});
      copy(saved_.back().copy->address(), original, bytes);
    }
  }
  ~OnDevice() override {
    try {
      restore();
    } catch (const Error&) {
      // The device fails: the launch that follows says so.
    }
  }

  void prepare(std::span<const LaunchConfig> configs) override {
    std::vector<runtime::TritonRequest> requests;
    std::vector<Built*> waiting;
    for (const LaunchConfig& config : configs) {
      const auto [at, added] = built_.try_emplace(to_string(config));
      if (!added) continue;
      at->second.kernel = kernel_.with(config);
      requests.push_back(at->second.kernel->request(at->second.kernel->variant_for(call_)));
      waiting.push_back(&at->second);
    }
    if (requests.empty()) return;
    const std::vector<runtime::TritonOutcome> outcomes = kernel_.compiler_.compile(requests);
    for (size_t k = 0; k < outcomes.size(); ++k) load(*waiting[k], outcomes[k]);
  }

  Measured measure(const LaunchConfig& config, int32_t repeats) override {
    prepare({&config, 1});
    const Built& built = built_.at(to_string(config));
    Measured out{.spill_bytes = built.spill_bytes, .failure = built.failure};
    if (!out.launches() || out.spill_bytes > 0) return out;
    try {
      const double once = median(times(*built.kernel, 2));
      const auto wanted =
          static_cast<int32_t>(std::min<double>(repeats, kSecondsEach / std::max(once, 1e-7)));
      out.seconds = median(times(*built.kernel, std::max(wanted, kFewest)));
    } catch (const RuntimeError& error) {
      out.failure = error.what();
    }
    return out;
  }

 private:
  struct Built {
    std::unique_ptr<CudaKernel> kernel;
    int32_t spill_bytes = 0;
    std::string failure;
  };
  struct Saved {
    device::CudaAddress original;
    std::unique_ptr<DeviceMemory> copy;
  };

  void load(Built& built, const runtime::TritonOutcome& outcome) {
    if (!outcome.kernel) {
      built.failure = outcome.error;
      return;
    }
    built.spill_bytes = outcome.kernel->spill_bytes;
    try {
      built.kernel->load(built.kernel->variant_for(call_), outcome.kernel);
    } catch (const RuntimeError& error) {
      built.failure = error.what();
    }
  }

  /// Seconds of `count` launches, each from a cold cache.
  std::vector<double> times(const CudaKernel& kernel, int32_t count) {
    Events events(2 * static_cast<size_t>(count));
    for (int32_t k = 0; k < count; ++k) {
      restore();
      STAX_CUDA(cuMemsetD8Async, flush_.address(), 0, static_cast<size_t>(flush_.bytes()), stream_.handle);
      events.record(2 * static_cast<size_t>(k), stream_);
      kernel.run(call_);
      events.record(2 * static_cast<size_t>(k) + 1, stream_);
    }
    STAX_CUDA(cuStreamSynchronize, stream_.handle);
    std::vector<double> seconds;
    for (size_t k = 0; k < static_cast<size_t>(count); ++k)
      seconds.push_back(events.seconds(2 * k, 2 * k + 1));
    return seconds;
  }

  void copy(device::CudaAddress to, device::CudaAddress from, int64_t bytes) {
    STAX_CUDA(cuMemcpyDtoDAsync_v2, to, from, static_cast<size_t>(bytes), stream_.handle);
  }
  void restore() {
    for (const Saved& s : saved_) copy(s.original, s.copy->address(), s.copy->bytes());
  }

  const TunedKernel& kernel_;
  const KernelCall& call_;
  CudaStream stream_;
  DeviceMemory flush_;
  std::vector<Saved> saved_;
  std::map<std::string, Built> built_;
};

TunedKernel::TunedKernel(runtime::TritonCompiler& compiler, codegen::TileKernel kernel, std::string source,
                         std::vector<Expr> bytes, int32_t device, std::shared_ptr<runtime::CudaStatus> status,
                         std::string strategy)
    : compiler_(compiler),
      kernel_(std::move(kernel)),
      source_(std::move(source)),
      bytes_(std::move(bytes)),
      device_(device),
      status_(std::move(status)),
      strategy_(std::move(strategy)),
      start_(candidates(kernel_)) {
  if (strategy_ == "none") {
    start_.resize(1);
    strategy_ = "candidates";
  } else if (const auto recorded =
                 TuningRecords(compiler_.cache()).find(key(), ConfigSpace(kernel_), start_)) {
    start_ = {*recorded};
    strategy_ = "candidates";
  }
}

TunedKernel::~TunedKernel() = default;

TuningKey TunedKernel::key() const {
  return {source_, device::cuda_properties(device_).name, compiler_.triton_version(), strategy_};
}

std::unique_ptr<CudaKernel> TunedKernel::with(LaunchConfig config) const {
  return std::make_unique<CudaKernel>(compiler_, kernel_, std::move(config), source_, device_, status_);
}

std::vector<runtime::TritonRequest> TunedKernel::requests(runtime::CudaVariant variant) const {
  std::vector<runtime::TritonRequest> out;
  for (const LaunchConfig& config : start_) out.push_back(with(config)->request(variant));
  return out;
}

LaunchConfig TunedKernel::measured(const KernelCall& call) const {
  if (start_.size() == 1 && strategy_ == "candidates") return start_[0];
  OnDevice bench(*this, call);
  SearchOptions options;
  if (strategy_ == "coordinate_descent") {
    std::vector<double> seconds;
    for (int32_t k = 0; k < kNoiseSamples; ++k) {
      const Measured m = bench.measure(start_[0], options.repeats);
      if (m.cost() < kNever) seconds.push_back(m.seconds);
    }
    options.epsilon = threshold(noise_of(seconds));
  }
  return tune(kernel_, key(), bench, TuningRecords(compiler_.cache()), options);
}

const CudaKernel& TunedKernel::choose(const KernelCall& call) const {
  const std::lock_guard lock(mutex_);
  if (const CudaKernel* chosen = chosen_.load(std::memory_order_acquire)) return *chosen;
  kept_ = with(measured(call));
  chosen_.store(kept_.get(), std::memory_order_release);
  return *kept_;
}

void TunedKernel::run(const KernelCall& call) const {
  const CudaKernel* chosen = chosen_.load(std::memory_order_acquire);
  (chosen != nullptr ? *chosen : choose(call)).run(call);
}

}  // namespace stax::tuning

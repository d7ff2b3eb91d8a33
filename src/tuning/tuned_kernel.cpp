#include "tuning/tuned_kernel.h"

#include <algorithm>
#include <map>

#include "stax/error.h"
#include "support/check.h"
#include "support/log.h"
#include "support/progress.h"
#include "tuning/cold_timer.h"

namespace stax::tuning {

using codegen::KernelCall;
using codegen::LaunchConfig;
using device::CudaStream;
using runtime::CudaKernel;

namespace {

constexpr int32_t kNoiseSamples = 5;

}  // namespace

/// The kernel with the arguments of one call. What it changes is copied first, and put back before every
/// launch and at the end.
class TunedKernel::OnDevice final : public Bench {
 public:
  OnDevice(const TunedKernel& kernel, const KernelCall& call)
      : kernel_(kernel),
        call_(call),
        stream_(device::current_cuda_stream(kernel.device_)),
        timer_(kernel.device_) {
    call_.block = nullptr;  // these kernels go
    for (size_t k = 0; k < kernel.kernel_.pointers.size(); ++k) {
      if (kernel.kernel_.pointers[k].role != codegen::PointerRole::in_out) continue;
      const int64_t bytes = call.evaluate(kernel.bytes_[k]);
      if (bytes == 0) continue;
      const auto original = reinterpret_cast<device::CudaAddress>(call.buffers[k]);
      saved_.push_back({original, device::DeviceMemory(kernel.device_, bytes)});
      copy(saved_.back().copy.address(), original, bytes);
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
    Progress progress("compiling configurations of " + kernel_.kernel_.name, requests.size());
    const std::vector<runtime::TritonOutcome> outcomes =
        kernel_.compiler_.compile(requests, [&](size_t done) { progress.report(done); });
    for (size_t k = 0; k < outcomes.size(); ++k) load(*waiting[k], outcomes[k]);
  }

  Measured measure(const LaunchConfig& config, int32_t repeats) override {
    prepare({&config, 1});
    const Built& built = built_.at(to_string(config));
    Measured out{.spill_bytes = built.spill_bytes, .failure = built.failure};
    if (!out.launches() || out.spill_bytes > 0) return out;
    try {
      out.seconds = timer_.seconds(
          repeats, [&] { restore(); }, [&] { built.kernel->run(call_); });
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
    device::DeviceMemory copy;
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

  void copy(device::CudaAddress to, device::CudaAddress from, int64_t bytes) {
    STAX_CUDA(cuMemcpyDtoDAsync_v2, to, from, static_cast<size_t>(bytes), stream_.handle);
  }
  void restore() {
    for (const Saved& s : saved_) copy(s.original, s.copy.address(), s.copy.bytes());
  }

  const TunedKernel& kernel_;
  KernelCall call_;
  CudaStream stream_;
  ColdTimer timer_;
  std::vector<Saved> saved_;
  std::map<std::string, Built> built_;
};

TunedKernel::TunedKernel(runtime::TritonCompiler& compiler, codegen::TileKernel kernel,
                         codegen::TritonSources sources, std::vector<Expr> bytes, int32_t device,
                         std::shared_ptr<runtime::CudaStatus> status, std::string strategy)
    : compiler_(compiler),
      kernel_(std::move(kernel)),
      sources_(std::move(sources)),
      bytes_(std::move(bytes)),
      device_(device),
      status_(std::move(status)),
      strategy_(std::move(strategy)),
      classes_(kernel_),
      first_(start(0)),
      chosen_(classes_.count()) {}

TunedKernel::~TunedKernel() = default;

TunedKernel::Start TunedKernel::start(size_t size_class) const {
  Start out{classes_.hinted(kernel_, size_class),
            {sources_.plain, {}, {}, strategy_, classes_.words(size_class)},
            {}};
  out.configs = candidates(out.kernel);
  if (strategy_ == "none") out.configs.resize(1);
  out.settled = strategy_ == "none" || kernel_.batch_invariant ||
                (strategy_ == "candidates" && out.configs.size() == 1);
  if (out.settled) return out;
  out.key.gpu = device::cuda_properties(device_).name;
  out.key.triton = compiler_.triton_version();
  if (auto recorded =
          recorded_config(TuningRecords(compiler_.cache()), out.key, ConfigSpace(out.kernel), out.configs)) {
    out.configs = {std::move(*recorded)};
    out.settled = true;
  }
  return out;
}

std::unique_ptr<CudaKernel> TunedKernel::with(LaunchConfig config) const {
  return std::make_unique<CudaKernel>(compiler_, kernel_, std::move(config), sources_, device_, status_);
}

std::vector<runtime::TritonRequest> TunedKernel::requests(codegen::Alignment alignment,
                                                          std::span<const long> extents) const {
  const int64_t(&most)[3] = device::cuda_properties(device_).grid_blocks;
  std::vector<runtime::TritonRequest> out;
  for (const LaunchConfig& config : first_.configs) {
    const bool folded = codegen::TileGrid(kernel_, config).folds(extents, most);
    out.push_back(with(config)->request({alignment, folded}));
  }
  return out;
}

LaunchConfig TunedKernel::measured(const KernelCall& call, const Start& start) const {
  if (start.settled) return start.configs[0];
  std::optional<OnDevice> memory;
  try {
    memory.emplace(*this, call);
  } catch (const device::OutOfDeviceMemory& error) {
    log::print(log::Channel::autotune, "{} is not measured, {} is taken: {}", kernel_.name,
               to_string(start.configs[0]), error.what());
    return start.configs[0];
  }
  OnDevice& bench = *memory;
  SearchOptions options;
  if (start.key.strategy == "coordinate_descent") {
    std::vector<double> seconds;
    for (int32_t k = 0; k < kNoiseSamples; ++k) {
      const Measured m = bench.measure(start.configs[0], options.repeats);
      if (m.cost() < kNever) seconds.push_back(m.seconds);
    }
    options.epsilon = threshold(noise_of(seconds));
  }
  return tune(start.kernel, start.key, bench, TuningRecords(compiler_.cache()), options);
}

const CudaKernel& TunedKernel::choose(const KernelCall& call, size_t size_class) const {
  const std::lock_guard lock(mutex_);
  std::atomic<const CudaKernel*>& chosen = chosen_[size_class];
  if (const CudaKernel* found = chosen.load(std::memory_order_acquire)) return *found;
  LaunchConfig config = measured(call, size_class == 0 ? first_ : start(size_class));
  auto& kernel = kept_[to_string(config)];
  if (!kernel) kernel = with(std::move(config));
  chosen.store(kernel.get(), std::memory_order_release);
  return *kernel;
}

void TunedKernel::run(const KernelCall& call) const {
  for (size_t k = 0; k < kernel_.axes.size(); ++k)  // nothing could be measured
    if (call.extents[k] == 0 && codegen::facts_of(kernel_.axes[k].kind).grid_dimension >= 0) return;
  const size_t size_class = classes_.of(call.extents);
  const CudaKernel* chosen = chosen_[size_class].load(std::memory_order_acquire);
  (chosen != nullptr ? *chosen : choose(call, size_class)).run(call);
}

}  // namespace stax::tuning

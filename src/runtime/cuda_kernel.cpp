#include "runtime/cuda_kernel.h"

#include <algorithm>
#include <map>

#include "device/cuda_allocator.h"
#include "runtime/index_error.h"
#include "support/check.h"

namespace stax::runtime {

using codegen::KernelCall;
using codegen::KernelStatus;
using codegen::TileAxis;
using codegen::TileAxisKind;

namespace {

constexpr int64_t kEven = 16;
/// The driver takes 4 KiB of arguments.
constexpr size_t kMostArguments = 512;
constexpr int64_t kMostBlocks[] = {2147483647, 65535, 65535};  // of a grid: x, y, z
constexpr int32_t kStaticShared = 48 << 10;  // that a kernel may use without being asked for

std::string_view prefix_of(TileAxisKind kind) {
  constexpr std::string_view kPrefixes[] = {"z", "y", "x", "r0_"};
  return kPrefixes[static_cast<size_t>(kind)];
}

int64_t block_of(const TileAxis& axis, const codegen::LaunchConfig& config) {
  constexpr std::string_view kBlocks[] = {"ZBLOCK", "YBLOCK", "XBLOCK", "R0_BLOCK"};
  if (axis.block > 0) return axis.block;
  for (const auto& [name, size] : config.blocks)
    if (name == kBlocks[static_cast<size_t>(axis.kind)]) return size;
  STAX_ASSERT(false, "no block size for axis {}", prefix_of(axis.kind));
}

/// Functions of machine code that was loaded before, by device and code: equal kernels share them.
struct Modules {
  std::mutex mutex;
  std::map<std::pair<int32_t, std::string>, device::CudaFunction> functions;
};

device::CudaFunction load_function(int32_t device, const CompiledTriton& code, const std::string& kernel) {
  static auto* const modules = new Modules();
  const std::lock_guard lock(modules->mutex);
  const auto key = std::make_pair(device, code.entry + '\0' + code.cubin);
  if (const auto known = modules->functions.find(key); known != modules->functions.end())
    return known->second;
  device::use_cuda_device(device);
  const device::CudaProperties& properties = device::cuda_properties(device);
  STAX_RUNTIME_CHECK(
      code.shared_bytes <= properties.shared_bytes,
      "kernel {} needs {} bytes of shared memory for a block of threads, but {} has {}; use smaller "
      "blocks",
      kernel, code.shared_bytes, properties.name, properties.shared_bytes);
  device::CudaModule module = nullptr;
  STAX_CUDA(cuModuleLoadData, &module, code.cubin.data());
  device::CudaFunction function = nullptr;
  STAX_CUDA(cuModuleGetFunction, &function, module, code.entry.c_str());
  if (code.shared_bytes > kStaticShared)
    STAX_CUDA(cuFuncSetAttribute, function, device::kCudaFunctionSharedBytes, code.shared_bytes);
  modules->functions.emplace(key, function);
  return function;
}

}  // namespace

void throw_index_error(const KernelStatus& status, const std::vector<std::string>& origins,
                       const std::vector<CallStack>& places) {
  const auto node = static_cast<size_t>(status.node);
  throw_user_error_at(
      node < places.size() ? places[node] : CallStack(),
      fmt::format("[{}] index {} is out of range for a dimension of size {}; check the indices passed to it",
                  origins.at(node), status.value, status.size));
}

CudaStatus::CudaStatus(int32_t device, std::vector<std::string> origins, std::vector<CallStack> places)
    : device_(device), origins_(std::move(origins)), places_(std::move(places)) {
  const KernelStatus clear;
  memory_ = device::CudaAllocator::of(device).allocate(sizeof clear);
  device::copy_to_device(memory_, &clear, sizeof clear, device);
  STAX_CUDA(cuStreamSynchronize,
            device::current_cuda_stream(device).handle);  // other streams may be used later
  device::add_deferred_check(device_, this);
}

CudaStatus::~CudaStatus() {
  device::remove_deferred_check(device_, this);
  device::CudaAllocator::of(device_).deallocate(memory_, sizeof(KernelStatus));
}

void* CudaStatus::memory_for(const device::CudaStream& stream) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(streams_, stream.handle) == streams_.end()) streams_.push_back(stream.handle);
  return memory_;
}

void CudaStatus::check() {
  std::vector<device::CudaStreamHandle> streams;
  {
    const std::lock_guard lock(mutex_);
    streams.swap(streams_);
  }
  const auto address = reinterpret_cast<device::CudaAddress>(memory_);
  for (device::CudaStreamHandle stream : streams) {
    KernelStatus status;
    STAX_CUDA(cuMemcpyDtoHAsync_v2, &status, address, sizeof status, stream);
    STAX_CUDA(cuStreamSynchronize, stream);
    if (status.flag == 0) continue;
    STAX_CUDA(cuMemsetD8Async, address, 0, sizeof status, stream);
    throw_index_error(status, origins_, places_);
  }
}

CudaKernel::CudaKernel(TritonCompiler& compiler, const codegen::TileKernel& kernel,
                       codegen::LaunchConfig config, std::string source, int32_t device,
                       std::shared_ptr<CudaStatus> status)
    : compiler_(compiler),
      name_(kernel.name),
      source_(std::move(source)),
      config_(std::move(config)),
      wide_index_(kernel.wide_index),
      device_(device),
      capability_(device::cuda_properties(device).capability),
      status_(std::move(status)),
      scalars_(kernel.scalars.size()) {
  STAX_ASSERT(kernel.checks == (status_ != nullptr), "kernel {} checks indices without a status", name_);
  for (const codegen::TilePointer& p : kernel.pointers) pointers_.push_back(p.name);
  if (kernel.checks) pointers_.emplace_back("status");
  for (size_t k = 0; k < kernel.symbols.size(); ++k) sizes_.push_back(fmt::format("ks{}", k));
  grid_.fill({-1, 1});
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    const TileAxis& axis = kernel.axes[k];
    symbolic_.push_back(axis.numel.is_constant() ? 0 : 1);
    if (symbolic_.back()) sizes_.push_back(fmt::format("{}numel", prefix_of(axis.kind)));
    if (axis.kind == TileAxisKind::r0) continue;
    const size_t dimension = static_cast<size_t>(TileAxisKind::x) - static_cast<size_t>(axis.kind);
    grid_[dimension] = {static_cast<int32_t>(k), block_of(axis, config_)};
  }
}

TritonRequest CudaKernel::request(CudaVariant variant) const {
  TritonRequest request{source_, name_, capability_, config_, wide_index_, {}};
  if (variant != CudaVariant::general) request.divisible = pointers_;
  if (variant == CudaVariant::even)
    request.divisible.insert(request.divisible.end(), sizes_.begin(), sizes_.end());
  return request;
}

void CudaKernel::load(CudaVariant variant, std::shared_ptr<const CompiledTriton> compiled) const {
  auto loaded = std::make_unique<Loaded>();
  loaded->function = load_function(device_, *compiled, name_);
  loaded->code = std::move(compiled);
  const Loaded* none = nullptr;
  if (variants_[static_cast<size_t>(variant)].compare_exchange_strong(none, loaded.get(),
                                                                      std::memory_order_acq_rel))
    loaded.release();
}

CudaKernel::~CudaKernel() {
  for (auto& variant : variants_) delete variant.load();
}

const CudaKernel::Loaded& CudaKernel::loaded(CudaVariant variant) const {
  const auto& slot = variants_[static_cast<size_t>(variant)];
  const Loaded* found = slot.load(std::memory_order_acquire);
  if (found == nullptr) {
    const std::lock_guard lock(mutex_);
    found = slot.load(std::memory_order_acquire);
    if (found == nullptr) {
      load(variant, compiler_.compile(request(variant)));
      found = slot.load(std::memory_order_acquire);
    }
  }
  return *found;
}

CudaVariant CudaKernel::variant_for(const KernelCall& call) const {
  uintptr_t bits = 0;
  for (void* buffer : call.buffers) bits |= reinterpret_cast<uintptr_t>(buffer);
  if (bits % kEven != 0) return CudaVariant::general;
  if (sizes_.empty()) return CudaVariant::aligned;
  long rest = 0;
  for (long size : call.sizes) rest |= size;
  for (size_t k = 0; k < call.extents.size(); ++k)
    if (symbolic_[k]) rest |= call.extents[k];
  return rest % kEven == 0 ? CudaVariant::even : CudaVariant::aligned;
}

void CudaKernel::run(const KernelCall& call) const {
  uint32_t grid[3] = {1, 1, 1};
  int64_t instances = 1;
  for (size_t d = 0; d < grid_.size(); ++d) {
    const auto [axis, block] = grid_[d];
    if (axis < 0) continue;
    const int64_t blocks = (int64_t{call.extents[static_cast<size_t>(axis)]} + block - 1) / block;
    if (blocks == 0) return;
    STAX_RUNTIME_CHECK(
        blocks <= kMostBlocks[d],
        "kernel {} would run {} blocks along dimension {} of its grid, which has {} at most; split "
        "the tensors",
        name_, blocks, d, kMostBlocks[d]);
    grid[d] = static_cast<uint32_t>(blocks);
    instances *= blocks;
  }
  device::use_cuda_device(device_);
  const device::CudaStream stream = device::current_cuda_stream(device_);
  const Loaded& loaded = this->loaded(variant_for(call));
  const CompiledTriton& code = *loaded.code;

  // 8 bytes for each: of narrow sizes the driver takes the lower half.
  uint64_t values[kMostArguments];
  void* arguments[kMostArguments];
  size_t count = 0;
  const auto add = [&](uint64_t value) {
    STAX_ASSERT(count < kMostArguments, "kernel {} has more than {} arguments", name_, kMostArguments);
    values[count] = value;
    arguments[count] = &values[count];
    ++count;
  };
  for (void* buffer : call.buffers) add(reinterpret_cast<uint64_t>(buffer));
  if (status_) add(reinterpret_cast<uint64_t>(status_->memory_for(stream)));
  for (size_t k = 0; k < scalars_; ++k) add(call.scalars[k].bits);
  for (long size : call.sizes) add(static_cast<uint64_t>(size));
  for (long extent : call.extents) add(static_cast<uint64_t>(extent));
  STAX_ASSERT(count == code.arguments.size(), "kernel {} was compiled with {} arguments, its launch has {}",
              name_, code.arguments.size(), count);
  device::CudaAllocator& allocator = device::CudaAllocator::of(device_);
  struct Scratch {
    device::CudaAllocator& allocator;
    void* data;
    ~Scratch() { allocator.deallocate(data, 0); }
  };
  const auto scratch = [&](int64_t bytes) {
    return Scratch{allocator, bytes > 0 ? allocator.allocate(bytes * instances, stream) : nullptr};
  };
  const Scratch global = scratch(code.global_scratch_bytes), profile = scratch(code.profile_scratch_bytes);
  if (code.scratch_pointers > 0) add(reinterpret_cast<uint64_t>(global.data));
  if (code.scratch_pointers > 1) add(reinterpret_cast<uint64_t>(profile.data));
  STAX_CUDA(cuLaunchKernel, loaded.function, grid[0], grid[1], grid[2],
            static_cast<uint32_t>(32 * code.warps), 1, 1, static_cast<uint32_t>(code.shared_bytes),
            stream.handle, arguments, nullptr);
}

}  // namespace stax::runtime

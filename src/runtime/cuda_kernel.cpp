#include "runtime/cuda_kernel.h"

#include <algorithm>
#include <map>

#include "device/cuda_allocator.h"
#include "loops/range_error.h"
#include "runtime/index_error.h"
#include "stax/error.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::runtime {

using codegen::Alignment;
using codegen::KernelCall;
using codegen::KernelStatus;
using codegen::LaunchVariant;
using codegen::TileAxis;

namespace {

constexpr int64_t kEven = 16;
/// The driver takes 4 KiB of arguments.
constexpr size_t kMostArguments = 512;
constexpr int32_t kStaticShared = 48 << 10;  // that a kernel may use without being asked for
constexpr size_t kScratchPointers = 2;       // at most, behind the other arguments

/// The most special alignment where pointers are multiples of 16.
Alignment alignment_of_sizes(const KernelCall& call, const std::vector<char>& symbolic, bool any) {
  if (!any) return Alignment::aligned;
  long rest = 0;
  for (long size : call.sizes) rest |= size;
  for (size_t k = 0; k < call.extents.size(); ++k)
    if (symbolic[k]) rest |= call.extents[k];
  return rest % kEven == 0 ? Alignment::even : Alignment::aligned;
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
  STAX_RUNTIME_CHECK(code.shared_bytes <= properties.shared_bytes,
                     "kernel {} needs {} of shared memory for a block of threads, but {} has {}; use "
                     "smaller blocks",
                     kernel, counted(code.shared_bytes, "byte"), properties.name, properties.shared_bytes);
  device::CudaModule module = nullptr;
  device::CudaFunction function = nullptr;
  try {
    STAX_CUDA(cuModuleLoadData, &module, code.cubin.data());
    STAX_CUDA(cuModuleGetFunction, &function, module, code.entry.c_str());
    if (code.shared_bytes > kStaticShared)
      STAX_CUDA(cuFuncSetAttribute, function, device::kCudaFunctionSharedBytes, code.shared_bytes);
  } catch (const RuntimeError& error) {
    if (module != nullptr) device::cuda_driver().cuModuleUnload(module);
    throw_runtime_error(fmt::format("kernel {}, compiled for sm_{}, cannot be loaded on {}: {}", kernel,
                                    properties.capability, properties.name, error.what()));
  }
  modules->functions.emplace(key, function);
  return function;
}

}  // namespace

void throw_index_error(const KernelStatus& status, const std::vector<std::string>& origins,
                       const std::vector<CallStack>& places) {
  const auto node = static_cast<size_t>(status.node);
  throw_user_error_at(node < places.size() ? places[node] : CallStack(),
                      loops::range_error(origins.at(node), status.value, status.size));
}

/// Outlives the plan for as long as launches were not waited for.
class CudaStatus::Pending final : public device::DeferredCheck {
 public:
  Pending(int32_t device, std::vector<std::string> origins, std::vector<CallStack> places)
      : device_(device), origins_(std::move(origins)), places_(std::move(places)) {}

  void* memory_for(const device::CudaStream& stream) {
    const std::lock_guard lock(mutex_);
    auto slot = std::ranges::find(slots_, stream.handle, &Slot::stream);
    if (slot == slots_.end()) {
      slots_.push_back({stream.handle, device::DeviceMemory(sizeof(KernelStatus), stream)});
      slot = slots_.end() - 1;
      clear(*slot);
    }
    slot->launched = true;
    return slot->memory.data();
  }

  void check(const device::CudaStream* stream) override {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) {
      if (!slot.launched || (stream != nullptr && slot.stream != stream->handle)) continue;
      KernelStatus status;
      STAX_CUDA(cuMemcpyDtoHAsync_v2, &status, slot.memory.address(), sizeof status, slot.stream);
      STAX_CUDA(cuStreamSynchronize, slot.stream);
      slot.launched = false;
      if (status.flag == 0) continue;
      clear(slot);
      throw_index_error(status, origins_, places_);
    }
  }

  bool finished() const override {
    const std::lock_guard lock(mutex_);
    return abandoned_ && std::ranges::none_of(slots_, &Slot::launched);
  }
  /// The plan is gone.
  void abandon() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }

 private:
  struct Slot {
    device::CudaStreamHandle stream = nullptr;
    device::DeviceMemory memory;
    bool launched = false;  // since it was looked at
  };
  /// A KernelStatus of zeros says that nothing was found.
  static void clear(const Slot& slot) {
    STAX_CUDA(cuMemsetD8Async, slot.memory.address(), 0, sizeof(KernelStatus), slot.stream);
  }

  int32_t device_;
  std::vector<std::string> origins_;
  std::vector<CallStack> places_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  bool abandoned_ = false;
};

CudaStatus::CudaStatus(int32_t device, std::vector<std::string> origins, std::vector<CallStack> places)
    : pending_(std::make_shared<Pending>(device, std::move(origins), std::move(places))) {
  device::add_deferred_check(device, pending_);
}

CudaStatus::~CudaStatus() {
  pending_->abandon();
}

void* CudaStatus::memory_for(const device::CudaStream& stream) {
  return pending_->memory_for(stream);
}

CudaKernel::CudaKernel(TritonCompiler& compiler, const codegen::TileKernel& kernel,
                       codegen::LaunchConfig config, codegen::TritonSources sources, int32_t device,
                       std::shared_ptr<CudaStatus> status)
    : compiler_(compiler),
      kernel_(kernel),
      sources_(std::move(sources)),
      config_(std::move(config)),
      grid_(kernel, config_),
      device_(device),
      capability_(device::cuda_properties(device).capability),
      status_(std::move(status)) {
  STAX_ASSERT(kernel.checks == (status_ != nullptr), "kernel {} checks indices without a status",
              kernel.name);
  for (const codegen::TilePointer& p : kernel.pointers) pointers_.push_back(p.name);
  if (kernel.checks) pointers_.emplace_back("status");
  for (size_t k = 0; k < kernel.symbols.size(); ++k) sizes_.push_back(fmt::format("ks{}", k));
  for (const TileAxis& axis : kernel.axes) {
    symbolic_.push_back(axis.numel.is_constant() ? 0 : 1);
    if (symbolic_.back()) sizes_.push_back(fmt::format("{}numel", codegen::facts_of(axis.kind).prefix));
  }
}

TritonRequest CudaKernel::request(LaunchVariant variant) const {
  TritonRequest request{sources_.of(variant), kernel_.name, capability_, config_, kernel_.wide_index, {}};
  // How wide memory is accessed decides which thread adds up what.
  if (kernel_.batch_invariant) return request;
  if (variant.alignment != Alignment::general) request.divisible = pointers_;
  if (variant.alignment == Alignment::even)
    request.divisible.insert(request.divisible.end(), sizes_.begin(), sizes_.end());
  return request;
}

void CudaKernel::load(LaunchVariant variant, std::shared_ptr<const CompiledTriton> compiled) const {
  auto loaded = std::make_unique<Loaded>();
  loaded->function = load_function(device_, *compiled, kernel_.name);
  loaded->code = std::move(compiled);
  const Loaded* none = nullptr;
  if (variants_[variant.number()].compare_exchange_strong(none, loaded.get(), std::memory_order_acq_rel))
    loaded.release();
}

CudaKernel::~CudaKernel() {
  for (auto& variant : variants_) delete variant.load();
}

const CudaKernel::Loaded& CudaKernel::loaded(LaunchVariant variant) const {
  const auto& slot = variants_[variant.number()];
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

LaunchVariant CudaKernel::variant_for(const KernelCall& call) const {
  uintptr_t bits = 0;
  for (void* buffer : call.buffers) bits |= reinterpret_cast<uintptr_t>(buffer);
  const Alignment alignment =
      bits % kEven != 0 ? Alignment::general : alignment_of_sizes(call, symbolic_, !sizes_.empty());
  return {alignment, grid_.folds(call.extents, device::cuda_properties(device_).grid_blocks)};
}

/// Pointers, the status, numbers, sizes and extents, and scratch memory: 8 bytes for each, since of narrow
/// sizes the driver takes the lower half.
class CudaKernel::Block final : public codegen::LaunchBlock {
 public:
  explicit Block(const CudaKernel& kernel) : owner(kernel) {}

  /// Whether it was laid out for these sizes.
  bool serves(const KernelCall& call) const {
    return !values.empty() && std::ranges::equal(call.sizes, sizes) &&
           std::ranges::equal(call.extents, extents);
  }

  const CudaKernel& owner;
  std::vector<long> sizes, extents;
  uint32_t grid[3] = {1, 1, 1};
  int64_t instances = 1;
  LaunchVariant best, variant;
  const Loaded* loaded = nullptr;  // of `variant`
  size_t count = 0;                // arguments before the scratch memory
  std::vector<uint64_t> values;
  std::vector<void*> arguments;  // to `values`
};

void CudaKernel::lay_out_grid(const KernelCall& call, Block& block) const {
  const std::array<int64_t, 3> blocks = grid_.blocks(call.extents);
  const int64_t(&most)[3] = device::cuda_properties(device_).grid_blocks;
  block.best.folded = grid_.folds(call.extents, most);
  block.instances = 1;
  for (const int64_t along : blocks) {
    const bool overflows = __builtin_mul_overflow(block.instances, along, &block.instances);
    STAX_RUNTIME_CHECK(!overflows, "kernel {} would run more blocks than 64 bits count; split the tensors",
                       kernel_.name);
  }
  const int64_t along_first = block.best.folded ? block.instances : blocks[0];
  STAX_RUNTIME_CHECK(along_first <= most[0],
                     "kernel {} would run {} ({} x {} x {}), and a grid has {} at most; split the "
                     "tensors",
                     kernel_.name, counted(block.instances, "block"), blocks[0], blocks[1], blocks[2],
                     most[0]);
  block.grid[0] = static_cast<uint32_t>(along_first);
  for (size_t d = 1; d < blocks.size(); ++d)
    block.grid[d] = block.best.folded ? 1 : static_cast<uint32_t>(blocks[d]);
}

void CudaKernel::lay_out(const KernelCall& call, Block& block) const {
  block.sizes.assign(call.sizes.begin(), call.sizes.end());
  block.extents.assign(call.extents.begin(), call.extents.end());
  block.values.clear();  // until all of it is there
  block.arguments.clear();
  block.loaded = nullptr;
  lay_out_grid(call, block);
  block.best.alignment = alignment_of_sizes(call, symbolic_, !sizes_.empty());
  block.count = pointers_.size() + kernel_.scalars.size() + call.sizes.size() + call.extents.size();
  STAX_ASSERT(block.count + kScratchPointers <= kMostArguments, "kernel {} has {} arguments, more than {}",
              kernel_.name, block.count, kMostArguments);
  block.values.assign(block.count + kScratchPointers, 0);
  for (uint64_t& value : block.values) block.arguments.push_back(&value);
  uint64_t* at = &block.values[pointers_.size() + kernel_.scalars.size()];
  for (long size : call.sizes) *at++ = static_cast<uint64_t>(size);
  for (long extent : call.extents) *at++ = static_cast<uint64_t>(extent);
}

void CudaKernel::launch(const KernelCall& call, Block& block) const {
  device::use_cuda_device(device_);
  const device::CudaStream stream = device::current_cuda_stream(device_);
  uint64_t* at = block.values.data();
  uint64_t bits = 0;
  for (void* buffer : call.buffers) bits |= * at++ = reinterpret_cast<uint64_t>(buffer);
  if (status_) *at++ = reinterpret_cast<uint64_t>(status_->memory_for(stream));
  for (size_t k = 0; k < kernel_.scalars.size(); ++k) *at++ = call.scalars[k].bits;
  LaunchVariant variant = block.best;
  if (bits % kEven != 0) variant.alignment = Alignment::general;
  if (block.loaded == nullptr || variant != block.variant) {
    block.loaded = &loaded(variant);
    block.variant = variant;
    STAX_ASSERT(block.count == block.loaded->code->arguments.size(),
                "kernel {} was compiled with {} arguments, its launch has {}", kernel_.name,
                block.loaded->code->arguments.size(), block.count);
  }
  const CompiledTriton& code = *block.loaded->code;
  device::DeviceMemory global, profile;
  const auto allocate = [&](device::DeviceMemory& scratch, int64_t bytes, size_t number) {
    if (bytes > 0) scratch = device::DeviceMemory(bytes * block.instances, stream);
    block.values[block.count + number] = scratch.address();
  };
  allocate(global, code.global_scratch_bytes, 0);
  allocate(profile, code.profile_scratch_bytes, 1);
  STAX_CUDA(cuLaunchKernel, block.loaded->function, block.grid[0], block.grid[1], block.grid[2],
            static_cast<uint32_t>(32 * code.warps), 1, 1, static_cast<uint32_t>(code.shared_bytes),
            stream.handle, block.arguments.data(), nullptr);
}

void CudaKernel::run(const KernelCall& call) const {
  std::unique_ptr<codegen::LaunchBlock> own;
  std::unique_ptr<codegen::LaunchBlock>& kept = call.block != nullptr ? *call.block : own;
  if (!kept || &static_cast<Block&>(*kept).owner != this) kept = std::make_unique<Block>(*this);
  auto& block = static_cast<Block&>(*kept);
  if (!block.serves(call)) lay_out(call, block);
  if (block.instances > 0) launch(call, block);
}

}  // namespace stax::runtime

#include "device/cuda_allocator.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "support/check.h"
#include "support/plural.h"

namespace stax::device {
namespace {

constexpr int64_t kSmallest = 512, kLarge = int64_t{64} << 20, kLargeStep = int64_t{2} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 48;
constexpr size_t kNamed = 5;  // blocks that an error lists

/// Size classes are the multiples of 2^(k-2) in (2^k, 2^(k+1)]; above 64 MiB, of 2 MiB.
int64_t rounded(int64_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  int64_t step = kLargeStep;
  if (bytes <= kLarge)
    step = std::max(kSmallest, int64_t{1} << (std::bit_width(static_cast<uint64_t>(bytes - 1)) - 3));
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct CudaAllocator::State {
  struct Block {
    int64_t bytes;
    CudaStreamHandle stream;
  };
  mutable std::mutex mutex;
  Stats stats;
  std::unordered_map<void*, Block> used;
  std::unordered_map<void*, Block>::node_type spare;  // so that most calls need no memory of the host
  std::map<std::pair<CudaStreamHandle, int64_t>, std::vector<void*>> kept;

  /// A kept block for the stream, at most an eighth larger than asked for.
  void* take(CudaStreamHandle stream, int64_t bytes) {
    for (auto at = kept.lower_bound({stream, bytes}); at != kept.end(); ++at) {
      if (at->first.first != stream || at->first.second > bytes + bytes / 8) return nullptr;
      if (at->second.empty()) continue;
      void* block = at->second.back();
      hand_out(block, {at->first.second, stream});
      at->second.pop_back();
      return block;
    }
    return nullptr;
  }
  void hand_out(void* block, const Block& what) {
    if (spare.empty()) {
      used.emplace(block, what);
    } else {
      spare.key() = block;
      spare.mapped() = what;
      used.insert(std::move(spare));
    }
    stats.in_use_bytes += what.bytes;
  }
  /// What was known of a block that comes back.
  std::optional<Block> take_back(void* block) {
    const auto at = used.find(block);
    if (at == used.end()) return std::nullopt;
    const Block what = at->second;
    spare = used.extract(at);
    stats.in_use_bytes -= what.bytes;
    return what;
  }
  /// The driver waits for the work that uses a block before it takes the block back.
  void release_kept() {
    for (auto& [key, blocks] : kept) {
      for (void* block : blocks) {
        cuda_driver().cuMemFree_v2(reinterpret_cast<CudaAddress>(block));
        stats.reserved_bytes -= key.second;
      }
    }
    kept.clear();
  }
};

CudaAllocator& CudaAllocator::of(int32_t device) {
  cuda_properties(device);
  // Never destroyed: tensors in static objects may outlive it.
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<CudaAllocator>>();
  const std::lock_guard lock(mutex);
  while (static_cast<int32_t>(all->size()) <= device)
    all->push_back(std::make_unique<CudaAllocator>(static_cast<int32_t>(all->size())));
  return *(*all)[static_cast<size_t>(device)];
}

CudaAllocator::CudaAllocator(int32_t device) : device_(device), state_(std::make_unique<State>()) {}

CudaAllocator::~CudaAllocator() {
  state_->release_kept();
}

void* CudaAllocator::allocate(int64_t bytes) {
  return allocate(bytes, current_cuda_stream(device_));
}

void* CudaAllocator::allocate(int64_t bytes, const CudaStream& stream) {
  STAX_RUNTIME_CHECK(bytes >= 0 && bytes <= kMostBytes,
                     "cannot allocate a buffer of {} on cuda:{}: no machine has that much memory; check "
                     "the sizes it was computed from",
                     counted(bytes, "byte"), device_);
  const int64_t size = rounded(bytes);
  const std::lock_guard lock(state_->mutex);
  if (void* block = state_->take(stream.handle, size)) return block;
  use_cuda_device(device_);
  CudaAddress address = 0;
  CudaResult result = cuda_driver().cuMemAlloc_v2(&address, static_cast<size_t>(size));
  if (result == kCudaOutOfMemory) {
    state_->release_kept();
    result = cuda_driver().cuMemAlloc_v2(&address, static_cast<size_t>(size));
  }
  if (result == kCudaOutOfMemory) throw OutOfDeviceMemory(shortage(bytes));
  check_cuda(result, "cuMemAlloc_v2");
  ++state_->stats.driver_requests;
  state_->stats.reserved_bytes += size;
  void* block = reinterpret_cast<void*>(address);
  state_->hand_out(block, {size, stream.handle});
  return block;
}

/// Under the mutex.
std::string CudaAllocator::shortage(int64_t bytes) const {
  size_t free = 0, total = 0;
  cuda_driver().cuMemGetInfo_v2(&free, &total);
  std::vector<int64_t> sizes;
  for (const auto& [block, what] : state_->used) sizes.push_back(what.bytes);
  std::ranges::sort(sizes, std::greater());
  std::string largest;
  for (size_t k = 0; k < std::min(kNamed, sizes.size()); ++k)
    largest += fmt::format("{}{}", k > 0 ? ", " : "", sizes[k]);
  return fmt::format(
      "out of memory on cuda:{}: cannot allocate {} bytes. {} bytes in {} blocks are in use by this process, "
      "{} "
      "bytes are reserved; the largest blocks have {} bytes; the device has {} bytes, of which {} are free. "
      "Use "
      "smaller inputs, or free tensors that are no longer needed",
      device_, bytes, state_->stats.in_use_bytes, sizes.size(), state_->stats.reserved_bytes,
      largest.empty() ? "0" : largest, total, free);
}

void CudaAllocator::deallocate(void* block, int64_t) noexcept {
  if (block == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  const auto what = state_->take_back(block);
  if (!what) return;
  try {
    state_->kept[{what->stream, what->bytes}].push_back(block);
  } catch (const std::bad_alloc&) {
    cuda_driver().cuMemFree_v2(reinterpret_cast<CudaAddress>(block));
    state_->stats.reserved_bytes -= what->bytes;
  }
}

void CudaAllocator::empty_cache() {
  use_cuda_device(device_);
  const std::lock_guard lock(state_->mutex);
  state_->release_kept();
}

CudaAllocator::Stats CudaAllocator::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

DeviceMemory::DeviceMemory(int32_t device, int64_t bytes)
    : allocator_(&CudaAllocator::of(device)), bytes_(bytes), data_(allocator_->allocate(bytes)) {}

DeviceMemory::DeviceMemory(int64_t bytes, const CudaStream& stream)
    : allocator_(&CudaAllocator::of(stream.device)),
      bytes_(bytes),
      data_(allocator_->allocate(bytes, stream)) {}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) allocator_->deallocate(data_, bytes_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept {
  *this = std::move(other);
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

}  // namespace stax::device

#include "device/cpu_allocator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "support/check.h"
#include "support/plural.h"

namespace stax::device {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kMaxBytes = int64_t{1} << 48;  // beyond any address space
constexpr int kClasses = 4 * 49;

/// Size classes are the multiples of 2^(k-2) in (2^k, 2^(k+1)]: a block wastes less than a quarter.
int class_of(int64_t bytes) {
  const uint64_t size = static_cast<uint64_t>(bytes <= kAlignment ? kAlignment : bytes) - 1;
  const int exponent = std::bit_width(size) - 1;
  return 4 * exponent + static_cast<int>((size >> (exponent - 2)) & 3);
}
int64_t bytes_of(int size_class) {
  const int exponent = size_class / 4, step = size_class % 4;
  const int64_t bytes = (int64_t{5} + step) << (exponent - 2);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void* system_allocate(int64_t bytes) noexcept {
  const bool large = bytes >= 2 * kHugePage;
  void* block = nullptr;
  if (posix_memalign(&block, static_cast<size_t>(large ? kHugePage : kAlignment),
                     static_cast<size_t>(bytes)) != 0)
    return nullptr;
  // Advice only: fewer page faults and translation misses where the system has huge pages.
  if (large) madvise(block, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return block;
}

}  // namespace

struct CpuAllocator::State {
  struct SizeClass {
    std::vector<void*> blocks;
    int64_t last_use = 0;
  };
  std::mutex mutex;
  int64_t cache_limit = 0;
  int64_t clock = 0;  // counts deallocations; orders the classes by their last use
  Stats stats;
  std::array<SizeClass, kClasses> classes;

  void release(int size_class) noexcept {
    std::vector<void*>& blocks = classes[size_class].blocks;
    if (blocks.empty()) return;
    for (void* block : blocks) std::free(block);
    stats.cached_bytes -= bytes_of(size_class) * static_cast<int64_t>(blocks.size());
    blocks.clear();
  }

  /// Releases blocks of the classes used longest ago until `bytes` more fit under the limit.
  void make_room(int64_t bytes) noexcept {
    while (stats.cached_bytes + bytes > cache_limit) {
      int oldest = -1;
      for (int i = 0; i < kClasses; ++i)
        if (!classes[i].blocks.empty() && (oldest < 0 || classes[i].last_use < classes[oldest].last_use))
          oldest = i;
      if (oldest < 0) return;
      std::free(classes[oldest].blocks.back());
      classes[oldest].blocks.pop_back();
      stats.cached_bytes -= bytes_of(oldest);
    }
  }
};

CpuAllocator::CpuAllocator(int64_t cache_limit) : state_(std::make_unique<State>()) {
  state_->cache_limit = cache_limit;
}

CpuAllocator::~CpuAllocator() {
  empty_cache();
}

CpuAllocator& CpuAllocator::global() {
  // Never destroyed: tensors in static objects may outlive it.
  static CpuAllocator* const allocator = [] {
#if defined(__SANITIZE_ADDRESS__)
    const int64_t limit = 0;
#else
    const int64_t limit = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 4;
#endif
    return new CpuAllocator(limit);
  }();
  // A child process must not inherit a lock that a thread which it does not have holds.
  static const int registered =
      pthread_atfork([] { allocator->state_->mutex.lock(); }, [] { allocator->state_->mutex.unlock(); },
                     [] { allocator->state_->mutex.unlock(); });
  static_cast<void>(registered);
  return *allocator;
}

void* CpuAllocator::allocate(int64_t bytes) {
  STAX_RUNTIME_CHECK(bytes >= 0 && bytes <= kMaxBytes,
                     "cannot allocate a buffer of {}: no machine has that much memory; check the sizes "
                     "it was computed from",
                     counted(bytes, "byte"));
  const int size_class = class_of(bytes);
  const int64_t rounded = bytes_of(size_class);
  {
    std::lock_guard lock(state_->mutex);
    state_->stats.in_use_bytes += rounded;
    if (auto& blocks = state_->classes[size_class].blocks; !blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      state_->stats.cached_bytes -= rounded;
      return block;
    }
    ++state_->stats.system_requests;
  }
  void* block = system_allocate(rounded);
  if (block == nullptr) {
    empty_cache();
    block = system_allocate(rounded);
  }
  if (block == nullptr) {
    std::lock_guard lock(state_->mutex);
    state_->stats.in_use_bytes -= rounded;
    throw_runtime_error(
        fmt::format("out of memory: cannot allocate {} ({} of tensors are in use); use smaller inputs "
                    "or free tensors that are no longer needed",
                    counted(bytes, "byte"), counted(state_->stats.in_use_bytes, "byte")));
  }
  return block;
}

void CpuAllocator::deallocate(void* block, int64_t bytes) noexcept {
  if (block == nullptr) return;
  const int size_class = class_of(bytes);
  const int64_t rounded = bytes_of(size_class);
  std::lock_guard lock(state_->mutex);
  state_->stats.in_use_bytes -= rounded;
  State::SizeClass& entry = state_->classes[size_class];
  entry.last_use = ++state_->clock;
  if (rounded > state_->cache_limit) {
    std::free(block);
    return;
  }
  state_->make_room(rounded);
  try {
    entry.blocks.push_back(block);
    state_->stats.cached_bytes += rounded;
  } catch (const std::bad_alloc&) {
    std::free(block);
  }
}

void CpuAllocator::empty_cache() noexcept {
  std::lock_guard lock(state_->mutex);
  for (int i = 0; i < kClasses; ++i) state_->release(i);
}

CpuAllocator::Stats CpuAllocator::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

}  // namespace stax::device

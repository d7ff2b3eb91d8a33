// Memory of CPU tensors. Freed blocks are kept and handed out again, so that a large output does not fault in
// its pages on every call.
#pragma once

#include <cstdint>
#include <memory>

#include "device/allocator.h"

namespace stax::device {

/// Thread-safe. Blocks are aligned to 64 bytes and not initialised.
class CpuAllocator final : public Allocator {
 public:
  struct Stats {
    int64_t in_use_bytes = 0;     ///< handed out, rounded up to their size classes
    int64_t cached_bytes = 0;     ///< kept for reuse
    int64_t system_requests = 0;  ///< blocks got from the system so far
  };

  /// The allocator of the process; keeps at most a quarter of the machine's memory. In a build with the
  /// address sanitizer it keeps nothing, so that use after free is seen.
  static CpuAllocator& global();

  /// Keeps at most `cache_limit` bytes.
  explicit CpuAllocator(int64_t cache_limit);
  ~CpuAllocator() override;

  /// A block of at least `bytes` (>= 0; 0 gives a valid, unique block). Throws RuntimeError naming the size
  /// when there is not that much memory, or when `bytes` is negative, as a size that overflowed is.
  void* allocate(int64_t bytes) override;
  /// Takes back a block that allocate(bytes) gave; null is ignored.
  void deallocate(void* block, int64_t bytes) noexcept override;
  /// Returns all kept blocks to the system.
  void empty_cache() noexcept;
  Stats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stax::device

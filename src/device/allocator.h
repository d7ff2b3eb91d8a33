// Where memory comes from.
#pragma once

#include <cstdint>

namespace stax::device {

/// Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// A block of at least `bytes` (>= 0). RuntimeError where there is not that much memory.
  virtual void* allocate(int64_t bytes) = 0;
  /// Takes back a block that allocate(bytes) gave; null is ignored.
  virtual void deallocate(void* block, int64_t bytes) noexcept = 0;
};

}  // namespace stax::device

// Memory of a GPU between guard zones, so that a write outside of a buffer is noticed.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/allocator.h"

namespace stax {

/// Blocks of a device, each between two zones of a pattern. What was written outside a block is noted when
/// the block is given back.
class GuardedMemory final : public device::Allocator {
 public:
  explicit GuardedMemory(int32_t device) : device_(device) {}
  ~GuardedMemory() override;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* allocate(int64_t bytes) override;
  void deallocate(void* block, int64_t bytes) noexcept override;
  /// Blocks whose zones were written, in words; empty where none was. Blocks that are still out are looked
  /// at, too.
  std::string damage();

 private:
  static constexpr int64_t kZone = 4096;
  void look(void* block, int64_t bytes);

  int32_t device_;
  std::mutex mutex_;
  std::map<void*, int64_t> out_;  // blocks that were not given back, and their bytes
  std::string damage_;
};

}  // namespace stax

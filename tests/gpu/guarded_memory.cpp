#include "gpu/guarded_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "device/cuda_allocator.h"
#include "device/cuda_device.h"

namespace stax {
namespace {

constexpr std::byte kPattern{0xa5};

std::byte* at(void* block) {
  return static_cast<std::byte*>(block);
}

}  // namespace

GuardedMemory::~GuardedMemory() {
  auto& inner = device::CudaAllocator::of(device_);
  for (const auto& [block, bytes] : out_) inner.deallocate(at(block) - kZone, bytes + 2 * kZone);
}

void* GuardedMemory::allocate(int64_t bytes) {
  std::byte* start = at(device::CudaAllocator::of(device_).allocate(bytes + 2 * kZone));
  const std::vector<std::byte> pattern(static_cast<size_t>(bytes + 2 * kZone), kPattern);
  device::copy_to_device(start, pattern.data(), static_cast<int64_t>(pattern.size()), device_);
  const std::lock_guard lock(mutex_);
  out_[start + kZone] = bytes;
  return start + kZone;
}

void GuardedMemory::look(void* block, int64_t bytes) {
  std::vector<std::byte> zone(kZone);
  for (const bool behind : {false, true}) {
    device::copy_to_host(zone.data(), behind ? at(block) + bytes : at(block) - kZone, kZone, device_);
    const auto wrong = std::ranges::find_if(zone, [](std::byte b) { return b != kPattern; });
    if (wrong == zone.end()) continue;
    damage_ += fmt::format("a block of {} bytes was written {}, first at byte {}\n", bytes,
                           behind ? "behind its end" : "before its start",
                           behind ? wrong - zone.begin() : wrong - zone.end());
  }
}

void GuardedMemory::deallocate(void* block, int64_t bytes) noexcept {
  if (block == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto known = out_.find(block);
  if (known == out_.end() || known->second != bytes) {
    damage_ += fmt::format("a block of {} bytes was given back that was never handed out\n", bytes);
    return;
  }
  try {
    look(block, bytes);
  } catch (const std::exception& error) {
    damage_ += fmt::format("the zones of a block of {} bytes cannot be read: {}\n", bytes, error.what());
  }
  device::CudaAllocator::of(device_).deallocate(at(block) - kZone, bytes + 2 * kZone);
  out_.erase(known);
}

std::string GuardedMemory::damage() {
  const std::lock_guard lock(mutex_);
  for (const auto& [block, bytes] : out_) look(block, bytes);
  return damage_;
}

}  // namespace stax

// A block of memory that tensors share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "stax/device.h"

namespace stax {

class Storage {
 public:
  /// Allocates `bytes` from the device's allocator, aligned to 64. RuntimeError when there is no memory.
  static Storage* allocate(int64_t bytes, Device device);
  /// Takes over a block of `bytes` that the device's allocator gave.
  static Storage* own(void* data, int64_t bytes, Device device);
  /// Memory of somebody else; `release` is called when the last tensor lets go.
  static Storage* adopt(void* data, int64_t bytes, Device device, std::function<void()> release);

  /// Memory that never changes: weights of a model. Tracing makes constants of the compiled program of
  /// tensors over it.
  static Storage* constant(std::shared_ptr<const std::vector<std::byte>> bytes);

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// False for memory that was handed over as read-only.
  bool writable() const { return writable_; }
  void set_read_only() { writable_ = false; }
  /// The bytes of constant(), null for other memory.
  const std::shared_ptr<const std::vector<std::byte>>& constant_bytes() const { return constant_; }

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();

 private:
  Storage() = default;
  ~Storage();

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  bool owned_ = false;
  bool writable_ = true;
  std::atomic<int32_t> references_{0};
  std::function<void()> release_;
  std::shared_ptr<const std::vector<std::byte>> constant_;
};

class StoragePtr {
 public:
  StoragePtr() = default;
  explicit StoragePtr(Storage* storage) : storage_(storage) {
    if (storage_ != nullptr) storage_->retain();
  }
  StoragePtr(const StoragePtr& other) : StoragePtr(other.storage_) {}
  StoragePtr(StoragePtr&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StoragePtr& operator=(StoragePtr other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StoragePtr() {
    if (storage_ != nullptr) storage_->release();
  }
  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }

 private:
  Storage* storage_ = nullptr;
};

}  // namespace stax

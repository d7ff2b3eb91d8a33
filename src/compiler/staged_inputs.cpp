#include "compiler/staged_inputs.h"

#include <cstring>

#include "device/cuda_device.h"

namespace stax::compiler {
namespace {

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, int64_t bytes) {
  if (to_device == kCPU && from_device == kCPU) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  } else if (from_device == kCPU) {
    device::copy_to_device(to, from, bytes, to_device.index);
  } else if (to_device == kCPU) {
    device::copy_to_host(to, from, bytes, from_device.index);
  } else {
    device::copy_on_device(to, to_device.index, from, from_device.index, bytes);
  }
}

}  // namespace

void* StagedInputs::place(const StoragePtr& storage, void* data) {
  if (storage->device() == device_) return data;
  const auto offset = static_cast<std::byte*>(data) - storage->data();
  for (const Copy& copy : copies_)
    if (copy.original.get() == storage.get()) return copy.here->data() + offset;
  Copy& copy = copies_.emplace_back(Copy{storage, StoragePtr(Storage::allocate(storage->bytes(), device_))});
  copy_bytes(copy.here->data(), device_, storage->data(), storage->device(), storage->bytes());
  return copy.here->data() + offset;
}

void* StagedInputs::place_number(const void* data, int64_t bytes, size_t most) {
  if (device_ == kCPU) return const_cast<void*>(data);
  if (numbers_here_.get() == nullptr) {
    numbers_.reserve(kNumber * most);
    numbers_here_ = StoragePtr(Storage::allocate(static_cast<int64_t>(kNumber * most), device_));
  }
  const size_t at = numbers_.size();
  numbers_.resize(at + kNumber);
  std::memcpy(&numbers_[at], data, static_cast<size_t>(bytes));
  return numbers_here_->data() + at;
}

void StagedInputs::send() const {
  if (numbers_.empty()) return;
  copy_bytes(numbers_here_->data(), device_, numbers_.data(), kCPU, static_cast<int64_t>(numbers_.size()));
}

void StagedInputs::write_back(const StoragePtr& storage) const {
  for (const Copy& copy : copies_) {
    if (copy.original.get() != storage.get()) continue;
    copy_bytes(storage->data(), storage->device(), copy.here->data(), device_, storage->bytes());
    return;
  }
}

}  // namespace stax::compiler

#include "tensor/storage.h"

#include "device/cpu_allocator.h"
#include "device/cuda_allocator.h"
#include "support/check.h"

namespace stax {
namespace {

device::Allocator& allocator_of(Device device) {
  if (device.type == DeviceType::cpu) return device::CpuAllocator::global();
  return device::CudaAllocator::of(device.index);
}

}  // namespace

Storage* Storage::allocate(int64_t bytes, Device device) {
  auto* storage = new Storage();
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->owned_ = true;
  try {
    storage->data_ = static_cast<std::byte*>(allocator_of(device).allocate(bytes));
  } catch (...) {
    storage->owned_ = false;
    delete storage;
    throw;
  }
  return storage;
}

Storage* Storage::own(void* data, int64_t bytes, Device device) {
  auto* storage = new Storage();
  storage->data_ = static_cast<std::byte*>(data);
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->owned_ = true;
  return storage;
}

Storage* Storage::adopt(void* data, int64_t bytes, Device device, std::function<void()> release) {
  auto* storage = new Storage();
  storage->data_ = static_cast<std::byte*>(data);
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->release_ = std::move(release);
  return storage;
}

Storage* Storage::constant(std::shared_ptr<const std::vector<std::byte>> bytes) {
  auto* storage = new Storage();
  static std::byte nothing{};  // tensors of no elements have an address, too
  storage->data_ = bytes->empty() ? &nothing : const_cast<std::byte*>(bytes->data());
  storage->bytes_ = static_cast<int64_t>(bytes->size());
  storage->device_ = kCPU;
  storage->writable_ = false;
  storage->constant_ = std::move(bytes);
  return storage;
}

Storage::~Storage() {
  if (owned_) allocator_of(device_).deallocate(data_, bytes_);
  if (release_) release_();
}

void Storage::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace stax

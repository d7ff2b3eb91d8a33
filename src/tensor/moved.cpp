#include "tensor/moved.h"

#include <cstring>

#include "device/cuda_device.h"
#include "stax/cuda.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

/// All bytes of one block of memory into another of the same size.
void copy_block(const Storage& from, Storage& to) {
  const int64_t bytes = from.bytes();
  if (bytes == 0) return;
  const int32_t source = from.device().index, target = to.device().index;
  if (from.device().type == DeviceType::cuda) cuda::synchronize(source);
  if (from.device() == kCPU && to.device() == kCPU)
    std::memcpy(to.data(), from.data(), static_cast<size_t>(bytes));
  else if (to.device() == kCPU)
    device::copy_to_host(to.data(), from.data(), bytes, source);
  else if (from.device() == kCPU)
    device::copy_to_device(to.data(), from.data(), bytes, target);
  else
    device::copy_on_device(to.data(), target, from.data(), source, bytes);
}

/// The same look at other memory.
Tensor over(const StridedImpl& impl, const StoragePtr& storage) {
  return Tensor(detail::ImplPtr(new StridedImpl(
      impl.dtype(), extents_of(impl.sizes().values(), impl.strides().values()), impl.offset(), storage)));
}

}  // namespace

MovedTensors::MovedTensors(const std::vector<Tensor>& tensors, Device device) {
  for (const Tensor& tensor : tensors) {
    const StridedImpl& impl = strided(tensor);
    if (impl.device() == device) {
      tensors_.push_back(tensor);
      continue;
    }
    Copy& copy = copies_[impl.storage().get()];
    if (copy.to.get() == nullptr) {
      copy = {impl.storage(), StoragePtr(Storage::allocate(impl.storage()->bytes(), device))};
      copy_block(*copy.from.get(), *copy.to.get());
    }
    tensors_.push_back(over(impl, copy.to));
  }
}

void MovedTensors::copy_back() const {
  for (const auto& [_, copy] : copies_)
    if (copy.from->writable()) copy_block(*copy.to.get(), *copy.from.get());
}

std::vector<Tensor> MovedTensors::returned(const std::vector<Tensor>& results) const {
  std::vector<Tensor> out = MovedTensors(results, kCPU).tensors();
  for (size_t k = 0; k < results.size(); ++k) {
    const StridedImpl& impl = strided(results[k]);
    for (const auto& [_, copy] : copies_)
      if (copy.to.get() == impl.storage().get()) out[k] = over(impl, copy.from);
  }
  return out;
}

}  // namespace stax

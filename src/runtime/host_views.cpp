#include "runtime/host_views.h"

#include "device/cuda_device.h"

namespace stax::runtime {

HostViews::HostViews(std::span<const Argument<TensorView>> arguments, std::span<const TensorView> results,
                     int32_t device)
    : device_(device) {
  for (const auto& argument : arguments)
    arguments_.push_back(
        map_tensors<TensorView>(argument, [&](const TensorView& view) { return copied(view, false); }));
  for (const TensorView& view : results) results_.push_back(copied(view, true));
}

TensorView HostViews::copied(const TensorView& view, bool result) {
  TensorView out = view;
  out.device = kCPU;
  int64_t low = 0, high = 0;
  const int64_t count = view.numel();
  for (size_t d = 0; d < view.sizes.size() && count > 0; ++d) {
    const int64_t reach = (view.sizes[d] - 1) * view.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t width = itemsize(view.dtype);
  const int64_t elements = count > 0 ? high - low + 1 : 0;
  Block block{static_cast<std::byte*>(view.data) + low * width,
              std::make_unique<std::byte[]>(static_cast<size_t>(elements * width + 1)), elements * width};
  // What lies between the elements of a result belongs to others.
  if (!result || elements != count) device::copy_to_host(block.here.get(), block.there, block.bytes, device_);
  out.data = block.here.get() - low * width;
  (result ? written_ : read_).push_back(std::move(block));
  return out;
}

void HostViews::upload() const {
  for (const Block& block : written_)
    device::copy_to_device(block.there, block.here.get(), block.bytes, device_);
}

}  // namespace stax::runtime

#include "stax/io.h"

#include "support/check.h"
#include "tensor/files/npy.h"
#include "tensor/files/npz.h"
#include "tensor/files/safetensors.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

/// The file's array as a tensor that shares its memory: the mapping is private, so writes stay in this
/// process.
Tensor to_tensor(const files::ArrayView& array) {
  Extents extents = dense_extents(array.sizes);
  if (array.fortran_order) {
    int64_t stride = 1;
    for (int64_t d = 0; d < extents.rank(); ++d) {
      extents.strides()[d] = stride;
      stride *= std::max<int64_t>(array.sizes[static_cast<size_t>(d)], 1);
    }
  }
  auto* data = const_cast<std::byte*>(array.data);
  StoragePtr storage(Storage::adopt(data, array.nbytes, kCPU, [owner = array.owner] {}));
  return Tensor(detail::ImplPtr(new StridedImpl(array.dtype, std::move(extents), 0, std::move(storage))));
}

/// A row-major view of the tensor's data, or of a copy that the view keeps.
files::ArrayView to_array(const Tensor& tensor) {
  Tensor dense = on_host(tensor);
  if (!strided(dense).is_contiguous()) {
    const StridedImpl& from = strided(tensor);
    dense = new_tensor(from.dtype(), from.sizes().values());
    copy_elements(from.view(), strided(dense).view());
  }
  const StridedImpl& impl = strided(dense);
  files::ArrayView array;
  array.dtype = impl.dtype();
  array.sizes = impl.sizes().values();
  array.data = impl.data();
  array.nbytes = impl.element_count() * itemsize(impl.dtype());
  array.owner = std::make_shared<Tensor>(dense);
  return array;
}

std::vector<std::pair<std::string, files::ArrayView>> to_arrays(
    const std::map<std::string, Tensor>& tensors) {
  std::vector<std::pair<std::string, files::ArrayView>> arrays;
  for (const auto& [name, tensor] : tensors) arrays.emplace_back(name, to_array(tensor));
  return arrays;
}

}  // namespace

Tensor load_npy(const std::string& path) {
  return to_tensor(files::load_npy(path));
}

void save_npy(const std::string& path, const Tensor& tensor) {
  files::save_npy(path, to_array(tensor));
}

std::map<std::string, Tensor> load_npz(const std::string& path) {
  std::map<std::string, Tensor> result;
  for (const auto& [name, array] : files::load_npz(path)) result[name] = to_tensor(array);
  return result;
}

void save_npz(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  files::save_npz(path, to_arrays(tensors));
}

std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  const files::SafetensorsFile file(path);
  std::map<std::string, Tensor> result;
  for (const auto& entry : file.entries()) result[entry.name] = to_tensor(file.tensor(entry.name));
  return result;
}

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  files::save_safetensors(path, to_arrays(tensors));
}

}  // namespace stax

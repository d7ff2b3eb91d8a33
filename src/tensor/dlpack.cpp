#include "stax/dlpack.h"

#include <algorithm>

#include "support/check.h"
#include "support/plural.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

constexpr int32_t kDLCPU = 1, kDLCUDA = 2;
enum Code : uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {
    {DType::boolean, kDLBool, 8},   {DType::uint8, kDLUInt, 8},       {DType::int8, kDLInt, 8},
    {DType::int16, kDLInt, 16},     {DType::int32, kDLInt, 32},       {DType::int64, kDLInt, 64},
    {DType::float16, kDLFloat, 16}, {DType::bfloat16, kDLBfloat, 16}, {DType::float32, kDLFloat, 32},
    {DType::float64, kDLFloat, 64},
};

/// What an exported struct keeps: the tensor, and the arrays it points to.
template <class Struct>
struct Export {
  Struct managed{};
  Tensor tensor;
  std::vector<int64_t> sizes, strides;
};

template <class Struct>
Struct* export_tensor(const Tensor& tensor) {
  StridedImpl& impl = strided(tensor);
  auto* context = new Export<Struct>();
  context->tensor = tensor;
  context->sizes = impl.sizes().values();
  context->strides = impl.strides().values();
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const TypeRow& row) { return row.dtype == impl.dtype(); });
  dlpack::Tensor& out = context->managed.dl_tensor;
  out.data = impl.data();
  const bool cpu = impl.device() == kCPU;
  out.device = {cpu ? kDLCPU : kDLCUDA, cpu ? 0 : impl.device().index};
  out.ndim = static_cast<int32_t>(impl.dim());
  out.dtype = {type->code, type->bits, 1};
  out.shape = context->sizes.data();
  out.strides = context->strides.data();
  out.byte_offset = 0;
  context->managed.manager_ctx = context;
  context->managed.deleter = [](Struct* self) { delete static_cast<Export<Struct>*>(self->manager_ctx); };
  return &context->managed;
}

DType dtype_of(const dlpack::DataType& type) {
  for (const TypeRow& row : kTypes) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  throw_user_error(fmt::format("from_dlpack: no dtype for type code {} of {} bits and {} lanes", type.code,
                               type.bits, type.lanes));
}

template <class Struct>
Tensor import_tensor(Struct* managed, bool read_only) {
  const dlpack::Tensor& in = managed->dl_tensor;
  STAX_CHECK(in.device.device_type == kDLCPU || in.device.device_type == kDLCUDA,
             "from_dlpack: expected a CPU or CUDA tensor (device type 1 or 2), got type {}",
             in.device.device_type);
  const Device device = in.device.device_type == kDLCPU
                            ? kCPU
                            : Device{DeviceType::cuda, static_cast<int8_t>(in.device.device_id)};
  STAX_CHECK(in.ndim >= 0, "from_dlpack: expected a rank of 0 or more, got {}", in.ndim);
  const DType dtype = dtype_of(in.dtype);
  auto* data = static_cast<std::byte*>(in.data) + in.byte_offset;
  STAX_CHECK(reinterpret_cast<uintptr_t>(data) % static_cast<uint64_t>(itemsize(dtype)) == 0,
             "from_dlpack: the data are not aligned to their element size of {}",
             counted(itemsize(dtype), "byte"));
  const std::span<const int64_t> sizes(in.shape, static_cast<size_t>(in.ndim));
  Extents extents =
      in.strides == nullptr
          ? dense_extents(sizes)
          : extents_of(sizes, std::span<const int64_t>(in.strides, static_cast<size_t>(in.ndim)));
  int64_t low = 0, high = 0;
  bool empty = false;
  for (int64_t d = 0; d < extents.rank(); ++d) {
    const int64_t size = extents.sizes()[d], stride = extents.strides()[d];
    STAX_CHECK(size >= 0, "from_dlpack: expected sizes of 0 or more, got {}", size);
    empty = empty || size == 0;
    (stride < 0 ? low : high) += (size - 1) * stride;
  }
  STAX_CHECK(empty || low == 0, "from_dlpack: negative strides are not taken; copy the tensor first");
  const int64_t bytes = empty ? 0 : (high + 1) * itemsize(dtype);
  StoragePtr storage(Storage::adopt(data, bytes, device, [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }));
  if (read_only) storage->set_read_only();
  return Tensor(detail::ImplPtr(new StridedImpl(dtype, std::move(extents), 0, std::move(storage))));
}

}  // namespace

dlpack::ManagedVersioned* to_dlpack(const Tensor& tensor) {
  auto* managed = export_tensor<dlpack::ManagedVersioned>(tensor);
  managed->version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  managed->flags = strided(tensor).storage()->writable() ? 0 : dlpack::kReadOnly;
  return managed;
}

dlpack::Managed* to_dlpack_unversioned(const Tensor& tensor) {
  STAX_CHECK(strided(tensor).storage()->writable(),
             "to_dlpack_unversioned: the tensor is read-only, which this form cannot say; use to_dlpack");
  return export_tensor<dlpack::Managed>(tensor);
}

Tensor from_dlpack(dlpack::ManagedVersioned* managed) {
  STAX_CHECK(managed != nullptr, "from_dlpack: expected a tensor, got null");
  STAX_CHECK(managed->version.major == dlpack::kMajorVersion, "from_dlpack: expected DLPack {}.x, got {}.{}",
             dlpack::kMajorVersion, managed->version.major, managed->version.minor);
  return import_tensor(managed, (managed->flags & dlpack::kReadOnly) != 0);
}

Tensor from_dlpack(dlpack::Managed* managed) {
  STAX_CHECK(managed != nullptr, "from_dlpack: expected a tensor, got null");
  return import_tensor(managed, false);
}

}  // namespace stax

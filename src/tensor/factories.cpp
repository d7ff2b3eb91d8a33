#include "stax/factories.h"

#include "support/check.h"
#include "support/plural.h"
#include "tensor/sym_int.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

std::vector<int64_t> numbers(const IntList& list) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < list.size(); ++i) result.push_back(list[i]);
  return result;
}

Tensor blob(void* data, Extents extents, TensorOptions options, std::function<void()> release) {
  int64_t reach = 1;
  bool empty = false;
  for (int64_t d = 0; d < extents.rank(); ++d) {
    const int64_t size = extents.sizes()[d], stride = extents.strides()[d];
    STAX_CHECK(size >= 0 && stride >= 0, "from_blob: expected sizes and strides of 0 or more, got {} and {}",
               size, stride);
    empty = empty || size == 0;
    reach += (size - 1) * stride;
  }
  const int64_t bytes = empty ? 0 : reach * itemsize(options.dtype());
  StoragePtr storage(Storage::adopt(data, bytes, options.device(), std::move(release)));
  return Tensor(detail::ImplPtr(new StridedImpl(options.dtype(), std::move(extents), 0, std::move(storage))));
}

}  // namespace

Tensor from_blob(void* data, IntList sizes, TensorOptions options) {
  return blob(data, dense_extents(numbers(sizes)), options, {});
}

Tensor from_blob(void* data, IntList sizes, IntList strides, TensorOptions options) {
  STAX_CHECK(sizes.size() == strides.size(), "from_blob: {}, but {}", counted(sizes.size(), "size"),
             counted(strides.size(), "stride"));
  return blob(data, extents_of(numbers(sizes), numbers(strides)), options, {});
}

Tensor from_blob(void* data, IntList sizes, std::function<void(void*)> deleter, TensorOptions options) {
  return blob(data, dense_extents(numbers(sizes)), options,
              [data, deleter = std::move(deleter)] { deleter(data); });
}

namespace detail {

Tensor tensor_of(const void* data, DType stored, DType natural, IntList sizes, TensorOptions options) {
  const Tensor result = new_tensor(options.dtype_opt().value_or(natural), numbers(sizes), options.device());
  const TensorView target = strided(result).view();
  copy_elements({const_cast<void*>(data), stored, target.sizes, target.strides}, target);
  SymbolicContext* context = symbolic_context();
  return context != nullptr ? context->constant(result) : result;
}

void check_rows(size_t expected, size_t got) {
  STAX_CHECK(expected == got, "tensor: the lists at one level have lengths {} and {}; they must be equal",
             expected, got);
}

}  // namespace detail
}  // namespace stax

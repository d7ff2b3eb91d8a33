#include "tensor/tensor_impl.h"

#include <algorithm>

#include "support/check.h"
#include "support/plural.h"

namespace stax {
namespace detail {

void retain(TensorImpl* impl) noexcept {
  impl->references_.fetch_add(1, std::memory_order_relaxed);
}

void release(TensorImpl* impl) noexcept {
  if (impl->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete impl;
}

}  // namespace detail

Extents& Extents::operator=(const Extents& other) {
  if (this == &other) return *this;
  resize(other.rank_);
  std::copy_n(other.data(), 2 * rank_, data());
  return *this;
}

void Extents::resize(int64_t rank) {
  heap_ = rank > kInline ? std::make_unique<SymInt[]>(static_cast<size_t>(2 * rank)) : nullptr;
  rank_ = rank;
}

SymInt TensorImpl::numel() const {
  SymInt count = 1;
  for (const SymInt& size : sizes()) count *= size;
  return count;
}

SymInt TensorImpl::sym_item(const std::source_location& where) {
  return concrete(where).item(where).integer();
}

bool StridedImpl::is_contiguous() const {
  int64_t expected = 1;
  bool contiguous = true;
  for (int64_t d = dim() - 1; d >= 0; --d) {
    const int64_t length = size(d);
    if (length == 0) return true;
    if (length == 1) continue;
    contiguous = contiguous && stride(d) == expected;
    expected *= length;
  }
  return contiguous;
}

bool StridedImpl::may_overlap_itself() const {
  // Dense in some order of dimensions: sorted by stride, each stride steps over everything below it.
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (int64_t d = 0; d < dim(); ++d) {
    if (size(d) == 0) return false;
    if (size(d) > 1) dims.emplace_back(std::abs(stride(d)), size(d));
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, length] : dims) {
    if (stride <= reach) return true;
    reach += stride * (length - 1);
  }
  return false;
}

TensorView StridedImpl::view() const {
  return {data(), dtype(), sizes().values(), strides().values(), device()};
}

Extents dense_extents(std::span<const int64_t> sizes) {
  Extents extents(static_cast<int64_t>(sizes.size()));
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    extents.sizes()[d] = sizes[d];
    extents.strides()[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return extents;
}

Extents extents_of(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Extents extents(static_cast<int64_t>(sizes.size()));
  std::copy(sizes.begin(), sizes.end(), extents.sizes());
  std::copy(strides.begin(), strides.end(), extents.strides());
  return extents;
}

namespace {

/// Elements between the first and one past the last that the extents reach. `lowest` becomes the offset of
/// the lowest one (0 or below). Checked: sizes are not negative, and the product stays in 64 bits.
int64_t span_of(const Extents& extents, int64_t* lowest = nullptr) {
  int64_t high = 0, low = 0;
  bool overflow = false;
  bool empty = false;
  for (int64_t d = 0; d < extents.rank(); ++d) {
    const int64_t size = extents.sizes()[d], stride = extents.strides()[d];
    STAX_CHECK(size >= 0, "a tensor of size {} in dimension {}: sizes are 0 or more", size, d);
    if (size == 0) {
      empty = true;
      continue;
    }
    int64_t reach = 0;
    overflow = overflow || __builtin_mul_overflow(size - 1, stride, &reach);
    int64_t& bound = reach < 0 ? low : high;
    overflow = overflow || __builtin_add_overflow(bound, reach, &bound);
  }
  overflow = overflow || high == INT64_MAX;
  STAX_CHECK(empty || !overflow, "the tensor's elements do not fit into 64-bit addresses");
  if (lowest != nullptr) *lowest = low;
  return empty ? 0 : high + 1;
}

}  // namespace

Tensor new_tensor(DType dtype, Extents extents, Device device) {
  int64_t bytes = 0;
  STAX_CHECK(!__builtin_mul_overflow(span_of(extents), itemsize(dtype), &bytes),
             "a tensor of more than 2^63 bytes cannot be made");
  StoragePtr storage(Storage::allocate(bytes, device));
  return Tensor(detail::ImplPtr(new StridedImpl(dtype, std::move(extents), 0, std::move(storage))));
}

Tensor new_tensor(DType dtype, std::span<const int64_t> sizes, Device device) {
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    STAX_CHECK(sizes[d] >= 0, "a tensor of size {} in dimension {}: sizes are 0 or more", sizes[d], d);
    STAX_CHECK(!__builtin_mul_overflow(count, std::max<int64_t>(sizes[d], 1), &count),
               "a tensor of more than 2^63 elements cannot be made");
  }
  return new_tensor(dtype, dense_extents(sizes), device);
}

Tensor constant_copy(const Tensor& tensor) {
  const StridedImpl& impl = strided(tensor);
  auto bytes = std::make_shared<std::vector<std::byte>>(
      static_cast<size_t>(impl.element_count() * itemsize(impl.dtype())));
  const std::vector<int64_t> sizes = impl.sizes();
  StoragePtr storage(Storage::constant(bytes));
  Tensor copy(detail::ImplPtr(new StridedImpl(impl.dtype(), dense_extents(sizes), 0, std::move(storage))));
  copy_elements(impl.view(), strided(copy).view());
  return copy;
}

Tensor new_view(const StridedImpl& base, DType dtype, Extents extents, int64_t offset) {
  int64_t lowest = 0;
  const int64_t span = span_of(extents, &lowest);
  const int64_t capacity = base.storage()->bytes() / itemsize(dtype);
  STAX_CHECK(span == 0 || (offset >= 0 && offset + lowest >= 0 && offset <= capacity - span),
             "a view of {} from element {} on reaches outside its storage of {}", counted(span, "element"),
             offset, counted(capacity, "element"));
  return Tensor(detail::ImplPtr(new StridedImpl(dtype, std::move(extents), offset, base.storage())));
}

StridedImpl& strided(const Tensor& tensor, const std::source_location& where) {
  STAX_CHECK(tensor.defined(), "an undefined tensor is used: it was default-made and never assigned");
  return tensor.impl()->concrete(where);
}

}  // namespace stax

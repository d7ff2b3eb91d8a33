// What Tensor answers without an operator: metadata, memory, single values.
#include "stax/tensor.h"

#include "support/check.h"
#include "support/plural.h"
#include "tensor/element.h"
#include "tensor/sym_int.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

TensorImpl& checked(const detail::ImplPtr& impl) {
  STAX_CHECK(impl, "an undefined tensor is used: it was default-made and never assigned");
  return *impl;
}

/// The element at an address of the host.
Scalar element_at(DType dtype, const std::byte* at) {
  return visit_element(dtype, [&](auto e) -> Scalar {
    using E = decltype(e);
    const auto value = E::load(*reinterpret_cast<const typename E::Stored*>(at));
    if constexpr (std::is_same_v<typename E::Value, bool>) {
      return Scalar(value);
    } else if constexpr (std::is_integral_v<typename E::Value>) {
      return Scalar(static_cast<int64_t>(value));
    } else {
      return Scalar(static_cast<double>(value));
    }
  });
}

/// The program reads elements: where a trace runs it has to know.
void announce_read(const TensorImpl& impl, const std::source_location& where) {
  if (impl.is_traced()) return;
  if (SymbolicContext* context = symbolic_context()) context->on_read(where);
}

int64_t checked_dim(int64_t dim, int64_t rank, const char* function) {
  const int64_t limit = std::max<int64_t>(rank, 1);
  STAX_CHECK(rank > 0 && dim >= -limit && dim < limit,
             "{}: expected a dimension of [{}, {}), got {}, of a tensor of rank {}", function, -rank, rank,
             dim, rank);
  return dim < 0 ? dim + rank : dim;
}

}  // namespace

Tensor SymbolicContext::constant(const Tensor& made) {
  return made;
}

namespace detail {

void check_data_dtype(DType expected, DType got) {
  STAX_CHECK(expected == got, "data_ptr: the tensor holds {}, not {}; convert it with to()", name(got),
             name(expected));
}

}  // namespace detail

DType Tensor::dtype() const {
  return checked(impl_).dtype();
}
Device Tensor::device() const {
  return checked(impl_).device();
}
int64_t Tensor::dim() const {
  return checked(impl_).dim();
}
SymInt Tensor::size(int64_t dim, std::source_location where) const {
  TensorImpl& impl = checked(impl_);
  dim = checked_dim(dim, impl.dim(), "size");
  impl.on_size_read(dim, where);
  return impl.sizes()[static_cast<size_t>(dim)];
}
namespace {

/// `impl`, all of whose sizes and strides somebody looks at.
TensorImpl& looked_at(TensorImpl& impl) {
  impl.on_size_read(0, {});
  return impl;
}

}  // namespace

SizeList Tensor::sizes() const {
  return looked_at(checked(impl_)).sizes();
}
SymInt Tensor::stride(int64_t dim) const {
  TensorImpl& impl = looked_at(checked(impl_));
  return impl.strides()[static_cast<size_t>(checked_dim(dim, impl.dim(), "stride"))];
}
SizeList Tensor::strides() const {
  return looked_at(checked(impl_)).strides();
}
SymInt Tensor::storage_offset() const {
  checked(impl_).on_offset_read();
  return impl_->offset();
}
SymInt Tensor::numel() const {
  return looked_at(checked(impl_)).numel();
}

bool Tensor::is_contiguous() const {
  const TensorImpl& impl = looked_at(checked(impl_));
  SymInt expected = 1;
  bool contiguous = true;
  for (int64_t d = impl.dim() - 1; d >= 0; --d) {
    const SymInt length = impl.sizes()[static_cast<size_t>(d)];
    if (length == 0) return true;
    if (length == 1) continue;
    contiguous = contiguous && impl.strides()[static_cast<size_t>(d)] == expected;
    expected *= length;
  }
  return contiguous;
}

bool Tensor::is_alias_of(const Tensor& other) const {
  return checked(impl_).storage_id() == checked(other.impl_).storage_id();
}
int64_t Tensor::use_count() const {
  return impl_ ? impl_->use_count() : 0;
}
void* Tensor::data_ptr() const {
  announce_read(checked(impl_), std::source_location::current());
  return impl_->concrete(std::source_location::current()).data();
}

Scalar Tensor::item(std::source_location where) const {
  TensorImpl& impl = checked(impl_);
  for (const SymInt& size : impl.sizes()) {
    STAX_CHECK(size == 1, "item: expected a tensor with one element, got one of {} elements",
               impl.numel().str());
  }
  announce_read(impl, where);
  return impl.item(where);
}

Scalar StridedImpl::item(const std::source_location&) {
  STAX_CHECK(element_count() == 1, "item: expected a tensor with one element, got one of {}",
             counted(element_count(), "element"));
  if (device() != kCPU) {
    alignas(8) std::byte element[8];
    const TensorView here{element, dtype(), sizes().values(), strides().values()};
    copy_elements(view(), here);
    return element_at(dtype(), element);
  }
  return element_at(dtype(), data());
}

}  // namespace stax

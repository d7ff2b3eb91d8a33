// Operators of C++ and the methods that tensor.h declares by hand.
#include "stax/operators.h"

#include "capture/dispatch.h"
#include "ops/table.h"
#include "stax/cuda.h"
#include "stax/factories.h"
#include "support/check.h"
#include "support/dtype_limits.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

using capture::Call;

/// One result of a binary row; either operand may be a number.
template <class A, class B>
Tensor binary(const graph::Op& op, const A& a, const B& b) {
  Call call(op, op.schema.params.size());
  call.add(a).add(b);
  if (op.schema.params.size() > 2) call.add(int64_t{1});  // alpha
  return call.one();
}

template <class B>
void update(const graph::Op& op, const Tensor& a, const B& b, std::string_view name) {
  Call call(op, op.schema.params.size());
  call.add(a).add(b);
  if (op.schema.params.size() > 2) call.add(int64_t{1});
  call.in_place(name);
}

const graph::Op& row(std::string_view name) {
  return ops::table().at(name);
}

}  // namespace

#define STAX_DEFINE_OPERATOR(symbol, name)                   \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { \
    static const graph::Op& op = row(name);                  \
    return binary(op, a, b);                                 \
  }                                                          \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { \
    static const graph::Op& op = row(name);                  \
    return binary(op, a, b);                                 \
  }                                                          \
  Tensor operator symbol(const Scalar& a, const Tensor& b) { \
    static const graph::Op& op = row(name);                  \
    return binary(op, a, b);                                 \
  }
STAX_DEFINE_OPERATOR(+, "add.Tensor")
STAX_DEFINE_OPERATOR(-, "sub.Tensor")
STAX_DEFINE_OPERATOR(*, "mul.Tensor")
STAX_DEFINE_OPERATOR(/, "div.Tensor")
STAX_DEFINE_OPERATOR(%, "remainder.Tensor")
STAX_DEFINE_OPERATOR(==, "eq.Tensor")
STAX_DEFINE_OPERATOR(!=, "ne.Tensor")
STAX_DEFINE_OPERATOR(<, "lt.Tensor")
STAX_DEFINE_OPERATOR(<=, "le.Tensor")
STAX_DEFINE_OPERATOR(>, "gt.Tensor")
STAX_DEFINE_OPERATOR(>=, "ge.Tensor")
STAX_DEFINE_OPERATOR(&, "bitwise_and.Tensor")
STAX_DEFINE_OPERATOR(|, "bitwise_or.Tensor")
STAX_DEFINE_OPERATOR(^, "bitwise_xor.Tensor")
#undef STAX_DEFINE_OPERATOR

Tensor Tensor::operator-() const {
  static const graph::Op& op = row("neg");
  return Call(op, 1).add(*this).one();
}
Tensor Tensor::operator~() const {
  static const graph::Op& op = row("bitwise_not");
  return Call(op, 1).add(*this).one();
}

bool Tensor::equal(const Tensor& other) const {
  if (dim() != other.dim()) return false;
  for (int64_t d = 0; d < dim(); ++d) {
    if (size(d) != other.size(d)) return false;
  }
  return (*this == other).all().item<bool>();
}

bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return isclose(other, rtol, atol, equal_nan).all().item<bool>();
}

#define STAX_DEFINE_UPDATE(symbol, name, type)     \
  Tensor& Tensor::operator symbol(const type& b) { \
    static const graph::Op& op = row(name);        \
    update(op, *this, b, #symbol);                 \
    return *this;                                  \
  }
STAX_DEFINE_UPDATE(+=, "add.Tensor", Tensor)
STAX_DEFINE_UPDATE(+=, "add.Tensor", Scalar)
STAX_DEFINE_UPDATE(-=, "sub.Tensor", Tensor)
STAX_DEFINE_UPDATE(-=, "sub.Tensor", Scalar)
STAX_DEFINE_UPDATE(*=, "mul.Tensor", Tensor)
STAX_DEFINE_UPDATE(*=, "mul.Tensor", Scalar)
STAX_DEFINE_UPDATE(/=, "div.Tensor", Tensor)
STAX_DEFINE_UPDATE(/=, "div.Tensor", Scalar)
STAX_DEFINE_UPDATE(&=, "bitwise_and.Tensor", Tensor)
STAX_DEFINE_UPDATE(|=, "bitwise_or.Tensor", Tensor)
STAX_DEFINE_UPDATE(^=, "bitwise_xor.Tensor", Tensor)
#undef STAX_DEFINE_UPDATE

Tensor& Tensor::copy_(const Tensor& source, bool) const {
  capture::write(*this, source, "copy_");
  return const_cast<Tensor&>(*this);
}

Tensor& Tensor::fill_(const Scalar& value) const {
  if (capture::current_trace() != nullptr || value.traced()) {
    static const graph::Op& full = row("full");
    capture::write(*this, Call(full, 3).add(IntList()).add(value).add(options()).one(), "fill_");
    return const_cast<Tensor&>(*this);
  }
  StridedImpl& target = strided(*this);
  STAX_CHECK(target.storage()->writable(), "fill_: the tensor was handed over as read-only; clone it first");
  STAX_CHECK(
      !target.may_overlap_itself(),
      "fill_: several elements of the tensor that is written lie at one place (it was expanded); clone "
      "it first");
  fill_elements(target.view(), value);
  return const_cast<Tensor&>(*this);
}

Tensor& Tensor::uniform_(double from, double to) const {
  STAX_CHECK(is_floating_point() && from <= to,
             "uniform_: expected a floating dtype and from <= to, got {}, {}, {}", name(dtype()), from, to);
  const double largest = largest_finite(dtype());
  STAX_CHECK(from >= -largest && to <= largest && to - from <= largest,
             "uniform_: expected from, to and their difference within {}'s largest number {}, got {} and {}",
             name(dtype()), largest, from, to);
  return copy_(rand_like() * (to - from) + from);
}

Tensor& Tensor::normal_(double mean, double std) const {
  STAX_CHECK(is_floating_point() && std >= 0, "normal_: expected a floating dtype and std >= 0, got {}, {}",
             name(dtype()), std);
  return copy_(randn_like() * std + mean);
}

Tensor& Tensor::fill_(const Tensor& value) const {
  STAX_CHECK(value.dim() == 0, "fill_: expected a number or a zero-dim tensor, got one of rank {}",
             value.dim());
  return copy_(value);
}

Tensor& Tensor::zero_() const {
  return fill_(0);
}

Tensor Tensor::to(DType dtype, bool, bool copy) const {
  if (!copy && this->dtype() == dtype) return *this;
  static const graph::Op& op = row("to.dtype");
  return Call(op, 2).add(*this).add(dtype).one();
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return *this;
  if (capture::Trace* trace = capture::current_trace())
    if (const auto there = trace->made_on(device, *this)) return *there;
  // While tracing this reads: a compiled function works on one device.
  if (capture::current_trace() != nullptr && !impl()->is_traced()) static_cast<void>(data_ptr());
  const StridedImpl& from = strided(*this);
  const TensorView view = from.view();
  const bool dense =
      !from.may_overlap_itself() && from.storage()->bytes() == from.element_count() * itemsize();
  const Tensor result = dense ? new_tensor(dtype(), extents_of(view.sizes, view.strides), device)
                              : new_tensor(dtype(), view.sizes, device);
  copy_elements(view, strided(result).view());
  return result;
}

Tensor Tensor::cuda() const {
  return to(Device{DeviceType::cuda, static_cast<int8_t>(stax::cuda::current_device())});
}

Tensor Tensor::to(TensorOptions options) const {
  const Tensor moved = options.device_opt() ? to(*options.device_opt()) : *this;
  return options.dtype_opt() ? moved.to(*options.dtype_opt()) : moved;
}

Tensor Tensor::contiguous() const {
  const capture::OperatorScope scope;
  if (is_contiguous()) return *this;
  if (capture::current_trace() == nullptr) {
    const StridedImpl& from = strided(*this);
    const Tensor result = new_tensor(from.dtype(), from.sizes().values(), from.device());
    copy_elements(from.view(), strided(result).view());
    return result;
  }
  static const graph::Op& op = row("contiguous");
  return Call(op, 1).add(*this).one();
}

namespace {

Tensor full_tensor(IntList size, const Scalar& value, TensorOptions options) {
  static const graph::Op& op = row("full");
  return Call(op, 3).add(size).add(value).add(options).one();
}

TensorOptions filled(const Tensor& like, TensorOptions options) {
  return TensorOptions(options.dtype_opt().value_or(like.dtype()))
      .device(options.device_opt().value_or(like.device()));
}

}  // namespace

Tensor empty(IntList size, TensorOptions options) {
  if (capture::current_trace() != nullptr) return full_tensor(size, 0, options.dtype(options.dtype()));
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < size.size(); ++i) numbers.push_back(size[i]);
  return new_tensor(options.dtype(), numbers, options.device());
}

Tensor Tensor::new_empty(IntList size, TensorOptions options) const {
  return stax::empty(size, filled(*this, options));
}
Tensor Tensor::new_zeros(IntList size, TensorOptions options) const {
  return new_full(size, 0, options);
}
Tensor Tensor::new_ones(IntList size, TensorOptions options) const {
  return new_full(size, 1, options);
}
Tensor Tensor::new_full(IntList size, const Scalar& value, TensorOptions options) const {
  return full_tensor(size, value, filled(*this, options));
}

}  // namespace stax

#include "capture/dispatch.h"

#include <fmt/ranges.h>

#include <atomic>
#include <new>
#include <stdexcept>

#include "ops/table.h"
#include "support/call_stack.h"
#include "support/check.h"
#include "support/plural.h"
#include "tensor/tensor_impl.h"

namespace stax {

namespace capture {
namespace {

thread_local Trace* the_trace = nullptr;
thread_local Trace* the_suspended = nullptr;  // whose sizes the program may still hold
std::atomic<EagerBackend*> the_backend{nullptr};

void refuse_traced(const graph::Op& op, const Tensor& tensor) {
  STAX_CHECK(tensor.defined(), "{}: an undefined tensor is an argument", op.schema.name);
  STAX_CHECK(!tensor.impl()->is_traced(),
             "{}: a tensor of a trace is used outside that trace, on another thread or after it ended",
             op.schema.name);
}

void refuse_symbolic(const graph::Op& op, Expr size) {
  STAX_CHECK(size.is_constant(),
             "{}: the symbolic size {} is an argument outside the trace that it belongs to; sizes of traced "
             "tensors may not leave the traced function",
             op.schema.name, size.str());
}

void refuse_traced(const graph::Op& op, const Arguments& arguments) {
  for (const auto& argument : arguments) {
    if (argument.is_tensor()) {
      refuse_traced(op, argument.tensor());
    } else if (const auto* number = std::get_if<Number>(&argument.value)) {
      refuse_symbolic(op, number->integer);
    } else if (const auto* sizes = std::get_if<std::vector<Expr>>(&argument.value)) {
      for (const Expr size : *sizes) refuse_symbolic(op, size);
    } else if (const auto* list = std::get_if<Argument<Tensor>::Tensors>(&argument.value)) {
      for (const auto& tensor : *list) {
        if (tensor) refuse_traced(op, *tensor);
      }
    }
  }
}

/// Sizes that the program took from a trace which was read since: their values.
void resolve_sizes(Arguments& arguments) {
  for (auto& argument : arguments) {
    if (auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
      for (Expr& e : *list) e = Expr(the_suspended->fix(e));
    } else if (auto* number = std::get_if<Number>(&argument.value)) {
      number->integer = Expr(the_suspended->fix(number->integer));
    }
  }
}

/// Whether an in-place operation may store a result of dtype `from` in a tensor of dtype `to`.
bool can_store(DType from, DType to) {
  if (is_floating_point(from)) return is_floating_point(to);
  return from == DType::boolean || to != DType::boolean;
}

std::string shape_text(const Tensor& tensor) {
  std::string text = "[";
  for (const SymInt& size : tensor.sizes()) text += (text.size() > 1 ? ", " : "") + size.str();
  return text + "]";
}

/// `source` as seen with the shape of `self`: dimensions added and repeated by strides of 0.
TensorView broadcast_view(const StridedImpl& source, const StridedImpl& self, std::string_view name) {
  TensorView view{source.data(), source.dtype(), self.sizes().values(), {}, source.device()};
  view.strides.assign(view.sizes.size(), 0);
  const int64_t skip = self.dim() - source.dim();
  bool fits = true;
  for (int64_t d = 0; d < source.dim(); ++d) {
    const int64_t length = source.size(d);
    if (skip + d < 0) {
      fits = fits && length == 1;
      continue;
    }
    const auto at = static_cast<size_t>(skip + d);
    fits = fits && (length == view.sizes[at] || length == 1);
    if (length == view.sizes[at]) view.strides[at] = source.stride(d);
  }
  STAX_CHECK(fits, "{}: a tensor of shape {} does not broadcast to {}, the shape that is written", name,
             fmt::format("[{}]", fmt::join(source.sizes().values(), ", ")),
             fmt::format("[{}]", fmt::join(view.sizes, ", ")));
  return view;
}

void write_eagerly(const Tensor& self, const Tensor& source, std::string_view name) {
  if (self.impl() == source.impl()) return;
  StridedImpl &target = strided(self), &from = strided(source);
  STAX_CHECK(target.storage()->writable(), "{}: the tensor was handed over as read-only; clone it first",
             name);
  STAX_CHECK(
      !target.may_overlap_itself(),
      "{}: several elements of the tensor that is written lie at one place (it was expanded); clone it "
      "first",
      name);
  const TensorView view = broadcast_view(from, target, name);
  if (from.storage_id() != target.storage_id()) {
    copy_elements(view, target.view());
    return;
  }
  const Tensor copy = new_tensor(from.dtype(), from.sizes().values(), from.device());
  copy_elements(from.view(), strided(copy).view());
  copy_elements(broadcast_view(strided(copy), target, name), target.view());
}

/// f(), whose user errors say where in the user's program they come from.
template <class F>
decltype(auto) placed(F&& f) {
  try {
    return f();
  } catch (const PlacedError&) {
    throw;
  } catch (const UserError& error) {
    std::string message = error.what();
    if (the_trace != nullptr) message = the_trace->with_values(std::move(message));
    throw PlacedError(message, CallStack::take());
  }
}

Tensor call_row(std::string_view name, Arguments arguments) {
  return dispatch_one(ops::table().at(name), std::move(arguments));
}

}  // namespace

TraceScope::TraceScope(Trace* trace)
    : previous_(std::exchange(the_trace, trace)), suspended_(std::exchange(the_suspended, nullptr)) {}
TraceScope::~TraceScope() {
  the_trace = previous_;
  the_suspended = suspended_;
}

Trace* current_trace() {
  return the_trace;
}

void suspend_trace() {
  the_suspended = std::exchange(the_trace, nullptr);
}

void install_eager_backend(EagerBackend* backend) {
  the_backend.store(backend, std::memory_order_release);
}

EagerBackend& eager_backend() {
  EagerBackend* backend = the_backend.load(std::memory_order_acquire);
  return backend != nullptr ? *backend : default_eager_backend();
}

namespace {

/// as_strided_scatter(self, src, size, stride, storage_offset) on a copy of the memory up to self's end.
Tensor scatter_by_strides(const Arguments& a) {
  const Tensor self = a[0].tensor(), source = a[1].tensor();
  const std::vector<Expr> sizes = to_exprs(self.sizes()), strides = to_exprs(self.strides());
  const Expr offset = to_expr(self.storage_offset());
  Expr end = offset + 1;
  for (size_t d = 0; d < sizes.size(); ++d) end = end + (sizes[d] - 1) * strides[d];
  const Tensor memory = call_row("as_strided", {self, std::vector<Expr>{end}, std::vector<Expr>{1}, Expr(0)});
  const Tensor copy = call_row("clone", {memory});
  const Tensor part =
      call_row("as_strided", {copy, a[2], a[3], a[4].is_none() ? Argument<Tensor>(offset) : a[4]});
  STAX_CHECK(part.sizes() == source.sizes(), "as_strided_scatter: expected a source of shape {}, got {}",
             shape_text(part), shape_text(source));
  write(part, source, "as_strided_scatter");
  return call_row("as_strided", {copy, sizes, strides, offset});
}

/// The rows that look at memory are views and copies of them here, where the memory is known: as rows of a
/// graph they would see a dense copy that begins with the tensor.
std::optional<Tensor> by_memory(const graph::Op& op, const Arguments& a) {
  static const graph::Op& copy = ops::table().at("as_strided_copy");
  static const graph::Op& scatter = ops::table().at("as_strided_scatter");
  if (&op == &copy) return call_row("clone", {call_row("as_strided", a)});
  if (&op != &scatter) return std::nullopt;
  const Tensor self = a[0].tensor();
  if (self.is_contiguous() && self.storage_offset() == 0) return std::nullopt;
  if (self.numel() == 0) return std::nullopt;
  return scatter_by_strides(a);
}

}  // namespace

namespace {

/// Outside traces.
template <class F>
std::vector<Tensor> eagerly(const graph::Op& op, Arguments& arguments, const F& call) {
  if (the_suspended != nullptr) resolve_sizes(arguments);
  refuse_traced(op, arguments);
  try {
    return call();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw_runtime_error(fmt::format(
      "{}: out of memory; use smaller inputs, or check the numbers that sizes come from", op.schema.name));
}

}  // namespace

std::vector<Tensor> dispatch(const graph::Op& op, Arguments arguments) {
  return placed([&] {
    if (const auto result = by_memory(op, arguments)) return std::vector<Tensor>{*result};
    if (the_trace != nullptr) return the_trace->call(op, std::move(arguments));
    return eagerly(op, arguments, [&] { return eager_backend().call(op, arguments); });
  });
}

std::vector<Tensor> dispatch_on(const graph::Op& op, Arguments arguments, Device device) {
  if (Trace* trace = the_trace) {
    struct Restored {
      Trace& trace;
      Device before = trace.device();
      ~Restored() { trace.set_device(before); }
    } restored{*trace};
    trace->set_device(device);
    return dispatch(op, std::move(arguments));
  }
  const bool tensors = std::ranges::any_of(arguments, [](const Argument<Tensor>& argument) {
    return argument.is_tensor() || std::holds_alternative<Argument<Tensor>::Tensors>(argument.value);
  });
  if (!tensors && device != kCPU) {
    return placed([&] {
      return eagerly(op, arguments, [&] { return eager_backend().call_on(op, arguments, device); });
    });
  }
  std::vector<Tensor> results = dispatch(op, std::move(arguments));
  for (Tensor& result : results) result = result.to(device);
  return results;
}

std::vector<Tensor> EagerBackend::call_on(const graph::Op& op, const Arguments& arguments, Device device) {
  std::vector<Tensor> results = call(op, arguments);
  for (Tensor& result : results) result = result.to(device);
  return results;
}

Tensor dispatch_one(const graph::Op& op, Arguments arguments) {
  std::vector<Tensor> results = dispatch(op, std::move(arguments));
  STAX_ASSERT(results.size() == 1, "{} has {} results where one was expected", op.schema.full_name(),
              results.size());
  return std::move(results[0]);
}

namespace {

Tensor update(const graph::Op& op, Arguments arguments, std::string_view name) {
  STAX_CHECK(arguments.at(0).is_tensor(), "{}: expected a tensor to update, got a number", name);
  Tensor self = arguments.at(0).tensor();
  STAX_CHECK(self.defined(), "{}: an undefined tensor cannot be updated", name);
  const Tensor result = dispatch_one(op, std::move(arguments));
  STAX_CHECK(
      can_store(result.dtype(), self.dtype()),
      "{}: the result has dtype {}, which a tensor of dtype {} cannot hold in place; use {} without the "
      "underscore",
      name, stax::name(result.dtype()), stax::name(self.dtype()), op.schema.name);
  STAX_CHECK(result.sizes() == self.sizes(),
             "{}: the result has shape {}, but the tensor that is updated has shape {}", name,
             shape_text(result), shape_text(self));
  write(self, result, name);
  return self;
}

}  // namespace

Tensor dispatch_in_place(const graph::Op& op, Arguments arguments, std::string_view name) {
  return placed([&] { return update(op, std::move(arguments), name); });
}

std::vector<Tensor> dispatch_out(const graph::Op& op, Arguments arguments, const std::vector<Tensor>& out) {
  const std::string& name = op.schema.name;
  const std::vector<Tensor> results = dispatch(op, std::move(arguments));
  STAX_CHECK(results.size() == out.size(), "{}: {}, but {} as out", name, counted(results.size(), "result"),
             counted(out.size(), "tensor"));
  for (size_t k = 0; k < out.size(); ++k) {
    STAX_CHECK(out[k].defined(), "{}: an undefined tensor is given as out", name);
    const DType from = results[k].dtype(), to = out[k].dtype();
    const bool fits = op.op_class == graph::OpClass::pointwise ? can_store(from, to) : from == to;
    STAX_CHECK(fits, "{}: the result has dtype {}, which out of dtype {} does not take", name,
               stax::name(from), stax::name(to));
    STAX_CHECK(results[k].sizes() == out[k].sizes(),
               "{}: the result has shape {}, but out has shape {}; pass a tensor of the result's shape", name,
               shape_text(results[k]), shape_text(out[k]));
  }
  for (size_t k = 0; k < out.size(); ++k) write(out[k], results[k], name);
  return out;
}

void write(const Tensor& self, const Tensor& source, std::string_view name) {
  STAX_CHECK(self.defined() && source.defined(), "{}: an undefined tensor is an argument", name);
  placed([&] {
    if (the_trace == nullptr) return write_eagerly(self, source, name);
    Tensor value = source;
    if (value.dtype() != self.dtype()) value = call_row("to.dtype", {value, self.dtype()});
    if (!(value.sizes() == self.sizes())) value = call_row("expand", {value, to_exprs(self.sizes())});
    the_trace->write(self, value, name);
  });
}

}  // namespace capture

SymbolicContext* symbolic_context() {
  return capture::the_trace != nullptr ? capture::the_trace : capture::the_suspended;
}

}  // namespace stax

#include "capture/traced_tensor.h"

#include <fmt/core.h>

#include <algorithm>

#include "capture/functional_trace.h"
#include "support/check.h"

namespace stax::capture {
namespace {

Extents extents_of(const graph::TensorMeta& meta) {
  Extents extents(meta.dim());
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    extents.sizes()[d] = to_sym_int(meta.sizes[d]);
    extents.strides()[d] = to_sym_int(meta.strides[d]);
  }
  return extents;
}

/// The offset in the memory, in elements of the view's dtype.
SymInt offset_of(const TracedStorage& storage, const graph::TensorMeta& meta) {
  const int64_t start = storage.start * itemsize(storage.meta.dtype) / itemsize(meta.dtype);
  return to_sym_int(meta.offset + start);
}

}  // namespace

TracedImpl::TracedImpl(std::shared_ptr<FunctionalTrace> trace, std::shared_ptr<TracedStorage> storage_in,
                       std::vector<ViewStep> steps_in, graph::Var value_in)
    : TensorImpl(value_in.meta().dtype, value_in.meta().device, extents_of(value_in.meta()),
                 offset_of(*storage_in, value_in.meta())),
      storage(std::move(storage_in)),
      steps(std::move(steps_in)),
      value(value_in),
      version(storage->version),
      trace_(std::move(trace)) {
  trace_->attach(this);
}

TracedImpl::~TracedImpl() {
  trace_->detach(this);
}

StridedImpl& TracedImpl::concrete(const std::source_location& where) {
  if (memory.defined()) return strided(memory);
  if (number_argument >= 0) {
    trace_->fix_number(number_argument);
    return strided(known);
  }
  trace_->read(item_where.value_or(where), item_where ? "item()" : "data_ptr() or another read");
  return strided(memory);
}

Scalar TracedImpl::item(const std::source_location& where) {
  if (memory.defined()) return strided(memory).item(where);
  item_where = where;
  return trace_->number_of(*this);
}

SymInt TracedImpl::sym_item(const std::source_location& where) {
  const bool symbolic =
      !memory.defined() && is_number && number_argument < 0 && kind == Scalar::Kind::integer;
  return symbolic ? trace_->symbol_of(*this) : TensorImpl::sym_item(where);
}

const void* TracedImpl::storage_id() const {
  if (memory.defined()) return memory.impl()->storage_id();
  return storage->exists() ? storage->memory.impl()->storage_id() : storage.get();
}

void TracedImpl::on_size_read(int64_t, const std::source_location&) {
  if (!memory.defined()) trace_->note_use(*storage);
}

void TracedImpl::on_offset_read() {
  if (!memory.defined()) trace_->fix_offset(*storage);
}

void TracedImpl::become(const Tensor& tensor) {
  memory = tensor;
  const StridedImpl& impl = strided(tensor);
  set_meta(impl.dtype(), stax::extents_of(impl.sizes().values(), impl.strides().values()), impl.offset());
}

std::pair<int64_t, int64_t> reach(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                                  int64_t offset) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return {offset, offset};
  int64_t low = offset, high = offset;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t step = 0;
    overflow |= __builtin_mul_overflow(sizes[d] - 1, strides[d], &step);
    int64_t& bound = strides[d] < 0 ? low : high;
    overflow |= __builtin_add_overflow(bound, step, &bound);
  }
  overflow |= __builtin_add_overflow(high, 1, &high);
  STAX_CHECK(!overflow, "the tensor's elements do not fit into 64-bit addresses");
  return {low, high};
}

std::string location_text(const std::source_location& where) {
  return fmt::format("{}:{}", where.file_name(), where.line());
}

}  // namespace stax::capture

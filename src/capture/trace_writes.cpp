// In-place writes: new values of the memory that is written.
#include <algorithm>

#include "capture/functional_trace.h"
#include "support/check.h"

namespace stax::capture {

using graph::TensorMeta;
using graph::Var;
using graph::VarArg;
using graph::VarArgs;

namespace {

/// Whether two indices may reach one element. Decided for all sizes that the guards let through.
bool overlaps_itself(ShapeEnv& env, const TensorMeta& meta) {
  struct DimReach {
    Expr stride, last;  // last: of the indices
    int64_t order;
  };
  std::vector<DimReach> dims;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (env.surely(eq(meta.sizes[d], 0))) return false;
    if (env.surely(eq(meta.sizes[d], 1))) continue;
    const Expr stride = env.surely(lt(meta.strides[d], 0)) ? -meta.strides[d] : meta.strides[d];
    // Without hint: where it would lie if that size were large.
    constexpr int64_t kLarge = 4096;
    const auto order = [&](Symbol s) { return env.hint(s).value_or(kLarge); };
    dims.push_back({stride, meta.sizes[d] - 1, evaluate(stride, order)});
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [](const DimReach& a, const DimReach& b) { return a.order < b.order; });
  Expr end = 0;
  for (const DimReach& dim : dims) {
    if (!env.expect(gt(dim.stride, end))) return true;
    end = end + dim.stride * dim.last;
  }
  return false;
}

}  // namespace

void FunctionalTrace::write(const Tensor& self, const Tensor& source, std::string_view name) {
  check_running();
  builder_.set_where(CallStack::take());
  env_->set_asker("an in-place write");
  try {
    return write_traced(self, source, name);
  } catch (const UndeterminedError&) {
    if (options_.refuse_reads) throw;
  }
  read({}, "a write that depends on a size that only data determines");
  capture::write(self, source, name);
}

void FunctionalTrace::write_traced(const Tensor& self, const Tensor& source, std::string_view name) {
  Tensor self_holder, source_holder;
  TracedImpl& target = traced(self, self_holder);
  TracedImpl& from = traced(source, source_holder);
  if (&target == &from) return;
  const StoragePtr storage = target.storage;
  if (storage->exists()) {
    STAX_CHECK(strided(storage->memory).storage()->writable(),
               "{}: the tensor was handed over as read-only; clone it first", name);
  }
  STAX_CHECK(
      !overlaps_itself(*env_, value(target).meta()),
      "{}: several elements of the tensor that is written lie at one place (it was expanded); clone it "
      "first",
      name);
  std::vector<Var> before = {storage->base};
  for (size_t k = 0; k + 1 < target.steps.size(); ++k) {
    before.push_back(replay(*storage, std::span(target.steps).first(k + 1)));
  }
  if (std::any_of(before.begin(), before.end(),
                  [&](const Var& v) { return overlaps_itself(*env_, v.meta()); })) {
    // A part of an expanded tensor, itself without overlap: there is no view to go back through, only memory.
    const TensorMeta meta = target.value.meta();
    const int64_t offset = env_->specialize(to_expr(target.offset()));
    return write_traced(as_strided({self_holder, meta.sizes, meta.strides, offset}), source_holder, name);
  }
  Var written = value(from);
  // Writes may come from another device: whatever a program computes lies on its own.
  graph_.nodes[static_cast<size_t>(written.value().node)]
      .results[static_cast<size_t>(written.value().result)]
      .device = storage->meta.device;
  note_write(*storage, target, written);
  for (size_t k = target.steps.size(); k-- > 0;) {
    const ViewStep& step = target.steps[k];
    STAX_ASSERT(step.op->scatter, "the view {} has no scatter rule", step.op->schema.full_name());
    std::vector<VarArg> args = step.args;
    args[0] = before[k];
    written = step.op->scatter(builder_, VarArgs(step.op->schema, args), written);
  }
  // A value of its own, laid out as the memory is.
  storage->base = builder_.add_call(builder_.table().at("clone"), {written}, {storage->meta})[0];
  ++storage->version;
}

/// What is to be written back: the part that a view is, so that a write costs what it writes.
void FunctionalTrace::note_write(TracedStorage& storage, const TracedImpl& target, Var source) {
  constexpr size_t kMaxParts = 4;
  if (!storage.exists() || storage.written_whole) return;
  const TensorMeta& meta = target.value.meta();
  if (target.steps.empty() || meta.dtype != storage.meta.dtype || storage.written.size() == kMaxParts) {
    storage.written_whole = true;
    storage.written.clear();
    return;
  }
  storage.written.push_back({meta, source});
}

}  // namespace stax::capture

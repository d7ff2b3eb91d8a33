// Tensors from outside of a trace, and the memory that they share.
#include <algorithm>
#include <tuple>

#include "capture/functional_trace.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"
#include "tensor/element.h"

namespace stax::capture {

using graph::NodeId;
using graph::OpClass;
using graph::TensorMeta;
using graph::Var;
using graph::VarArg;

namespace {

/// Offset 0: what the graph computes does not depend on where in its storage a tensor begins.
TensorMeta meta_of(const StridedImpl& tensor) {
  return {tensor.dtype(), tensor.device(), to_exprs(tensor.sizes()), to_exprs(tensor.strides()), Expr(0)};
}

}  // namespace

Tensor FunctionalTrace::argument(const Tensor& tensor, int32_t position, const TensorMeta& meta) {
  STAX_ASSERT(position == static_cast<int32_t>(arguments_.size()), "argument {} out of order", position);
  arguments_.push_back(unwrapped(tensor));
  offset_matters_.push_back(0);
  used_.push_back(0);
  return lift(tensor, &meta);
}

Tensor FunctionalTrace::argument(const Tensor& tensor, int32_t position) {
  return argument(tensor, position, meta_of(strided(unwrapped(tensor))));
}

Scalar FunctionalTrace::number(const Scalar& value, int32_t position) {
  number_matters_.resize(static_cast<size_t>(position) + 1, 0);
  inputs_.push_back({.number = position});
  const DType dtype = value.dtype();
  const Var input = builder_.input(graph::dense(dtype, {}), "number");
  const Tensor tensor = make(new_storage(input), {}, input);
  auto& impl = static_cast<TracedImpl&>(*tensor.impl());
  impl.is_number = true;
  impl.kind = value.kind();
  impl.number_argument = position;
  impl.known = new_tensor(dtype, std::span<const int64_t>());
  fill_elements(strided(impl.known).view(), value);
  return Scalar(value.kind(), tensor.impl_ptr());
}

/// A tensor that the function makes of numbers: part of the graph, made anew by each call.
Tensor FunctionalTrace::constant(const Tensor& made) {
  if (!running()) return made;
  const StridedImpl& impl = strided(made);
  const int64_t bytes = impl.element_count() * itemsize(impl.dtype());
  const Tensor here = on_host(made);
  const std::byte* first = strided(here).data();
  auto data = std::make_shared<std::vector<std::byte>>(first, first + bytes);
  const Var value = builder_.constant(meta_of(impl), std::move(data));
  return make(new_storage(value), {}, value);
}

std::optional<Tensor> FunctionalTrace::made_on(Device device, const Tensor& tensor) {
  TracedImpl* impl = as_traced(tensor);
  if (!running() || impl == nullptr || &impl->trace() != this) return std::nullopt;
  const Device before = builder_.device();
  builder_.set_device(device);
  std::map<NodeId, std::vector<Var>> made;
  const Var known = value(*impl);
  const bool possible = make_on(device, known.value().node, made);
  builder_.set_device(before);
  if (!possible) return std::nullopt;
  Var result = made.at(known.value().node)[static_cast<size_t>(known.value().result)];
  const graph::Op* op = builder_.graph().nodes[static_cast<size_t>(known.value().node)].op;
  // A tensor that is moved has memory of its own.
  if (op != nullptr && op->op_class == OpClass::view) result = builder_.call("clone", {result});
  return make(new_storage(result), {}, result);
}

/// Adds the results of node `id`, computed on `device`, to `made`. False where they depend on arguments or
/// have sizes that only data determines. A random node has its place in the program's stream: another one
/// with that place draws the same numbers.
bool FunctionalTrace::make_on(Device device, NodeId id, std::map<NodeId, std::vector<Var>>& made) {
  if (made.contains(id)) return true;
  const graph::Node node = builder_.graph().nodes[static_cast<size_t>(id)];  // a copy: nodes are added
  if (node.kind == graph::NodeKind::constant) {
    TensorMeta meta = node.results[0];
    meta.device = device;
    made[id] = {builder_.constant(std::move(meta), node.data)};
    return true;
  }
  if (node.kind != graph::NodeKind::call || (node.op->effects & graph::kData) != 0) return false;
  bool possible = true;
  for (const auto& a : node.args)
    graph::for_each_value(
        a, [&](const graph::Value& v) { possible = possible && make_on(device, v.node, made); });
  if (!possible) return false;
  std::vector<VarArg> args;
  for (const auto& a : node.args)
    args.push_back(map_tensors<Var>(
        a, [&](const graph::Value& v) { return made.at(v.node)[static_cast<size_t>(v.result)]; }));
  made[id] = builder_.call_bound(*node.op, std::move(args));
  return true;
}

Tensor FunctionalTrace::lift(const Tensor& given, const TensorMeta* meta) {
  const Tensor tensor = unwrapped(given);
  if (const auto known = lifted_.find(tensor.impl()); known != lifted_.end()) return known->second;
  const Tensor result = lift_new(tensor, meta != nullptr ? *meta : meta_of(strided(tensor)));
  lifted_.emplace(tensor.impl(), result);
  return result;
}

/// A captured tensor whose memory never changes: its value is part of the graph.
Tensor FunctionalTrace::lift_constant(const Tensor& tensor) {
  const StridedImpl& impl = strided(tensor);
  const auto& bytes = impl.storage()->constant_bytes();
  const bool whole = impl.is_contiguous() && impl.offset() == 0 &&
                     impl.element_count() * itemsize(impl.dtype()) == impl.storage()->bytes();
  const Tensor dense = whole ? tensor : constant_copy(tensor);
  constants_.push_back(tensor);
  const Var value = builder_.constant(graph::dense(impl.dtype(), to_exprs(impl.sizes()), impl.device()),
                                      whole ? bytes : strided(dense).storage()->constant_bytes());
  return make(new_storage(value), {}, value);
}

Tensor FunctionalTrace::lift_new(const Tensor& tensor, const TensorMeta& meta) {
  const StridedImpl& impl = strided(tensor);
  const bool is_argument = std::any_of(arguments_.begin(), arguments_.end(),
                                       [&](const Tensor& t) { return t.impl() == tensor.impl(); });
  if (impl.storage()->constant_bytes() && !is_argument) return lift_constant(tensor);
  const int64_t offset = impl.offset();
  const int64_t width = itemsize(meta.dtype);
  int64_t low = 0, high = 0;
  std::vector<StoragePtr> overlapping;
  for (const StoragePtr& root : roots_) {
    if (root->memory.impl()->storage_id() != impl.storage_id()) continue;
    std::tie(low, high) = reach_of(meta, offset);
    const int64_t root_width = itemsize(root->meta.dtype);
    const auto [root_low, root_high] = reach_of(root->meta, root->start);
    if (low * width >= root_high * root_width || root_low * root_width >= high * width) continue;
    const bool same = root->start == offset && root->meta.dtype == meta.dtype &&
                      root->meta.sizes == meta.sizes && root->meta.strides == meta.strides;
    if (same) return make(root, {}, root->base);
    overlapping.push_back(root);
  }
  if (!overlapping.empty()) {
    int64_t first = low, last = high;
    for (const StoragePtr& root : overlapping) {
      STAX_CHECK(root->meta.dtype == meta.dtype,
                 "a function that is compiled sees the same memory as {} and as {}; pass one of them as a "
                 "view of the other made inside the function",
                 name(root->meta.dtype), name(meta.dtype));
      const auto [root_low, root_high] = reach_of(root->meta, root->start);
      first = std::min(first, root_low);
      last = std::max(last, root_high);
    }
    const StoragePtr base = flatten(std::move(overlapping), first, last);
    const graph::Op& op = builder_.table().at("as_strided");
    std::vector<ViewStep> steps = {{&op, {VarArg(), meta.sizes, meta.strides, Expr(offset - base->start)}}};
    const Var view = replay(*base, steps);
    return make(base, std::move(steps), view);
  }
  CapturedInput input;
  for (size_t k = 0; k < arguments_.size() && input.argument < 0; ++k) {
    if (arguments_[k].impl() == tensor.impl()) input.argument = static_cast<int32_t>(k);
  }
  if (input.argument < 0) input.tensor = tensor;
  const Var value = builder_.input(meta, input.argument < 0 ? "captured" : "arg");
  const StoragePtr root = new_storage(value);
  root->start = offset;
  root->capacity = impl.storage()->bytes() / width;
  root->memory = tensor;
  root->input = static_cast<int32_t>(inputs_.size());
  inputs_.push_back(std::move(input));
  roots_.push_back(root);
  return make(root, {}, value);
}

/// Moves the aliases of `from` over to `to`, whose base holds the memory of `from`'s.
void FunctionalTrace::rebase(TracedStorage& from, const StoragePtr& to) {
  const graph::Op& op = builder_.table().at("as_strided");
  const ViewStep step{&op, {VarArg(), from.meta.sizes, from.meta.strides, Expr(from.start - to->start)}};
  std::vector<TracedImpl*> aliases;
  {
    const std::lock_guard lock(live_mutex_);
    aliases.swap(from.aliases);
    to->aliases.insert(to->aliases.end(), aliases.begin(), aliases.end());
  }
  for (TracedImpl* alias : aliases) {
    std::vector<ViewStep>& steps = alias->steps;
    if (from.flat && !steps.empty() &&
        steps[0].op == &op) {  // an offset in the same memory, seen from elsewhere
      steps[0].args[3] = steps[0].args[3].integer() + (from.start - to->start);
    } else {
      steps.insert(steps.begin(), step);
    }
    alias->version = -1;  // replayed at the next use
  }
  for (TracedImpl* alias : aliases) alias->storage = to;  // may end `from`: last
}

FunctionalTrace::StoragePtr FunctionalTrace::flatten(std::vector<StoragePtr> roots, int64_t low,
                                                     int64_t high) {
  const StoragePtr& first = roots.front();
  auto base = std::make_shared<TracedStorage>();
  base->flat = true;
  base->start = low;
  base->capacity = first->capacity;
  if (first->exists()) {
    base->meta = graph::dense(first->meta.dtype, {Expr(high - low)}, first->meta.device);
    base->memory = first->memory;
    base->input = static_cast<int32_t>(inputs_.size());
    CapturedInput input{.flat = true, .start = low};
    const void* id = first->memory.impl()->storage_id();
    for (size_t k = 0; k < arguments_.size(); ++k) {
      if (strided(arguments_[k]).storage_id() != id) continue;
      if (input.argument < 0) input.argument = static_cast<int32_t>(k);
      offset_matters_[k] = 1;
    }
    if (input.argument < 0) input.tensor = first->memory;
    inputs_.push_back(std::move(input));
    base->base = builder_.input(base->meta, "memory");
  } else {
    const Expr length = high - low;
    const bool dense = first->meta.strides == graph::contiguous_strides(first->meta.sizes);
    base->base = dense ? builder_.call("view", {first->base, std::vector<Expr>{length}})
                       : builder_.call("as_strided", {first->base, std::vector<Expr>{length},
                                                      std::vector<Expr>{Expr(1)}, Expr(0)});
    base->base = builder_.call("clone", {base->base});
    base->meta = base->base.meta();
  }
  for (const StoragePtr& root : roots) {
    if (root->exists() && root->version > 0) {
      base->written_whole = true;
      base->base = builder_.call("as_strided_scatter", {base->base, root->base, root->meta.sizes,
                                                        root->meta.strides, Expr(root->start - low)});
      base->version = 1;
    }
    rebase(*root, base);
  }
  std::erase_if(roots_,
                [&](const StoragePtr& r) { return std::find(roots.begin(), roots.end(), r) != roots.end(); });
  if (base->exists()) roots_.push_back(base);
  return base;
}

/// as_strided looks at memory: the base becomes one dense stretch first.
Tensor FunctionalTrace::as_strided(const Arguments& arguments) {
  Tensor holder;
  TracedImpl& self = traced(arguments[0].tensor(), holder);
  STAX_CHECK(self.dtype() == self.storage->meta.dtype,
             "as_strided: a view as another dtype cannot be viewed again by strides while tracing");
  const std::vector<Expr>& sizes = arguments[1].integers();
  const std::vector<Expr>& strides = arguments[2].integers();
  STAX_CHECK(sizes.size() == strides.size(), "as_strided: {} but {}", counted(sizes.size(), "size"),
             counted(strides.size(), "stride"));
  const int64_t offset =
      env_->specialize(arguments[3].is_none() ? to_expr(self.offset()) : arguments[3].integer());
  const auto [low, high] = reach(fix(sizes), fix(strides), offset);
  const auto [base_low, base_high] = reach_of(self.storage->meta, self.storage->start);
  const int64_t capacity = self.storage->exists() ? self.storage->capacity : base_high;
  STAX_CHECK(low == high || (low >= 0 && high <= capacity),
             "a view of elements {} to {} reaches outside its storage of {}", low, high - 1,
             counted(capacity, "element"));
  if (!self.storage->flat || low < base_low || high > base_high) {
    flatten({self.storage}, std::min(low, base_low), std::max(high, base_high));
  }
  const StoragePtr storage = self.storage;
  const graph::Op& op = builder_.table().at("as_strided");
  std::vector<ViewStep> steps = {{&op, {VarArg(), sizes, strides, Expr(offset - storage->start)}}};
  const Var view = replay(*storage, steps);
  return make(storage, std::move(steps), view);
}

}  // namespace stax::capture

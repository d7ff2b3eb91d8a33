#include "capture/functional_trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "ops/table.h"
#include "support/check.h"
#include "support/log.h"
#include "tensor/element.h"

namespace stax::capture {

using graph::NodeId;
using graph::OpClass;
using graph::TensorMeta;
using graph::Var;
using graph::VarArg;
using graph::VarArgs;

namespace {

/// Offset 0: what the graph computes does not depend on where in its storage a tensor begins.
TensorMeta meta_of(const StridedImpl& tensor) {
  return {tensor.dtype(), tensor.device(), to_exprs(tensor.sizes()), to_exprs(tensor.strides()), Expr(0)};
}

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

Number stand_in(Scalar::Kind kind) {
  switch (kind) {
    case Scalar::Kind::boolean:
      return Number::of(true);
    case Scalar::Kind::integer:
      return Number::of(std::numeric_limits<int64_t>::max());  // whatever is computed has to hold any value
    case Scalar::Kind::floating:
      break;
  }
  return Number::of(1.0);
}

Scalar::Kind kind_of(DType dtype) {
  if (dtype == DType::boolean) return Scalar::Kind::boolean;
  return is_floating_point(dtype) ? Scalar::Kind::floating : Scalar::Kind::integer;
}

std::string text_of(const std::source_location& where) {
  return fmt::format("{}:{}", where.file_name(), where.line());
}

/// The traced tensor behind `tensor`, or null.
TracedImpl* as_traced(const Tensor& tensor) {
  return tensor.impl()->is_traced() ? static_cast<TracedImpl*>(tensor.impl()) : nullptr;
}

}  // namespace

FunctionalTrace::FunctionalTrace(TraceOptions options)
    : options_(std::move(options)),
      env_(std::make_shared<ShapeEnv>()),
      builder_(ops::table(), *env_, graph_) {}

FunctionalTrace::~FunctionalTrace() = default;

void FunctionalTrace::attach(TracedImpl* impl) {
  const std::lock_guard lock(live_mutex_);
  live_.push_back(impl);
  impl->storage->aliases.push_back(impl);
}

void FunctionalTrace::detach(TracedImpl* impl) {
  const std::lock_guard lock(live_mutex_);
  std::erase(live_, impl);
  std::erase(impl->storage->aliases, impl);
}

int64_t FunctionalTrace::fix(Expr value) {
  if (!running()) return settled(value);
  try {
    return env_->specialize(value);
  } catch (const UndeterminedError&) {
    if (options_.refuse_reads) throw;
  }
  read({}, fmt::format("the size {}, which only data determines and the program needs as a number,",
                       value.str()));
  return settled(value);
}

/// The value of a size after the trace was read.
int64_t FunctionalTrace::settled(Expr value) const {
  const std::optional<int64_t> known = env_->hint(value);
  STAX_CHECK(known,
             "the size {} is read after its trace ended; sizes of traced tensors may not leave the "
             "traced function",
             value.str());
  return *known;
}

std::vector<int64_t> FunctionalTrace::fix(const std::vector<Expr>& list) {
  std::vector<int64_t> out;
  for (const Expr e : list) out.push_back(env_->specialize(e));
  return out;
}

std::pair<int64_t, int64_t> FunctionalTrace::reach_of(const TensorMeta& meta, int64_t offset) {
  return reach(fix(meta.sizes), fix(meta.strides), offset);
}

bool FunctionalTrace::decide(const Condition& condition) {
  if (running()) {
    const bool late =
        condition.left.contains(SymbolKind::unbacked) || condition.right.contains(SymbolKind::unbacked);
    if (options_.decide && !late && operators == 0) return options_.decide(*env_, condition);
    if (late && operators > 0) return env_->surely(condition);  // "no" is right for every value
    if (const std::optional<bool> answer = env_->decided(condition)) return *answer;
    if (options_.refuse_reads) throw UndeterminedError(env_->undetermined_text(condition));
    read({}, fmt::format("the decision {}, which only data settles,", condition.str()));
  }
  const Condition numbers{condition.relation, settled(condition.left), settled(condition.right)};
  return *stax::decide(numbers, env_->ranges());
}

void FunctionalTrace::check(const Condition& condition, std::string_view words,
                            const std::source_location& where) {
  if (running()) return env_->check(condition, std::string(words), text_of(where));
  const Condition numbers{condition.relation, settled(condition.left), settled(condition.right)};
  if (*stax::decide(numbers, env_->ranges())) return;
  throw UserError(failure_text({condition, std::string(words), text_of(where)},
                               [&](Symbol s) { return settled(Expr(s)); }));
}

void FunctionalTrace::check_running() const {
  STAX_CHECK(running(), "a tensor of a trace is used after that trace ended");
}

// ---- tensors from outside ----

Tensor FunctionalTrace::make(StoragePtr storage, std::vector<ViewStep> steps, Var value) {
  return Tensor(
      detail::ImplPtr(new TracedImpl(shared_from_this(), std::move(storage), std::move(steps), value)));
}

FunctionalTrace::StoragePtr FunctionalTrace::new_storage(Var base) {
  auto storage = std::make_shared<TracedStorage>();
  storage->base = base;
  storage->meta = base.meta();
  storage->meta.offset = 0;
  return storage;
}

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

// ---- values ----

TracedImpl& FunctionalTrace::traced(const Tensor& tensor, Tensor& holder) {
  holder = tensor;
  if (as_traced(tensor) == nullptr) holder = lift(tensor);
  auto& impl = static_cast<TracedImpl&>(*holder.impl());
  STAX_CHECK(&impl.trace() == this,
             "a tensor of a trace is used outside that trace, on another thread or after it ended");
  return impl;
}

Var FunctionalTrace::replay(const TracedStorage& storage, std::span<const ViewStep> steps) {
  Var value = storage.base;
  for (const ViewStep& step : steps) {
    std::vector<VarArg> args = step.args;
    args[0] = value;
    value = builder_.call_bound(*step.op, std::move(args))[0];
  }
  return value;
}

Var FunctionalTrace::value(TracedImpl& impl) {
  if (impl.version != impl.storage->version) {
    impl.value = replay(*impl.storage, impl.steps);
    impl.version = impl.storage->version;
  }
  return impl.value;
}

Var FunctionalTrace::value_of(const Tensor& tensor) {
  Tensor holder;
  return value(traced(tensor, holder));
}

// ---- calls ----

/// The arguments as values. Numbers of the trace become tensors that promote as numbers do where the row
/// takes a tensor, and plain numbers (a read) elsewhere. `keep` receives the tensors among them.
std::vector<VarArg> FunctionalTrace::prepare(const graph::Op& op, const Arguments& arguments,
                                             std::vector<Tensor>& keep) {
  const auto number_at = [&](size_t k) -> TracedImpl* {
    if (!arguments[k].is_tensor()) return nullptr;
    TracedImpl* impl = as_traced(arguments[k].tensor());
    return impl != nullptr && impl->is_number ? impl : nullptr;
  };
  std::vector<VarArg> args;
  std::vector<Argument<TensorMeta>> metas;
  bool has_numbers = false;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const TracedImpl* number = number_at(k);
    has_numbers |= number != nullptr;
    args.push_back(map_tensors<Var>(arguments[k], [&](const Tensor& tensor) {
      Tensor holder;
      TracedImpl& impl = traced(tensor, holder);
      note_use(*impl.storage);
      const Var v = value(impl);
      keep.push_back(std::move(holder));
      return v;
    }));
    if (number != nullptr) {
      metas.emplace_back(stand_in(number->kind));
    } else {
      metas.push_back(map_tensors<TensorMeta>(args[k], [](const Var& v) { return v.meta(); }));
    }
  }
  if (!has_numbers) return args;
  const DType compute = graph::pointwise_dtypes(op, graph::MetaArgs(op.schema, metas)).compute;
  const DType dtype = is_half(compute) ? DType::float32 : compute;
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (number_at(k) != nullptr) args[k] = builder_.call("to.dtype", {args[k], dtype});
  }
  return args;
}

std::vector<Tensor> FunctionalTrace::call(const graph::Op& op, Arguments arguments) {
  check_running();
  builder_.set_where(CallStack::take());
  std::vector<Tensor> tensors;
  const bool by_strides = op.schema.name == "as_strided";
  std::vector<VarArg> args;
  if (!by_strides) args = prepare(op, arguments, tensors);
  // From here on: what preparing appends (replayed views) belongs to the arguments.
  const auto first = static_cast<NodeId>(graph_.nodes.size());
  const size_t assertions = env_->assertions().size();
  const Expr random_count = random_count_;
  env_->set_asker(op.schema.name);
  try {
    if (by_strides) return {as_strided(arguments)};
    const std::vector<Var> values = builder_.call_bound(op, std::move(args));
    number_random(first);
    return wrap(values, first, tensors);
  } catch (const UndeterminedError&) {
    if (options_.refuse_reads) throw;
    graph_.nodes.resize(static_cast<size_t>(first));
    env_->forget_assertions(assertions);
    random_count_ = random_count;
  }
  read({}, fmt::format("{}, which depends on a size that only data determines,", op.schema.name));
  return dispatch(op, std::move(arguments));
}

/// Gives the new random nodes their place in the program's stream.
void FunctionalTrace::number_random(NodeId first) {
  for (auto node = graph_.nodes.begin() + first; node != graph_.nodes.end(); ++node) {
    if (node->op == nullptr || (node->op->effects & graph::kRandom) == 0) continue;
    const int32_t at = node->op->schema.position("offset");
    STAX_ASSERT(at >= 0, "the random operator {} has no offset", node->op->schema.full_name());
    const Expr count = node->results[0].numel();
    if (count.contains(SymbolKind::unbacked)) {
      throw UndeterminedError(fmt::format(
          "{}: how many random numbers are drawn ({}) has to be known before a run, but only data determines "
          "it; draw them for a fixed size and take a part",
          node->op->schema.name, count.str()));
    }
    node->args[static_cast<size_t>(at)] = Argument<graph::Value>(random_count_);
    random_count_ = random_count_ + count;
  }
}

/// Traced tensors for the results of a call whose nodes begin at `first`: results that view an argument share
/// its storage.
std::vector<Tensor> FunctionalTrace::wrap(const std::vector<Var>& values, NodeId first,
                                          const std::vector<Tensor>& tensors) {
  std::vector<std::pair<graph::Value, StoragePtr>> fresh;
  std::vector<Tensor> results;
  for (const Var& result : values) {
    std::vector<ViewStep> steps;
    graph::Value root = result.value();
    while (root.node >= first) {
      const graph::Node& node = graph_.nodes[static_cast<size_t>(root.node)];
      if (node.op == nullptr || node.op->op_class != OpClass::view) break;
      ViewStep step{node.op, {}};
      for (const auto& a : node.args) {
        step.args.push_back(map_tensors<Var>(a, [&](const graph::Value& v) { return Var(&builder_, v); }));
      }
      steps.insert(steps.begin(), std::move(step));
      root = node.args[0].tensor();
    }
    const auto viewed = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) {
      return static_cast<TracedImpl&>(*t.impl()).value.value() == root;
    });
    if (viewed != tensors.end()) {
      auto& base = static_cast<TracedImpl&>(*viewed->impl());
      if (steps.empty() && !base.is_number) {
        results.push_back(*viewed);
        continue;
      }
      std::vector<ViewStep> all = base.steps;
      all.insert(all.end(), std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
      results.push_back(make(base.storage, std::move(all), result));
      continue;
    }
    auto known = std::find_if(fresh.begin(), fresh.end(), [&](const auto& f) { return f.first == root; });
    if (known == fresh.end()) known = fresh.insert(known, {root, new_storage(Var(&builder_, root))});
    results.push_back(make(known->second, std::move(steps), result));
  }
  return results;
}

/// as_strided looks at memory: the base becomes one dense stretch first.
Tensor FunctionalTrace::as_strided(const Arguments& arguments) {
  Tensor holder;
  TracedImpl& self = traced(arguments[0].tensor(), holder);
  STAX_CHECK(self.dtype() == self.storage->meta.dtype,
             "as_strided: a view as another dtype cannot be viewed again by strides while tracing");
  const std::vector<Expr>& sizes = arguments[1].integers();
  const std::vector<Expr>& strides = arguments[2].integers();
  STAX_CHECK(sizes.size() == strides.size(), "as_strided: {} sizes but {} strides", sizes.size(),
             strides.size());
  const int64_t offset =
      env_->specialize(arguments[3].is_none() ? to_expr(self.offset()) : arguments[3].integer());
  const auto [low, high] = reach(fix(sizes), fix(strides), offset);
  const auto [base_low, base_high] = reach_of(self.storage->meta, self.storage->start);
  const int64_t capacity = self.storage->exists() ? self.storage->capacity : base_high;
  STAX_CHECK(low == high || (low >= 0 && high <= capacity),
             "a view of elements {} to {} reaches outside its storage of {} elements", low, high - 1,
             capacity);
  if (!self.storage->flat || low < base_low || high > base_high) {
    flatten({self.storage}, std::min(low, base_low), std::max(high, base_high));
  }
  const StoragePtr storage = self.storage;
  const graph::Op& op = builder_.table().at("as_strided");
  std::vector<ViewStep> steps = {{&op, {VarArg(), sizes, strides, Expr(offset - storage->start)}}};
  const Var view = replay(*storage, steps);
  return make(storage, std::move(steps), view);
}

void FunctionalTrace::write(const Tensor& self, const Tensor& source) {
  check_running();
  builder_.set_where(CallStack::take());
  env_->set_asker("an in-place write");
  try {
    return write_traced(self, source);
  } catch (const UndeterminedError&) {
    if (options_.refuse_reads) throw;
  }
  read({}, "a write that depends on a size that only data determines");
  capture::write(self, source, "write");
}

void FunctionalTrace::write_traced(const Tensor& self, const Tensor& source) {
  Tensor self_holder, source_holder;
  TracedImpl& target = traced(self, self_holder);
  TracedImpl& from = traced(source, source_holder);
  if (&target == &from) return;
  const StoragePtr storage = target.storage;
  if (storage->exists()) {
    STAX_CHECK(strided(storage->memory).storage()->writable(),
               "write: the tensor was handed over as read-only; clone it first");
  }
  STAX_CHECK(!overlaps_itself(*env_, value(target).meta()),
             "write: several elements of the tensor that is written lie at one place (it was expanded); "
             "clone it first");
  std::vector<Var> before = {storage->base};
  for (size_t k = 0; k + 1 < target.steps.size(); ++k) {
    before.push_back(replay(*storage, std::span(target.steps).first(k + 1)));
  }
  if (std::any_of(before.begin(), before.end(),
                  [&](const Var& v) { return overlaps_itself(*env_, v.meta()); })) {
    // A part of an expanded tensor, itself without overlap: there is no view to go back through, only memory.
    const TensorMeta meta = target.value.meta();
    const int64_t offset = env_->specialize(to_expr(target.offset()));
    return write_traced(as_strided({self_holder, meta.sizes, meta.strides, offset}), source_holder);
  }
  Var written = value(from);
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

// ---- numbers ----

Argument<Tensor> FunctionalTrace::scalar_argument(const Scalar& value) {
  return Tensor(value.traced());
}

Scalar FunctionalTrace::number_of(TracedImpl& impl) {
  check_running();
  const Var from = value(impl);
  const Var copy = builder_.call("clone", {builder_.call("view", {from, std::vector<Expr>{}})});
  const Tensor number = make(new_storage(copy), {}, copy);
  auto& out = static_cast<TracedImpl&>(*number.impl());
  out.is_number = true;
  out.kind = kind_of(impl.dtype());
  out.item_where = impl.item_where;
  out.item_of = from;
  return Scalar(out.kind, number.impl_ptr());
}

SymInt FunctionalTrace::symbol_of(const TracedImpl& impl) {
  check_running();
  const graph::Value from = impl.item_of.value();
  const auto [known, fresh] = item_symbols_.emplace(std::pair(from.node, from.result), Expr());
  if (fresh) {
    const Interval values = impl.dtype() == DType::uint8 ? Interval::of(0, 255) : Interval{};
    const Expr symbol(env_->new_symbol(SymbolKind::unbacked, std::nullopt, values));
    builder_.call("bind_value", {builder_.call("to.dtype", {impl.value, DType::int64}), symbol});
    known->second = symbol;
  }
  return to_sym_int(known->second);
}

/// A tensor that the function makes of numbers: part of the graph, made anew by each call.
Tensor FunctionalTrace::constant(const Tensor& made) {
  if (!running()) return made;
  const StridedImpl& impl = strided(made);
  const int64_t bytes = impl.element_count() * itemsize(impl.dtype());
  auto data = std::make_shared<std::vector<std::byte>>(impl.data(), impl.data() + bytes);
  const Var value = builder_.constant(meta_of(impl), std::move(data));
  return make(new_storage(value), {}, value);
}

void FunctionalTrace::note_use(const TracedStorage& storage) {
  if (!storage.exists()) return;
  for (size_t k = 0; k < arguments_.size(); ++k) {
    if (arguments_[k].impl()->storage_id() == storage.memory.impl()->storage_id()) used_[k] = 1;
  }
}

void FunctionalTrace::fix_offset(const TracedStorage& storage) {
  if (!storage.exists()) return;
  for (size_t k = 0; k < arguments_.size(); ++k) {
    if (arguments_[k].impl()->storage_id() == storage.memory.impl()->storage_id()) offset_matters_[k] = 1;
  }
}

void FunctionalTrace::on_read(const std::source_location& where) {
  if (!running()) return;
  read(where, "item() or data_ptr() of a captured tensor");
}

// ---- the end ----

void FunctionalTrace::read(const std::source_location& where, std::string_view what) {
  check_running();
  STAX_CHECK(current_trace() == this,
             "a tensor of a trace is used outside that trace, on another thread or after it ended");
  const std::string place = where.line() > 0 ? text_of(where) : std::string();
  const std::string at = place.empty() ? "" : " at " + place;
  STAX_CHECK(!options_.refuse_reads,
             "{}{} reads a value while the function is traced; under fullgraph or strict_native the whole "
             "function has to be one graph: keep the value a tensor, or pass it as an argument",
             what, at);
  std::vector<Tensor> live;
  {
    const std::lock_guard lock(live_mutex_);
    for (TracedImpl* impl : live_) live.emplace_back(detail::ImplPtr(impl));
  }
  Captured captured = finish(live);
  state_ = State::read;
  read_where_ = place.empty() ? std::string(what) : place;
  suspend_trace();
  const std::vector<Tensor> results = options_.evaluate(std::move(captured));
  for (size_t k = 0; k < live.size(); ++k) static_cast<TracedImpl&>(*live[k].impl()).become(results[k]);
  log::warn(
      fmt::format("{}{} reads a value while the function is traced; the rest of this call, and later "
                  "calls with such arguments, run eagerly",
                  what, at));
}

Tensor unwrapped(const Tensor& tensor) {
  const auto* impl = dynamic_cast<const TracedImpl*>(tensor.impl());
  return impl != nullptr && impl->memory.defined() ? impl->memory : tensor;
}

}  // namespace stax::capture

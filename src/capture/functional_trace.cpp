#include "capture/functional_trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ops/table.h"
#include "support/check.h"
#include "support/log.h"

namespace stax::capture {

using graph::NodeId;
using graph::OpClass;
using graph::TensorMeta;
using graph::Var;
using graph::VarArg;
using graph::VarArgs;

namespace {

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

void FunctionalTrace::check_running() const {
  STAX_CHECK(running(), "a tensor of a trace is used after that trace ended");
}

// ---- tensors ----

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

void FunctionalTrace::on_read(const std::source_location& where) {
  if (!running()) return;
  read(where, "item() or data_ptr() of a captured tensor");
}

// ---- the end ----

void FunctionalTrace::read(const std::source_location& where, std::string_view what) {
  check_running();
  STAX_CHECK(current_trace() == this,
             "a tensor of a trace is used outside that trace, on another thread or after it ended");
  const std::string place = where.line() > 0 ? location_text(where) : std::string();
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

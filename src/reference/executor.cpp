#include "reference/executor.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "kernels/external.h"
#include "loops/range_error.h"
#include "reference/node_runner.h"
#include "support/check.h"

namespace stax::reference {

using loops::Buffer;
using loops::BufferId;
using loops::BufferRole;
using loops::Node;
using loops::NodeKind;
using loops::Operand;
using loops::Program;

namespace {

using ValueOf = std::function<int64_t(Symbol)>;

/// The program for one set of sizes.
struct Resolved {
  std::vector<NodePlan> nodes;         // parallel to Program::nodes; of external nodes nothing is planned
  std::vector<int64_t> arena_offsets;  // bytes of each buffer; -1 where it is not in the arena
  int64_t arena_bytes = 0;
};

/// Bytes from element 0 to the end of the last element.
int64_t extent_bytes(const Buffer& b, const ValueOf& value_of) {
  int64_t last = 0;
  for (size_t d = 0; d < b.sizes.size(); ++d) {
    const int64_t size = evaluate(b.sizes[d], value_of);
    if (size == 0) return 0;
    last += (size - 1) * evaluate(b.strides[d], value_of);
  }
  return (last + 1) * itemsize(b.dtype);
}

/// Places intermediates: each in the first gap that is free from the node that writes it first to the one
/// that uses it last.
void place_intermediates(const Program& p, const ValueOf& value_of, Resolved& out) {
  struct Place {
    int64_t offset, bytes, last;
  };
  std::vector<std::pair<int64_t, int64_t>> lives(p.buffers.size(), {-1, -1});
  for (size_t n = 0; n < p.nodes.size(); ++n) {
    for (const auto& list : {p.nodes[n].reads(), p.nodes[n].writes()}) {
      for (BufferId b : list) {
        if (lives[b].first < 0) lives[b].first = static_cast<int64_t>(n);
        lives[b].second = static_cast<int64_t>(n);
      }
    }
  }
  out.arena_offsets.assign(p.buffers.size(), -1);
  std::vector<Place> live;
  for (size_t n = 0; n < p.nodes.size(); ++n) {
    const auto now = static_cast<int64_t>(n);
    std::erase_if(live, [&](const Place& place) { return place.last < now; });
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      if (p.buffers[b].role != BufferRole::intermediate || lives[b].first != now) continue;
      const int64_t bytes = (extent_bytes(p.buffers[b], value_of) + 127) / 64 * 64;
      int64_t at = 0;
      size_t i = 0;
      for (; i < live.size() && live[i].offset - at < bytes; ++i) at = live[i].offset + live[i].bytes;
      live.insert(live.begin() + static_cast<int64_t>(i), {at, bytes, lives[b].second});
      out.arena_offsets[b] = at;
      out.arena_bytes = std::max(out.arena_bytes, at + bytes);
    }
  }
}

std::shared_ptr<const Resolved> resolve(const Program& p, const ValueOf& value_of) {
  auto out = std::make_shared<Resolved>();
  for (const Node& node : p.nodes) {
    out->nodes.push_back(node.kind == NodeKind::loops ? plan_node(p, node, value_of) : NodePlan());
  }
  place_intermediates(p, value_of, *out);
  return out;
}

bool has_symbols(Expr e) {
  return e.contains(SymbolKind::size) || e.contains(SymbolKind::unbacked);
}

/// Does anything in the program depend on a size that is known only when it runs?
bool has_symbols(const Program& p) {
  const auto any = [](const std::vector<Expr>& list) {
    return std::any_of(list.begin(), list.end(), [](Expr e) { return has_symbols(e); });
  };
  for (const Buffer& b : p.buffers) {
    if (any(b.sizes) || any(b.strides)) return true;
  }
  for (const Node& n : p.nodes) {
    if (any(n.ranges) || any(n.reduction_ranges)) return true;
    for (const auto& inst : n.body) {
      if (has_symbols(inst.index)) return true;
    }
  }
  return !p.bindings.empty();
}

/// The symbols that what the nodes do depends on: sizes of inputs that no node reads may have no values.
std::set<Symbol> used_symbols(const Program& p) {
  std::set<Symbol> used;
  const auto use = [&](Expr e) {
    for (const Symbol s : e.symbols()) used.insert(s);
  };
  for (const Node& n : p.nodes) {
    for (const auto& list : {n.reads(), n.writes()}) {
      for (const BufferId b : list) {
        std::ranges::for_each(p.buffers[b].sizes, use);
        std::ranges::for_each(p.buffers[b].strides, use);
      }
    }
    std::ranges::for_each(n.ranges, use);
    std::ranges::for_each(n.reduction_ranges, use);
    for (const auto& inst : n.body) use(inst.index);
  }
  return used;
}

TensorView view_of(const Operand& o, std::span<void* const> buffers, const ValueOf& value_of) {
  TensorView view;
  view.dtype = o.dtype;
  view.data = static_cast<std::byte*>(buffers[o.buffer]) + evaluate(o.offset, value_of) * itemsize(o.dtype);
  view.sizes.reserve(o.sizes.size());
  view.strides.reserve(o.strides.size());
  for (Expr e : o.sizes) view.sizes.push_back(evaluate(e, value_of));
  for (Expr e : o.strides) view.strides.push_back(evaluate(e, value_of));
  return view;
}

void run_external(const Node& node, std::span<void* const> buffers, const ValueOf& value_of) {
  std::vector<Argument<TensorView>> arguments;
  arguments.reserve(node.arguments.size());
  for (const auto& a : node.arguments) {
    auto converted =
        map_tensors<TensorView>(a, [&](const Operand& o) { return view_of(o, buffers, value_of); });
    if (auto* list = std::get_if<std::vector<Expr>>(&converted.value)) {
      for (Expr& e : *list) e = Expr(evaluate(e, value_of));
    } else if (auto* number = std::get_if<Number>(&converted.value)) {
      number->integer = Expr(evaluate(number->integer, value_of));
    }
    arguments.push_back(std::move(converted));
  }
  std::vector<TensorView> results;
  results.reserve(node.results.size());
  for (const Operand& r : node.results) results.push_back(view_of(r, buffers, value_of));
  kernels::find_external(node.function)(arguments, results);
}

}  // namespace

struct Executable::Impl {
  Program program;
  std::shared_ptr<const Resolved> fixed;  // of a program without symbols
  std::vector<Symbol> symbols;            // that bindings name and nodes use, in order
  mutable std::mutex mutex;
  mutable std::map<std::vector<int64_t>, std::shared_ptr<const Resolved>> by_sizes;

  /// Plans are kept for the sizes met so far, a few at a time.
  std::shared_ptr<const Resolved> resolved(const ValueOf& value_of) const {
    if (fixed) return fixed;
    constexpr size_t kept = 32;
    std::vector<int64_t> key;
    for (Symbol s : symbols) key.push_back(value_of(s));
    const std::lock_guard lock(mutex);
    auto& entry = by_sizes[key];
    if (!entry) {
      auto plan = resolve(program, value_of);
      if (by_sizes.size() > kept) by_sizes.clear();
      return by_sizes[key] = std::move(plan);
    }
    return entry;
  }

  void bind(const Resolved& plan, const loops::Invocation& call, std::byte* arena, void** buffers) const {
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      buffers[b] = buffer.data                  ? const_cast<std::byte*>(buffer.data->data())
                   : plan.arena_offsets[b] >= 0 ? arena + plan.arena_offsets[b]
                                                : nullptr;
    }
    for (size_t i = 0; i < program.inputs.size(); ++i) buffers[program.inputs[i]] = call.inputs[i];
    for (size_t i = 0; i < program.outputs.size(); ++i) buffers[program.outputs[i]] = call.outputs[i];
  }
};

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::~Executable() = default;

const Program& Executable::program() const {
  return impl_->program;
}

std::shared_ptr<const Executable> Executable::prepare(Program program) {
  auto impl = std::make_unique<Impl>();
  impl->program = std::move(program);
  const std::set<Symbol> used = used_symbols(impl->program);
  for (const auto& b : impl->program.bindings) {
    if (used.contains(b.symbol)) impl->symbols.push_back(b.symbol);
  }
  if (!has_symbols(impl->program)) {
    impl->fixed = resolve(impl->program, [](Symbol s) -> int64_t {
      throw_internal_error(__FILE__, __LINE__, "fixed sizes", fmt::format("symbol {} has no value", s.str()));
    });
  }
  return std::shared_ptr<const Executable>(new Executable(std::move(impl)));
}

void Executable::run(const loops::Invocation& call) const {
  const Program& p = impl_->program;
  STAX_ASSERT(call.inputs.size() == p.inputs.size() && call.outputs.size() == p.outputs.size(),
              "the program takes {} inputs and {} outputs, got {} and {}", p.inputs.size(), p.outputs.size(),
              call.inputs.size(), call.outputs.size());
  const ValueOf value_of = [&call](Symbol s) {
    STAX_ASSERT(call.symbols && call.symbols->count(s), "symbol {} has no value", s.str());
    return call.symbols->at(s);
  };
  const auto plan = impl_->resolved(value_of);
  const Scratch pointers(static_cast<int64_t>(p.buffers.size() * sizeof(void*)));
  const Scratch arena(plan->arena_bytes);
  auto** buffers = reinterpret_cast<void**>(pointers.data());
  impl_->bind(*plan, call, arena.data(), buffers);
  const std::span<void* const> bound(buffers, p.buffers.size());
  IndexFailure failure;
  for (size_t n = 0; n < p.nodes.size(); ++n) {
    if (p.nodes[n].kind == NodeKind::external) {
      run_external(p.nodes[n], bound, value_of);
    } else {
      run_node({plan->nodes[n], bound, call.scalars, static_cast<int64_t>(n), &failure});
    }
  }
  if (!failure.any()) [[likely]] {
    return;
  }
  const Node& node = p.nodes[failure.node()];
  throw_user_error_at(node.where, loops::range_error(node.origin.empty() ? node.name : node.origin,
                                                     failure.index(), failure.size()));
}

}  // namespace stax::reference

#include "lowering/lowering.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "loops/analysis.h"
#include "lowering/loop_index.h"
#include "lowering/scalar.h"
#include "support/check.h"

namespace stax::lowering {

using loops::BodyBuilder;
using loops::BufferId;
using loops::BufferRole;
using loops::Inst;
using loops::OpCode;
using loops::ValueId;

namespace {

// While lowering, an index expression names a computed index by Symbol{indirect, id of the value}.
// Instructions name it t0, t1, ... and list the ids. These convert between both forms.
Expr to_local(Expr e, std::vector<ValueId>& ids) {
  if (!e.contains(SymbolKind::indirect)) return e;
  return substitute(e, [&](Symbol s) -> std::optional<Expr> {
    if (s.kind != SymbolKind::indirect) return std::nullopt;
    size_t at = 0;
    while (at < ids.size() && ids[at] != s.number) ++at;
    if (at == ids.size()) ids.push_back(s.number);
    return Expr(Symbol{SymbolKind::indirect, static_cast<int32_t>(at)});
  });
}

Expr to_global(Expr e, const std::vector<ValueId>& ids) {
  if (ids.empty()) return e;
  return substitute(e, [&](Symbol s) -> std::optional<Expr> {
    if (s.kind != SymbolKind::indirect) return std::nullopt;
    return Expr(Symbol{SymbolKind::indirect, ids[s.number]});
  });
}

bool has_index(const Inst& inst) {
  return loops::takes_mask(inst) || inst.op == OpCode::index_value;
}

}  // namespace

// Rebuilds a formula with index symbols replaced and loads predicated; memoised, iterative over the needed
// values only.
ValueId Lowering::reindex(ValueId root, const Index& index, ValueId mask) {
  const auto map = [&](Symbol s) -> std::optional<Expr> {
    if (s.kind != SymbolKind::index) return std::nullopt;
    return index[s.number];
  };
  std::vector<ValueId> copy(static_cast<size_t>(root) + 1, -1);
  for (const ValueId v : loops::needed_by(body_.body(), {&root, 1})) {
    Inst inst = body_[v];
    for (ValueId& a : inst.args) a = copy[a];
    if (has_index(inst)) {
      // The instruction's own t0, t1, ... become global names of the copies before index symbols are
      // replaced, so that indirect symbols inside `index` are not confused with them.
      std::vector<ValueId> ids;
      for (const ValueId a : inst.indirect) ids.push_back(copy[a]);
      const Expr global = to_global(inst.index, ids);
      inst.indirect.clear();
      inst.index = to_local(substitute(global, map), inst.indirect);
    }
    if (mask >= 0 && loops::takes_mask(inst)) {
      if (loops::mask_of(inst) >= 0)
        inst.args.back() = body_.binary(OpCode::bitwise_and, inst.args.back(), mask);
      else
        inst.args.push_back(mask);
    }
    copy[v] = body_.add(std::move(inst));
    if (const auto known = checkers_.find(v); known != checkers_.end()) {
      checkers_.try_emplace(copy[v], known->second);
    }
  }
  return copy[root];
}

V Lowering::load(const Lazy& tensor, const Index& index) {
  STAX_ASSERT(index.size() == tensor.sizes.size(), "lowering: {} indices for a tensor of rank {}",
              index.size(), tensor.sizes.size());
  if (tensor.stored()) {
    std::vector<ValueId> ids;
    const Expr local = to_local(flat_offset(tensor, index), ids);
    return {&body_, body_.load(tensor.buffer, tensor.dtype, local, ids)};
  }
  bool identity = true;
  for (size_t k = 0; k < index.size(); ++k) identity &= index[k] == Expr(index_symbol(k));
  return {&body_, identity ? tensor.formula : reindex(tensor.formula, index, -1)};
}

V Lowering::masked_load(const Lazy& tensor, const Index& index, V mask, V other) {
  V value;
  if (tensor.stored()) {
    std::vector<ValueId> ids;
    const Expr local = to_local(flat_offset(tensor, index), ids);
    value = {&body_, body_.load(tensor.buffer, tensor.dtype, local, ids, mask.id)};
  } else {
    value = {&body_, reindex(tensor.formula, index, mask.id)};
  }
  return where(mask, cast(value, other.dtype()), other);
}

Expr Lowering::indirect(V v) {
  const Inst& inst = body_[v.id];
  if (inst.op == OpCode::index_value) return to_global(inst.index, inst.indirect);
  if (inst.op == OpCode::constant) return Expr(inst.constant.as_int());
  return Expr(Symbol{SymbolKind::indirect, v.id});
}

Expr Lowering::checked(V v, Expr size, bool wrap) {
  Inst inst;
  inst.op = OpCode::check_index;
  inst.dtype = DType::int64;
  inst.args = {cast(v, DType::int64).id};
  inst.index = size;
  inst.number = wrap ? 1 : 0;
  const ValueId id = body_.add(std::move(inst));
  checkers_.try_emplace(id, Checker{origin_, where_, call_});
  return Expr(Symbol{SymbolKind::indirect, id});
}

void Lowering::set_origin(std::string origin, CallStack where) {
  constexpr std::string_view helper = "_formula";  // rows that only other rows call
  if (origin.ends_with(helper)) origin.resize(origin.size() - helper.size());
  origin_ = std::move(origin);
  where_ = std::move(where);
  ++call_;
}

/// Says which operators a node belongs to, given which values of body_ it copies: those whose indices it
/// checks, and the one that it is emitted for.
void Lowering::credit(loops::Node& node, const std::vector<ValueId>& copies) const {
  std::vector<std::string> names;
  std::vector<int32_t> calls;
  node.where = where_;
  for (const auto& [value, checker] : checkers_) {
    const bool copied =
        value < static_cast<ValueId>(copies.size()) && copies[static_cast<size_t>(value)] >= 0;
    if (!copied || std::find(calls.begin(), calls.end(), checker.call) != calls.end()) continue;
    node.where = calls.empty() ? checker.where : CallStack();
    calls.push_back(checker.call);
    if (std::find(names.begin(), names.end(), checker.origin) == names.end()) names.push_back(checker.origin);
  }
  const bool only_copies = origin_ == "copy" || origin_ == "copy_";
  if (names.empty() || (!only_copies && std::find(names.begin(), names.end(), origin_) == names.end())) {
    names.push_back(origin_);
  }
  node.origin = fmt::format("{}", fmt::join(names, ", "));
}

V Lowering::constant(DType dtype, double value) {
  return {&body_, body_.constant(loops::compute_dtype(dtype), value)};
}
V Lowering::constant(DType dtype, int64_t value) {
  return {&body_, body_.int_constant(loops::compute_dtype(dtype), value)};
}

V Lowering::number(const Number& number, DType dtype) {
  if (number.is_float()) return constant(dtype, number.floating);
  if (number.integer.is_constant()) return constant(dtype, number.integer.value());
  return cast(index_value(number.integer), dtype);
}

V Lowering::index_value(Expr e) {
  std::vector<ValueId> ids;
  const Expr local = to_local(e, ids);
  return {&body_, body_.index_value(local, ids)};
}

V Lowering::scalar(DType dtype, int32_t number) {
  Inst inst;
  inst.op = OpCode::scalar;
  inst.dtype = dtype;
  inst.number = number;
  return {&body_, body_.add(std::move(inst))};
}

V Lowering::random_bits(Expr counter, int32_t word) {
  if (program_.scalars.empty()) program_.scalars = {DType::int64, DType::int64};
  Inst inst;
  inst.op = OpCode::random_bits;
  inst.dtype = DType::int64;
  inst.args = {scalar(DType::int64, 0).id, (scalar(DType::int64, 1) + index_value(counter)).id};
  inst.number = word;
  return {&body_, body_.add(std::move(inst))};
}

Lazy Lowering::pointwise(DType dtype, std::vector<Expr> sizes, const std::function<V(const Index&)>& value) {
  Lazy out;
  out.dtype = dtype;
  out.sizes = std::move(sizes);
  out.formula = cast(value(symbols(out.sizes.size(), index_symbol)), dtype).id;
  return out;
}

BufferId Lowering::new_buffer(DType dtype, std::vector<Expr> sizes, std::vector<Expr> strides,
                              BufferRole role) {
  loops::Buffer buffer;
  const auto id = static_cast<BufferId>(program_.buffers.size());
  buffer.name = fmt::format("buf{}", id);
  buffer.dtype = dtype;
  buffer.sizes = std::move(sizes);
  buffer.strides = std::move(strides);
  buffer.role = role;
  program_.buffers.push_back(std::move(buffer));
  return id;
}

Lazy Lowering::new_tensor(DType dtype, std::vector<Expr> sizes, std::vector<Expr> strides) {
  Lazy out;
  out.dtype = dtype;
  out.sizes = sizes;
  out.strides = strides;
  out.buffer = new_buffer(dtype, std::move(sizes), std::move(strides), BufferRole::intermediate);
  return out;
}

// Appends a node that stores `stores` (values of body_), copied with their indices simplified by the node's
// ranges.
void Lowering::emit(std::vector<Expr> ranges, std::vector<Expr> reduction_ranges,
                    const std::vector<Store>& stores) {
  Ranges known = env_.ranges();
  for (size_t k = 0; k < ranges.size(); ++k) known.set_extent(index_symbol(k), ranges[k]);
  // A scan of one element still stores at its reduction variable, so that one is not simplified away.
  const bool one_element = reduction_ranges.size() == 1 && reduction_ranges[0].is(1);
  for (size_t k = 0; k < reduction_ranges.size() && !one_element; ++k)
    known.set_extent(reduction_symbol(k), reduction_ranges[k]);

  std::vector<ValueId> roots;
  for (const Store& s : stores) {
    roots.push_back(s.value);
    if (s.mask >= 0) roots.push_back(s.mask);
    roots.insert(roots.end(), s.indirect.begin(), s.indirect.end());
  }
  BodyBuilder out;
  const std::vector<ValueId> needed = loops::needed_by(body_.body(), roots);
  std::vector<ValueId> copy(needed.empty() ? 0 : static_cast<size_t>(needed.back()) + 1, -1);
  for (const ValueId v : needed) {
    Inst inst = body_[v];
    for (ValueId& a : inst.args) a = copy[a];
    for (ValueId& a : inst.indirect) a = copy[a];
    if (has_index(inst)) inst.index = simplify(inst.index, known);
    copy[v] = out.add(std::move(inst));
  }
  for (const Store& s : stores) {
    Inst inst;
    inst.op = s.accumulate ? OpCode::atomic_add : OpCode::store;
    inst.dtype = out.dtype(copy[s.value]);
    inst.args = {copy[s.value]};
    if (s.mask >= 0) inst.args.push_back(copy[s.mask]);
    inst.buffer = s.buffer;
    inst.index = simplify(s.index, known);
    for (const ValueId a : s.indirect) inst.indirect.push_back(copy[a]);
    out.add(std::move(inst));
  }
  loops::Node node;
  node.name = fmt::format("op{}", program_.nodes.size());
  credit(node, copy);
  node.ranges = std::move(ranges);
  node.reduction_ranges = std::move(reduction_ranges);
  node.body = out.take();
  program_.nodes.push_back(std::move(node));
}

namespace {

// GPUs add to memory in words of four bytes or more (bfloat16: on some). The sums wrap to the narrow type, or
// are rounded to it, at the end.
Lazy scatter_wide(Lowering& lowering, const Lazy& base, std::vector<Expr> sizes,
                  const std::function<Index(const Index&)>& target,
                  const std::function<V(const Index&)>& value) {
  const DType wide = is_floating_point(base.dtype) ? DType::float32 : DType::int32;
  const Lazy from = lowering.pointwise(wide, base.sizes,
                                       [&](const Index& i) { return cast(lowering.load(base, i), wide); });
  const auto term = [&](const Index& i) { return cast(cast(value(i), base.dtype), wide); };
  const Lazy sums = lowering.scatter(from, std::move(sizes), target, term, true);
  return lowering.pointwise(base.dtype, base.sizes, [&](const Index& i) { return lowering.load(sums, i); });
}

}  // namespace

std::vector<Lazy> Lowering::place(const Placement& p) {
  const std::vector<Expr> strides = graph::contiguous_strides(p.sizes);
  const Index i = symbols(p.from.size(), index_symbol);
  const Index at = p.target(i);
  const std::vector<V> values = p.values(i);
  const ValueId mask = p.keep ? p.keep(i).id : -1;
  std::vector<Lazy> out;
  std::vector<Store> stores;
  for (size_t k = 0; k < p.dtypes.size(); ++k) {
    out.push_back(new_tensor(p.dtypes[k], p.sizes, strides));
    Store store{out[k].buffer, Expr(), cast(values[k], p.dtypes[k]).id};
    store.index = to_local(flat_offset(out[k], at), store.indirect);
    store.mask = mask;
    stores.push_back(std::move(store));
  }
  emit(p.from, {}, stores);
  return out;
}

Lazy Lowering::scatter(const Lazy& base, std::vector<Expr> sizes,
                       const std::function<Index(const Index&)>& target,
                       const std::function<V(const Index&)>& value, bool accumulate) {
  if (accumulate && target_.kind == Target::Kind::cuda && itemsize(base.dtype) < 4)
    return scatter_wide(*this, base, std::move(sizes), target, value);
  const std::vector<Expr> strides = graph::contiguous_strides(base.sizes);
  const Index i = symbols(sizes.size(), index_symbol);
  const Index at = target(i);
  Store store{-1, Expr(), cast(value(i), base.dtype).id};
  bool in_place = may_overwrite(base) && base.strides == strides && !reads(store.value, base.buffer, {});
  if (in_place) {
    std::vector<ValueId> ids;
    to_local(flat_offset(base, at), ids);
    for (const ValueId v : ids) in_place = in_place && !reads(v, base.buffer, {});
  }
  const Lazy out = in_place ? base : copy(base, strides);
  store.buffer = out.buffer;
  store.index = to_local(flat_offset(out, at), store.indirect);
  store.accumulate = accumulate;
  emit(std::move(sizes), {}, {store});
  return out;
}

Lazy Lowering::copy(const Lazy& tensor, const std::vector<Expr>& strides) {
  const Lazy out = new_tensor(tensor.dtype, tensor.sizes, strides);
  store_to(out, tensor);
  return out;
}

void Lowering::store_to(const Lazy& target, const Lazy& value) {
  const Index i = symbols(target.sizes.size(), index_symbol);
  emit(target.sizes, {}, {{target.buffer, flat_offset(target, i), cast(load(value, i), target.dtype).id}});
}

bool Lowering::reads(ValueId root, BufferId buffer, std::optional<Expr> but_at) const {
  const loops::Body& body = body_.body();
  return std::ranges::any_of(loops::needed_by(body, {&root, 1}), [&](ValueId v) {
    const Inst& inst = body[v];
    const bool same_place = but_at && inst.indirect.empty() && inst.index == *but_at;
    return inst.op == OpCode::load && inst.buffer == buffer && !same_place;
  });
}

Lazy Lowering::overwrite(const Lazy& base, const Lazy& region, const Lazy& source) {
  STAX_ASSERT(may_overwrite(base), "lowering: {} is read again, and cannot be overwritten",
              base.stored() ? program_.buffers[base.buffer].name : "a formula");
  const Index i = symbols(region.sizes.size(), index_symbol);
  const bool elsewhere = reads(load(source, i).id, base.buffer, flat_offset(region, i));
  store_to(region, elsewhere ? copy(source, graph::contiguous_strides(source.sizes)) : source);
  return base;
}

Lazy Lowering::realize(const Lazy& tensor) {
  return tensor.stored() ? tensor : copy(tensor, graph::contiguous_strides(tensor.sizes));
}

Lazy Lowering::realize(const Lazy& tensor, const std::vector<Expr>& strides) {
  return tensor.stored() ? tensor : copy(tensor, strides);
}

std::vector<Lazy> Lowering::external(const std::string& function, const graph::LazyArgs& args,
                                     const std::vector<graph::TensorMeta>& results) {
  const auto operand = [&](const Lazy& t) {
    const Lazy stored = realize(t);
    return loops::Operand{stored.buffer, stored.dtype, stored.sizes, stored.strides, stored.offset};
  };
  loops::Node node;
  node.kind = loops::NodeKind::external;
  node.origin = origin_;
  node.where = where_;
  node.function = function;
  for (const auto& a : args.values()) node.arguments.push_back(map_tensors<loops::Operand>(a, operand));
  std::vector<Lazy> out;
  for (const graph::TensorMeta& m : results) {
    out.push_back(new_tensor(m.dtype, m.sizes, m.strides));
    node.results.push_back(operand(out.back()));
  }
  node.name = fmt::format("op{}", program_.nodes.size());
  program_.nodes.push_back(std::move(node));
  return out;
}

}  // namespace stax::lowering

// Reductions. Long ones with few results are split in two levels.
#include <algorithm>

#include "loops/analysis.h"
#include "loops/fold.h"
#include "lowering/loop_index.h"
#include "lowering/scalar.h"

namespace stax::lowering {

using loops::BodyBuilder;
using loops::Inst;
using loops::OpCode;
using loops::ValueId;

namespace {

/// Whether a formula loads from where data says.
bool gathers(const loops::Body& body, ValueId formula) {
  return std::ranges::any_of(loops::needed_by(body, {&formula, 1}), [&](ValueId v) {
    return body[v].op == OpCode::load && !body[v].indirect.empty();
  });
}

// Index of element `flat` of a row-major array.
Index unflatten(Expr flat, const std::vector<Expr>& sizes) {
  Index index(sizes.size());
  for (size_t d = sizes.size(); d-- > 1;) {
    index[d] = mod(flat, sizes[d]);
    flat = floor_div(flat, sizes[d]);
  }
  if (!sizes.empty()) index[0] = flat;
  return index;
}

}  // namespace

std::vector<Lazy> Lowering::reduce(const Reduction& wanted) {
  Reduction reduction = wanted;
  if (reduction.reduced.empty())
    reduction.reduced = {Expr(1)};  // of a zero-dim tensor: a reduction of one value
  gather_first(reduction);
  const auto combine = loops::fold_info(reduction.op).total;
  const bool position = loops::finds_position(reduction.op) && target_.kind == Target::Kind::cuda;
  if (!combine && !position) return reduce_at_once(reduction);
  const Split split =
      split_reduction(target_, product(reduction.sizes), product(reduction.reduced), chooser_);
  if (split.count.constant().value_or(2) <= 1) return reduce_at_once(reduction);
  if (position) return position_split(reduction, split);
  const bool exact = split.chunk * split.count == product(reduction.reduced);
  if (!exact && reduction.op == OpCode::reduce_welford && target_.kind == Target::Kind::cpu)
    return reduce_at_once(reduction);
  return reduce_split(reduction, *combine, split);
}

// What few instances of a GPU's kernel would gather from all over memory, one after another, is gathered by a
// loop of its own, which can become part of a kernel with more instances: the one that computed what is
// gathered with.
void Lowering::gather_first(Reduction& reduction) {
  constexpr int64_t kFew = 256;
  if (target_.kind != Target::Kind::cuda || loops::info(reduction.op).operands != 1) return;
  if (target_.batch_invariant) return;  // asks for the number of rows
  const auto rows = chooser_.sizes().hint(product(reduction.sizes));
  const auto length = chooser_.sizes().hint(product(reduction.reduced));
  if (!rows || !length || *rows >= target_.processors || *length < kFew) return;
  const size_t rank = reduction.sizes.size();
  std::vector<Expr> sizes = reduction.sizes;
  sizes.insert(sizes.end(), reduction.reduced.begin(), reduction.reduced.end());
  const auto value = [&](const Index& at) {
    const auto middle = at.begin() + static_cast<int64_t>(rank);
    return cast(reduction.value(Index(at.begin(), middle), Index(middle, at.end()))[0], reduction.accumulate);
  };
  const Lazy formula = pointwise(reduction.accumulate, sizes, value);
  if (!gathers(body_.body(), formula.formula)) return;
  const Lazy stored = realize(formula);
  reduction.value = [this, stored](const Index& i, const Index& r) {
    Index at = i;
    at.insert(at.end(), r.begin(), r.end());
    return std::vector<V>{load(stored, at)};
  };
}

// The first of two levels: `count` partial results of `chunk` values each. Values past the end of an uneven
// last chunk are the identity; of a Welford reduction, parts that hold nothing.
Lowering::Reduction Lowering::partial_reduction(const Reduction& reduction, const Split& split) {
  const size_t rank = reduction.sizes.size();
  const bool exact = split.chunk * split.count == product(reduction.reduced);
  const bool parts = !exact && reduction.op == OpCode::reduce_welford;
  Reduction first{.op = parts ? OpCode::reduce_welford_combine : reduction.op,
                  .accumulate = reduction.accumulate};
  first.sizes = reduction.sizes;
  first.sizes.push_back(split.count);
  first.reduced = {split.chunk};
  first.results = loops::result_count(first.op);
  for (int32_t k = 0; k < first.results; ++k)
    first.dtypes.push_back(loops::result_dtype(first.op, k, reduction.accumulate));
  first.value = [this, reduction, split, rank, exact, parts](const Index& i, const Index& r) {
    const Expr flat = i[rank] * split.chunk + r[0];
    const Index outer(i.begin(), i.begin() + static_cast<int64_t>(rank));
    std::vector<V> values = reduction.value(outer, unflatten(flat, reduction.reduced));
    if (exact) return values;
    const Expr length = product(reduction.reduced);
    for (V& v : values) v = inside_or_identity(v, flat, length, i.size(), reduction.op, reduction.accumulate);
    const V inside = lt(index_value(flat), index_value(length));
    if (parts) values = {values[0], like(values[0], 0.0), cast(inside, reduction.accumulate)};
    return values;
  };
  return first;
}

// `value`, a formula over `rank` index variables, where element `flat` lies before `length`; elsewhere what
// changes nothing.
V Lowering::inside_or_identity(V value, Expr flat, Expr length, size_t rank, OpCode op, DType accumulate) {
  const V inside = lt(index_value(flat), index_value(length));
  const V v = cast({&body_, reindex(value.id, symbols(rank, index_symbol), inside.id)}, accumulate);
  return where(inside, v, identity(op, v.dtype()));
}

std::vector<Lazy> Lowering::reduce_split(const Reduction& reduction, OpCode combine, const Split& split) {
  const std::vector<Lazy> partials = reduce_at_once(partial_reduction(reduction, split));
  Reduction second = reduction;
  second.op = combine;
  second.accumulate = partials[0].dtype;
  second.reduced = {split.count};
  second.value = [&](const Index& i, const Index& r) {
    Index at = i;
    at.push_back(r[0]);
    std::vector<V> values;
    for (const Lazy& p : partials) values.push_back(load(p, at));
    return values;
  };
  std::vector<Lazy> results = reduce_at_once(second);
  if (target_.kind == Target::Kind::cuda)
    for (const Lazy& result : results) split_results_.insert(result.buffer);
  return results;
}

// Positions: the first level's are those within a chunk. The second finds the chunk, of equal ones the first.
std::vector<Lazy> Lowering::position_split(const Reduction& reduction, const Split& split) {
  const std::vector<Lazy> partials = reduce_at_once(partial_reduction(reduction, split));
  Reduction second = reduction;
  second.reduced = {split.count};
  second.results = 2;
  second.value = [&](const Index& i, const Index& r) {
    Index at = i;
    at.push_back(r[0]);
    return std::vector<V>{load(partials[1], at)};
  };
  second.finish = [&](const std::vector<V>& chunk) {
    Index at = symbols(reduction.sizes.size(), index_symbol);
    at.push_back(indirect(chunk[0]));
    const std::vector<V> results = {chunk[0] * index_value(split.chunk) + load(partials[0], at), chunk[1]};
    return reduction.finish ? reduction.finish(results) : results;
  };
  return reduce_at_once(second);
}

V Lowering::identity(OpCode op, DType dtype) {
  const loops::Constant value = loops::identity_of(op, dtype);
  return is_floating_point(dtype) ? constant(dtype, value.as_double()) : constant(dtype, value.as_int());
}

std::vector<Lazy> Lowering::reduce_at_once(const Reduction& reduction) {
  const Index i = symbols(reduction.sizes.size(), index_symbol);
  const Index r = symbols(reduction.reduced.size(), reduction_symbol);
  std::vector<ValueId> operands;
  for (const V& v : reduction.value(i, r)) operands.push_back(cast(v, reduction.accumulate).id);
  const auto dtype = [&](int32_t k) { return loops::result_dtype(reduction.op, k, reduction.accumulate); };
  const ValueId first = body_.reduce(reduction.op, dtype(0), operands);
  std::vector<V> results = {{&body_, first}};
  for (int32_t k = 1; k < reduction.results; ++k)
    results.push_back({&body_, body_.result(first, k, dtype(k))});
  const std::vector<V> finished = reduction.finish ? reduction.finish(results) : results;
  std::vector<Lazy> out;
  std::vector<Store> stores;
  for (size_t k = 0; k < reduction.dtypes.size(); ++k) {
    out.push_back(
        new_tensor(reduction.dtypes[k], reduction.sizes, graph::contiguous_strides(reduction.sizes)));
    stores.push_back(
        {out.back().buffer, flat_offset(out.back(), i), cast(finished[k], reduction.dtypes[k]).id});
  }
  emit(reduction.sizes, reduction.reduced, stores);
  return out;
}

}  // namespace stax::lowering

// Reductions and scans: nodes with reduction ranges. Long reductions with few results are split in two
// levels.
#include "loops/analysis.h"
#include "loops/fold.h"
#include "lowering/loop_index.h"
#include "lowering/scalar.h"

namespace stax::lowering {

using loops::OpCode;
using loops::ValueId;

namespace {

// How the partial results of a split reduction are merged.
std::optional<OpCode> combining(OpCode op) {
  switch (op) {
    case OpCode::reduce_sum:
    case OpCode::reduce_prod:
    case OpCode::reduce_max:
    case OpCode::reduce_min:
    case OpCode::reduce_any:
    case OpCode::reduce_all:
    case OpCode::reduce_xor:
      return op;
    case OpCode::reduce_welford:
      return OpCode::reduce_welford_combine;
    default:
      return std::nullopt;
  }
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
  const auto combine = combining(reduction.op);
  if (combine) {
    const Split split =
        split_reduction(target_, product(reduction.sizes), product(reduction.reduced), chooser_);
    const bool exact = split.chunk * split.count == product(reduction.reduced);
    if (split.count.constant().value_or(2) > 1 && (exact || reduction.op != OpCode::reduce_welford)) {
      return reduce_split(reduction, *combine, split, exact);
    }
  }
  return reduce_at_once(reduction);
}

// Two levels: `count` partial results of `chunk` values each, then a reduction over them. Values past the end
// of an uneven last chunk are the identity.
std::vector<Lazy> Lowering::reduce_split(const Reduction& reduction, OpCode combine, const Split& split,
                                         bool exact) {
  const size_t rank = reduction.sizes.size();
  Reduction first{.op = reduction.op, .accumulate = reduction.accumulate};
  first.sizes = reduction.sizes;
  first.sizes.push_back(split.count);
  first.reduced = {split.chunk};
  first.results = combine == OpCode::reduce_welford_combine ? 3 : 1;
  const DType partial = loops::result_dtype(reduction.op, 0, reduction.accumulate);
  first.dtypes.assign(first.results, partial);
  first.value = [&](const Index& i, const Index& r) {
    const Expr flat = i[rank] * split.chunk + r[0];
    const Index outer(i.begin(), i.begin() + static_cast<int64_t>(rank));
    std::vector<V> values = reduction.value(outer, unflatten(flat, reduction.reduced));
    if (exact) return values;
    const V inside = lt(index_value(flat), index_value(product(reduction.reduced)));
    for (V& v : values) {
      v = cast({&body_, reindex(v.id, symbols(i.size(), index_symbol), inside.id)}, reduction.accumulate);
      v = where(inside, v, identity(reduction.op, v.dtype()));
    }
    return values;
  };
  const std::vector<Lazy> partials = reduce_at_once(first);
  Reduction second = reduction;
  second.op = combine;
  second.accumulate = partial;
  second.reduced = {split.count};
  second.value = [&](const Index& i, const Index& r) {
    Index at = i;
    at.push_back(r[0]);
    std::vector<V> values;
    for (const Lazy& p : partials) values.push_back(load(p, at));
    return values;
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

std::vector<Lazy> Lowering::scan(OpCode op, DType accumulate, std::vector<Expr> sizes,
                                 const std::function<V(const Index&)>& value, std::vector<DType> dtypes) {
  std::vector<Expr> outer(sizes.begin(), sizes.end() - 1);
  Index index = symbols(outer.size(), index_symbol);
  index.emplace_back(reduction_symbol(0));
  const V operand = cast(value(index), accumulate);
  const ValueId first = body_.reduce(op, loops::result_dtype(op, 0, accumulate), {operand.id});
  std::vector<Lazy> out;
  std::vector<Store> stores;
  for (size_t k = 0; k < dtypes.size(); ++k) {
    const auto number = static_cast<int32_t>(k);
    const DType dtype = loops::result_dtype(op, number, accumulate);
    const V result = {&body_, k == 0 ? first : body_.result(first, number, dtype)};
    out.push_back(new_tensor(dtypes[k], sizes, graph::contiguous_strides(sizes)));
    stores.push_back({out.back().buffer, flat_offset(out.back(), index), cast(result, dtypes[k]).id});
  }
  emit(outer, {sizes.back()}, stores);
  return out;
}

}  // namespace stax::lowering

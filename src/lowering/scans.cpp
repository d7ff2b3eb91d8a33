// Scans: running results along a dimension, and orders. On a GPU long scans of few rows are cut into chunks.
#include <algorithm>

#include "loops/fold.h"
#include "lowering/loop_index.h"
#include "lowering/scalar.h"

namespace stax::lowering {

using loops::OpCode;
using loops::ValueId;

namespace {

/// Without dimension `dim`.
template <class T>
std::vector<T> but(std::vector<T> list, size_t dim) {
  list.erase(list.begin() + static_cast<int64_t>(dim));
  return list;
}

/// Index variables, and at `dim` the variable of the scan.
Index scan_index(size_t rank, size_t dim) {
  Index index = symbols(rank - 1, index_symbol);
  index.insert(index.begin() + static_cast<int64_t>(dim), Expr(reduction_symbol(0)));
  return index;
}

/// 0 for an infinite maximum, which is subtracted from nothing.
V guarded(V maximum) {
  return where(isinf(maximum), like(maximum, 0.0), maximum);
}

/// log(exp(a) + exp(b)).
V log_of_sum(V a, V b) {
  const V m = maximum(a, b);
  return where(isinf(m), m, m + log(exp(a - m) + exp(b - m)));
}

/// The results up to an element, from those of all `before` its chunk and its `own` within the chunk.
std::vector<V> carried_into(OpCode op, const std::vector<V>& before, const std::vector<V>& own) {
  const loops::FoldInfo& fold = loops::fold_info(op);
  if (fold.step) return {binary(*fold.step, before[0], own[0])};
  if (op == OpCode::scan_logaddexp) return {log_of_sum(before[0], own[0])};
  // The later of equal extrema; NaN before numbers.
  V take = binary(*fold.replaces, own[0], before[0]);
  if (is_floating_point(own[0].dtype())) take = bitwise_or(take, isnan(own[0]));
  return {where(take, own[0], before[0]), where(take, own[1], before[1])};
}

}  // namespace

std::vector<Lazy> Lowering::scan(const Scan& scan) {
  const auto at = scan.sizes.begin() + static_cast<int64_t>(scan.dim);
  const Expr outer = product(std::vector<Expr>(scan.sizes.begin(), at));
  const Expr inner = product(std::vector<Expr>(at + 1, scan.sizes.end()));
  const Split split = split_scan(target_, outer, inner, *at, chooser_);
  return split.count.constant().value_or(2) <= 1 ? scan_at_once(scan) : scan_split(scan, split);
}

/// All results of the scan over `value`.
std::vector<V> Lowering::scanned(const Scan& scan, V value) {
  const V operand = cast(value, scan.accumulate);
  std::vector<V> results;
  for (int32_t k = 0; k < loops::result_count(scan.op); ++k) {
    const DType dtype = loops::result_dtype(scan.op, k, scan.accumulate);
    const ValueId id =
        k == 0 ? body_.reduce(scan.op, dtype, {operand.id}) : body_.result(results[0].id, k, dtype);
    results.push_back({&body_, id});
  }
  return results;
}

/// Stores the results of the elements `at`, by a loop over `ranges` that scans along `chunk`. Where that is
/// not `exact`, some of them lie past the end.
std::vector<Lazy> Lowering::store_scan(const Scan& scan, std::vector<V> results, const Index& at,
                                       const std::vector<Expr>& ranges, Expr chunk, bool exact) {
  if (scan.finish) results = scan.finish(results, at);
  std::vector<Expr> strides;
  if (target_.kind == Target::Kind::cuda) {
    strides = graph::contiguous_strides(scan.sizes);
  } else {
    const auto at = static_cast<int64_t>(scan.dim);
    std::vector<Expr> moved = but(scan.sizes, scan.dim);
    moved.push_back(scan.sizes[scan.dim]);
    strides = graph::contiguous_strides(moved);
    std::rotate(strides.begin() + at, strides.end() - 1, strides.end());
  }
  std::vector<Lazy> out;
  const ValueId inside = exact ? -1 : lt(index_value(at[scan.dim]), index_value(scan.sizes[scan.dim])).id;
  std::vector<Store> stores;
  for (size_t k = 0; k < scan.dtypes.size(); ++k) {
    out.push_back(new_tensor(scan.dtypes[k], scan.sizes, strides));
    stores.push_back({.buffer = out[k].buffer,
                      .index = flat_offset(out[k], at),
                      .value = cast(results[k], out[k].dtype).id,
                      .mask = inside});
  }
  emit(ranges, {chunk}, stores);
  return out;
}

std::vector<Lazy> Lowering::scan_at_once(const Scan& scan) {
  const Index index = scan_index(scan.sizes.size(), scan.dim);
  return store_scan(scan, scanned(scan, scan.value(index)), index, but(scan.sizes, scan.dim),
                    scan.sizes[scan.dim], true);
}

std::vector<Lazy> Lowering::order(const Order& order) {
  const Index run = symbols(order.sizes.size(), index_symbol);
  const Expr place(reduction_symbol(0));
  const V own = order.key(run, place);
  const V key{&body_, body_.reduce(OpCode::scan_sort, DType::int64, {own.id})};
  std::optional<V> kept;
  if (!env_.proves(eq(order.keep, order.length))) kept = lt(index_value(place), index_value(order.keep));
  const std::vector<V> values = order.values(run, key, kept);
  std::vector<Expr> sizes = order.sizes;
  sizes[order.dim] *= order.keep;
  Index at = run;
  at[order.dim] = run[order.dim] * order.keep + place;
  std::vector<Lazy> out;
  std::vector<Store> stores;
  for (size_t k = 0; k < order.dtypes.size(); ++k) {
    out.push_back(new_tensor(order.dtypes[k], sizes, graph::contiguous_strides(sizes)));
    stores.push_back({.buffer = out[k].buffer,
                      .index = flat_offset(out[k], at),
                      .value = cast(values[k], out[k].dtype).id,
                      .mask = kept ? kept->id : -1});
  }
  emit(order.sizes, {order.length}, stores);
  return out;
}

// Three kernels: the total of each chunk, the totals of what comes before each, and the scans of the chunks,
// which go on from there. Nothing is ever subtracted, so infinities stay what they are.
std::vector<Lazy> Lowering::scan_split(const Scan& scan, const Split& split) {
  const size_t rank = scan.sizes.size(), dim = scan.dim;
  const Expr length = scan.sizes[dim];
  const bool exact = split.chunk * split.count == length;
  const Expr r(reduction_symbol(0));
  const auto element = [&](const Index& chunk) {
    Index at = chunk;
    at[dim] = chunk[dim] * split.chunk + r;
    return at;
  };
  Scan chunks = scan;
  chunks.sizes[dim] = split.count;
  chunks.finish = {};
  chunks.value = [&](const Index& chunk) {
    const Index at = element(chunk);
    const V v = cast(scan.value(at), scan.accumulate);
    return exact ? v : inside_or_identity(v, at[dim], length, rank, scan.op, scan.accumulate);
  };
  const std::vector<Lazy> before = totals_before(chunks, split);

  const Index chunk = symbols(rank, index_symbol), at = element(chunk);
  Index previous = chunk;
  previous[dim] = chunk[dim] - 1;
  const V follows = gt(index_value(chunk[dim]), index_value(Expr(0)));
  std::vector<V> own = scanned(scan, chunks.value(chunk)), carried;
  carried.push_back(masked_load(before[0], previous, follows, identity(scan.op, scan.accumulate)));
  if (own.size() > 1) {
    carried.push_back(masked_load(before[1], previous, follows, constant(DType::int64, int64_t{0})));
    own[1] = own[1] + index_value(chunk[dim] * split.chunk);
  }
  return store_scan(scan, carried_into(scan.op, carried, own), at, chunks.sizes, split.chunk, exact);
}

// The results at the end of each chunk: a scan over the totals of the chunks, which are reductions.
std::vector<Lazy> Lowering::totals_before(const Scan& chunks, const Split& split) {
  const size_t dim = chunks.dim;
  const auto total = [&](OpCode op, DType dtype, const std::function<V(const Index&)>& value) {
    return reduce_at_once({.op = op,
                           .accumulate = dtype,
                           .sizes = chunks.sizes,
                           .reduced = {split.chunk},
                           .value = [&](const Index& i, const Index&) { return std::vector<V>{value(i)}; },
                           .dtypes = {dtype},
                           .finish = {}})[0];
  };
  Scan totals = chunks;
  totals.dtypes = {chunks.accumulate};
  if (chunks.op == OpCode::scan_logaddexp) {
    const Lazy largest = total(OpCode::reduce_max, chunks.accumulate, chunks.value);
    const Lazy sums = total(OpCode::reduce_sum, chunks.accumulate,
                            [&](const Index& i) { return exp(chunks.value(i) - guarded(load(largest, i))); });
    totals.value = [&, largest, sums](const Index& i) {
      const V m = load(largest, i);
      return where(isinf(m), m, m + log(load(sums, i)));
    };
    return scan_at_once(totals);
  }
  const Lazy ends = total(*loops::fold_info(chunks.op).total, chunks.accumulate, chunks.value);
  totals.value = [&, ends](const Index& i) { return load(ends, i); };
  if (!loops::finds_position(chunks.op)) return scan_at_once(totals);
  const Lazy last = total(OpCode::reduce_max, DType::int64, [&](const Index& i) {
    const V v = chunks.value(i);
    V found = eq(v, load(ends, i));
    if (is_floating_point(v.dtype())) found = bitwise_or(found, isnan(v));
    return where(found, index_value(Expr(reduction_symbol(0))), constant(DType::int64, int64_t{-1}));
  });
  totals.dtypes.push_back(DType::int64);
  totals.finish = [&, last](const std::vector<V>& results, const Index& i) {
    Index at = i;
    at[dim] = indirect(results[1]);
    return std::vector<V>{results[0], results[1] * index_value(split.chunk) + load(last, at)};
  };
  return scan_at_once(totals);
}

}  // namespace stax::lowering

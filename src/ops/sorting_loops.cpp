// The rules of sorting_rules.h.
#include <optional>

#include "ops/shape_rules.h"
#include "ops/sorting_rules.h"

namespace stax::ops {
namespace {

/// Beyond it, sorting on the CPU and copying there and back is taken to be faster.
constexpr int64_t kLongestRow = 16384;
/// Rows that one block sorts at once. (For 4096 elements Triton takes seconds, and the reference executor has
/// smaller blocks.)
constexpr int64_t kSortedRow = 2048;

/// Of rows longer than `whole`, the largest few elements are among those of chunks.
struct Cut {
  int64_t whole, chunk;
};
constexpr Cut kSorted = {kSortedRow, 1024}, kRanked = {4096, 512};

/// Elements of a tensor along one dimension.
struct Rows {
  Lazy self;
  size_t dim = 0;

  Expr length() const { return self.sizes[dim]; }
  Index at(const Index& i, Expr position) const {
    Index index = i;
    index[dim] = position;
    return index;
  }
};

/// No rows where the tensor has no dimensions.
std::optional<Rows> rows_of(const LazyArgs& args) {
  const Lazy& self = args.tensor(0);
  if (self.dim() == 0) return std::nullopt;
  return Rows{self,
              static_cast<size_t>(wrap_dim(args["dim"].integer().value(), self.dim(), args.schema().name))};
}

/// The rows if they are short enough to compare each element with all of them.
std::optional<Rows> short_rows(Lowering& lowering, const LazyArgs& args) {
  auto rows = rows_of(args);
  if (!rows || !lowering.env().proves(le(rows->length(), kLongestRow))) return std::nullopt;
  rows->self = lowering.realize(rows->self);
  return rows;
}

/// Whether a number of 64 bits holds the key of an element and its position, which has 32 bits.
bool has_short_key(DType dtype) {
  return itemsize(dtype) <= 4;
}

/// Whether one block sorts each run of `length` elements.
bool sorts_at_once(Lowering& lowering, const Rows& rows, Expr length) {
  if (!has_short_key(rows.self.dtype) || length.is(0) || length.is(1)) return false;
  return lowering.env().proves(le(length, kSortedRow));
}

/// An element as a number that can be compared; anything where `inside` is false.
V key(Lowering& lowering, const Rows& rows, const Index& i, std::optional<V> inside = {}) {
  const auto zero = [&] { return lowering.constant(compute_dtype(rows.self.dtype), int64_t{0}); };
  const V v = inside ? lowering.masked_load(rows.self, i, *inside, zero()) : lowering.load(rows.self, i);
  return v.dtype() == DType::boolean ? cast(v, DType::int32) : v;
}

/// Whether a comes before b, which is not the same.
V before(V a, V b, bool largest_first) {
  if (largest_first) std::swap(a, b);
  const V less = lt(a, b);
  return is_floating_point(a.dtype()) ? bitwise_or(less, bitwise_and(isnan(b), logical_not(isnan(a)))) : less;
}

/// The first 32 bits of the key of an element: an integer that is the smaller, the earlier v comes. Zeros are
/// equal, and NaN is beyond infinity.
V first_half(V v, bool largest_first) {
  V bits = v;
  if (is_floating_point(v.dtype())) {
    // Negative floats are the larger, as integers, the smaller they are.
    const V raw = bitcast(where(eq(v, 0.0), like(v, 0.0), v), DType::int32);
    bits = bitwise_xor(raw, where(lt(raw, 0.0), like(raw, 0x7fffffff), like(raw, 0.0)));
    bits = where(isnan(v), like(raw, 0x7fffffff), bits);
  }
  bits = cast(bits, DType::int32);
  return cast(largest_first ? bitwise_not(bits) : bits, DType::int64);
}

/// Parts of each row, one after another; the last may be shorter.
struct Chunks {
  Expr length, count = 1;

  bool whole() const { return count.is(1); }
  Expr number_of(Expr position) const { return whole() ? Expr(0) : floor_div(position, length); }
};

/// The first `k` elements of each chunk, which one block sorts, and their positions (as below).
Lazies sorted_chunks(Lowering& lowering, const Rows& rows, const Lazy* positions, const Chunks& chunks,
                     Expr k, bool largest_first) {
  constexpr int64_t kHalf = int64_t{1} << 32;
  const bool partial = !chunks.whole() && !lowering.env().proves(eq(mod(rows.length(), chunks.length), 0));
  Lowering::Order order{.sizes = rows.self.sizes,
                        .dim = rows.dim,
                        .length = chunks.length,
                        .keep = k,
                        .dtypes = {rows.self.dtype, DType::int64}};
  order.sizes[rows.dim] = chunks.count;
  const auto constant = [&](int64_t value) { return lowering.constant(DType::int64, value); };
  order.key = [&](const Index& run, Expr position) {
    const Expr at = run[rows.dim] * chunks.length + position;
    std::optional<V> inside;
    if (partial) inside = lt(lowering.index_value(at), lowering.index_value(rows.length()));
    const V half = first_half(key(lowering, rows, rows.at(run, at), inside), largest_first);
    const V whole = half * constant(kHalf) + lowering.index_value(position);
    return inside ? where(*inside, whole, lowering.identity(OpCode::scan_sort, DType::int64)) : whole;
  };
  // Values are read again, since zeros and NaN cannot be told from their keys.
  order.values = [&](const Index& run, V key, std::optional<V> kept) -> std::vector<V> {
    const Expr position = lowering.indirect(bitwise_and(key, constant(kHalf - 1)));
    const Index at = rows.at(run, run[rows.dim] * chunks.length + position);
    const auto loaded = [&](const Lazy& from) {
      if (!kept) return lowering.load(from, at);
      return lowering.masked_load(from, at, *kept, lowering.constant(compute_dtype(from.dtype), int64_t{0}));
    };
    return {loaded(rows.self),
            positions != nullptr ? loaded(*positions) : lowering.index_value(at[rows.dim])};
  };
  return lowering.order(order);
}

/// How many elements of its chunk come before each element.
Lazy ranks(Lowering& lowering, const Rows& rows, const Chunks& chunks, bool largest_first) {
  const bool partial = !chunks.whole() && !lowering.env().proves(eq(mod(rows.length(), chunks.length), 0));
  const auto value = [&](const Index& i, const Index& r) -> std::vector<V> {
    const Expr position = i[rows.dim], other_position = chunks.number_of(position) * chunks.length + r[0];
    const V mine = key(lowering, rows, i), at = lowering.index_value(other_position);
    std::optional<V> inside;
    if (partial) inside = lt(at, lowering.index_value(rows.length()));
    const V other = key(lowering, rows, rows.at(i, other_position), inside);
    // Of equal elements the earlier one comes first.
    V comes_first =
        where(lt(at, lowering.index_value(position)), logical_not(before(mine, other, largest_first)),
              before(other, mine, largest_first));
    if (inside) comes_first = bitwise_and(comes_first, *inside);
    return {cast(comes_first, DType::int32)};
  };
  return lowering.reduce({.op = OpCode::reduce_sum,
                          .accumulate = DType::int32,
                          .sizes = rows.self.sizes,
                          .reduced = {chunks.length},
                          .value = value,
                          .dtypes = {DType::int64}})[0];
}

/// The first `k` elements of each chunk, in order, and their positions: those that `positions` holds, or
/// where they are in the rows.
Lazies first_of_chunks(Lowering& lowering, const Rows& rows, const Lazy* positions, const Chunks& chunks,
                       Expr k, bool largest_first) {
  if (sorts_at_once(lowering, rows, chunks.length))
    return sorted_chunks(lowering, rows, positions, chunks, k, largest_first);
  const Lazy rank = ranks(lowering, rows, chunks, largest_first);
  Lowering::Placement placement{
      .dtypes = {rows.self.dtype, DType::int64}, .sizes = rows.self.sizes, .from = rows.self.sizes};
  placement.sizes[rows.dim] = chunks.count * k;
  placement.target = [&](const Index& i) {
    const Expr place = lowering.indirect(lowering.load(rank, i));
    return rows.at(i, chunks.number_of(i[rows.dim]) * k + place);
  };
  placement.values = [&](const Index& i) -> std::vector<V> {
    return {lowering.load(rows.self, i),
            positions != nullptr ? lowering.load(*positions, i) : lowering.index_value(i[rows.dim])};
  };
  if (!lowering.env().proves(eq(k, chunks.length)))
    placement.keep = [&](const Index& i) { return lt(lowering.load(rank, i), lowering.index_value(k)); };
  return lowering.place(placement);
}

/// Sorted values and the positions they come from.
Lazies sorted(Lowering& lowering, const Rows& rows, bool largest_first) {
  return first_of_chunks(lowering, rows, nullptr, {rows.length()}, rows.length(), largest_first);
}

/// Lengths of chunks of a row of `length` elements, then of what they leave, and so on, that are looked
/// through for the first `k`; each chunk has as many. Nothing where too much is left.
std::optional<std::vector<int64_t>> levels(Lowering& lowering, const Rows& rows, int64_t k) {
  int64_t length = rows.length().value();
  std::vector<int64_t> out;
  const Cut& cut = sorts_at_once(lowering, rows, kSorted.chunk) ? kSorted : kRanked;
  while (length > cut.whole && k <= cut.chunk / 4) {
    int64_t chunk = cut.chunk;
    while (length % chunk != 0 && length % chunk < k) --chunk;
    out.push_back(chunk);
    length = (length + chunk - 1) / chunk * k;
  }
  return length <= kLongestRow ? std::optional(out) : std::nullopt;
}

/// What `from`, sorted values and positions, hold at source(i).
Lazies picked(Lowering& lowering, const Lazies& from, const Exprs& sizes,
              const std::function<Index(const Index&)>& source) {
  Lazies out;
  for (const Lazy& t : from)
    out.push_back(
        lowering.pointwise(t.dtype, sizes, [&](const Index& i) { return lowering.load(t, source(i)); }));
  return out;
}

/// One element of each sorted row, at position(i), where i is 0 along the rows.
Lazies one_of_each(Lowering& lowering, const LazyArgs& args, const Rows& rows,
                   const std::function<Expr(const Index&)>& position) {
  const auto dim = static_cast<int64_t>(rows.dim);
  const bool keep = args["keepdim"].boolean();
  Exprs sizes = rows.self.sizes;
  if (keep)
    sizes[rows.dim] = 1;
  else
    sizes.erase(sizes.begin() + dim);
  return picked(lowering, sorted(lowering, rows, false), sizes, [&](const Index& i) {
    Index first = i;
    if (keep)
      first[rows.dim] = 0;
    else
      first.insert(first.begin() + dim, Expr(0));
    return rows.at(first, position(first));
  });
}

/// How many elements of each row are NaN; length 1 along the rows.
Lazy count_nans(Lowering& lowering, const Rows& rows) {
  Exprs sizes = rows.self.sizes;
  sizes[rows.dim] = 1;
  return lowering.reduce({.op = OpCode::reduce_sum,
                          .accumulate = DType::int32,
                          .sizes = sizes,
                          .reduced = {rows.length()},
                          .value = [&](const Index& i, const Index& r) -> std::vector<V> {
                            const V v = lowering.load(rows.self, rows.at(i, r[0]));
                            return {cast(isnan(v), DType::int32)};
                          },
                          .dtypes = {DType::int64}})[0];
}

// The lower median; with `skip_nan` of the numbers only. NaN, at its first position, where there is one
// otherwise.
Lazies median_of_rows(Lowering& lowering, const LazyArgs& args, bool skip_nan) {
  const auto rows = short_rows(lowering, args);
  if (!rows) return {};
  if (!is_floating_point(rows->self.dtype)) {
    const Expr middle = floor_div(rows->length() - 1, 2);
    return one_of_each(lowering, args, *rows, [&](const Index&) { return middle; });
  }
  const Lazy nans = count_nans(lowering, *rows);
  return one_of_each(lowering, args, *rows, [&](const Index& i) {
    const auto constant = [&](int64_t value) { return lowering.constant(DType::int64, value); };
    const V numbers = lowering.index_value(rows->length()) - lowering.load(nans, i);
    const V nan_first =
        skip_nan ? eq(numbers, constant(0)) : lt(numbers, lowering.index_value(rows->length()));
    // Of no numbers, the median would be at -1.
    const V middle = trunc_div(maximum(numbers - constant(1), constant(0)), constant(2));
    return lowering.indirect(where(nan_first, numbers, middle));
  });
}

}  // namespace

void settle_order_of_rows(ShapeEnv& env, DType dtype, Expr length) {
  if (has_short_key(dtype) && env.decide(le(length, kSortedRow))) return;
  env.decide(le(length, kLongestRow));
}

Lazies lower_sort(Lowering& lowering, const LazyArgs& args) {
  const auto rows = short_rows(lowering, args);
  return rows ? sorted(lowering, *rows, args["descending"].boolean()) : Lazies();
}

Lazies lower_topk(Lowering& lowering, const LazyArgs& args) {
  const Expr k = args["k"].integer();
  const bool largest = args["largest"].boolean();
  auto rows = rows_of(args);
  std::optional<std::vector<int64_t>> chunks;
  if (rows && k.is_constant() && rows->length().is_constant())
    chunks = levels(lowering, *rows, k.value());
  else if (rows && lowering.env().proves(le(rows->length(), kLongestRow)))
    chunks.emplace();
  if (!chunks) return {};
  rows->self = lowering.realize(rows->self);
  std::optional<Lazy> positions;
  const auto narrow = [&](const Chunks& to) {
    Lazies found = first_of_chunks(lowering, *rows, positions ? &*positions : nullptr, to, k, largest);
    rows->self = found[0];
    positions = found[1];
  };
  for (const int64_t chunk : *chunks) narrow({chunk, ceil_div(rows->length(), chunk)});
  narrow({rows->length()});
  return {rows->self, *positions};
}

Lazies lower_kthvalue(Lowering& lowering, const LazyArgs& args) {
  const auto rows = short_rows(lowering, args);
  if (!rows) return {};
  const Expr position = args["k"].integer() - 1;
  return one_of_each(lowering, args, *rows, [&](const Index&) { return position; });
}

Lazies lower_median(Lowering& lowering, const LazyArgs& args) {
  return median_of_rows(lowering, args, false);
}

Lazies lower_nanmedian(Lowering& lowering, const LazyArgs& args) {
  return median_of_rows(lowering, args, true);
}

}  // namespace stax::ops

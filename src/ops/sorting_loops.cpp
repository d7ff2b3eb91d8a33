// The rules of sorting_rules.h.
#include <optional>

#include "ops/shape_rules.h"
#include "ops/sorting_rules.h"

namespace stax::ops {
namespace {

/// Beyond it, sorting on the CPU and copying there and back is taken to be faster.
constexpr int64_t kLongestRow = 16384;
/// Of longer rows, the largest few elements are among those of chunks of this length.
constexpr int64_t kWholeRow = 4096, kChunk = 512;

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

/// Parts of each row, one after another; the last may be shorter.
struct Chunks {
  Expr length, count = 1;

  bool whole() const { return count.is(1); }
  Expr number_of(Expr position) const { return whole() ? Expr(0) : floor_div(position, length); }
};

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
std::optional<std::vector<int64_t>> levels(int64_t length, int64_t k) {
  std::vector<int64_t> out;
  while (length > kWholeRow && k <= kChunk / 4) {
    int64_t chunk = kChunk;
    while (length % chunk != 0 && length % chunk < k) ++chunk;
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

bool sorts_by_ranks(ShapeEnv& env, Expr length) {
  return env.decide(le(length, kLongestRow));
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
    chunks = levels(rows->length().value(), k.value());
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

// The rules of sorting_rules.h.
#include "ops/shape_rules.h"
#include "ops/sorting_rules.h"

namespace stax::ops {
namespace {

/// Beyond it, sorting on the CPU and copying there and back is taken to be faster.
constexpr int64_t kLongestRow = 16384;

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

/// No rows where they are too long for ranks, or the tensor has no dimensions.
std::optional<Rows> rows_of(Lowering& lowering, const LazyArgs& args) {
  const Lazy& self = args.tensor(0);
  if (self.dim() == 0) return std::nullopt;
  const auto dim =
      static_cast<size_t>(wrap_dim(args["dim"].integer().value(), self.dim(), args.schema().name));
  if (!lowering.env().proves(le(self.sizes[dim], kLongestRow))) return std::nullopt;
  // Each element is compared with all of its row.
  return Rows{lowering.realize(self), dim};
}

/// An element as a number that can be compared.
V key(Lowering& lowering, const Rows& rows, const Index& i) {
  const V v = lowering.load(rows.self, i);
  return v.dtype() == DType::boolean ? cast(v, DType::int32) : v;
}

/// Whether a comes before b, which is not the same.
V before(V a, V b, bool largest_first) {
  if (largest_first) std::swap(a, b);
  const V less = lt(a, b);
  return is_floating_point(a.dtype()) ? bitwise_or(less, bitwise_and(isnan(b), logical_not(isnan(a)))) : less;
}

/// The place of each element in its sorted row.
Lazy ranks(Lowering& lowering, const Rows& rows, bool largest_first) {
  return lowering.reduce({.op = OpCode::reduce_sum,
                          .accumulate = DType::int32,
                          .sizes = rows.self.sizes,
                          .reduced = {rows.length()},
                          .value = [&](const Index& i, const Index& r) -> std::vector<V> {
                            const V mine = key(lowering, rows, i);
                            const V other = key(lowering, rows, rows.at(i, r[0]));
                            const V earlier =
                                lt(lowering.index_value(r[0]), lowering.index_value(i[rows.dim]));
                            // Of equal elements the earlier one comes first.
                            const V comes_first =
                                where(earlier, logical_not(before(mine, other, largest_first)),
                                      before(other, mine, largest_first));
                            return {cast(comes_first, DType::int32)};
                          },
                          .dtypes = {DType::int64}})[0];
}

/// Sorted values and the positions they come from.
Lazies sorted(Lowering& lowering, const Rows& rows, bool largest_first) {
  const Lazy rank = ranks(lowering, rows, largest_first);
  return lowering.permute(
      {rows.self.dtype, DType::int64}, rows.self.sizes,
      [&](const Index& i) { return rows.at(i, lowering.indirect(lowering.load(rank, i))); },
      [&](const Index& i) -> std::vector<V> {
        return {lowering.load(rows.self, i), lowering.index_value(i[rows.dim])};
      });
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
  const auto rows = rows_of(lowering, args);
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
  const auto rows = rows_of(lowering, args);
  return rows ? sorted(lowering, *rows, args["descending"].boolean()) : Lazies();
}

Lazies lower_topk(Lowering& lowering, const LazyArgs& args) {
  const auto rows = rows_of(lowering, args);
  if (!rows) return {};
  Exprs sizes = rows->self.sizes;
  sizes[rows->dim] = args["k"].integer();
  return picked(lowering, sorted(lowering, *rows, args["largest"].boolean()), sizes,
                [](const Index& i) { return i; });
}

Lazies lower_kthvalue(Lowering& lowering, const LazyArgs& args) {
  const auto rows = rows_of(lowering, args);
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

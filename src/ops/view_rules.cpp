#include "ops/view_rules.h"

#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {

template <class T>
SliceRange slice_range(ShapeEnv& env, const Exprs& sizes, const graph::Bound<T>& args) {
  const std::string& op = args.schema().name;
  STAX_CHECK(!sizes.empty(), "{}: expected a tensor with dimensions, got a zero-dim one", op);
  SliceRange range;
  range.dim = wrap_dim(args["dim"].integer().value(), static_cast<int64_t>(sizes.size()), op);
  const Expr size = sizes[range.dim];
  range.step = args["step"].integer();
  STAX_CHECK(env.expect(gt(range.step, 0)), "{}: the step must be positive, got {}", op, range.step.str());
  const auto bound = [&](const auto& argument, Expr absent) {
    if (argument.is_none()) return absent;
    const Expr e = from_front(env, argument.integer(), size);
    const std::optional<bool> below = env.decided(lt(e, 0)), above = env.decided(gt(e, size));
    if (below == true) return Expr(0);
    if (above == true) return size;
    // What only data determines is clamped when it is known.
    const Expr low = below ? e : max(e, 0);
    return above ? low : min(low, size);
  };
  range.start = bound(args["start"], Expr(0));
  range.end = bound(args["end"], size);
  const std::optional<bool> empty = env.decided(le(range.end, range.start));
  if (empty == true) range.end = range.start;
  if (!empty && !env.surely(le(range.start, range.end))) range.end = max(range.end, range.start);
  range.length = range.end == range.start ? Expr(0) : ceil_div(range.end - range.start, range.step);
  return range;
}

template SliceRange slice_range(ShapeEnv&, const Exprs&, const MetaArgs&);
template SliceRange slice_range(ShapeEnv&, const Exprs&, const LazyArgs&);

template <class T>
Selection selection(ShapeEnv& env, const Exprs& sizes, const graph::Bound<T>& args) {
  const std::string& op = args.schema().name;
  STAX_CHECK(!sizes.empty(), "{}: expected a tensor with dimensions, got a zero-dim one", op);
  const int64_t dim = wrap_dim(args["dim"].integer().value(), static_cast<int64_t>(sizes.size()), op);
  const Expr index = args["index"].integer(), size = sizes[dim];
  STAX_CHECK(env.expect(lt(index, size)) && env.expect(ge(index, -size)),
             "{}: index {} is out of range for dimension {} of size {}", op, index.str(), dim, size.str());
  return {dim, from_front(env, index, size)};
}

template Selection selection(ShapeEnv&, const Exprs&, const MetaArgs&);
template Selection selection(ShapeEnv&, const Exprs&, const LazyArgs&);

template <class T>
DiagonalDims diagonal_dims(const graph::Bound<T>& args, int64_t rank) {
  const std::string& op = args.schema().name;
  const int64_t dim1 = wrap_dim(args["dim1"].integer().value(), rank, op);
  const int64_t dim2 = wrap_dim(args["dim2"].integer().value(), rank, op);
  STAX_CHECK(rank >= 2 && dim1 != dim2, "{}: expected two different dimensions, got {} and {}", op, dim1,
             dim2);
  return {dim1, dim2};
}

template DiagonalDims diagonal_dims(const MetaArgs&, int64_t);
template DiagonalDims diagonal_dims(const LazyArgs&, int64_t);

Diagonal diagonal_of(ShapeEnv& env, const Exprs& sizes, const MetaArgs& args) {
  Diagonal d{diagonal_dims(args, static_cast<int64_t>(sizes.size())), {}, {}, {}};
  const Expr offset = args["offset"].integer();
  const bool below = env.decide(lt(offset, 0));
  d.row = below ? -offset : Expr(0);
  d.column = below ? Expr(0) : offset;
  d.length = at_least_zero(env, smaller(env, sizes[d.dim1] - d.row, sizes[d.dim2] - d.column));
  return d;
}

void check_strided(ShapeEnv& env, const Exprs& sizes, const Exprs& strides, Expr offset,
                   std::string_view op) {
  STAX_CHECK(sizes.size() == strides.size(), "{}: {} but {}", op, counted(sizes.size(), "size"),
             counted(strides.size(), "stride"));
  for (size_t d = 0; d < sizes.size(); ++d) {
    STAX_CHECK(env.expect(ge(sizes[d], 0)), "{}: size {} is negative", op, sizes[d].str());
    STAX_CHECK(env.expect(ge(strides[d], 0)), "{}: stride {} is negative", op, strides[d].str());
  }
  STAX_CHECK(env.expect(ge(offset, 0)), "{}: storage offset {} is negative", op, offset.str());
}

}  // namespace stax::ops

// Operators that move values of one tensor: repeating, copies in another shape, reversing and rotating.
#include <algorithm>

#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// ---- repeating ----

Vars repeat(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs& times = a[1].integers();
  STAX_CHECK(static_cast<int64_t>(times.size()) >= x.dim(),
             "repeat: {} counts are too few for a tensor of {}", times.size(), counted(x.dim(), "dimension"));
  Exprs split(times.size() - x.dim(), Expr(1)), expanded, merged;
  split.insert(split.end(), x.sizes().begin(), x.sizes().end());
  Exprs interleaved;
  for (size_t d = 0; d < times.size(); ++d) {
    STAX_CHECK(b.env().expect(ge(times[d], 0)), "repeat: count {} is negative", times[d].str());
    interleaved.emplace_back(1);
    interleaved.push_back(split[d]);
    expanded.push_back(times[d]);
    expanded.push_back(split[d]);
    merged.push_back(times[d] * split[d]);
  }
  const Var wide = b.call("expand", {b.call("reshape", {x, interleaved}), expanded});
  return {b.call("reshape_copy", {wide, merged})};
}

Vars tile(Builder& b, const VarArgs& a) {
  Exprs times = a[1].integers();
  const int64_t rank = a.tensor(0).dim();
  if (static_cast<int64_t>(times.size()) < rank) times.insert(times.begin(), rank - times.size(), Expr(1));
  return {b.call("repeat", {a[0], times})};
}

Vars repeat_interleave_each(Builder& b, const VarArgs& a) {
  Var x = a.tensor(0);
  const Expr times = a[1].integer();
  STAX_CHECK(b.env().expect(ge(times, 0)), "repeat_interleave: count {} is negative", times.str());
  if (a[2].is_none() || x.dim() == 0) x = b.call("reshape", {x, Exprs{-1}});
  const int64_t dim = a[2].is_none() ? 0 : wrap_dim(a[2].integer().value(), x.dim(), "repeat_interleave");
  Exprs expanded = x.sizes(), merged = x.sizes();
  expanded.insert(expanded.begin() + dim + 1, times);
  merged[dim] = merged[dim] * times;
  const Var wide = b.call("expand", {b.call("unsqueeze", {x, dim + 1}), expanded});
  return {b.call("reshape_copy", {wide, merged})};
}

Metas reshape_copy_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(args.tensor(0).dtype, args[1].integers(), args.tensor(0).device)};
}

Lazies lower_reshape_copy(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  return {lowering.pointwise(x.dtype, args[1].integers(), [&](const Index& i) {
    return lowering.load(x, reshape_index(x.sizes, args[1].integers(), i));
  })};
}

Vars contiguous(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  if (x.meta().strides == graph::contiguous_strides(x.sizes())) return {x};
  return {b.call("reshape_copy", {x, x.sizes()})};
}

// ---- order ----

std::vector<char> dim_set(const Exprs& dims, int64_t rank, const char* op) {
  std::vector<char> set(std::max<int64_t>(rank, 1), 0);
  for (const Expr d : dims) {
    const int64_t dim = wrap_dim(d.value(), rank, op);
    STAX_CHECK(!set[dim]++, "{}: dimension {} is given twice", op, dim);
  }
  return set;
}

Metas flip_meta(ShapeEnv& env, const MetaArgs& args) {
  dim_set(args["dims"].integers(), args.tensor(0).dim(), "flip");
  return same_meta(env, args);
}

Lazies lower_flip(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const auto flipped = dim_set(args["dims"].integers(), x.dim(), "flip");
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    Index at = i;
    for (size_t d = 0; d < i.size(); ++d) {
      if (flipped[d]) at[d] = x.sizes[d] - 1 - i[d];
    }
    return lowering.load(x, at);
  })};
}

Vars roll(Builder& b, const VarArgs& a) {
  Var x = a.tensor(0);
  const Exprs &shifts = a[1].integers(), &dims = a[2].integers();
  if (dims.empty()) {
    STAX_CHECK(shifts.size() == 1, "roll: expected one shift when no dimension is given, got {}",
               shifts.size());
    const Var flat = b.call("roll_dim", {b.call("reshape", {x, Exprs{-1}}), shifts[0], 0});
    return {b.call("reshape", {flat, x.sizes()})};
  }
  STAX_CHECK(shifts.size() == dims.size(), "roll: {} but {}", counted(shifts.size(), "shift"),
             counted(dims.size(), "dimension"));
  STAX_CHECK(x.dim() > 0, "roll: dimension {} is given, but the tensor has none", dims[0].str());
  for (size_t k = 0; k < dims.size(); ++k) {
    x = b.call("roll_dim", {x, shifts[k], wrap_dim(dims[k].value(), x.dim(), "roll")});
  }
  return {x};
}

Lazies lower_roll_dim(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const int64_t dim = args[2].integer().value();
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    Index at = i;
    at[dim] = mod(i[dim] - args[1].integer(), max(x.sizes[dim], 1));
    return lowering.load(x, at);
  })};
}

Vars rot90(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs& dims = a[2].integers();
  STAX_CHECK(dims.size() == 2 && x.dim() >= 2, "rot90: expected 2 dimensions to rotate in, got {}",
             dims.size());
  const int64_t d0 = wrap_dim(dims[0].value(), x.dim(), "rot90"),
                d1 = wrap_dim(dims[1].value(), x.dim(), "rot90");
  STAX_CHECK(d0 != d1, "rot90: dimension {} is given twice", d0);
  switch (((a[1].integer().value() % 4) + 4) % 4) {
    case 1:
      return {b.call("transpose.int", {b.call("flip", {x, Exprs{d1}}), d0, d1})};
    case 2:
      return {b.call("flip", {x, Exprs{d0, d1}})};
    case 3:
      return {b.call("transpose.int", {b.call("flip", {x, Exprs{d0}}), d0, d1})};
    default:
      return {b.call("clone", {x})};
  }
}

}  // namespace

Ops shape_rows() {
  return {
      composite("repeat(Tensor self, int[] repeats) -> Tensor", repeat),
      composite("tile(Tensor self, int[] dims) -> Tensor", tile),
      composite("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None) -> Tensor",
                repeat_interleave_each),
      internal(
          lowered("reshape_copy(Tensor self, int[] size) -> Tensor", reshape_copy_meta, lower_reshape_copy)),
      composite("contiguous(Tensor self) -> Tensor", contiguous),
      lowered("flip(Tensor self, int[1] dims) -> Tensor", flip_meta, lower_flip),
      composite("fliplr(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  STAX_CHECK(a.tensor(0).dim() >= 2, "fliplr: expected at least 2 dimensions, got {}",
                             a.tensor(0).dim());
                  return {b.call("flip", {a[0], Exprs{1}})};
                }),
      composite("flipud(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  STAX_CHECK(a.tensor(0).dim() >= 1, "flipud: expected at least 1 dimension, got 0");
                  return {b.call("flip", {a[0], Exprs{0}})};
                }),
      composite("roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", roll),
      internal(lowered("roll_dim(Tensor self, int shift, int dim) -> Tensor", same_meta, lower_roll_dim)),
      composite("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", rot90),
  };
}

}  // namespace stax::ops

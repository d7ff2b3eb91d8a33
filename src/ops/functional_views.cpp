// Views as new values: the functional forms of writes through views, and copies of views.
#include "graph/broadcast.h"
#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/view_rules.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// The value of self after `src` (cast to self's dtype) was written to view(self).
void check_source(ShapeEnv& env, const MetaArgs& args, const Exprs& expected) {
  const Exprs& got = args.tensor(1).sizes;
  STAX_CHECK(graph::same_sizes(env, got, expected), "{}: expected a source of shape {}, got {}",
             args.schema().name, shape_text(expected), shape_text(got));
}

Metas slice_scatter_meta(ShapeEnv& env, const MetaArgs& args) {
  const SliceRange s = slice_range(env, args.tensor(0).sizes, args);
  Exprs expected = args.tensor(0).sizes;
  expected[s.dim] = s.length;
  check_source(env, args, expected);
  return same_meta(env, args);
}

Lazies lower_slice_scatter(Lowering& lowering, const LazyArgs& args) {
  const Lazy &x = args.tensor(0), &source = args.tensor(1);
  const SliceRange s = slice_range(lowering.env(), x.sizes, args);
  if (lowering.may_overwrite(x)) {
    Lazy region = x;
    region.sizes[s.dim] = s.length;
    region.strides[s.dim] = x.strides[s.dim] * s.step;
    region.offset = x.offset + s.start * x.strides[s.dim];
    return {lowering.overwrite(x, region, source)};
  }
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    Index at = i;
    const Expr distance = i[s.dim] - s.start;
    at[s.dim] = floor_div(distance, s.step);
    const V position = lowering.index_value(i[s.dim]);
    V inside =
        bitwise_and(ge(position, lowering.index_value(s.start)), lt(position, lowering.index_value(s.end)));
    if (!s.step.is(1)) inside = bitwise_and(inside, eq(lowering.index_value(mod(distance, s.step)), 0.0));
    return lowering.masked_load(source, at, inside, lowering.load(x, i));
  })};
}

Metas select_scatter_meta(ShapeEnv& env, const MetaArgs& args) {
  Exprs expected = args.tensor(0).sizes;
  expected.erase(expected.begin() + selection(env, expected, args).dim);
  check_source(env, args, expected);
  return same_meta(env, args);
}

Lazies lower_select_scatter(Lowering& lowering, const LazyArgs& args) {
  const Lazy &x = args.tensor(0), &source = args.tensor(1);
  const Selection selected = selection(lowering.env(), x.sizes, args);
  if (lowering.may_overwrite(x)) {
    Lazy region = x;
    region.sizes.erase(region.sizes.begin() + selected.dim);
    region.strides.erase(region.strides.begin() + selected.dim);
    region.offset = x.offset + selected.index * x.strides[selected.dim];
    return {lowering.overwrite(x, region, source)};
  }
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    Index at = i;
    at.erase(at.begin() + selected.dim);
    const V here = eq(lowering.index_value(i[selected.dim]), lowering.index_value(selected.index));
    return lowering.masked_load(source, at, here, lowering.load(x, i));
  })};
}

Metas diagonal_scatter_meta(ShapeEnv& env, const MetaArgs& args) {
  const Exprs& sizes = args.tensor(0).sizes;
  const Diagonal diagonal = diagonal_of(env, sizes, args);
  Exprs expected;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (d != diagonal.dim1 && d != diagonal.dim2) expected.push_back(sizes[d]);
  }
  expected.push_back(diagonal.length);
  check_source(env, args, expected);
  return same_meta(env, args);
}

Lazies lower_diagonal_scatter(Lowering& lowering, const LazyArgs& args) {
  const Lazy &x = args.tensor(0), &source = args.tensor(1);
  const DiagonalDims dims = diagonal_dims(args, x.dim());
  const Expr offset = args["offset"].integer();
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    Index at;
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (d != dims.dim1 && d != dims.dim2) at.push_back(i[d]);
    }
    at.push_back(min(i[dims.dim1], i[dims.dim2]));
    const V on = eq(lowering.index_value(i[dims.dim2] - i[dims.dim1]), lowering.index_value(offset));
    return lowering.masked_load(source, at, on, lowering.load(x, i));
  })};
}

// The base is stored row-major, as seen by as_strided on a fresh copy of it.
Lazies lower_as_strided_scatter(Lowering& lowering, const LazyArgs& args) {
  const Lazy &x = args.tensor(0), &source = args.tensor(1);
  const Exprs row_major = graph::contiguous_strides(x.sizes);
  const bool in_place = lowering.may_overwrite(x) && x.strides == row_major && x.offset.is(0);
  const Lazy base = in_place ? x : lowering.copy(x, row_major);
  Lazy target = base;
  target.sizes = args["size"].integers();
  target.strides = args["stride"].integers();
  target.offset = args["storage_offset"].is_none() ? Expr(0) : args["storage_offset"].integer();
  if (in_place) return {lowering.overwrite(base, target, source)};
  lowering.store_to(target, source);
  return {base};
}

Metas as_strided_scatter_meta(ShapeEnv& env, const MetaArgs& args) {
  const Exprs& sizes = args["size"].integers();
  const Exprs& strides = args["stride"].integers();
  Expr last = args["storage_offset"].is_none() ? Expr(0) : args["storage_offset"].integer();
  check_strided(env, sizes, strides, last, args.schema().name);
  check_source(env, args, sizes);
  for (size_t d = 0; d < sizes.size(); ++d) last = last + (sizes[d] - 1) * strides[d];
  STAX_CHECK(env.decide(eq(product(sizes), 0)) || env.decide(lt(last, args.tensor(0).numel())),
             "as_strided_scatter: the view ends at element {} of a tensor of {}", last.str(),
             args.tensor(0).numel().str());
  return same_meta(env, args);
}

// A view operator, then a copy: the `_copy` forms.
#define COPY_OF(target)                                                                                  \
  [](Builder& b, const VarArgs& a) -> Vars {                                                             \
    Vars out;                                                                                            \
    for (const Var& v : b.call_all(target, std::vector<VarArg>(a.values().begin(), a.values().end()))) { \
      out.push_back(b.call("clone", {v}));                                                               \
    }                                                                                                    \
    return out;                                                                                          \
  }

Ops copy_rows() {
  return {
      composite("permute_copy(Tensor self, int[] dims) -> Tensor", COPY_OF("permute")),
      composite("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", COPY_OF("transpose.int")),
      composite("t_copy(Tensor self) -> Tensor", COPY_OF("t")),
      composite("expand_copy(Tensor self, int[] size) -> Tensor", COPY_OF("expand")),
      composite("view_copy(Tensor self, int[] size) -> Tensor", COPY_OF("view")),
      composite("unsqueeze_copy(Tensor self, int dim) -> Tensor", COPY_OF("unsqueeze")),
      composite("squeeze_copy(Tensor self) -> Tensor", COPY_OF("squeeze")),
      composite("squeeze_copy.dim(Tensor self, int dim) -> Tensor", COPY_OF("squeeze.dim")),
      composite("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", COPY_OF("squeeze.dims")),
      composite("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
                COPY_OF("diagonal")),
      composite("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", COPY_OF("unfold")),
      composite("as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
                COPY_OF("as_strided")),
      composite("narrow_copy(Tensor self, int dim, int start, int length) -> Tensor", COPY_OF("narrow")),
      composite("split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
                COPY_OF("split_with_sizes")),
      composite("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", COPY_OF("unbind.int")),
      composite("alias_copy(Tensor self) -> Tensor", COPY_OF("view_as_is")),
  };
}

}  // namespace

Ops functional_view_rows() {
  Ops rows = {
      lowered("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) "
              "-> Tensor",
              slice_scatter_meta, lower_slice_scatter),
      lowered("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", select_scatter_meta,
              lower_select_scatter),
      lowered("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
              diagonal_scatter_meta, lower_diagonal_scatter),
      lowered("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? "
              "storage_offset=None) -> Tensor",
              as_strided_scatter_meta, lower_as_strided_scatter),
  };
  for (graph::Op& op : copy_rows()) rows.push_back(std::move(op));
  return rows;
}

}  // namespace stax::ops

// Views: results that share the input's storage. Each primitive gives the result's meta, the index map that
// formulas are read through, and the scatter that writes through the view. The other view operators are
// composites of these.
#include <algorithm>

#include "graph/broadcast.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/view_rules.h"
#include "ops/vocabulary.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// ---- permute ----

std::vector<int64_t> permutation(const Exprs& dims, int64_t rank) {
  STAX_CHECK(static_cast<int64_t>(dims.size()) == rank, "permute: expected {}, got {}",
             counted(rank, "dimension"), dims.size());
  std::vector<int64_t> order;
  std::vector<char> seen(rank, 0);
  for (const Expr d : dims) {
    order.push_back(wrap_dim(d.value(), rank, "permute"));
    STAX_CHECK(!seen[order.back()]++, "permute: dimension {} is given twice", d.str());
  }
  return order;
}

Metas permute_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& in = args.tensor(0);
  TensorMeta out = in;
  const auto order = permutation(args["dims"].integers(), in.dim());
  for (size_t k = 0; k < order.size(); ++k) {
    out.sizes[k] = in.sizes[order[k]];
    out.strides[k] = in.strides[order[k]];
  }
  return {out};
}

Exprs permute_index(ShapeEnv&, const MetaArgs& args, const TensorMeta& result, const Exprs& index) {
  const auto order = permutation(args["dims"].integers(), result.dim());
  Exprs at(index.size());
  for (size_t k = 0; k < order.size(); ++k) at[order[k]] = index[k];
  return at;
}

Var permute_scatter(Builder& b, const VarArgs& args, const Var& source) {
  const auto order = permutation(args["dims"].integers(), source.dim());
  Exprs inverse(order.size());
  for (size_t k = 0; k < order.size(); ++k) inverse[order[k]] = Expr(static_cast<int64_t>(k));
  return b.call("permute", {source, inverse});
}

// ---- expand ----

Metas expand_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& in = args.tensor(0);
  const Exprs& sizes = args["size"].integers();
  STAX_CHECK(sizes.size() >= in.sizes.size(), "expand: {} sizes are too few for a tensor of {}", sizes.size(),
             counted(in.sizes.size(), "dimension"));
  TensorMeta out = in;
  out.sizes = sizes;
  out.strides.assign(sizes.size(), Expr(0));
  const size_t lead = sizes.size() - in.sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool keep = is_open(env, sizes[d]);
    STAX_CHECK(!keep || d >= lead, "expand: size -1 is not allowed for the new dimension {}", d);
    if (d < lead) {
      STAX_CHECK(env.expect(ge(sizes[d], 0)), "expand: size {} of dimension {} is negative", sizes[d].str(),
                 d);
      continue;
    }
    const Expr have = in.sizes[d - lead];
    if (keep || have == sizes[d] || (!env.surely(eq(have, 1)) && env.expect(eq(have, sizes[d])))) {
      out.sizes[d] = have;
      out.strides[d] = in.strides[d - lead];
    } else {
      STAX_CHECK(env.expect(eq(have, 1)), "expand: dimension {} has size {}, which does not expand to {}", d,
                 have.str(), sizes[d].str());
    }
  }
  return {out};
}

Exprs expand_index(ShapeEnv& env, const MetaArgs& args, const TensorMeta& result, const Exprs& index) {
  const TensorMeta& in = args.tensor(0);
  const size_t lead = result.sizes.size() - in.sizes.size();
  Exprs at;
  for (size_t d = 0; d < in.sizes.size(); ++d) {
    const bool expanded = graph::repeats(env, in.sizes[d], result.sizes[lead + d]);
    at.push_back(expanded ? Expr(0) : index[lead + d]);
  }
  return at;
}

Var expand_scatter(Builder& b, const VarArgs& a, const Var& source) {
  const Var x = a.tensor(0);
  // Dimensions of one element that are added or kept repeat nothing.
  if (source.sizes() == x.sizes() || b.env().decide(eq(source.numel(), x.numel())))
    return b.call("reshape", {source, x.sizes()});
  STAX_CHECK(b.env().expect(eq(source.numel(), 0)),
             "in-place write: several elements of an expanded tensor of shape {} share one memory location; "
             "clone() it first",
             shape_text(source.sizes()));
  return x;
}

// ---- slice ----

Metas slice_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  const SliceRange range = slice_range(env, out.sizes, args);
  out.offset = out.offset + range.start * out.strides[range.dim];
  out.sizes[range.dim] = range.length;
  out.strides[range.dim] = out.strides[range.dim] * range.step;
  return {out};
}

// The start is not in the result's meta of a formula, so it is found again by the same rule.
Exprs slice_index(ShapeEnv& env, const MetaArgs& args, const TensorMeta&, const Exprs& index) {
  const SliceRange range = slice_range(env, args.tensor(0).sizes, args);
  Exprs at = index;
  at[range.dim] = range.start + index[range.dim] * range.step;
  return at;
}

Var slice_scatter(Builder& b, const VarArgs& args, const Var& source) {
  return b.call("slice_scatter", {args[0], source, args["dim"], args["start"], args["end"], args["step"]});
}

// ---- select ----

Metas select_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  const auto [dim, index] = selection(env, out.sizes, args);
  out.offset = out.offset + index * out.strides[dim];
  out.sizes.erase(out.sizes.begin() + dim);
  out.strides.erase(out.strides.begin() + dim);
  return {out};
}

Exprs select_index(ShapeEnv& env, const MetaArgs& args, const TensorMeta&, const Exprs& index) {
  const Selection selected = selection(env, args.tensor(0).sizes, args);
  Exprs at = index;
  at.insert(at.begin() + selected.dim, selected.index);
  return at;
}

Var select_scatter(Builder& b, const VarArgs& args, const Var& source) {
  return b.call("select_scatter", {args[0], source, args["dim"], args["index"]});
}

// ---- view ----

Metas view_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  const Exprs sizes = infer_sizes(env, args["size"].integers(), out.numel(), "view");
  const auto strides = view_strides(env, out, sizes);
  STAX_CHECK(strides, "view: shape {} with strides {} cannot be viewed as {} without a copy; use reshape",
             shape_text(out.sizes), shape_text(out.strides), shape_text(sizes));
  out.sizes = sizes;
  out.strides = *strides;
  return {out};
}

Exprs view_index(ShapeEnv&, const MetaArgs& args, const TensorMeta& result, const Exprs& index) {
  return reshape_index(args.tensor(0).sizes, result.sizes, index);
}

Var view_scatter(Builder& b, const VarArgs& args, const Var& source) {
  return b.call("reshape", {source, args.tensor(0).sizes()});
}

// ---- diagonal ----

Metas diagonal_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& in = args.tensor(0);
  const Diagonal d = diagonal_of(env, in.sizes, args);
  TensorMeta out = in;
  if (!d.length.is(0)) out.offset = in.offset + d.row * in.strides[d.dim1] + d.column * in.strides[d.dim2];
  for (const int64_t dim : {std::max(d.dim1, d.dim2), std::min(d.dim1, d.dim2)}) {
    out.sizes.erase(out.sizes.begin() + dim);
    out.strides.erase(out.strides.begin() + dim);
  }
  out.sizes.push_back(d.length);
  out.strides.push_back(in.strides[d.dim1] + in.strides[d.dim2]);
  return {out};
}

Exprs diagonal_index(ShapeEnv& env, const MetaArgs& args, const TensorMeta&, const Exprs& index) {
  const Diagonal d = diagonal_of(env, args.tensor(0).sizes, args);
  Exprs at(index.begin(), index.end() - 1);
  const auto insert = [&](int64_t dim, Expr e) { at.insert(at.begin() + dim, e); };
  const Expr k = index.back();
  if (d.dim1 < d.dim2) {
    insert(d.dim1, d.row + k);
    insert(d.dim2, d.column + k);
  } else {
    insert(d.dim2, d.column + k);
    insert(d.dim1, d.row + k);
  }
  return at;
}

Var diagonal_scatter(Builder& b, const VarArgs& args, const Var& source) {
  return b.call("diagonal_scatter", {args[0], source, args["offset"], args["dim1"], args["dim2"]});
}

// ---- unfold ----

Metas unfold_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  const int64_t dim = wrap_dim(args["dimension"].integer().value(), out.dim(), "unfold");
  const Expr size = args["size"].integer(), step = args["step"].integer();
  const Expr have = out.dim() == 0 ? Expr(1) : out.sizes[dim];
  STAX_CHECK(env.expect(ge(size, 0)) && env.expect(le(size, have)),
             "unfold: window {} is larger than dimension {} of size {}", size.str(), dim, have.str());
  STAX_CHECK(env.expect(gt(step, 0)), "unfold: the step must be positive, got {}", step.str());
  if (out.dim() == 0) {
    out.sizes = {size};
    out.strides = {Expr(1)};
    return {out};
  }
  const Expr stride = out.strides[dim];
  out.sizes[dim] = floor_div(have - size, step) + 1;
  out.strides[dim] = stride * step;
  out.sizes.push_back(size);
  out.strides.push_back(stride);
  return {out};
}

Exprs unfold_index(ShapeEnv&, const MetaArgs& args, const TensorMeta&, const Exprs& index) {
  const int64_t rank = args.tensor(0).dim();
  if (rank == 0) return {};
  const int64_t dim = wrap_dim(args["dimension"].integer().value(), rank, "unfold");
  Exprs at(index.begin(), index.end() - 1);
  at[dim] = at[dim] * args["step"].integer() + index.back();
  return at;
}

// as_strided_scatter sees a row-major copy of the input.
Var unfold_scatter(Builder& b, const VarArgs& args, const Var& source) {
  const Var x = args.tensor(0);
  Exprs strides = graph::contiguous_strides(x.sizes());
  const int64_t dim = wrap_dim(args["dimension"].integer().value(), x.dim(), "unfold");
  const Expr stride = x.dim() == 0 ? Expr(1) : strides[dim];
  if (x.dim() > 0) strides[dim] = stride * args["step"].integer();
  strides.push_back(stride);
  return b.call("as_strided_scatter", {x, source, source.sizes(), strides, 0});
}

// ---- unsqueeze, and a view as the tensor is ----

Metas unsqueeze_meta(ShapeEnv&, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  const int64_t dim = args[1].integer().value();
  const Expr stride = dim < out.dim() ? out.sizes[dim] * out.strides[dim] : Expr(1);
  out.sizes.insert(out.sizes.begin() + dim, Expr(1));
  out.strides.insert(out.strides.begin() + dim, stride);
  return {out};
}

Exprs unsqueeze_index(ShapeEnv&, const MetaArgs& args, const TensorMeta&, const Exprs& index) {
  Exprs at = index;
  at.erase(at.begin() + args[1].integer().value());
  return at;
}

Var unsqueeze_scatter(Builder& b, const VarArgs& args, const Var& source) {
  return b.call("select.int", {source, args[1], 0});
}

Metas identity_meta(ShapeEnv&, const MetaArgs& args) {
  return {args.tensor(0)};
}
Exprs identity_index(ShapeEnv&, const MetaArgs&, const TensorMeta&, const Exprs& index) {
  return index;
}
Var identity_scatter(Builder&, const VarArgs&, const Var& source) {
  return source;
}

// ---- as_strided, view of another dtype: they look at memory, so they have no index map ----

Metas as_strided_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  out.sizes = args["size"].integers();
  out.strides = args["stride"].integers();
  if (!args["storage_offset"].is_none()) out.offset = args["storage_offset"].integer();
  check_strided(env, out.sizes, out.strides, out.offset, args.schema().name);
  return {out};
}

Var as_strided_scatter(Builder& b, const VarArgs& args, const Var& source) {
  return b.call("as_strided_scatter",
                {args[0], source, args["size"], args["stride"], args["storage_offset"]});
}

Metas view_dtype_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  const DType to = args["dtype"].dtype();
  const int64_t from_size = itemsize(out.dtype), to_size = itemsize(to);
  out.dtype = to;
  if (from_size == to_size) return {out};
  STAX_CHECK(out.dim() > 0, "view: a zero-dim tensor can be viewed as a dtype of its own width only");
  STAX_CHECK(env.expect(eq(out.strides.back(), 1)),
             "view: to view as {} the last dimension must be contiguous", name(to));
  const auto scale = [&](Expr e, const char* what) {
    if (to_size < from_size) return e * (from_size / to_size);
    const int64_t ratio = to_size / from_size;
    STAX_CHECK(env.expect(eq(mod(e, ratio), 0)),
               "view: {} {} is not a multiple of {}, as viewing as {} needs", what, e.str(), ratio, name(to));
    return floor_div(e, ratio);
  };
  out.sizes.back() = scale(out.sizes.back(), "the last size");
  out.offset = scale(out.offset, "the storage offset");
  for (size_t d = 0; d + 1 < out.strides.size(); ++d) out.strides[d] = scale(out.strides[d], "stride");
  return {out};
}

Var view_dtype_scatter(Builder& b, const VarArgs& args, const Var& source) {
  return b.call("view.dtype", {source, args.tensor(0).dtype()});
}

}  // namespace

Ops view_rows() {
  return {
      view("permute(Tensor self, int[] dims) -> Tensor", permute_meta, permute_index, permute_scatter),
      view("expand(Tensor self, int[] size) -> Tensor", expand_meta, expand_index, expand_scatter),
      view("slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
           slice_meta, slice_index, slice_scatter),
      view("select.int(Tensor self, int dim, int index) -> Tensor", select_meta, select_index,
           select_scatter),
      internal(view("unsqueeze_at(Tensor self, int dim) -> Tensor", unsqueeze_meta, unsqueeze_index,
                    unsqueeze_scatter)),
      view("view(Tensor self, int[] size) -> Tensor", view_meta, view_index, view_scatter),
      composite("detach(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars { return {b.call("view_as_is", {a[0]})}; }),
      internal(view("view_as_is(Tensor self) -> Tensor", identity_meta, identity_index, identity_scatter)),
      view("diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", diagonal_meta,
           diagonal_index, diagonal_scatter),
      view("unfold(Tensor self, int dimension, int size, int step) -> Tensor", unfold_meta, unfold_index,
           unfold_scatter),
      view("as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
           as_strided_meta, nullptr, as_strided_scatter),
      view("view.dtype(Tensor self, ScalarType dtype) -> Tensor", view_dtype_meta, nullptr,
           view_dtype_scatter),
  };
}

}  // namespace stax::ops

// Views: results that share the input's storage. Each primitive gives the result's meta, the index map that
// formulas are read through, and the scatter that writes through the view. The other view operators are
// composites of these.
#include <algorithm>
#include <numeric>

#include "graph/broadcast.h"
#include "graph/builder.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

using graph::Builder;
using graph::composite;
using graph::internal;
using graph::MetaArgs;
using graph::TensorMeta;
using graph::Var;
using graph::VarArg;
using graph::VarArgs;
using graph::view;
using graph::wrap_dim;
using Exprs = std::vector<Expr>;
using Metas = std::vector<TensorMeta>;
using Vars = std::vector<Var>;

// ---- permute ----

std::vector<int64_t> permutation(const Exprs& dims, int64_t rank) {
  STAX_CHECK(static_cast<int64_t>(dims.size()) == rank, "permute: expected {} dimensions, got {}", rank,
             dims.size());
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
  STAX_CHECK(sizes.size() >= in.sizes.size(), "expand: {} sizes are too few for a tensor of {} dimensions",
             sizes.size(), in.sizes.size());
  TensorMeta out = in;
  out.sizes = sizes;
  out.strides.assign(sizes.size(), Expr(0));
  const size_t lead = sizes.size() - in.sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool keep = sizes[d].is(-1);
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

Expr select_position(ShapeEnv& env, const Exprs& sizes, int64_t dim, Expr index) {
  const Expr size = sizes[dim];
  STAX_CHECK(env.expect(lt(index, size)) && env.expect(ge(index, -size)),
             "select: index {} is out of range for dimension {} of size {}", index.str(), dim, size.str());
  return from_front(env, index, size);
}

int64_t select_dim(const auto& args, const Exprs& sizes) {
  STAX_CHECK(!sizes.empty(), "select: expected a tensor with dimensions, got a zero-dim one");
  return wrap_dim(args["dim"].integer().value(), static_cast<int64_t>(sizes.size()), "select");
}

Metas select_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  const int64_t dim = select_dim(args, out.sizes);
  out.offset = out.offset + select_position(env, out.sizes, dim, args["index"].integer()) * out.strides[dim];
  out.sizes.erase(out.sizes.begin() + dim);
  out.strides.erase(out.strides.begin() + dim);
  return {out};
}

Exprs select_index(ShapeEnv& env, const MetaArgs& args, const TensorMeta&, const Exprs& index) {
  const Exprs& sizes = args.tensor(0).sizes;
  const int64_t dim = select_dim(args, sizes);
  Exprs at = index;
  at.insert(at.begin() + dim, select_position(env, sizes, dim, args["index"].integer()));
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

struct Diagonal {
  int64_t dim1, dim2;
  Expr row, column, length;  // first element and number of elements
};

Diagonal diagonal_of(ShapeEnv& env, const Exprs& sizes, const auto& args) {
  const auto rank = static_cast<int64_t>(sizes.size());
  Diagonal d;
  d.dim1 = wrap_dim(args["dim1"].integer().value(), rank, "diagonal");
  d.dim2 = wrap_dim(args["dim2"].integer().value(), rank, "diagonal");
  STAX_CHECK(rank >= 2 && d.dim1 != d.dim2, "diagonal: expected two different dimensions, got {} and {}",
             d.dim1, d.dim2);
  const Expr offset = args["offset"].integer();
  const bool below = env.decide(lt(offset, 0));
  d.row = below ? -offset : Expr(0);
  d.column = below ? Expr(0) : offset;
  const Expr rows = sizes[d.dim1] - d.row, columns = sizes[d.dim2] - d.column;
  d.length = smaller(env, rows, columns);
  d.length = at_least_zero(env, d.length);
  return d;
}

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

// ---- as_strided, view of another dtype: they look at memory, so they have no index map ----

Metas as_strided_meta(ShapeEnv& env, const MetaArgs& args) {
  TensorMeta out = args.tensor(0);
  out.sizes = args["size"].integers();
  out.strides = args["stride"].integers();
  STAX_CHECK(out.sizes.size() == out.strides.size(), "as_strided: {} sizes but {} strides", out.sizes.size(),
             out.strides.size());
  if (!args["storage_offset"].is_none()) out.offset = args["storage_offset"].integer();
  for (size_t d = 0; d < out.sizes.size(); ++d) {
    STAX_CHECK(env.expect(ge(out.sizes[d], 0)), "as_strided: size {} is negative", out.sizes[d].str());
    STAX_CHECK(env.expect(ge(out.strides[d], 0)), "as_strided: stride {} is negative", out.strides[d].str());
  }
  STAX_CHECK(env.expect(ge(out.offset, 0)), "as_strided: storage offset {} is negative", out.offset.str());
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

// ---- composites ----

Exprs all_dims(int64_t rank) {
  Exprs dims(rank);
  for (int64_t d = 0; d < rank; ++d) dims[d] = Expr(d);
  return dims;
}

Vars transpose(Builder& b, const VarArgs& a) {
  const int64_t rank = a.tensor(0).dim();
  const int64_t d0 = wrap_dim(a[1].integer().value(), rank, "transpose");
  const int64_t d1 = wrap_dim(a[2].integer().value(), rank, "transpose");
  Exprs dims = all_dims(rank);
  if (rank > 0) std::swap(dims[d0], dims[d1]);
  return {b.call("permute", {a[0], dims})};
}

Vars reverse_dims(Builder& b, const VarArgs& a) {
  Exprs dims = all_dims(a.tensor(0).dim());
  std::reverse(dims.begin(), dims.end());
  return {b.call("permute", {a[0], dims})};
}

Vars swap_last_two(Builder& b, const VarArgs& a) {
  const int64_t rank = a.tensor(0).dim();
  STAX_CHECK(rank >= 2, "{}: expected a tensor of at least 2 dimensions, got {}", a.schema().name, rank);
  return {b.call("transpose.int", {a[0], -2, -1})};
}

Vars movedim(Builder& b, const VarArgs& a) {
  const int64_t rank = a.tensor(0).dim();
  const Exprs &from = a[1].integers(), &to = a[2].integers();
  STAX_CHECK(from.size() == to.size(), "movedim: {} source dimensions but {} destinations", from.size(),
             to.size());
  std::vector<int64_t> order(rank, -1);
  std::vector<char> moved(rank, 0);
  for (size_t k = 0; k < from.size(); ++k) {
    const int64_t source = wrap_dim(from[k].value(), rank, "movedim");
    const int64_t target = wrap_dim(to[k].value(), rank, "movedim");
    if (rank == 0) continue;
    STAX_CHECK(!moved[source]++, "movedim: source dimension {} is given twice", source);
    STAX_CHECK(order[target] < 0, "movedim: destination dimension {} is given twice", target);
    order[target] = source;
  }
  int64_t next = 0;
  Exprs dims;
  for (int64_t k = 0; k < rank; ++k) {
    if (order[k] < 0) {
      while (moved[next]) ++next;
      order[k] = next++;
    }
    dims.emplace_back(order[k]);
  }
  return {b.call("permute", {a[0], dims})};
}

Vars unsqueeze(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t dim = wrap_dim(a[1].integer().value(), x.dim() + 1, "unsqueeze");
  return {b.call("unsqueeze_at", {x, dim})};
}

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

// Selecting index 0 of a dim of size 1 is squeezing it.
Vars squeeze_dims(Builder& b, const Var& x, std::vector<int64_t> dims) {
  std::sort(dims.rbegin(), dims.rend());
  Var out = x;
  for (const int64_t d : dims) {
    if (b.env().decide(eq(x.size(d), 1))) out = b.call("select.int", {out, d, 0});
  }
  return {out == x ? b.call("view_as_is", {x}) : out};
}

std::vector<int64_t> range(int64_t n) {
  std::vector<int64_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

Vars squeeze_dim(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t dim = wrap_dim(a[1].integer().value(), x.dim(), "squeeze");
  return squeeze_dims(b, x, x.dim() == 0 ? std::vector<int64_t>{} : std::vector{dim});
}

Vars squeeze_list(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  std::vector<int64_t> dims;
  for (const Expr d : a[1].integers()) {
    const int64_t dim = wrap_dim(d.value(), x.dim(), "squeeze");
    STAX_CHECK(std::find(dims.begin(), dims.end(), dim) == dims.end(), "squeeze: dimension {} is given twice",
               dim);
    if (x.dim() > 0) dims.push_back(dim);
  }
  return squeeze_dims(b, x, dims);
}

Vars reshape(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs sizes = infer_sizes(b.env(), a[1].integers(), x.numel(), "reshape");
  if (view_strides(b.env(), x.meta(), sizes)) return {b.call("view", {x, sizes})};
  return {b.call("reshape_copy", {x, sizes})};
}

Vars flatten(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t first = wrap_dim(a[1].integer().value(), x.dim(), "flatten");
  const int64_t last = wrap_dim(a[2].integer().value(), x.dim(), "flatten");
  STAX_CHECK(first <= last, "flatten: start_dim {} comes after end_dim {}", first, last);
  if (x.dim() == 0) return {b.call("reshape", {x, Exprs{1}})};
  if (first == last) return {b.call("view_as_is", {x})};
  Exprs sizes(x.sizes().begin(), x.sizes().begin() + first);
  sizes.push_back(product(Exprs(x.sizes().begin() + first, x.sizes().begin() + last + 1)));
  sizes.insert(sizes.end(), x.sizes().begin() + last + 1, x.sizes().end());
  return {b.call("reshape", {x, sizes})};
}

Vars unflatten(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t dim = wrap_dim(a[1].integer().value(), x.dim(), "unflatten");
  STAX_CHECK(x.dim() > 0 && !a[2].integers().empty(),
             "unflatten: expected a dimension and at least one size");
  const Exprs inner = infer_sizes(b.env(), a[2].integers(), x.size(dim), "unflatten");
  Exprs sizes(x.sizes().begin(), x.sizes().begin() + dim);
  sizes.insert(sizes.end(), inner.begin(), inner.end());
  sizes.insert(sizes.end(), x.sizes().begin() + dim + 1, x.sizes().end());
  return {b.call("reshape", {x, sizes})};
}

Vars narrow(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  STAX_CHECK(x.dim() > 0, "narrow: expected a tensor with dimensions, got a zero-dim one");
  const int64_t dim = wrap_dim(a[1].integer().value(), x.dim(), "narrow");
  Expr start = a[2].integer();
  const Expr length = a[3].integer(), size = x.size(dim);
  start = from_front(b.env(), start, size);
  STAX_CHECK(b.env().expect(ge(length, 0)) && b.env().expect(ge(start, 0)) &&
                 b.env().expect(le(start + length, size)),
             "narrow: elements {} to {} are out of range for dimension {} of size {}", start.str(),
             (start + length).str(), dim, size.str());
  return {b.call("slice.Tensor", {x, dim, start, start + length})};
}

// ---- splitting ----

Vars split_sizes(Builder& b, const Var& x, const Exprs& lengths, int64_t dim, const std::string& op) {
  Expr total = 0;
  for (const Expr e : lengths) {
    STAX_CHECK(b.env().expect(ge(e, 0)), "{}: size {} is negative", op, e.str());
    total = total + e;
  }
  STAX_CHECK(b.env().expect(eq(total, x.size(dim))), "{}: sizes sum to {}, but dimension {} has size {}", op,
             total.str(), dim, x.size(dim).str());
  Vars out;
  Expr start = 0;
  for (const Expr e : lengths) {
    out.push_back(b.call("slice.Tensor", {x, dim, start, start + e}));
    start = start + e;
  }
  return out;
}

int64_t split_dim(const Var& x, const VarArg& dim, const std::string& op) {
  STAX_CHECK(x.dim() > 0, "{}: expected a tensor with dimensions, got a zero-dim one", op);
  return wrap_dim(dim.integer().value(), x.dim(), op);
}

// Every part is a tensor of its own, also an empty one.
constexpr int64_t kMostParts = 1 << 20;

void require_part_count(int64_t count, std::string_view op) {
  STAX_CHECK(count > 0 && count <= kMostParts, "{}: expected 1 to {} parts, got {}", op, kMostParts, count);
}

/// Parts of `length` each, the last one of what is left. How many there are is a decision.
Vars split_every(Builder& b, const Var& x, Expr length, int64_t dim, const std::string& op) {
  const Expr size = x.size(dim);
  const bool empty = b.env().decide(eq(size, 0));
  STAX_CHECK(b.env().decide(gt(length, 0)) || (empty && b.env().decide(eq(length, 0))),
             "{}: expected a positive size, got {}", op, length.str());
  if (empty) return split_sizes(b, x, {Expr(0)}, dim, op);
  const int64_t count = b.env().specialize(ceil_div(size, length));
  require_part_count(count, op);
  Exprs lengths(static_cast<size_t>(count), length);
  lengths.back() = size - length * (count - 1);
  return split_sizes(b, x, lengths, dim, op);
}

Vars split(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  return split_every(b, x, a[1].integer(), split_dim(x, a[2], "split"), "split");
}

Vars split_with_sizes(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  return split_sizes(b, x, a[1].integers(), split_dim(x, a[2], a.schema().name), a.schema().name);
}

Vars chunk(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t count = b.env().specialize(a[1].integer()), dim = split_dim(x, a[2], "chunk");
  require_part_count(count, "chunk");
  const Expr size = x.size(dim);
  if (b.env().decide(eq(size, 0))) return split_sizes(b, x, Exprs(count, Expr(0)), dim, "chunk");
  return split_every(b, x, ceil_div(size, count), dim, "chunk");
}

Vars tensor_split_count(Builder& b, const Var& x, int64_t count, int64_t dim, const std::string& op) {
  require_part_count(count, op);
  Exprs lengths;  // the first (size % count) parts are longer by one
  for (int64_t k = 0; k < count; ++k) lengths.push_back(floor_div(x.size(dim) + (count - 1 - k), count));
  return split_sizes(b, x, lengths, dim, op);
}

Vars tensor_split_at(Builder& b, const Var& x, const Exprs& indices, int64_t dim) {
  Vars out;
  VarArg start = Expr(0);
  for (const Expr e : indices) {
    out.push_back(b.call("slice.Tensor", {x, dim, start, e}));
    start = e;
  }
  out.push_back(b.call("slice.Tensor", {x, dim, start, NoneType{}}));
  return out;
}

// hsplit, vsplit, dsplit: along dim 1 (0 for vectors), 0, 2.
int64_t stack_split_dim(const Var& x, const std::string& op) {
  const int64_t least = op == "hsplit" ? 1 : op == "vsplit" ? 2 : 3;
  STAX_CHECK(x.dim() >= least, "{}: expected a tensor of at least {} dimensions, got {}", op, least, x.dim());
  return op == "hsplit" ? (x.dim() == 1 ? 0 : 1) : op == "vsplit" ? 0 : 2;
}

Vars stack_split_count(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const std::string& op = a.schema().name;
  const int64_t dim = stack_split_dim(x, op), count = b.env().specialize(a[1].integer());
  STAX_CHECK(count > 0 && b.env().expect(eq(mod(x.size(dim), count), 0)),
             "{}: dimension {} of size {} does not split into {} equal parts", op, dim, x.size(dim).str(),
             count);
  return tensor_split_count(b, x, count, dim, op);
}

Vars stack_split_at(Builder& b, const VarArgs& a) {
  return tensor_split_at(b, a.tensor(0), a[1].integers(), stack_split_dim(a.tensor(0), a.schema().name));
}

Vars unbind(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t dim = split_dim(x, a[1], a.schema().name);
  Vars out;
  const int64_t count = b.env().specialize(x.size(dim));
  for (int64_t k = 0; k < count; ++k) out.push_back(b.call("select.int", {x, dim, k}));
  return out;
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

std::vector<graph::Op> primitive_rows() {
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

#define SAME(target)                                                                      \
  [](Builder& b, const VarArgs& a) -> Vars {                                              \
    return b.call_all(target, std::vector<VarArg>(a.values().begin(), a.values().end())); \
  }

std::vector<graph::Op> composite_rows() {
  return {
      composite("transpose.int(Tensor self, int dim0, int dim1) -> Tensor", transpose),
      composite("swapaxes(Tensor self, int axis0, int axis1) -> Tensor", transpose),
      composite("swapdims(Tensor self, int dim0, int dim1) -> Tensor", transpose),
      composite("t(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  STAX_CHECK(a.tensor(0).dim() <= 2, "t: expected a tensor of at most 2 dimensions, got {}",
                             a.tensor(0).dim());
                  return reverse_dims(b, a);
                }),
      composite("T(Tensor self) -> Tensor", reverse_dims),
      composite("mT(Tensor self) -> Tensor", swap_last_two),
      composite("mH(Tensor self) -> Tensor", swap_last_two),
      composite("H(Tensor self) -> Tensor", reverse_dims),
      composite("movedim.intlist(Tensor self, int[1] source, int[1] destination) -> Tensor", movedim),
      composite("moveaxis.intlist(Tensor self, int[1] source, int[1] destination) -> Tensor", movedim),
      composite("unsqueeze(Tensor self, int dim) -> Tensor", unsqueeze),
      composite("squeeze(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return squeeze_dims(b, a.tensor(0), range(a.tensor(0).dim()));
                }),
      composite("squeeze.dim(Tensor self, int dim) -> Tensor", squeeze_dim),
      composite("squeeze.dims(Tensor self, int[] dim) -> Tensor", squeeze_list),
      composite("reshape(Tensor self, int[] shape) -> Tensor", reshape),
      composite("reshape_as(Tensor self, Tensor other) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("reshape", {a[0], a.tensor(1).sizes()})};
                }),
      composite("view_as(Tensor self, Tensor other) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("view", {a[0], a.tensor(1).sizes()})};
                }),
      composite("expand_as(Tensor self, Tensor other) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("expand", {a[0], a.tensor(1).sizes()})};
                }),
      composite("broadcast_to(Tensor self, int[] size) -> Tensor", SAME("expand")),
      composite("flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", flatten),
      composite("ravel(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("reshape", {a[0], Exprs{Expr(-1)}})};
                }),
      composite("unflatten.int(Tensor self, int dim, int[] sizes) -> Tensor", unflatten),
      composite("narrow(Tensor self, int dim, int start, int length) -> Tensor", narrow),
      composite("split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", split),
      composite("split.sizes(Tensor self, int[] split_size, int dim=0) -> Tensor[]", split_with_sizes),
      composite("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", split_with_sizes),
      composite("unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", split),
      composite("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", chunk),
      composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", chunk),
      composite("tensor_split.sections(Tensor self, int sections, int dim=0) -> Tensor[]",
                [](Builder& b, const VarArgs& a) -> Vars {
                  const Var x = a.tensor(0);
                  return tensor_split_count(b, x, b.env().specialize(a[1].integer()),
                                            split_dim(x, a[2], "tensor_split"), "tensor_split");
                }),
      composite("tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]",
                [](Builder& b, const VarArgs& a) -> Vars {
                  const Var x = a.tensor(0);
                  return tensor_split_at(b, x, a[1].integers(), split_dim(x, a[2], "tensor_split"));
                }),
      composite("hsplit.int(Tensor self, int sections) -> Tensor[]", stack_split_count),
      composite("hsplit.array(Tensor self, int[] indices) -> Tensor[]", stack_split_at),
      composite("vsplit.int(Tensor self, int sections) -> Tensor[]", stack_split_count),
      composite("vsplit.array(Tensor self, int[] indices) -> Tensor[]", stack_split_at),
      composite("dsplit.int(Tensor self, int sections) -> Tensor[]", stack_split_count),
      composite("dsplit.array(Tensor self, int[] indices) -> Tensor[]", stack_split_at),
      composite("unbind.int(Tensor self, int dim=0) -> Tensor[]", unbind),
  };
}

}  // namespace

std::vector<graph::Op> view_rows() {
  std::vector<graph::Op> rows = primitive_rows();
  for (graph::Op& op : composite_rows()) rows.push_back(std::move(op));
  return rows;
}

}  // namespace stax::ops

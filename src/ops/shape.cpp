// Operators that move values without computing: joining, repeating, padding, flipping, triangles, and the
// functional forms of writes through views.
#include <algorithm>

#include "graph/broadcast.h"
#include "graph/builder.h"
#include "lowering/scalar.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

using graph::Builder;
using graph::composite;
using graph::in_place;
using graph::internal;
using graph::LazyArgs;
using graph::lowered;
using graph::MetaArgs;
using graph::num;
using graph::TensorMeta;
using graph::Var;
using graph::VarArg;
using graph::VarArgs;
using graph::wrap_dim;
using lowering::Index;
using lowering::Lazy;
using lowering::Lowering;
using lowering::V;
using Exprs = std::vector<Expr>;
using Lazies = std::vector<Lazy>;
using Metas = std::vector<TensorMeta>;
using Vars = std::vector<Var>;

// ---- joining ----

// Empty vectors join with anything, as in PyTorch.
bool is_legacy_empty(const Exprs& sizes) {
  return sizes.size() == 1 && sizes[0].is(0);
}

/// What joins: the operands that have elements to give (the first one where none has), the dimension, and the
/// dtype that all operands promote to.
template <class T>
struct Joined {
  std::vector<T> parts;
  int64_t dim = 0;
  DType dtype = DType::boolean;
  Exprs sizes;
};

template <class T>
Joined<T> joined(const graph::Bound<T>& args) {
  const auto& tensors = args["tensors"].tensors();
  STAX_CHECK(!tensors.empty(), "cat: expected at least one tensor, got none");
  Joined<T> out;
  std::vector<Argument<TensorMeta>> metas;
  for (const auto& t : tensors) {
    STAX_CHECK(t->dim() > 0, "cat: zero-dim tensors cannot be joined; stack them");
    metas.emplace_back(graph::dense(t->dtype, t->sizes));
    if (!is_legacy_empty(t->sizes)) out.parts.push_back(*t);
  }
  if (out.parts.empty()) out.parts.push_back(*tensors[0]);
  out.dtype = graph::result_type<TensorMeta>(metas);
  out.dim = wrap_dim(args["dim"].integer().value(), out.parts[0].dim(), "cat");
  out.sizes = out.parts[0].sizes;
  for (size_t k = 1; k < out.parts.size(); ++k) {
    const T& part = out.parts[k];
    STAX_CHECK(part.dim() == out.parts[0].dim(), "cat: tensors of {} and {} dimensions", out.parts[0].dim(),
               part.dim());
    out.sizes[out.dim] = out.sizes[out.dim] + part.sizes[out.dim];
  }
  return out;
}

Metas cat_meta(ShapeEnv& env, const MetaArgs& args) {
  const Joined<TensorMeta> all = joined(args);
  for (const TensorMeta& part : all.parts) {
    for (int64_t d = 0; d < part.dim(); ++d) {
      STAX_CHECK(d == all.dim || env.expect(eq(part.sizes[d], all.sizes[d])),
                 "cat: sizes differ outside dimension {}: {} and {}", all.dim, shape_text(all.parts[0].sizes),
                 shape_text(part.sizes));
    }
  }
  return {graph::dense(all.dtype, all.sizes, all.parts[0].device)};
}

/// Parts side by side along `dim`: every element finds its part.
Lazy side_by_side(Lowering& lowering, DType dtype, std::span<const Lazy> parts, int64_t dim) {
  Exprs sizes = parts[0].sizes;
  sizes[dim] = Expr(0);
  for (const Lazy& p : parts) sizes[dim] = sizes[dim] + p.sizes[dim];
  return lowering.pointwise(dtype, sizes, [&](const Index& i) {
    // From the last part to the first: each is read where the index lies before its end, the rest elsewhere.
    V value;
    Expr end = sizes[dim];
    for (size_t k = parts.size(); k-- > 0;) {
      const Expr start = end - parts[k].sizes[dim];
      end = start;
      Index at = i;
      at[dim] = i[dim] - start;
      if (value.id < 0 && k == 0) {
        value = cast(lowering.load(parts[k], at), dtype);
        break;
      }
      const V position = lowering.index_value(i[dim]);
      V inside = ge(position, lowering.index_value(start));
      const V other = value.id < 0 ? lowering.constant(dtype, int64_t{0}) : value;
      const V before_end = lt(position, lowering.index_value(start + parts[k].sizes[dim]));
      value = lowering.masked_load(parts[k], at, bitwise_and(inside, before_end), other);
    }
    return value;
  });
}

/// The same for many parts, a few of them at a time: the work of an element and the size of a kernel do not
/// grow with their number.
Lazy side_by_side_in_groups(Lowering& lowering, DType dtype, std::span<const Lazy> parts, int64_t dim) {
  constexpr size_t kGroup = 16;
  Exprs sizes = parts[0].sizes;
  sizes[dim] = Expr(0);
  for (const Lazy& p : parts) sizes[dim] = sizes[dim] + p.sizes[dim];
  const Lazy whole = lowering.new_tensor(dtype, sizes, graph::contiguous_strides(sizes));
  Lazy region = whole;
  for (size_t k = 0; k < parts.size(); k += kGroup) {
    const Lazy group =
        side_by_side(lowering, dtype, parts.subspan(k, std::min(kGroup, parts.size() - k)), dim);
    region.sizes = group.sizes;
    lowering.store_to(region, group);
    region.offset = region.offset + region.strides[dim] * group.sizes[dim];
  }
  return whole;
}

Lazies lower_cat(Lowering& lowering, const LazyArgs& args) {
  constexpr size_t kMostInOneKernel = 32;
  const Joined<Lazy> all = joined(args);
  return {all.parts.size() > kMostInOneKernel
              ? side_by_side_in_groups(lowering, all.dtype, all.parts, all.dim)
              : side_by_side(lowering, all.dtype, all.parts, all.dim)};
}

Vars stack(Builder& b, const VarArgs& a) {
  typename VarArg::Tensors parts;
  const auto& tensors = a[0].tensors();
  STAX_CHECK(!tensors.empty(), "stack: expected at least one tensor, got none");
  const int64_t dim = wrap_dim(a[1].integer().value(), tensors[0]->dim() + 1, "stack");
  for (const auto& t : tensors) {
    STAX_CHECK(graph::same_sizes(b.env(), t->sizes(), tensors[0]->sizes()),
               "stack: expected equal shapes, got {} and {}", shape_text(tensors[0]->sizes()),
               shape_text(t->sizes()));
    parts.push_back(b.call("unsqueeze", {*t, dim}));
  }
  return {b.call("cat", {parts, dim})};
}

// Tensors brought to at least `rank` dimensions as atleast_1d, atleast_2d, atleast_3d do.
Var at_least(Builder& b, const Var& x, int64_t rank) {
  if (x.dim() >= rank) return b.call("view_as_is", {x});
  if (rank == 1) return b.call("reshape", {x, Exprs{1}});
  if (x.dim() == 0) return b.call("reshape", {x, Exprs(rank, Expr(1))});
  if (rank == 2) return b.call("unsqueeze", {x, 0});
  if (x.dim() == 1) return b.call("unsqueeze", {b.call("unsqueeze", {x, 0}), 2});
  return b.call("unsqueeze", {x, 2});
}

template <int Rank>
Vars at_least_rows(Builder& b, const VarArgs& a) {
  return {at_least(b, a.tensor(0), Rank)};
}

template <int Rank>
Vars at_least_all(Builder& b, const VarArgs& a) {
  Vars out;
  for (const auto& t : a[0].tensors()) out.push_back(at_least(b, *t, Rank));
  return out;
}

VarArg::Tensors all_at_least(Builder& b, const VarArgs& a, int64_t rank) {
  STAX_CHECK(!a[0].tensors().empty(), "{}: expected at least one tensor, got none", a.schema().name);
  VarArg::Tensors out;
  for (const auto& t : a[0].tensors()) out.push_back(at_least(b, *t, rank));
  return out;
}

Vars hstack(Builder& b, const VarArgs& a) {
  const auto parts = all_at_least(b, a, 1);
  return {b.call("cat", {parts, parts[0]->dim() == 1 ? 0 : 1})};
}
Vars vstack(Builder& b, const VarArgs& a) {
  return {b.call("cat", {all_at_least(b, a, 2), 0})};
}
Vars dstack(Builder& b, const VarArgs& a) {
  return {b.call("cat", {all_at_least(b, a, 3), 2})};
}

Vars column_stack(Builder& b, const VarArgs& a) {
  VarArg::Tensors parts;
  for (const auto& t : a[0].tensors()) {
    parts.push_back(t->dim() <= 1 ? b.call("reshape", {*t, Exprs{t->numel(), 1}}) : *t);
  }
  return {b.call("cat", {parts, 1})};
}

Vars block_diag(Builder& b, const VarArgs& a) {
  Vars rows;
  Expr columns = 0;
  Vars blocks;
  for (const auto& t : a[0].tensors()) {
    STAX_CHECK(t->dim() <= 2, "block_diag: expected tensors of at most 2 dimensions, got {}", t->dim());
    blocks.push_back(at_least(b, *t, 2));
    columns = columns + blocks.back().size(1);
  }
  VarArg::Tensors padded;
  Expr before = 0;
  for (const Var& block : blocks) {
    const Expr after = columns - before - block.size(1);
    padded.push_back(b.call("constant_pad_nd", {block, Exprs{before, after}, 0}));
    before = before + block.size(1);
  }
  return {b.call("cat", {padded, 0})};
}

Vars broadcast_tensors(Builder& b, const VarArgs& a) {
  std::vector<Exprs> shapes;
  for (const auto& t : a[0].tensors()) shapes.push_back(t->sizes());
  const Exprs sizes = graph::broadcast_shapes(b.env(), shapes, "broadcast_tensors");
  Vars out;
  for (const auto& t : a[0].tensors()) out.push_back(b.call("expand", {*t, sizes}));
  return out;
}

Vars meshgrid(Builder& b, const VarArgs& a) {
  const auto& tensors = a[0].tensors();
  STAX_CHECK(!tensors.empty(), "meshgrid: expected at least one tensor, got none");
  const std::string indexing = a[1].is_none() ? "ij" : a[1].string();
  STAX_CHECK(indexing == "ij" || indexing == "xy", "meshgrid: expected indexing 'ij' or 'xy', got '{}'",
             indexing);
  const bool swap = indexing == "xy" && tensors.size() >= 2;
  const auto position = [&](size_t k) { return swap && k < 2 ? 1 - k : k; };
  Exprs sizes(tensors.size());
  for (size_t k = 0; k < tensors.size(); ++k) {
    STAX_CHECK(tensors[k]->dim() <= 1, "meshgrid: expected vectors, got {} dimensions", tensors[k]->dim());
    sizes[position(k)] = tensors[k]->numel();
  }
  Vars out;
  for (size_t k = 0; k < tensors.size(); ++k) {
    Exprs shape(tensors.size(), Expr(1));
    shape[position(k)] = tensors[k]->numel();
    out.push_back(b.call("expand", {b.call("reshape", {*tensors[k], shape}), sizes}));
  }
  return out;
}

// ---- repeating ----

Vars repeat(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs& times = a[1].integers();
  STAX_CHECK(static_cast<int64_t>(times.size()) >= x.dim(),
             "repeat: {} counts are too few for a tensor of {} dimensions", times.size(), x.dim());
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

// ---- order ----

std::vector<char> dim_set(const Exprs& dims, int64_t rank, const char* op) {
  std::vector<char> set(std::max<int64_t>(rank, 1), 0);
  for (const Expr d : dims) {
    const int64_t dim = wrap_dim(d.value(), rank, op);
    STAX_CHECK(!set[dim]++, "{}: dimension {} is given twice", op, dim);
  }
  return set;
}

Metas same_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(args.tensor(0).dtype, args.tensor(0).sizes, args.tensor(0).device)};
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
  STAX_CHECK(shifts.size() == dims.size(), "roll: {} shifts but {} dimensions", shifts.size(), dims.size());
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

// ---- padding ----

Exprs padded_sizes(ShapeEnv& env, const Exprs& sizes, const Exprs& pad, const char* op) {
  STAX_CHECK(pad.size() % 2 == 0 && pad.size() / 2 <= sizes.size(),
             "{}: {} pads for a tensor of {} dimensions", op, pad.size(), sizes.size());
  Exprs out = sizes;
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    Expr& size = out[out.size() - 1 - k];
    size = size + pad[2 * k] + pad[2 * k + 1];
    STAX_CHECK(env.expect(ge(size, 0)), "{}: dimension {} would have size {}", op, out.size() - 1 - k,
               size.str());
  }
  return out;
}

Metas constant_pad_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  return {
      graph::dense(x.dtype, padded_sizes(env, x.sizes, args["pad"].integers(), "constant_pad_nd"), x.device)};
}

Lazies lower_constant_pad(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Exprs& pad = args["pad"].integers();
  return {lowering.pointwise(
      x.dtype, padded_sizes(lowering.env(), x.sizes, pad, "constant_pad_nd"), [&](const Index& i) {
        Index at = i;
        V inside;
        const auto require = [&](V condition) {
          inside = inside.id < 0 ? condition : bitwise_and(inside, condition);
        };
        for (size_t k = 0; k < pad.size() / 2; ++k) {
          const size_t d = x.sizes.size() - 1 - k;
          at[d] = i[d] - pad[2 * k];
          const V position = lowering.index_value(at[d]);
          if (!pad[2 * k].is(0)) require(ge(position, 0.0));
          if (!pad[2 * k + 1].is(0)) require(lt(position, lowering.index_value(x.sizes[d])));
        }
        if (inside.id < 0) return lowering.load(x, at);
        return lowering.masked_load(x, at, inside,
                                    round_to(lowering.number(args["value"].number(), x.dtype), x.dtype));
      })};
}

enum class PadMode { reflect, replicate, circular };

PadMode pad_mode(const std::string& text) {
  if (text == "reflect") return PadMode::reflect;
  if (text == "replicate") return PadMode::replicate;
  STAX_CHECK(text == "circular",
             "pad: expected mode 'constant', 'reflect', 'replicate' or 'circular', got '{}'", text);
  return PadMode::circular;
}

Metas pad_index_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  const Exprs& pad = args["pad"].integers();
  const PadMode mode = pad_mode(args["mode"].string());
  const Exprs sizes = padded_sizes(env, x.sizes, pad, "pad");
  for (size_t k = 0; k < pad.size(); ++k) {
    const Expr size = x.sizes[x.sizes.size() - 1 - k / 2];
    const Expr limit = mode == PadMode::reflect ? size - 1 : size;
    STAX_CHECK(mode == PadMode::replicate || env.expect(le(pad[k], limit)),
               "pad: {} padding of {} is too large for size {}", args["mode"].string(), pad[k].str(),
               size.str());
    STAX_CHECK(mode != PadMode::replicate || maybe_positive(env, size) || env.decide(le(pad[k], 0)),
               "pad: an empty dimension cannot be replicated");
  }
  return {graph::dense(x.dtype, sizes, x.device)};
}

Lazies lower_pad_index(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Exprs& pad = args["pad"].integers();
  const PadMode mode = pad_mode(args["mode"].string());
  return {lowering.pointwise(x.dtype, padded_sizes(lowering.env(), x.sizes, pad, "pad"), [&](const Index& i) {
    Index at = i;
    for (size_t k = 0; k < pad.size() / 2; ++k) {
      const size_t d = x.sizes.size() - 1 - k;
      const Expr last = x.sizes[d] - 1, p = i[d] - pad[2 * k];
      switch (mode) {
        case PadMode::reflect: {
          const Expr folded = max(p, -p);  // |p|
          at[d] = last - max(last - folded, folded - last);
          break;
        }
        case PadMode::replicate:
          at[d] = max(min(p, last), 0);
          break;
        case PadMode::circular: {
          // Negative pads crop first; what is left is repeated.
          const Expr first = max(-pad[2 * k], 0), left = max(pad[2 * k], 0);
          const Expr size = x.sizes[d] - first - max(-pad[2 * k + 1], 0);
          at[d] = first + mod(i[d] - left, max(size, 1));
          break;
        }
      }
    }
    return lowering.load(x, at);
  })};
}

Vars pad(Builder& b, const VarArgs& a) {
  const std::string& mode = a[2].string();
  if (mode == "constant") {
    return {b.call("constant_pad_nd", {a[0], a[1], a[3].is_none() ? VarArg(0) : a[3]})};
  }
  STAX_CHECK(a[3].is_none() || a[3].number() == Number::of(0.0) || a[3].number() == Number::of(int64_t{0}),
             "pad: mode '{}' takes no value", mode);
  return {b.call("pad_index", {a[0], a[1], mode})};
}

// ---- triangles and diagonals ----

template <bool Upper>
Lazies lower_triangle(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const size_t rank = x.sizes.size();
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    const V column = lowering.index_value(i[rank - 1]);
    const V edge = lowering.index_value(i[rank - 2] + args[1].integer());
    return where(Upper ? ge(column, edge) : le(column, edge), lowering.load(x, i),
                 lowering.constant(x.dtype, int64_t{0}));
  })};
}

Metas triangle_meta(ShapeEnv& env, const MetaArgs& args) {
  STAX_CHECK(args.tensor(0).dim() >= 2, "{}: expected a tensor of at least 2 dimensions, got {}",
             args.schema().name, args.tensor(0).dim());
  return same_meta(env, args);
}

Metas fill_diagonal_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  STAX_CHECK(x.dim() >= 2, "fill_diagonal: expected at least 2 dimensions, got {}", x.dim());
  for (int64_t d = 1; x.dim() > 2 && d < x.dim(); ++d) {
    STAX_CHECK(env.expect(eq(x.sizes[d], x.sizes[0])),
               "fill_diagonal: more than 2 dimensions have to be of one size, got {}", shape_text(x.sizes));
  }
  return same_meta(env, args);
}

// With `wrap` the diagonal of a tall matrix starts again one row below its last element.
Lazies lower_fill_diagonal(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const bool wraps = args[2].boolean() && x.dim() == 2;
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    const Expr first = wraps ? mod(i[0], x.sizes[1] + 1) : i[0];
    V on = eq(lowering.index_value(first), lowering.index_value(i[1]));
    for (size_t d = 2; d < i.size(); ++d)
      on = bitwise_and(on, eq(lowering.index_value(first), lowering.index_value(i[d])));
    return where(on, lowering.number(args[1].number(), x.dtype), lowering.load(x, i));
  })};
}

Vars diag(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  STAX_CHECK(x.dim() == 1 || x.dim() == 2, "diag: expected 1 or 2 dimensions, got {}", x.dim());
  if (x.dim() == 2) return {b.call("clone", {b.call("diagonal", {x, a[1], 0, 1})})};
  return {b.call("diag_embed", {x, a[1], 0, 1})};
}

Vars diagflat(Builder& b, const VarArgs& a) {
  return {b.call("diag_embed", {b.call("reshape", {a[0], Exprs{-1}}), a[1], 0, 1})};
}

Exprs diag_embed_sizes(const auto& args, const Exprs& in, int64_t& dim1, int64_t& dim2) {
  const auto rank = static_cast<int64_t>(in.size()) + 1;
  dim1 = wrap_dim(args["dim1"].integer().value(), rank, "diag_embed");
  dim2 = wrap_dim(args["dim2"].integer().value(), rank, "diag_embed");
  STAX_CHECK(!in.empty() && dim1 != dim2, "diag_embed: expected two different dimensions, got {} and {}",
             dim1, dim2);
  const Expr offset = args["offset"].integer();
  const Expr side = in.back() + max(offset, -offset);
  Exprs sizes(in.begin(), in.end() - 1);
  sizes.insert(sizes.begin() + std::min(dim1, dim2), side);
  sizes.insert(sizes.begin() + std::max(dim1, dim2), side);
  return sizes;
}

Metas diag_embed_meta(ShapeEnv&, const MetaArgs& args) {
  int64_t dim1 = 0, dim2 = 0;
  return {graph::dense(args.tensor(0).dtype, diag_embed_sizes(args, args.tensor(0).sizes, dim1, dim2),
                       args.tensor(0).device)};
}

Lazies lower_diag_embed(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  int64_t dim1 = 0, dim2 = 0;
  const Exprs sizes = diag_embed_sizes(args, x.sizes, dim1, dim2);
  const Expr offset = args["offset"].integer();
  return {lowering.pointwise(x.dtype, sizes, [&](const Index& i) {
    Index at;
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      if (d != dim1 && d != dim2) at.push_back(i[d]);
    }
    const Expr k = min(i[dim1], i[dim2]);
    at.push_back(k);
    const V on = eq(lowering.index_value(i[dim2] - i[dim1]), lowering.index_value(offset));
    return lowering.masked_load(x, at, on, lowering.constant(x.dtype, int64_t{0}));
  })};
}

// ---- writes through views, in functional form ----

// The value of self after `src` (cast to self's dtype) was written to view(self).
void check_source(const MetaArgs& args, const Exprs& expected) {
  const Exprs& got = args.tensor(1).sizes;
  STAX_CHECK(got == expected, "{}: expected a source of shape {}, got {}", args.schema().name,
             shape_text(expected), shape_text(got));
}

Metas slice_scatter_meta(ShapeEnv& env, const MetaArgs& args) {
  const SliceRange s = slice_range(env, args.tensor(0).sizes, args);
  Exprs expected = args.tensor(0).sizes;
  expected[s.dim] = s.length;
  check_source(args, expected);
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
  const Exprs& sizes = args.tensor(0).sizes;
  STAX_CHECK(!sizes.empty(), "select_scatter: expected a tensor with dimensions, got a zero-dim one");
  const int64_t dim =
      wrap_dim(args["dim"].integer().value(), static_cast<int64_t>(sizes.size()), "select_scatter");
  const Expr index = args["index"].integer();
  STAX_CHECK(env.expect(lt(index, sizes[dim])) && env.expect(ge(index, -sizes[dim])),
             "select_scatter: index {} is out of range for dimension {} of size {}", index.str(), dim,
             sizes[dim].str());
  Exprs expected = sizes;
  expected.erase(expected.begin() + dim);
  check_source(args, expected);
  return same_meta(env, args);
}

Lazies lower_select_scatter(Lowering& lowering, const LazyArgs& args) {
  const Lazy &x = args.tensor(0), &source = args.tensor(1);
  const int64_t dim = wrap_dim(args["dim"].integer().value(), x.dim(), "select_scatter");
  Expr index = args["index"].integer();
  index = from_front(lowering.env(), index, x.sizes[dim]);
  if (lowering.may_overwrite(x)) {
    Lazy region = x;
    region.sizes.erase(region.sizes.begin() + dim);
    region.strides.erase(region.strides.begin() + dim);
    region.offset = x.offset + index * x.strides[dim];
    return {lowering.overwrite(x, region, source)};
  }
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    Index at = i;
    at.erase(at.begin() + dim);
    const V here = eq(lowering.index_value(i[dim]), lowering.index_value(index));
    return lowering.masked_load(source, at, here, lowering.load(x, i));
  })};
}

Metas diagonal_scatter_meta(ShapeEnv& env, const MetaArgs& args) {
  const Exprs& sizes = args.tensor(0).sizes;
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim1 = wrap_dim(args["dim1"].integer().value(), rank, "diagonal_scatter");
  const int64_t dim2 = wrap_dim(args["dim2"].integer().value(), rank, "diagonal_scatter");
  STAX_CHECK(rank >= 2 && dim1 != dim2, "diagonal_scatter: expected two different dimensions, got {} and {}",
             dim1, dim2);
  const Expr offset = args["offset"].integer();
  const bool below = env.decide(lt(offset, 0));
  const Expr rows = below ? sizes[dim1] + offset : sizes[dim1];
  const Expr columns = below ? sizes[dim2] : sizes[dim2] - offset;
  Expr length = smaller(env, rows, columns);
  length = at_least_zero(env, length);
  Exprs expected;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != dim1 && d != dim2) expected.push_back(sizes[d]);
  }
  expected.push_back(length);
  check_source(args, expected);
  return same_meta(env, args);
}

Lazies lower_diagonal_scatter(Lowering& lowering, const LazyArgs& args) {
  const Lazy &x = args.tensor(0), &source = args.tensor(1);
  const int64_t dim1 = wrap_dim(args["dim1"].integer().value(), x.dim(), "diagonal_scatter");
  const int64_t dim2 = wrap_dim(args["dim2"].integer().value(), x.dim(), "diagonal_scatter");
  const Expr offset = args["offset"].integer();
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    Index at;
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (d != dim1 && d != dim2) at.push_back(i[d]);
    }
    at.push_back(min(i[dim1], i[dim2]));
    const V on = eq(lowering.index_value(i[dim2] - i[dim1]), lowering.index_value(offset));
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
  STAX_CHECK(sizes.size() == strides.size(), "as_strided_scatter: {} sizes but {} strides", sizes.size(),
             strides.size());
  check_source(args, sizes);
  Expr last = args["storage_offset"].is_none() ? Expr(0) : args["storage_offset"].integer();
  STAX_CHECK(env.expect(ge(last, 0)), "as_strided_scatter: storage offset {} is negative", last.str());
  for (size_t d = 0; d < sizes.size(); ++d) {
    STAX_CHECK(env.expect(ge(sizes[d], 0)) && env.expect(ge(strides[d], 0)),
               "as_strided_scatter: size {} with stride {}: neither may be negative", sizes[d].str(),
               strides[d].str());
    last = last + (sizes[d] - 1) * strides[d];
  }
  STAX_CHECK(env.decide(eq(product(sizes), 0)) || env.decide(lt(last, args.tensor(0).numel())),
             "as_strided_scatter: the view ends at element {} of a tensor of {}", last.str(),
             args.tensor(0).numel().str());
  return same_meta(env, args);
}

Vars contiguous(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  if (x.meta().strides == graph::contiguous_strides(x.sizes())) return {x};
  return {b.call("reshape_copy", {x, x.sizes()})};
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

std::vector<graph::Op> copy_rows() {
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

std::vector<graph::Op> shape_rows() {
  std::vector<graph::Op> rows = {
      lowered("cat(Tensor[] tensors, int dim=0) -> Tensor", cat_meta, lower_cat),
      composite("concat(Tensor[] tensors, int dim=0) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("cat", {a[0], a[1]})};
                }),
      composite("stack(Tensor[] tensors, int dim=0) -> Tensor", stack),
      composite("hstack(Tensor[] tensors) -> Tensor", hstack),
      composite("vstack(Tensor[] tensors) -> Tensor", vstack),
      composite("dstack(Tensor[] tensors) -> Tensor", dstack),
      composite("column_stack(Tensor[] tensors) -> Tensor", column_stack),
      composite("block_diag(Tensor[] tensors) -> Tensor", block_diag),
      composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]", broadcast_tensors),
      composite("meshgrid(Tensor[] tensors, str? indexing=None) -> Tensor[]", meshgrid),
      composite("atleast_1d(Tensor self) -> Tensor", at_least_rows<1>),
      composite("atleast_2d(Tensor self) -> Tensor", at_least_rows<2>),
      composite("atleast_3d(Tensor self) -> Tensor", at_least_rows<3>),
      composite("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", at_least_all<1>),
      composite("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", at_least_all<2>),
      composite("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", at_least_all<3>),
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
      lowered("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", constant_pad_meta,
              lower_constant_pad),
      internal(
          lowered("pad_index(Tensor self, int[] pad, str mode) -> Tensor", pad_index_meta, lower_pad_index)),
      composite("pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor", pad),
      in_place(lowered("tril(Tensor self, int diagonal=0) -> Tensor", triangle_meta, lower_triangle<false>)),
      in_place(lowered("triu(Tensor self, int diagonal=0) -> Tensor", triangle_meta, lower_triangle<true>)),
      in_place(lowered("fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
                       fill_diagonal_meta, lower_fill_diagonal)),
      composite("diag(Tensor self, int diagonal=0) -> Tensor", diag),
      composite("diagflat(Tensor self, int offset=0) -> Tensor", diagflat),
      lowered("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", diag_embed_meta,
              lower_diag_embed),
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

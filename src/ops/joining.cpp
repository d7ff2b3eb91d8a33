// Several tensors made one, or brought to one shape: cat, the stacks, meshgrid.
#include <algorithm>

#include "graph/broadcast.h"
#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

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
    STAX_CHECK(tensors[k]->dim() <= 1, "meshgrid: expected vectors, got {}",
               counted(tensors[k]->dim(), "dimension"));
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

}  // namespace

Ops joining_rows() {
  return {
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
  };
}

}  // namespace stax::ops

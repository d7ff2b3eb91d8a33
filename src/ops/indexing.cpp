// Reading where data says: gather, index_select, x[indices], embedding, one_hot, take, searchsorted.
#include <algorithm>
#include <limits>

#include "graph/broadcast.h"
#include "ops/indexing_rules.h"
#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {

void check_index_dtype(const TensorMeta& index, std::string_view op) {
  STAX_CHECK(index.dtype == DType::int64 || index.dtype == DType::int32,
             "{}: expected an index of int64 or int32, got {}", op, name(index.dtype));
}

Exprs at_least_1d(Exprs sizes) {
  return sizes.empty() ? Exprs{Expr(1)} : sizes;
}

Lazy at_least_1d(Lazy t) {
  if (!t.sizes.empty()) return t;
  t.sizes = {Expr(1)};
  if (t.stored()) t.strides = {Expr(1)};
  return t;
}

AdvancedIndex advanced_index(ShapeEnv& env, const Exprs& self,
                             const std::vector<std::optional<Exprs>>& indices, std::string_view op) {
  STAX_CHECK(indices.size() <= self.size(), "{}: {} indices are too many for a tensor of {}", op,
             indices.size(), counted(self.size(), "dimension"));
  AdvancedIndex plan;
  std::vector<Exprs> shapes;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    plan.dims.push_back(static_cast<int64_t>(d));
    shapes.push_back(*indices[d]);
  }
  STAX_CHECK(!plan.dims.empty(), "{}: expected at least one index tensor", op);
  plan.shape = graph::broadcast_shapes(env, shapes, op);
  const bool adjacent = plan.dims.back() - plan.dims.front() + 1 == static_cast<int64_t>(plan.dims.size());
  plan.front = adjacent ? static_cast<size_t>(plan.dims.front()) : 0;
  for (size_t d = 0, next = 0; d < self.size(); ++d) {
    if (next < plan.dims.size() && plan.dims[next] == static_cast<int64_t>(d)) {
      ++next;
      STAX_CHECK(!env.surely(eq(self[d], 0)) || maybe_empty(env, product(plan.shape)),
                 "{}: dimension {} has size 0, so it has no element to index", op, d);
    } else {
      plan.sizes.push_back(self[d]);
    }
  }
  plan.sizes.insert(plan.sizes.begin() + static_cast<int64_t>(plan.front), plan.shape.begin(),
                    plan.shape.end());
  return plan;
}

Index indexed_position(Lowering& lowering, const AdvancedIndex& plan, const Lazy& self,
                       const Argument<Lazy>::Tensors& indices, const Index& i) {
  Index at(self.sizes.size());
  size_t other = 0;  // next dimension of the result that no index tensor gave
  for (size_t d = 0; d < at.size(); ++d) {
    if (d < indices.size() && indices[d]) {
      const Lazy& index = *indices[d];
      Index from;
      const size_t skip = plan.shape.size() - index.sizes.size();
      for (size_t k = 0; k < index.sizes.size(); ++k) {
        const bool broadcast = graph::repeats(lowering.env(), index.sizes[k], plan.shape[skip + k]);
        from.push_back(broadcast ? Expr(0) : i[plan.front + skip + k]);
      }
      at[d] = lowering.checked(lowering.load(index, from), self.sizes[d], true);
      continue;
    }
    if (other == plan.front) other += plan.shape.size();
    at[d] = i[other++];
  }
  return at;
}

namespace {

// ---- gather, index_select ----

int64_t index_dim(const auto& args, size_t rank) {
  return wrap_dim(args["dim"].integer().value(), static_cast<int64_t>(rank), args.schema().name);
}

Metas gather_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &index = args.tensor(2);
  const Exprs have = at_least_1d(self.sizes), want = at_least_1d(index.sizes);
  const int64_t dim = index_dim(args, self.sizes.size());
  const TensorMeta out = graph::dense(self.dtype, index.sizes, self.device);
  if (env.surely(eq(index.numel(), 0))) return {out};
  check_index_dtype(index, "gather");
  STAX_CHECK(have.size() == want.size(), "gather: index has {}, expected those of self, {}",
             counted(index.dim(), "dimension"), self.dim());
  for (size_t d = 0; d < have.size(); ++d) {
    const bool along = static_cast<int64_t>(d) == dim;
    STAX_CHECK(along ? maybe_positive(env, have[d]) || maybe_empty(env, index.numel())
                     : env.expect(le(want[d], have[d])),
               "gather: index of shape {} does not fit self of shape {} at dimension {}",
               shape_text(index.sizes), shape_text(self.sizes), d);
  }
  return {out};
}

Lazies lower_gather(Lowering& lowering, const LazyArgs& args) {
  const Lazy self = at_least_1d(args.tensor(0)), &index = args.tensor(2);
  if (product(index.sizes).is(0)) {
    return {lowering.pointwise(self.dtype, index.sizes,
                               [&](const Index&) { return lowering.constant(self.dtype, int64_t{0}); })};
  }
  const int64_t dim = index_dim(args, args.tensor(0).sizes.size());
  return {lowering.pointwise(self.dtype, index.sizes, [&](const Index& i) {
    Index at = padded(i);
    at[dim] = lowering.checked(lowering.load(index, i), self.sizes[dim], false);
    return lowering.load(self, at);
  })};
}

Metas index_select_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &index = args.tensor(2);
  check_index_dtype(index, "index_select");
  STAX_CHECK(index.dim() <= 1, "index_select: expected an index of at most one dimension, got {}",
             index.dim());
  const int64_t dim = index_dim(args, self.sizes.size());
  Exprs sizes = at_least_1d(self.sizes);
  STAX_CHECK(maybe_positive(env, sizes[dim]) || maybe_empty(env, index.numel()),
             "index_select: dimension {} has size 0, so it has no element to select", dim);
  sizes[dim] = index.numel();
  if (self.dim() == 0) {
    STAX_CHECK(env.expect(eq(index.numel(), 1)), "index_select: a zero-dim tensor takes one index, got {}",
               index.numel().str());
    sizes = {};
  }
  return {graph::dense(self.dtype, sizes, self.device)};
}

Lazies lower_index_select(Lowering& lowering, const LazyArgs& args) {
  const Lazy self = at_least_1d(args.tensor(0)), index = at_least_1d(args.tensor(2));
  const int64_t dim = index_dim(args, args.tensor(0).sizes.size());
  Exprs sizes = self.sizes;
  sizes[dim] = index.sizes[0];
  if (args.tensor(0).sizes.empty()) sizes = {};
  return {lowering.pointwise(self.dtype, sizes, [&](const Index& i) {
    Index at = padded(i);
    at[dim] = lowering.checked(lowering.load(index, {at[dim]}), self.sizes[dim], false);
    return lowering.load(self, at);
  })};
}

// ---- x[indices] ----

template <class T, class F>
std::vector<std::optional<Exprs>> index_shapes(const typename Argument<T>::Tensors& indices, F&& each) {
  std::vector<std::optional<Exprs>> out;
  for (const auto& t : indices) {
    if (t) each(*t);
    out.push_back(t ? std::optional(t->sizes) : std::nullopt);
  }
  return out;
}

Metas index_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  const auto shapes = index_shapes<TensorMeta>(args[1].tensors(), [](const TensorMeta& t) {
    STAX_CHECK(
        t.dtype != DType::boolean,
        "index: a bool mask selects as many elements as the data says; use nonzero() or masked_select()");
    check_index_dtype(t, "index");
  });
  return {graph::dense(self.dtype, advanced_index(env, self.sizes, shapes, "index").sizes, self.device)};
}

Lazies lower_index(Lowering& lowering, const LazyArgs& args) {
  const Lazy& self = args.tensor(0);
  const auto shapes = index_shapes<Lazy>(args[1].tensors(), [](const Lazy&) {});
  const AdvancedIndex plan = advanced_index(lowering.env(), self.sizes, shapes, "index");
  return {lowering.pointwise(self.dtype, plan.sizes, [&](const Index& i) {
    return lowering.load(self, indexed_position(lowering, plan, self, args[1].tensors(), i));
  })};
}

// ---- take ----

Vars take(Builder& b, const VarArgs& a) {
  const Var flat = b.call("reshape", {a[0], Exprs{Expr(-1)}});
  STAX_CHECK(a.tensor(1).dtype() == DType::int64, "take: expected an index of int64, got {}",
             name(a.tensor(1).dtype()));
  return {b.call("index.Tensor", {flat, VarArg::Tensors{a.tensor(1)}})};
}

// gather() with positions that may count from the end.
Var gather_wrapped(Builder& b, const Var& self, int64_t dim, const Var& index) {
  const Expr size = self.dim() == 0 ? Expr(1) : self.size(dim);
  const Var wrapped = b.call("where.self", {b.call("lt.Tensor", {index, num(0)}), index + num(size), index});
  return b.call("gather", {self, dim, wrapped});
}

Vars take_along_dim(Builder& b, const VarArgs& a) {
  const Var self = a.tensor(0), indices = a.tensor(1);
  if (a["dim"].is_none()) {
    const auto flat = [&](const Var& v) { return b.call("reshape", {v, Exprs{Expr(-1)}}); };
    return {gather_wrapped(b, flat(self), 0, flat(indices))};
  }
  STAX_CHECK(self.dim() == indices.dim(), "take_along_dim: expected as many dimensions, got {} and {}",
             self.dim(), indices.dim());
  const int64_t dim = wrap_dim(a["dim"].integer().value(), self.dim(), "take_along_dim");
  if (self.dim() == 0) return {gather_wrapped(b, self, 0, indices)};
  const auto without_dim = [&](const Var& v) {
    Exprs sizes = v.sizes();
    sizes[dim] = 1;
    return sizes;
  };
  const Exprs common =
      graph::broadcast_shapes(b.env(), {without_dim(self), without_dim(indices)}, "take_along_dim");
  const auto expanded = [&](const Var& v) {
    Exprs sizes = common;
    sizes[dim] = v.size(dim);
    return b.call("expand", {v, sizes});
  };
  return {gather_wrapped(b, expanded(self), dim, expanded(indices))};
}

// ---- embedding ----

Metas embedding_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &weight = args.tensor(0), &indices = args.tensor(1);
  check_index_dtype(indices, "embedding");
  STAX_CHECK(weight.dim() == 2, "embedding: expected a weight of 2 dimensions, got {}", weight.dim());
  STAX_CHECK(maybe_positive(env, weight.sizes[0]) || maybe_empty(env, indices.numel()),
             "embedding: the weight has no rows");
  Exprs sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return {graph::dense(weight.dtype, sizes, weight.device)};
}

Lazies lower_embedding(Lowering& lowering, const LazyArgs& args) {
  const Lazy &weight = args.tensor(0), &indices = args.tensor(1);
  Exprs sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return {lowering.pointwise(weight.dtype, sizes, [&](const Index& i) {
    const Index at(i.begin(), i.end() - 1);
    const Expr row = lowering.checked(lowering.load(indices, at), weight.sizes[0], false);
    return lowering.load(weight, {row, i.back()});
  })};
}

// Rows that are longer than max_norm come scaled down to it; the weight itself stays as it is.
Vars embedding_renorm(Builder& b, const VarArgs& a) {
  const Var weight = a.tensor(0);
  if (!a["padding_idx"].is_none() && weight.dim() == 2) {
    const Expr at = a["padding_idx"].integer();
    STAX_CHECK(b.env().expect(lt(at, weight.size(0))) && b.env().expect(ge(at, -weight.size(0))),
               "embedding: padding_idx {} is out of range for {} rows", at.str(), weight.size(0).str());
  }
  const Var rows = b.call("embedding", {weight, a[1]});
  const double limit = a["max_norm"].floating();
  const Var norm = b.call("linalg_vector_norm", {rows, num(a["norm_type"].floating()), Exprs{-1}, true});
  const Var scale = b.call(
      "where.self", {b.call("gt.Tensor", {norm, num(limit)}), num(limit) / (norm + num(1e-7)), num(1.0)});
  return {b.call("to.dtype", {rows * scale, weight.dtype()})};
}

// ---- one_hot ----

Metas one_hot_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  STAX_CHECK(self.dtype == DType::int64, "one_hot: expected classes of int64, got {}", name(self.dtype));
  const Expr classes = args["num_classes"].integer();
  STAX_CHECK(env.expect(gt(classes, 0)),
             "one_hot: expected a positive number of classes, or -1 to take the largest class, got {}",
             classes.str());
  Exprs sizes = self.sizes;
  sizes.push_back(classes);
  return {graph::dense(DType::int64, sizes, self.device)};
}

Metas one_hot_infer_meta(ShapeEnv& env, const MetaArgs& args) {
  Exprs sizes = args.tensor(0).sizes;
  sizes.push_back(env.new_symbol(SymbolKind::unbacked, std::nullopt, Interval::at_least(1)));
  return {graph::dense(DType::int64, sizes, args.tensor(0).device)};
}

Lazies lower_one_hot(Lowering& lowering, const LazyArgs& args) {
  const Lazy& self = args.tensor(0);
  Exprs sizes = self.sizes;
  sizes.push_back(args["num_classes"].integer());
  return {lowering.pointwise(DType::int64, sizes, [&](const Index& i) {
    const Index at(i.begin(), i.end() - 1);
    const Expr hot = lowering.checked(lowering.load(self, at), sizes.back(), false);
    return cast(eq(lowering.index_value(hot), lowering.index_value(i.back())), DType::int64);
  })};
}

// ---- unravel_index, isin ----

Metas unravel_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(DType::int64, args.tensor(0).sizes, args.tensor(0).device)};
}

Lazies lower_unravel(Lowering& lowering, const LazyArgs& args) {
  const Lazy& self = args.tensor(0);
  return {lowering.pointwise(DType::int64, self.sizes, [&](const Index& i) {
    const V flat = cast(lowering.load(self, i), DType::int64);
    const V rows = lowering::floor_div(flat, lowering.index_value(args["divisor"].integer()));
    return lowering::remainder(rows, lowering.index_value(args["size"].integer()));
  })};
}

Vars unravel_index(Builder& b, const VarArgs& a) {
  const Var indices = a.tensor(0);
  STAX_CHECK(is_integral(indices.dtype()), "unravel_index: expected integers, got {}", name(indices.dtype()));
  const Exprs& shape = a[1].integers();
  for (const Expr e : shape)
    STAX_CHECK(b.env().expect(ge(e, 0)), "unravel_index: size {} of the shape is negative", e.str());
  Vars out;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Exprs inner(shape.begin() + static_cast<int64_t>(d) + 1, shape.end());
    out.push_back(b.call("unravel_formula", {indices, product(inner), shape[d]}));
  }
  return out;
}

Var isin_of(Builder& b, const VarArg& elements, const Var& tests, bool invert) {
  const Var flat = b.call("reshape", {tests, Exprs{Expr(-1)}});
  const Var equal = elements.is_tensor() ? b.call("eq.Tensor", {b.call("unsqueeze", {elements, -1}), flat})
                                         : b.call("eq.Tensor", {flat, elements});
  const Var found = b.call("any.dims", {equal, Exprs{-1}});
  return invert ? b.call("logical_not", {found}) : found;
}

Vars isin(Builder& b, const VarArgs& a) {
  return {isin_of(b, a[0], a.tensor(1), a["invert"].boolean())};
}

Vars isin_number(Builder& b, const VarArgs& a) {
  const Var equal = b.call("eq.Tensor", {a[0], a[1]});
  return {a["invert"].boolean() ? b.call("logical_not", {equal}) : equal};
}

// ---- searchsorted, bucketize ----

DType position_dtype(const MetaArgs& args) {
  return args["out_int32"].boolean() ? DType::int32 : DType::int64;
}

Metas searchsorted_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& sorted = args.tensor(0);
  const auto& values = args[1];
  STAX_CHECK(sorted.dim() > 0, "searchsorted: the sorted sequence needs a dimension");
  if (!args["side"].is_none()) {
    const std::string& side = args["side"].string();
    STAX_CHECK(side == "left" || side == "right", "searchsorted: side is 'left' or 'right', got '{}'", side);
    STAX_CHECK(side == "right" || !args["right"].boolean(),
               "searchsorted: side and right contradict each other");
  }
  if (args["sorter"].is_tensor()) {
    STAX_CHECK(args["sorter"].tensor().dtype == DType::int64 &&
                   graph::same_sizes(env, args["sorter"].tensor().sizes, sorted.sizes),
               "searchsorted: the sorter must be int64 and have the sequence's shape {}",
               shape_text(sorted.sizes));
  }
  if (!values.is_tensor()) {
    STAX_CHECK(sorted.dim() == 1, "searchsorted: a number needs a sequence of one dimension, got {}",
               sorted.dim());
    return {graph::dense(position_dtype(args), {}, sorted.device)};
  }
  const TensorMeta& in = values.tensor();
  STAX_CHECK(in.dtype == sorted.dtype,
             "searchsorted: expected both tensors to have the same dtype, got {} and {}", name(sorted.dtype),
             name(in.dtype));
  bool fits = sorted.dim() == 1 || sorted.dim() == in.dim();
  for (int64_t d = 0; fits && sorted.dim() > 1 && d + 1 < sorted.dim(); ++d)
    fits = env.expect(eq(sorted.sizes[d], in.sizes[d]));
  STAX_CHECK(fits, "searchsorted: a sequence of shape {} does not fit values of shape {}",
             shape_text(sorted.sizes), shape_text(in.sizes));
  return {graph::dense(position_dtype(args), in.sizes, in.device)};
}

Vars bucketize(Builder& b, const VarArgs& a) {
  const Var boundaries = a.tensor(1);
  STAX_CHECK(boundaries.dim() == 1, "bucketize: expected boundaries of one dimension, got {}",
             boundaries.dim());
  if (!a[0].is_tensor()) return {b.call("searchsorted.Tensor", {boundaries, a[0], a[2], a[3]})};
  // Mixed dtypes compare promoted.
  const DType dtype = graph::promote_types(boundaries.dtype(), a.tensor(0).dtype());
  const auto as = [&](const Var& v) { return v.dtype() == dtype ? v : b.call("to.dtype", {v, dtype}); };
  return {b.call("searchsorted.Tensor", {as(boundaries), as(a.tensor(0)), a[2], a[3]})};
}

// ---- tril_indices, triu_indices ----

template <bool Upper>
Metas triangle_indices_meta(ShapeEnv&, const MetaArgs& args) {
  const int64_t rows = args["row"].integer().value(), columns = args["col"].integer().value();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  STAX_CHECK(rows >= 0 && columns >= 0 && rows <= kMost && columns <= kMost,
             "{}: expected sizes of 0 to {}, got {} and {}", args.schema().name, kMost, rows, columns);
  // Further off, the diagonal lies outside all the same.
  const int64_t offset = std::clamp(args["offset"].integer().value(), -rows - 1, columns + 1);
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t below = std::clamp<int64_t>(i + offset + (Upper ? 0 : 1), 0, columns);
    count += Upper ? columns - below : below;
  }
  const auto& dtype = args["dtype"];
  const DType result = dtype.is_none() ? DType::int64 : dtype.dtype();
  STAX_CHECK(result == DType::int64 || result == DType::int32, "{}: expected dtype int64 or int32, got {}",
             args.schema().name, name(result));
  return {graph::dense(result, {2, count})};
}

}  // namespace

Ops indexing_rows() {
  Ops rows = {
      lowered("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", gather_meta,
              lower_gather),
      lowered("index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select_meta,
              lower_index_select),
      lowered("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index_meta, lower_index),
      composite("take(Tensor self, Tensor index) -> Tensor", take),
      composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along_dim),
      lowered(
          "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
          "sparse=False) -> Tensor",
          embedding_meta, lower_embedding),
      composite("embedding.renorm(Tensor weight, Tensor indices, float max_norm, float norm_type=2.0, int? "
                "padding_idx=None, bool "
                "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
                embedding_renorm),
      composite("one_hot(Tensor self, int num_classes=-1) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  if (is_open(b.env(), a[1].integer())) return {b.call("one_hot.infer", {a[0]})};
                  return {b.call("one_hot_formula", {a[0], a[1]})};
                }),
      graph::internal(
          lowered("one_hot_formula(Tensor self, int num_classes) -> Tensor", one_hot_meta, lower_one_hot)),
      dynamic("one_hot.infer(Tensor self) -> Tensor", one_hot_infer_meta),
      graph::internal(lowered("unravel_formula(Tensor self, int divisor, int size) -> Tensor", unravel_meta,
                              lower_unravel)),
      composite("unravel_index(Tensor indices, int[1] shape) -> Tensor[]", unravel_index),
      composite("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
                isin),
      composite("isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
                isin_number),
      composite("isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
                isin),
      external("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
               "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
               searchsorted_meta),
      composite(
          "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
          "Tensor",
          bucketize),
      external("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None) -> Tensor",
               triangle_indices_meta<false>),
      external("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None) -> Tensor",
               triangle_indices_meta<true>),
  };
  for (graph::Op& op : scatter_rows()) rows.push_back(std::move(op));
  return rows;
}

}  // namespace stax::ops

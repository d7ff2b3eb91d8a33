// Writing where data says, as new values: scatter and its reductions, index_add, index_put, put,
// masked_scatter.
#include <functional>

#include "graph/broadcast.h"
#include "ops/indexing_rules.h"
#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {
namespace {

int64_t dim_of(const auto& args, size_t rank) {
  return wrap_dim(args["dim"].integer().value(), static_cast<int64_t>(rank), args.schema().name);
}

Metas like_self(const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  return {graph::dense(self.dtype, self.sizes, self.device)};
}

void check_same_dtype(const MetaArgs& args, const TensorMeta& source) {
  STAX_CHECK(source.dtype == args.tensor(0).dtype, "{}: expected a source of self's dtype {}, got {}",
             args.schema().name, name(args.tensor(0).dtype), name(source.dtype));
}

// A zero-dim result, from the one of one dimension that was computed instead.
Lazy with_sizes_of(Lowering& lowering, Lazy result, const Lazy& self) {
  if (!self.sizes.empty()) return result;
  if (!result.stored())
    return lowering.pointwise(result.dtype, {},
                              [&](const Index&) { return lowering.load(result, {Expr(0)}); });
  result.sizes = {};
  result.strides = {};
  return result;
}

// A value argument: a tensor's element, or a number in self's dtype.
V value_at(Lowering& lowering, const Argument<Lazy>& value, const Index& i, DType dtype) {
  if (!value.is_tensor()) return lowering.number(value.number(), dtype);
  return cast(lowering.load(value.tensor(), i), dtype);
}

// ---- scatter ----

Metas scatter_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &index = args.tensor(2);
  const std::string& op = args.schema().name;
  const int64_t dim = dim_of(args, self.sizes.size());
  if (args[3].is_tensor()) check_same_dtype(args, args.tensor(3));
  if (env.surely(eq(index.numel(), 0))) return like_self(args);
  check_index_dtype(index, op);
  const Exprs have = at_least_1d(self.sizes), want = at_least_1d(index.sizes);
  STAX_CHECK(have.size() == want.size(), "{}: index has {}, expected those of self, {}", op,
             counted(index.dim(), "dimension"), self.dim());
  for (size_t d = 0; d < have.size(); ++d) {
    const bool along = static_cast<int64_t>(d) == dim;
    STAX_CHECK(along ? maybe_positive(env, have[d]) || maybe_empty(env, index.numel())
                     : env.expect(le(want[d], have[d])),
               "{}: index of shape {} does not fit self of shape {} at dimension {}", op,
               shape_text(index.sizes), shape_text(self.sizes), d);
  }
  if (!args[3].is_tensor()) return like_self(args);
  const Exprs source = at_least_1d(args.tensor(3).sizes);
  STAX_CHECK(source.size() == want.size(), "{}: src has {}, expected those of index, {}", op,
             counted(args.tensor(3).dim(), "dimension"), index.dim());
  for (size_t d = 0; d < have.size(); ++d) {
    STAX_CHECK(env.expect(le(want[d], source[d])), "{}: index of shape {} is larger than src of shape {}", op,
               shape_text(index.sizes), shape_text(args.tensor(3).sizes));
  }
  return like_self(args);
}

template <bool Accumulate>
Lazies lower_scatter(Lowering& lowering, const LazyArgs& args) {
  // An empty index writes nothing, whatever its rank.
  if (product(args.tensor(2).sizes).is(0))
    return {lowering.copy(args.tensor(0), graph::contiguous_strides(args.tensor(0).sizes))};
  const Lazy self = at_least_1d(args.tensor(0)), index = at_least_1d(args.tensor(2));
  const int64_t dim = dim_of(args, args.tensor(0).sizes.size());
  Argument<Lazy> source = args[3];
  if (source.is_tensor()) source = at_least_1d(source.tensor());
  const auto target = [&](const Index& i) {
    Index at = i;
    at[dim] = lowering.checked(lowering.load(index, i), self.sizes[dim], false);
    return at;
  };
  const auto value = [&](const Index& i) { return value_at(lowering, source, i, self.dtype); };
  return {with_sizes_of(lowering, lowering.scatter(self, index.sizes, target, value, Accumulate),
                        args.tensor(0))};
}

Metas combine_meta(ShapeEnv& env, const MetaArgs& args) {
  return scatter_meta(env, args);
}

void check_reduce(const std::string& reduce, std::string_view op) {
  for (const char* known : {"sum", "prod", "mean", "amax", "amin"}) {
    if (reduce == known) return;
  }
  STAX_CHECK(false, "{}: reduce is 'sum', 'prod', 'mean', 'amax' or 'amin', got '{}'", op, reduce);
}

Vars scatter_reduce(Builder& b, const VarArgs& a) {
  const std::string& reduce = a["reduce"].string();
  check_reduce(reduce, "scatter_reduce");
  if (reduce == "sum" && a["include_self"].boolean())
    return {b.call("scatter_add", {a[0], a[1], a[2], a[3]})};
  return {b.call("scatter_combine", {a[0], a[1], a[2], a[3], a[4], a[5]})};
}

// scatter with a `reduce` of 'add' or 'multiply'; the source may be a number.
Vars scatter_with_reduce(Builder& b, const VarArgs& a) {
  const std::string& reduce = a["reduce"].string();
  STAX_CHECK(reduce == "add" || reduce == "multiply", "scatter: reduce is 'add' or 'multiply', got '{}'",
             reduce);
  if (reduce == "add") return {b.call("scatter_add_value", {a[0], a[1], a[2], a[3]})};
  VarArg source = a[3];
  if (!source.is_tensor()) source = b.call("new_full", {a[0], a.tensor(2).sizes(), source.number()});
  return {b.call("scatter_combine", {a[0], a[1], a[2], source, "prod", true})};
}

// ---- index_add, index_copy, index_fill, index_reduce ----

Metas index_source_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &index = args.tensor(2), &source = args.tensor(3);
  const std::string& op = args.schema().name;
  check_index_dtype(index, op);
  check_same_dtype(args, source);
  STAX_CHECK(index.dim() <= 1, "{}: expected an index of at most one dimension, got {}", op, index.dim());
  const int64_t dim = dim_of(args, self.sizes.size());
  const Exprs have = at_least_1d(self.sizes), from = at_least_1d(source.sizes);
  bool fits = have.size() == from.size();
  for (size_t d = 0; fits && d < have.size(); ++d)
    fits = env.expect(eq(from[d], static_cast<int64_t>(d) == dim ? index.numel() : have[d]));
  STAX_CHECK(fits, "{}: a source of shape {} does not fit self of shape {} and {} indices along dimension {}",
             op, shape_text(source.sizes), shape_text(self.sizes), index.numel().str(), dim);
  STAX_CHECK(maybe_positive(env, have[dim]) || maybe_empty(env, index.numel()),
             "{}: dimension {} of self has size 0", op, dim);
  return like_self(args);
}

Metas index_fill_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &index = args.tensor(2);
  check_index_dtype(index, "index_fill");
  STAX_CHECK(index.dim() <= 1, "index_fill: expected an index of at most one dimension, got {}", index.dim());
  STAX_CHECK(!args[3].is_tensor() || args.tensor(3).dim() == 0,
             "index_fill: expected a number or a zero-dim tensor as the value");
  const int64_t dim = dim_of(args, self.sizes.size());
  STAX_CHECK(maybe_positive(env, at_least_1d(self.sizes)[dim]) || maybe_empty(env, index.numel()),
             "index_fill: dimension {} of self has size 0", dim);
  return like_self(args);
}

// Stores value(i) at self[..., index[i[dim]], ...].
Lazies scatter_along(Lowering& lowering, const LazyArgs& args, bool wrap, bool accumulate,
                     const std::function<V(const Index&)>& value) {
  const Lazy self = at_least_1d(args.tensor(0)), index = at_least_1d(args.tensor(2));
  const int64_t dim = dim_of(args, args.tensor(0).sizes.size());
  Exprs sizes = self.sizes;
  sizes[dim] = index.sizes[0];
  const auto target = [&](const Index& i) {
    Index at = i;
    at[dim] = lowering.checked(lowering.load(index, {i[dim]}), self.sizes[dim], wrap);
    return at;
  };
  return {with_sizes_of(lowering, lowering.scatter(self, sizes, target, value, accumulate), args.tensor(0))};
}

Lazies lower_index_add(Lowering& lowering, const LazyArgs& args) {
  const Lazy source = at_least_1d(args.tensor(3));
  const DType dtype = args.tensor(0).dtype;
  const Number& alpha = args["alpha"].number();
  const bool one = alpha.is_float() ? alpha.floating == 1 : alpha.integer.is(1);
  return scatter_along(lowering, args, false, true, [&](const Index& i) {
    const V value = lowering.load(source, i);
    return one ? value : value * lowering.number(alpha, dtype);
  });
}

Lazies lower_index_copy(Lowering& lowering, const LazyArgs& args) {
  const Lazy source = at_least_1d(args.tensor(3));
  return scatter_along(lowering, args, false, false,
                       [&](const Index& i) { return lowering.load(source, i); });
}

Lazies lower_index_fill(Lowering& lowering, const LazyArgs& args) {
  return scatter_along(lowering, args, true, false,
                       [&](const Index&) { return value_at(lowering, args[3], {}, args.tensor(0).dtype); });
}

Vars index_reduce(Builder& b, const VarArgs& a) {
  const std::string& reduce = a["reduce"].string();
  STAX_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
             "index_reduce: reduce is 'prod', 'mean', 'amax' or 'amin', got '{}'", reduce);
  const Var self = a.tensor(0), source = a.tensor(3);
  const int64_t dim = dim_of(a, self.sizes().size());
  STAX_CHECK(a.tensor(2).dim() <= 1, "index_reduce: expected an index of at most one dimension, got {}",
             a.tensor(2).dim());
  // The index repeated along all other dimensions of the source.
  Exprs shape(std::max<size_t>(source.sizes().size(), 1), Expr(1));
  STAX_CHECK(source.dim() == self.dim(), "index_reduce: expected a source of {}, got {}",
             counted(self.dim(), "dimension"), source.dim());
  shape[dim] = a.tensor(2).numel();
  const Var index =
      source.dim() == 0 ? a.tensor(2) : b.call("expand", {b.call("reshape", {a[2], shape}), source.sizes()});
  return {b.call("scatter_combine", {self, dim, index, source, reduce, a["include_self"]})};
}

// ---- index_put, put, masked_scatter ----

template <class T>
std::vector<std::optional<Exprs>> shapes_of(const typename Argument<T>::Tensors& indices) {
  std::vector<std::optional<Exprs>> out;
  for (const auto& t : indices) out.push_back(t ? std::optional(t->sizes) : std::nullopt);
  return out;
}

Metas index_put_meta(ShapeEnv& env, const MetaArgs& args) {
  for (const auto& t : args[1].tensors()) {
    if (!t) continue;
    STAX_CHECK(
        t->dtype != DType::boolean,
        "index_put: a bool mask selects as many elements as the data says; use where() or masked_fill()");
    check_index_dtype(*t, "index_put");
  }
  const AdvancedIndex plan =
      advanced_index(env, args.tensor(0).sizes, shapes_of<TensorMeta>(args[1].tensors()), "index_put");
  if (args[2].is_tensor()) {
    const TensorMeta& values = args.tensor(2);
    check_same_dtype(args, values);
    const Exprs common = graph::broadcast_shapes(env, {plan.sizes, values.sizes}, "index_put");
    bool fits = common.size() == plan.sizes.size();
    for (size_t d = 0; fits && d < common.size(); ++d) fits = env.expect(eq(common[d], plan.sizes[d]));
    STAX_CHECK(fits, "index_put: values of shape {} do not broadcast to the indexed shape {}",
               shape_text(values.sizes), shape_text(plan.sizes));
  }
  return like_self(args);
}

Lazies lower_index_put(Lowering& lowering, const LazyArgs& args) {
  const Lazy& self = args.tensor(0);
  const AdvancedIndex plan =
      advanced_index(lowering.env(), self.sizes, shapes_of<Lazy>(args[1].tensors()), "index_put");
  const auto target = [&](const Index& i) {
    return indexed_position(lowering, plan, self, args[1].tensors(), i);
  };
  const auto value = [&](const Index& i) {
    if (!args[2].is_tensor()) return lowering.number(args[2].number(), self.dtype);
    const Lazy& values = args.tensor(2);
    Index at;
    const size_t skip = i.size() - values.sizes.size();
    for (size_t d = 0; d < values.sizes.size(); ++d) {
      const bool broadcast = graph::repeats(lowering.env(), values.sizes[d], plan.sizes[skip + d]);
      at.push_back(broadcast ? Expr(0) : i[skip + d]);
    }
    return lowering.load(values, at);
  };
  return {lowering.scatter(self, plan.sizes, target, value, args["accumulate"].boolean())};
}

// x[..., mask, ...] = values with one mask of bool: the values go to the true elements in order. `position`
// counts the true elements up to and with each; `dim` is the first dimension that the mask takes.
Lazies lower_mask_put(Lowering& lowering, const LazyArgs& args) {
  const Lazy &self = args.tensor(0), &mask = args.tensor(1), &position = args.tensor(2);
  const Lazy& values = args.tensor(3);
  const auto first = args["dim"].integer().value();
  const auto last = first + mask.dim();
  const auto inner = [&](const Index& i) { return Index(i.begin() + first, i.begin() + last); };
  const Lazy taken = lowering.pointwise(self.dtype, self.sizes, [&](const Index& i) {
    // The element of the indexed region, then of values, which broadcast to it.
    Index region(i.begin(), i.begin() + first);
    region.emplace_back(0);
    region.insert(region.end(), i.begin() + last, i.end());
    const size_t skip = region.size() - values.sizes.size();
    Index at;
    for (size_t d = 0; d < values.sizes.size(); ++d) {
      if (lowering.env().surely(eq(values.sizes[d], 1))) {
        at.emplace_back(0);
      } else if (static_cast<int64_t>(skip + d) == first) {
        const V before = lowering.load(position, inner(i)) - lowering.constant(DType::int64, int64_t{1});
        at.push_back(lowering.checked(before, values.sizes[d], false));
      } else {
        at.push_back(region[skip + d]);
      }
    }
    return lowering.load(values, at);
  });
  return {lowering.pointwise(self.dtype, self.sizes, [&](const Index& i) {
    const V old = lowering.load(self, i), chosen = lowering.load(mask, inner(i));
    const V value = lowering.masked_load(taken, i, chosen, lowering::like(old, 0));
    return where(chosen, args["accumulate"].boolean() ? old + value : value, old);
  })};
}

Metas mask_put_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &mask = args.tensor(1), &values = args.tensor(3);
  check_same_dtype(args, values);
  const auto first = args["dim"].integer().value();
  bool fits = first + mask.dim() <= self.dim();
  for (int64_t d = 0; fits && d < mask.dim(); ++d)
    fits = env.expect(eq(mask.sizes[d], self.sizes[first + d]));
  STAX_CHECK(fits, "index_put: a mask of shape {} does not fit self of shape {} from dimension {} on",
             shape_text(mask.sizes), shape_text(self.sizes), first);
  STAX_CHECK(values.dim() <= self.dim() - mask.dim() + 1,
             "index_put: values of {} dimensions are more than the indexed {}", values.dim(),
             self.dim() - mask.dim() + 1);
  return like_self(args);
}

// The position of the only index, when that is a mask of bool; -1 otherwise.
int64_t only_mask(const VarArg::Tensors& indices) {
  int64_t found = -1;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    if (found >= 0 || indices[d]->dtype() != DType::boolean) return -1;
    found = static_cast<int64_t>(d);
  }
  return found;
}

Vars index_put(Builder& b, const VarArgs& a) {
  const int64_t at = only_mask(a[1].tensors());
  if (at < 0) return {b.call("index_put_formula", {a[0], a[1], a[2], a[3]})};
  const Var mask = *a[1].tensors()[at];
  const Var flat = b.call("reshape", {mask, Exprs{mask.numel()}});
  const Var position = b.call("reshape", {b.call("cumsum", {flat, 0, DType::int64}), mask.sizes()});
  const VarArg values = a[2].is_tensor() ? a[2] : VarArg(b.call("new_full", {a[0], Exprs{}, a[2].number()}));
  return {b.call("mask_put_formula", {a[0], mask, position, values, at, a[3]})};
}

Vars put(Builder& b, const VarArgs& a) {
  const Var self = a.tensor(0), index = a.tensor(1), source = a.tensor(2);
  STAX_CHECK(index.dtype() == DType::int64, "put: expected an index of int64, got {}", name(index.dtype()));
  STAX_CHECK(b.env().expect(eq(index.numel(), source.numel())),
             "put: expected as many source elements as indices, got {} and {}", source.numel().str(),
             index.numel().str());
  const auto flat = [&](const Var& v) { return b.call("reshape", {v, Exprs{Expr(-1)}}); };
  const auto flat_or_empty = [&](const Var& v) { return b.call("reshape", {v, Exprs{v.numel()}}); };
  const Var out = b.call("index_put", {b.env().surely(eq(self.numel(), 0)) ? flat_or_empty(self) : flat(self),
                                       VarArg::Tensors{flat_or_empty(index)}, flat_or_empty(source), a[3]});
  return {b.call("reshape", {out, self.sizes()})};
}

Metas masked_scatter_meta(ShapeEnv&, const MetaArgs& args) {
  return like_self(args);
}

// Element i of the source's elements goes to the i-th true element of the mask; `position` counts them.
Lazies lower_masked_scatter(Lowering& lowering, const LazyArgs& args) {
  const Lazy &self = args.tensor(0), &mask = args.tensor(1), &position = args.tensor(2);
  const Lazy& source = args.tensor(3);
  const Lazy taken = lowering.pointwise(self.dtype, self.sizes, [&](const Index& i) {
    const V before = lowering.load(position, i) - lowering.constant(DType::int64, int64_t{1});
    return lowering.load(source, {lowering.checked(before, source.sizes[0], false)});
  });
  return {lowering.pointwise(self.dtype, self.sizes, [&](const Index& i) {
    return lowering.masked_load(taken, i, lowering.load(mask, i), lowering.load(self, i));
  })};
}

Vars masked_scatter(Builder& b, const VarArgs& a) {
  const Var self = a.tensor(0), mask = a.tensor(1), source = a.tensor(2);
  STAX_CHECK(mask.dtype() == DType::boolean, "masked_scatter: expected a mask of bool, got {}",
             name(mask.dtype()));
  STAX_CHECK(source.dtype() == self.dtype(), "masked_scatter: expected a source of self's dtype {}, got {}",
             name(self.dtype()), name(source.dtype()));
  const Exprs sizes = graph::broadcast_shapes(b.env(), {self.sizes(), mask.sizes()}, "masked_scatter");
  const Var where = b.call("expand", {mask, sizes});
  const Var flat = b.call("reshape", {where, Exprs{product(sizes)}});
  const Var position = b.call("reshape", {b.call("cumsum", {flat, 0, DType::int64}), sizes});
  return {b.call("masked_scatter_formula", {b.call("expand", {self, sizes}), where, position,
                                            b.call("reshape", {source, Exprs{source.numel()}})})};
}

}  // namespace

Ops scatter_rows() {
  return {
      in_place(lowered("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter_meta,
                       lower_scatter<false>)),
      in_place(
          composite("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
                    scatter_with_reduce)),
      in_place(composite("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           return {b.call("scatter.src", {a[0], a[1], a[2], a[3]})};
                         })),
      in_place(composite(
          "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
          scatter_with_reduce)),
      lowered("scatter_add_value(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter_meta,
              lower_scatter<true>),
      in_place(lowered("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter_meta,
                       lower_scatter<true>)),
      in_place(
          composite("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
                    "include_self=True) -> Tensor",
                    scatter_reduce)),
      external(
          "scatter_combine(Tensor self, int dim, Tensor index, Tensor src, str reduce, bool include_self) -> "
          "Tensor",
          combine_meta),
      in_place(
          lowered("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
                  index_source_meta, lower_index_add)),
      in_place(lowered("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
                       index_source_meta, lower_index_copy)),
      in_place(lowered("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
                       index_fill_meta, lower_index_fill)),
      in_place(
          composite("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
                    "include_self=True) -> Tensor",
                    index_reduce)),
      graph::internal(lowered(
          "index_put_formula(Tensor self, Tensor?[] indices, Tensor values, bool accumulate) -> Tensor",
          index_put_meta, lower_index_put)),
      graph::internal(
          lowered("mask_put_formula(Tensor self, Tensor mask, Tensor position, Tensor values, int dim, bool "
                  "accumulate) -> Tensor",
                  mask_put_meta, lower_mask_put)),
      in_place(composite(
          "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
          index_put)),
      in_place(
          composite("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put)),
      graph::internal(lowered(
          "masked_scatter_formula(Tensor self, Tensor mask, Tensor position, Tensor source) -> Tensor",
          masked_scatter_meta, lower_masked_scatter)),
      in_place(
          composite("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", masked_scatter)),
  };
}

}  // namespace stax::ops

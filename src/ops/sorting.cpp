// Operators that order or select elements. Most are external; those whose result sizes the data determines
// are dynamic.
#include <algorithm>

#include "ops/shape_rules.h"
#include "ops/sorting_rules.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {
namespace {

// ---- orders along a dimension: values and their positions ----

Metas values_and_indices(const TensorMeta& self, const Exprs& sizes) {
  return {graph::dense(self.dtype, sizes, self.device), graph::dense(DType::int64, sizes, self.device)};
}

int64_t row_dim(const MetaArgs& args) {
  return wrap_dim(args["dim"].integer().value(), args.tensor(0).dim(), args.schema().name);
}

Expr row_length(const TensorMeta& self, int64_t dim) {
  return self.dim() == 0 ? Expr(1) : self.sizes[dim];
}

/// An order of rows, for which a GPU has kernels where rows are short.
graph::Op order(std::string_view schema, graph::MetaRule meta, graph::LowerRule on_gpu) {
  graph::Op row = external(schema, meta);
  row.lower = on_gpu;
  return row;
}

/// Checks the dimension, and lets a program count on the length that decides how rows are ordered.
void settle_order(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  const int64_t dim = row_dim(args);
  if (self.device != kCPU) settle_order_of_rows(env, self.dtype, row_length(self, dim));
}

Metas sort_meta(ShapeEnv& env, const MetaArgs& args) {
  settle_order(env, args);
  return values_and_indices(args.tensor(0), args.tensor(0).sizes);
}

Metas topk_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  const int64_t dim = row_dim(args);
  const Expr k = args["k"].integer();
  settle_order(env, args);
  STAX_CHECK(env.expect(ge(k, 0)) && env.expect(le(k, row_length(self, dim))),
             "topk: k is {}, expected at most the {} elements of dimension {}", k.str(),
             row_length(self, dim).str(), dim);
  Exprs sizes = self.sizes;
  if (!sizes.empty()) sizes[dim] = k;
  return values_and_indices(self, sizes);
}

Metas one_of_row(const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  const int64_t dim = row_dim(args);
  Exprs sizes = self.sizes;
  if (!sizes.empty()) {
    sizes[dim] = 1;
    if (!args["keepdim"].boolean()) sizes.erase(sizes.begin() + dim);
  }
  return values_and_indices(self, sizes);
}

void check_row(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  const int64_t dim = row_dim(args);
  Expr others = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim) others = others * self.sizes[d];
  }
  STAX_CHECK(maybe_positive(env, row_length(self, dim)) || maybe_empty(env, others),
             "{}: dimension {} has no elements", args.schema().name, dim);
}

Metas median_meta(ShapeEnv& env, const MetaArgs& args) {
  settle_order(env, args);
  check_row(env, args);
  return one_of_row(args);
}

Metas kthvalue_meta(ShapeEnv& env, const MetaArgs& args) {
  const int64_t dim = row_dim(args);
  const Expr k = args["k"].integer(), length = row_length(args.tensor(0), dim);
  settle_order(env, args);
  STAX_CHECK(env.expect(ge(k, 1)) && env.expect(le(k, length)),
             "kthvalue: k is {}, expected 1 to {}, the size of dimension {}", k.str(), length.str(), dim);
  return one_of_row(args);
}

Metas select_meta(ShapeEnv& env, const MetaArgs& args) {
  check_row(env, args);
  return one_of_row(args);
}

Metas scalar_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(args.tensor(0).dtype, {}, args.tensor(0).device)};
}

// ---- quantile ----

Metas quantile_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &q = args.tensor(1);
  check_row(env, args);
  Exprs sizes = self.sizes;
  if (!sizes.empty()) {
    const int64_t dim = row_dim(args);
    sizes[dim] = 1;
    if (!args["keepdim"].boolean()) sizes.erase(sizes.begin() + dim);
  }
  if (q.dim() == 1) sizes.insert(sizes.begin(), q.sizes[0]);
  return {graph::dense(self.dtype, sizes, self.device)};
}

// Without a dim, of all elements; a number q is a zero-dim tensor.
Vars quantile(Builder& b, const VarArgs& a) {
  const std::string& op = a.schema().name;
  const Var self = a.tensor(0);
  STAX_CHECK(self.dtype() == DType::float32 || self.dtype() == DType::float64,
             "{}: expected float32 or float64, got {}", op, name(self.dtype()));
  static constexpr std::string_view kInterpolations[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  const std::string& how = a["interpolation"].string();
  STAX_CHECK(
      std::find(std::begin(kInterpolations), std::end(kInterpolations), how) != std::end(kInterpolations),
      "{}: interpolation is 'linear', 'lower', 'higher', 'midpoint' or 'nearest', got '{}'", op, how);
  Var q;
  if (a[1].is_tensor()) {
    q = a.tensor(1);
    STAX_CHECK(q.dim() <= 1 && q.dtype() == self.dtype(),
               "{}: expected q to be a number or a vector of self's dtype {}, got {} of {}", op,
               name(self.dtype()), counted(q.dim(), "dimension"), name(q.dtype()));
  } else {
    const double value = a[1].floating();
    STAX_CHECK(value >= 0 && value <= 1, "{}: expected q between 0 and 1, got {}", op, value);
    q = b.call("new_full", {self, Exprs{}, a[1].number()});
  }
  if (!a["dim"].is_none()) return {b.call(op + "_rows", {self, q, a["dim"], a["keepdim"], how})};
  const Var flat = b.call("reshape", {self, Exprs{self.numel()}});
  const Var out = b.call(op + "_rows", {flat, q, 0, false, how});
  if (!a["keepdim"].boolean()) return {out};
  Exprs sizes = out.sizes();
  sizes.insert(sizes.end(), self.sizes().size(), Expr(1));
  return {b.call("reshape", {out, sizes})};
}

// ---- histc, combinations, cartesian_prod ----

Metas histc_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  STAX_CHECK(is_floating_point(self.dtype), "histc: expected a floating dtype, got {}", name(self.dtype));
  const Expr bins = args["bins"].integer();
  STAX_CHECK(bins.value() > 0, "histc: expected a positive number of bins, got {}", bins.str());
  STAX_CHECK(args["min"].floating() <= args["max"].floating(),
             "histc: the range's minimum {} is above its maximum {}", args["min"].floating(),
             args["max"].floating());
  return {graph::dense(self.dtype, {bins}, self.device)};
}

Metas combinations_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  STAX_CHECK(self.dim() == 1, "combinations: expected a vector, got {}", counted(self.dim(), "dimension"));
  const int64_t r = args["r"].integer().value();
  STAX_CHECK(r >= 0, "combinations: r must not be negative, got {}", r);
  if (r == 0) return {graph::dense(self.dtype, {0}, self.device)};
  // n over r, counted as a product of exact quotients.
  const int64_t n =
      self.sizes[0].value() + (args["with_replacement"].boolean() && self.sizes[0].value() > 0 ? r - 1 : 0);
  int64_t count = n < r ? 0 : 1;
  for (int64_t k = 1; k <= r && count > 0; ++k) count = count * (n - r + k) / k;
  return {graph::dense(self.dtype, {count, r}, self.device)};
}

Vars cartesian_prod(Builder& b, const VarArgs& a) {
  const auto& tensors = a[0].tensors();
  STAX_CHECK(!tensors.empty(), "cartesian_prod: expected at least one tensor");
  Exprs shape;
  for (const auto& t : tensors) {
    STAX_CHECK(t->dim() == 1, "cartesian_prod: expected vectors, got a tensor of {}",
               counted(t->dim(), "dimension"));
    shape.push_back(t->size(0));
  }
  if (tensors.size() == 1) return {*tensors[0]};
  VarArg::Tensors columns;
  for (size_t k = 0; k < tensors.size(); ++k) {
    Exprs one(tensors.size(), Expr(1));
    one[k] = shape[k];
    const Var grid = b.call("expand", {b.call("reshape", {*tensors[k], one}), shape});
    columns.push_back(b.call("reshape", {grid, Exprs{product(shape)}}));
  }
  return {b.call("stack", {columns, 1})};
}

// ---- sizes that the data determines ----

/// A size that only the data determines: at least `least`, and at most `most` where that is given.
Expr unknown_size(ShapeEnv& env, int64_t least, std::optional<Expr> most = std::nullopt) {
  Interval values = Interval::at_least(least);
  if (most) values.upper = most->constant();
  const Expr size(env.new_symbol(SymbolKind::unbacked, std::nullopt, values));
  if (most && !values.upper) env.assume(le(size, *most));
  return size;
}

Metas nonzero_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  return {graph::dense(DType::int64, {unknown_size(env, 0, self.numel()), Expr(self.dim())}, self.device)};
}

Metas nonzero_tuple_meta(ShapeEnv& env, const MetaArgs& args) {
  if (args.size() > 1 && !args[1].boolean()) return nonzero_meta(env, args);
  const TensorMeta& self = args.tensor(0);
  const Expr count = unknown_size(env, 0, self.numel());
  return Metas(static_cast<size_t>(std::max<int64_t>(self.dim(), 1)),
               graph::dense(DType::int64, {count}, self.device));
}

Metas masked_select_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &self = args.tensor(0), &mask = args.tensor(1);
  const Expr most = product(graph::broadcast_shapes(env, {self.sizes, mask.sizes}, "masked_select"));
  return {graph::dense(self.dtype, {unknown_size(env, 0, most)}, self.device)};
}

Metas unique_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  const bool slices = !args["dim"].is_none() && self.dim() > 0;
  const Expr items = slices ? self.sizes[row_dim(args)] : self.numel();
  const Expr count = unknown_size(env, env.proves(gt(items, 0)) ? 1 : 0, items);
  Exprs sizes = {count}, inverse = self.sizes;
  if (slices) {
    sizes = self.sizes;
    sizes[row_dim(args)] = count;
    inverse = {items};
  }
  Metas out = {graph::dense(self.dtype, sizes, self.device)};
  if (args["return_inverse"].boolean()) out.push_back(graph::dense(DType::int64, inverse, self.device));
  if (args["return_counts"].boolean()) out.push_back(graph::dense(DType::int64, {count}, self.device));
  return out;
}

Metas bincount_meta(ShapeEnv& env, const MetaArgs& args) {
  DType dtype = DType::int64;
  if (args["weights"].is_tensor())
    dtype = args["weights"].tensor().dtype == DType::float32 ? DType::float32 : DType::float64;
  const Expr least = args["minlength"].integer();
  const Expr bins = unknown_size(env, std::max<int64_t>(least.constant().value_or(0), 0));
  if (!least.is_constant()) env.assume(le(least, bins));
  return {graph::dense(dtype, {bins}, args.tensor(0).device)};
}

Metas repeat_positions_meta(ShapeEnv& env, const MetaArgs& args) {
  const auto& size = args["output_size"];
  return {graph::dense(DType::int64, {size.is_none() ? unknown_size(env, 0) : size.integer()},
                       args.tensor(0).device)};
}

Metas repeat_interleave_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& self = args.tensor(0);
  const Expr count = args["output_size"].is_none() ? unknown_size(env, 0) : args["output_size"].integer();
  Exprs sizes = {count};
  if (!args["dim"].is_none() && self.dim() > 0) {
    sizes = self.sizes;
    sizes[row_dim(args)] = count;
  }
  return {graph::dense(self.dtype, sizes, self.device)};
}

Metas bind_value_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(DType::int64, {}, args.tensor(0).device)};
}

Ops order_rows() {
  return {
      order(
          "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor, Tensor)",
          sort_meta, lower_sort),
      composite("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor, Tensor)",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return b.call_all("sort.stable", {a[0], true, a[1], a[2]});
                }),
      composite("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call_all("sort.stable", {a[0], true, a[1], a[2]})[1]};
                }),
      composite("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call_all("sort.stable", {a[0], a[1], a[2], a[3]})[1]};
                }),
      composite("msort(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call_all("sort.stable", {a[0], true, 0, false})[0]};
                }),
      order("topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)",
            topk_meta, lower_topk),
      order("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)", kthvalue_meta,
            lower_kthvalue),
      external("median(Tensor self) -> Tensor", scalar_meta),
      order("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", median_meta,
            lower_median),
      external("nanmedian(Tensor self) -> Tensor", scalar_meta),
      order("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", median_meta,
            lower_nanmedian),
      external("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)", select_meta),
      graph::internal(
          external("quantile_rows(Tensor self, Tensor q, int dim, bool keepdim, str interpolation) -> Tensor",
                   quantile_meta)),
      graph::internal(external(
          "nanquantile_rows(Tensor self, Tensor q, int dim, bool keepdim, str interpolation) -> Tensor",
          quantile_meta)),
      // The number first: a tensor parameter would take it too.
      composite("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                "interpolation='linear') -> Tensor",
                quantile),
      composite("quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                "interpolation='linear') -> Tensor",
                quantile),
      composite("nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                "interpolation='linear') -> Tensor",
                quantile),
      composite("nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                "interpolation='linear') -> Tensor",
                quantile),
      external("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc_meta),
      external("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
               combinations_meta),
      composite("cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod),
  };
}

Ops dynamic_rows() {
  return {
      dynamic("nonzero(Tensor self) -> Tensor", nonzero_meta),
      dynamic("nonzero.as_tuple(Tensor self, *, bool as_tuple) -> Tensor[]", nonzero_tuple_meta),
      dynamic("nonzero_numpy(Tensor self) -> Tensor[]", nonzero_tuple_meta),
      dynamic("argwhere(Tensor self) -> Tensor", nonzero_meta),
      dynamic("masked_select(Tensor self, Tensor mask) -> Tensor", masked_select_meta),
      dynamic(
          "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? "
          "dim=None) -> Tensor[]",
          unique_meta),
      dynamic("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
              "dim=None) -> Tensor[]",
              unique_meta),
      dynamic("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", bincount_meta),
      dynamic("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
              repeat_positions_meta),
      dynamic("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? "
              "output_size=None) -> Tensor",
              repeat_interleave_meta),
      // item() as a size: gives `symbol` the value of a zero-dim tensor of int64.
      graph::internal(dynamic("bind_value(Tensor self, int symbol) -> Tensor", bind_value_meta)),
  };
}

}  // namespace

Ops sorting_rows() {
  Ops rows = order_rows();
  for (graph::Op& op : dynamic_rows()) rows.push_back(std::move(op));
  return rows;
}

}  // namespace stax::ops

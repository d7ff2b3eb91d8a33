#include "ops/reduction_rules.h"

#include <algorithm>

#include "ops/loop_vocabulary.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {

// PyTorch's limit, kept because programs may rely on the error.
constexpr int64_t kMaxReducedRank = 64;

template <class T>
std::vector<int64_t> reduced_dims(const graph::Bound<T>& args) {
  const auto& name = args.schema().name;
  const int64_t rank = args.tensor(0).dim();
  STAX_CHECK(rank <= kMaxReducedRank, "{}: expected at most {}, got {}", name,
             counted(kMaxReducedRank, "dimension"), rank);
  std::vector<int64_t> dims;
  if (args.schema().position("dim") >= 0) {
    const auto& dim = args["dim"];
    if (const auto* list = std::get_if<std::vector<Expr>>(&dim.value)) {
      for (const Expr d : *list) dims.push_back(graph::wrap_dim(d.value(), rank, name));
    } else if (!dim.is_none()) {
      dims.push_back(graph::wrap_dim(dim.integer().value(), rank, name));
    }
  }
  if (dims.empty()) {
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  }
  std::sort(dims.begin(), dims.end());
  const auto twice = std::adjacent_find(dims.begin(), dims.end());
  STAX_CHECK(twice == dims.end(), "{}: dimension {} is given twice", name, *twice);
  if (rank == 0) dims.clear();
  return dims;
}

template std::vector<int64_t> reduced_dims(const graph::Bound<TensorMeta>& args);
template std::vector<int64_t> reduced_dims(const graph::Bound<Lazy>& args);
template std::vector<int64_t> reduced_dims(const graph::Bound<graph::Var>& args);

namespace {

bool contains(const std::vector<int64_t>& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

}  // namespace

TensorMeta reduced_meta(const TensorMeta& self, const std::vector<int64_t>& dims, bool keepdim, DType dtype) {
  std::vector<Expr> sizes;
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    if (!contains(dims, d)) {
      sizes.push_back(self.sizes[d]);
    } else if (keepdim) {
      sizes.emplace_back(1);
    }
  }
  return graph::dense(dtype, std::move(sizes), self.device);
}

V load_reduced(Lowering& lowering, const Lazy& x, const std::vector<int64_t>& dims, const Index& i,
               const Index& r) {
  Index at;
  size_t next_i = 0, next_r = 0;
  for (size_t d = 0; d < x.sizes.size(); ++d) at.push_back(contains(dims, d) ? r[next_r++] : i[next_i++]);
  return lowering.load(x, at);
}

Lowering::Reduction reduction_over(Lowering& lowering, const Lazy& x, const std::vector<int64_t>& dims,
                                   loops::OpCode op, DType accumulate) {
  Lowering::Reduction loops{.op = op, .accumulate = accumulate};
  for (size_t d = 0; d < x.sizes.size(); ++d)
    (contains(dims, d) ? loops.reduced : loops.sizes).push_back(x.sizes[d]);
  loops.value = [&](const Index& i, const Index& r) {
    return std::vector<V>{load_reduced(lowering, x, dims, i, r)};
  };
  return loops;
}

Lazy reduce_dims(Lowering& lowering, const Lazy& x, const std::vector<int64_t>& dims, bool keepdim,
                 const DimReduction& reduction) {
  Lowering::Reduction loops = reduction_over(lowering, x, dims, reduction.op, reduction.accumulate);
  loops.dtypes = {reduction.result};
  if (reduction.prepare) {
    loops.value = [&](const Index& i, const Index& r) {
      return std::vector<V>{reduction.prepare(load_reduced(lowering, x, dims, i, r))};
    };
  }
  const Expr count = product(loops.reduced);
  if (reduction.finish) {
    loops.finish = [&](const std::vector<V>& v) { return std::vector<V>{reduction.finish(v[0], count)}; };
  }
  Lazy out = lowering.reduce(loops)[0];
  return keepdim ? with_kept_dims(out, dims, x.sizes.size()) : out;
}

graph::VarArg all_dims_if_empty(const graph::Var& x, const graph::VarArg& dim) {
  using Exprs = std::vector<Expr>;
  if (!dim.is_none() && !(std::holds_alternative<Exprs>(dim.value) && dim.integers().empty())) return dim;
  Exprs all;
  for (int64_t d = 0; d < x.dim(); ++d) all.emplace_back(d);
  return all;
}

Lazy with_kept_dims(Lazy t, const std::vector<int64_t>& dims, size_t rank) {
  std::vector<Expr> sizes;
  for (size_t d = 0, next = 0; d < rank; ++d) sizes.push_back(contains(dims, d) ? Expr(1) : t.sizes[next++]);
  t.sizes = sizes;
  t.strides = graph::contiguous_strides(sizes);
  return t;
}

Var row_max(Builder& b, const Var& x, const Exprs& dims) {
  bool decided = true;
  for (const Expr d : x.dim() == 0 ? Exprs{} : dims)
    decided &= b.env().decided(gt(x.size(d.value()), 0)).has_value();
  return b.call(decided ? "amax" : "amax_or_lowest", {x, dims, true});
}

}  // namespace stax::ops

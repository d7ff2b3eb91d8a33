// Views: results that share the input's storage. Each primitive gives the result's meta, the index map that
// formulas are read through, and the scatter that writes through the view.
#include "graph/builder.h"
#include "ops/table.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

using graph::Builder;
using graph::composite;
using graph::MetaArgs;
using graph::TensorMeta;
using graph::Var;
using graph::VarArgs;
using graph::view;

std::vector<int64_t> permutation(const std::vector<Expr>& dims, int64_t rank) {
  STAX_CHECK(static_cast<int64_t>(dims.size()) == rank, "permute: expected {} dimensions, got {}", rank,
             dims.size());
  std::vector<int64_t> order;
  std::vector<char> seen(rank, 0);
  for (const Expr d : dims) {
    order.push_back(graph::wrap_dim(d.value(), rank, "permute"));
    STAX_CHECK(!seen[order.back()]++, "permute: dimension {} is given twice", d.str());
  }
  return order;
}

std::vector<TensorMeta> permute_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& in = args.tensor(0);
  TensorMeta out = in;
  const auto order = permutation(args["dims"].integers(), in.dim());
  for (size_t k = 0; k < order.size(); ++k) {
    out.sizes[k] = in.sizes[order[k]];
    out.strides[k] = in.strides[order[k]];
  }
  return {out};
}

std::vector<Expr> permute_index(const MetaArgs& args, const TensorMeta& result,
                                const std::vector<Expr>& index) {
  const auto order = permutation(args["dims"].integers(), result.dim());
  std::vector<Expr> at(index.size());
  for (size_t k = 0; k < order.size(); ++k) at[order[k]] = index[k];
  return at;
}

Var permute_scatter(Builder& builder, const VarArgs& args, const Var& source) {
  const auto order = permutation(args["dims"].integers(), source.dim());
  std::vector<Expr> inverse(order.size());
  for (size_t k = 0; k < order.size(); ++k) inverse[order[k]] = Expr(static_cast<int64_t>(k));
  return builder.call("permute", {source, inverse});
}

}  // namespace

std::vector<graph::Op> view_rows() {
  return {
      view("permute(Tensor self, int[] dims) -> Tensor", permute_meta, permute_index, permute_scatter),
      composite("t(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> std::vector<Var> {
                  STAX_CHECK(a.tensor(0).dim() <= 2, "t: expected a tensor of at most 2 dimensions, got {}",
                             a.tensor(0).dim());
                  if (a.tensor(0).dim() < 2) return {a.tensor(0)};
                  return {b.call("permute", {a.tensor(0), std::vector<Expr>{1, 0}})};
                }),
  };
}

}  // namespace stax::ops

// Views written in terms of the primitives of view.cpp: transposes, squeezing, reshaping.
#include <algorithm>
#include <numeric>

#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

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

#define SAME(target)                                                                      \
  [](Builder& b, const VarArgs& a) -> Vars {                                              \
    return b.call_all(target, std::vector<VarArg>(a.values().begin(), a.values().end())); \
  }

}  // namespace

Ops view_composite_rows() {
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
  };
}

}  // namespace stax::ops

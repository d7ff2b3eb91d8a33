// Views of the parts of a tensor: split, chunk, unbind and their relatives.
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

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
  STAX_CHECK(count > 0 && count <= kMostParts, "{}: expected 1 to {}, got {}", op,
             counted(kMostParts, "part"), count);
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
  STAX_CHECK(x.dim() >= least, "{}: expected a tensor of at least {}, got {}", op,
             counted(least, "dimension"), x.dim());
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

}  // namespace

Ops splitting_rows() {
  return {
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

}  // namespace stax::ops

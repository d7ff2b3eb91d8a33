// Norms of vectors and of matrices, and what is scaled by them.
#include <cmath>

#include "ops/reduction_rules.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "ops/widen.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// ---- of vectors ----

Vars linalg_vector_norm(Builder& b, const VarArgs& a) {
  const Var input = a.tensor(0);
  const double p = a[1].floating();
  const VarArg &dim = a[2], &dtype = a[4];
  const bool keep = a[3].boolean();
  Var x = dtype.is_none() ? input : b.call("to.dtype", {input, dtype});
  STAX_CHECK(is_floating_point(x.dtype()), "vector_norm: expected a floating dtype, got {}", name(x.dtype()));
  const VarArg dims = all_dims_if_empty(x, dim);
  const DType result = x.dtype();
  if (is_half(result)) x = b.call("to.dtype", {x, DType::float32});
  const Var size = b.call("abs", {x});
  const auto sum = [&](const Var& v) { return b.call("sum.dim_IntList", {v, dims, keep}); };
  Var out;
  if (p == HUGE_VAL) {
    out = b.call("amax", {size, dims, keep});
  } else if (p == -HUGE_VAL) {
    out = b.call("amin", {size, dims, keep});
  } else if (p == 0) {
    out = sum(b.call("to.dtype", {b.call("ne.Tensor", {x, 0}), x.dtype()}));
  } else if (p == 1) {
    out = sum(size);
  } else if (p == 2) {
    out = b.call("sqrt", {sum(x * x)});
  } else {
    out = b.call("pow.Tensor_Scalar", {sum(b.call("pow.Tensor_Scalar", {size, p})), 1 / p});
  }
  return {is_half(result) ? b.call("to.dtype", {out, result}) : out};
}

Var vector_norm(Builder& b, const Var& x, double p, const VarArg& dim, bool keep, const VarArg& dtype) {
  return b.call("linalg_vector_norm", {x, num(p), dim, keep, dtype});
}

// ---- of matrices ----

struct MatrixDims {
  int64_t rows, columns;
};

MatrixDims matrix_dims(const Var& x, const VarArg& dim, std::string_view op) {
  Exprs dims = dim.is_none() ? Exprs{-2, -1} : dim.integers();
  if (dim.is_none() || dims.empty()) dims = {Expr(-2), Expr(-1)};
  STAX_CHECK(dims.size() == 2 && x.dim() >= 2, "{}: a matrix norm is taken over 2 dimensions, got {} of {}",
             op, dims.size(), shape_text(x.sizes()));
  const MatrixDims out{wrap_dim(dims[0].value(), x.dim(), op), wrap_dim(dims[1].value(), x.dim(), op)};
  STAX_CHECK(out.rows != out.columns, "{}: dimension {} is given twice", op, out.rows);
  return out;
}

Var without_dims(Builder& b, const Var& x, const MatrixDims& m, bool keep) {
  return keep ? x : b.call("squeeze.dims", {x, Exprs{m.rows, m.columns}});
}

// The largest or smallest of the sums of magnitudes along one dimension. A matrix of nothing has the norm 0.
Var sum_norm(Builder& b, const Var& x, const MatrixDims& m, int64_t along, bool largest, bool keep) {
  const int64_t other = along == m.rows ? m.columns : m.rows;
  const Var size = b.call("abs", {x});
  if (b.env().surely(eq(x.size(other), 0)))
    return b.call("sum.dim_IntList", {size, Exprs{m.rows, m.columns}, keep});
  const Var sums = b.call("sum.dim_IntList", {size, Exprs{along}, true});
  return without_dims(b, b.call(largest ? "amax" : "amin", {sums, Exprs{other}, true}), m, keep);
}

// x with its matrices in the last two dimensions; their singular values, largest first, in the last one.
Var singular_values(Builder& b, const Var& x, const MatrixDims& m) {
  const Var last = b.call("movedim.intlist", {x, Exprs{m.rows, m.columns}, Exprs{-2, -1}});
  return b.call("linalg_svdvals", {last});
}

// The sum, the largest or the smallest of the singular values.
Var spectral_norm(Builder& b, const Var& x, const MatrixDims& m, const char* reduction, bool keep) {
  const Var values = singular_values(b, x, m);
  const bool nothing = b.env().surely(eq(values.size(-1), 0));
  Var out = b.call(nothing ? "sum.dim_IntList" : reduction, {values, Exprs{-1}});
  if (!keep) return out;
  for (const int64_t d : {std::min(m.rows, m.columns), std::max(m.rows, m.columns)})
    out = b.call("unsqueeze", {out, d});
  return out;
}

Var matrix_norm(Builder& b, const Var& input, double order, const VarArg& dim, bool keep, const VarArg& dtype,
                std::string_view op) {
  const Var x = dtype.is_none() ? input : b.call("to.dtype", {input, dtype});
  STAX_CHECK(is_floating_point(x.dtype()), "{}: expected a floating dtype, got {}", op, name(x.dtype()));
  const MatrixDims m = matrix_dims(x, dim, op);
  if (std::abs(order) == 1) return sum_norm(b, x, m, m.rows, order > 0, keep);
  if (std::isinf(order)) return sum_norm(b, x, m, m.columns, order > 0, keep);
  STAX_CHECK(std::abs(order) == 2,
             "{}: expected an order of 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc' for a matrix, got {}", op,
             order);
  return spectral_norm(b, x, m, order > 0 ? "amax" : "amin", keep);
}

Var named_matrix_norm(Builder& b, const Var& input, const std::string& order, const VarArg& dim, bool keep,
                      const VarArg& dtype, std::string_view op) {
  STAX_CHECK(order == "fro" || order == "nuc", "{}: expected an order of 'fro' or 'nuc', got '{}'", op,
             order);
  STAX_CHECK(!dim.is_none() || input.dim() == 2, "{}: without dim, '{}' needs a matrix, got shape {}", op,
             order, shape_text(input.sizes()));
  const Var x = dtype.is_none() ? input : b.call("to.dtype", {input, dtype});
  const MatrixDims m = matrix_dims(x, dim, op);
  if (order == "fro") return vector_norm(b, x, 2.0, Exprs{m.rows, m.columns}, keep, VarArg());
  return spectral_norm(b, x, m, "sum.dim_IntList", keep);
}

// ---- singular values ----

Metas svdvals_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  STAX_CHECK(x.dim() >= 2, "linalg_svdvals: expected matrices, got {}", counted(x.dim(), "dimension"));
  STAX_CHECK(x.dtype == DType::float32 || x.dtype == DType::float64,
             "linalg_svdvals: expected float32 or float64, got {}; convert first", name(x.dtype));
  Exprs sizes(x.sizes.begin(), x.sizes.end() - 2);
  const Expr rows = x.sizes[sizes.size()], columns = x.sizes.back();
  sizes.push_back(smaller(env, rows, columns));
  return {graph::dense(x.dtype, sizes, x.device)};
}

// ---- the operators ----

Vars norm(Builder& b, const VarArgs& a) {
  const double p = a[1].is_none() ? 2.0 : a[1].floating();
  return {vector_norm(b, a.tensor(0), p, a[2], a[3].boolean(), a[4])};
}

// 'fro' is the norm of all elements together, of whatever shape.
Vars norm_named(Builder& b, const VarArgs& a) {
  const std::string& p = a[1].string();
  if (p == "fro") return {vector_norm(b, a.tensor(0), 2.0, a[2], a[3].boolean(), a[4])};
  return {named_matrix_norm(b, a.tensor(0), p, a[2], a[3].boolean(), a[4], "norm")};
}

Vars linalg_matrix_norm(Builder& b, const VarArgs& a) {
  return {matrix_norm(b, a.tensor(0), a[1].floating(), a[2], a[3].boolean(), a[4], a.schema().name)};
}
Vars linalg_matrix_norm_named(Builder& b, const VarArgs& a) {
  return {named_matrix_norm(b, a.tensor(0), a[1].string(), a[2], a[3].boolean(), a[4], a.schema().name)};
}

// Of a matrix where two dims are named, or an order but no dim for a matrix; of a vector otherwise.
Vars linalg_norm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const bool all = a[2].is_none();
  const bool matrix = all ? x.dim() == 2 : a[2].integers().size() == 2;
  STAX_CHECK(a[1].is_none() || !all || x.dim() == 1 || x.dim() == 2,
             "linalg_norm: an order without dim needs a vector or a matrix, got shape {}",
             shape_text(x.sizes()));
  if (a[1].is_none() || !matrix)
    return {vector_norm(b, x, a[1].is_none() ? 2.0 : a[1].floating(), a[2], a[3].boolean(), a[4])};
  return {matrix_norm(b, x, a[1].floating(), a[2], a[3].boolean(), a[4], a.schema().name)};
}

Vars dist(Builder& b, const VarArgs& a) {
  return {vector_norm(b, a.tensor(0) - a.tensor(1), a[2].floating(), VarArg(), false, VarArg())};
}

// The parts along `dim` whose norm exceeds maxnorm are scaled to it.
Vars renorm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const double p = a[1].floating(), most = a[3].floating();
  STAX_CHECK(x.dim() >= 2, "renorm: expected at least 2 dimensions, got {}", x.dim());
  STAX_CHECK(is_floating_point(x.dtype()), "renorm: expected a floating dtype, got {}", name(x.dtype()));
  STAX_CHECK(p > 0, "renorm: expected a positive p, got {}", p);
  STAX_CHECK(most >= 0, "renorm: expected a maxnorm of at least 0, got {}", most);
  const int64_t dim = wrap_dim(a[2].integer().value(), x.dim(), "renorm");
  Exprs others;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != dim) others.emplace_back(d);
  }
  const Var norm = vector_norm(b, x, p, others, true, VarArg());
  const Var scale = num(most) / (norm + num(1e-7));
  return {x * b.call("where.self", {b.call("gt.Tensor", {norm, most}), scale, 1.0})};
}

}  // namespace

Ops norm_rows() {
  return {
      composite("norm(Tensor self, Scalar? p=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                "dtype=None) -> Tensor",
                norm),
      composite("norm.name(Tensor self, str p, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                "dtype=None) -> Tensor",
                norm_named),
      decomposed("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
                 "ScalarType? dtype=None) -> Tensor",
                 linalg_vector_norm),
      composite("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, "
                "ScalarType? dtype=None) -> Tensor",
                linalg_matrix_norm),
      composite("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2, -1], bool "
                "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                linalg_matrix_norm_named),
      composite("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
                "ScalarType? dtype=None) -> Tensor",
                linalg_norm),
      composite("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
                "ScalarType? dtype=None) -> Tensor",
                linalg_matrix_norm_named),
      graph::external("linalg_svdvals(Tensor self) -> Tensor", svdvals_meta),
      composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist),
      in_place(composite("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
                         computed_wide<renorm>)),
  };
}

}  // namespace stax::ops

// Products of matrices and vectors. mm and bmm are external; the others are formulas over them.
#include <functional>
#include <limits>

#include "ops/loop_vocabulary.h"
#include "ops/matmul_rules.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {

void check_product_dtypes(DType a, DType b, std::string_view op) {
  STAX_CHECK(a == b, "{}: expected both operands to have the same dtype, got {} and {}", op, name(a),
             name(b));
  STAX_CHECK(a != DType::boolean, "{}: matrices of bool cannot be multiplied; convert them to integers", op);
}

Var convert_to(Builder& b, const Var& x, DType dtype) {
  return x.dtype() == dtype ? x : b.call("to.dtype", {x, dtype});
}

namespace {

// ---- mm, bmm ----

DType product_dtype(const MetaArgs& args) {
  const DType in = args.tensor(0).dtype;
  if (args.schema().position("out_dtype") < 0) return in;
  const DType out = args["out_dtype"].dtype();
  STAX_CHECK(out == in || (is_half(in) && out == DType::float32),
             "{}: out_dtype {} is not possible for operands of {}; expected that, or float32 for half types",
             args.schema().name, name(out), name(in));
  return out;
}

Metas mm_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &x = args.tensor(0), &y = args.tensor(1);
  STAX_CHECK(x.dim() == 2 && y.dim() == 2, "mm: expected two matrices, got tensors of {} and {} dimensions",
             x.dim(), y.dim());
  check_product_dtypes(x.dtype, y.dtype, "mm");
  STAX_CHECK(env.expect(eq(x.sizes[1], y.sizes[0])), "mm: matrices of shape {} and {} cannot be multiplied",
             shape_text(x.sizes), shape_text(y.sizes));
  return {graph::dense(product_dtype(args), {x.sizes[0], y.sizes[1]}, x.device)};
}

Metas bmm_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &x = args.tensor(0), &y = args.tensor(1);
  STAX_CHECK(x.dim() == 3 && y.dim() == 3,
             "bmm: expected two batches of matrices, got tensors of {} and {} dimensions", x.dim(), y.dim());
  check_product_dtypes(x.dtype, y.dtype, "bmm");
  STAX_CHECK(env.expect(eq(x.sizes[0], y.sizes[0])) && env.expect(eq(x.sizes[2], y.sizes[1])),
             "bmm: batches of shape {} and {} cannot be multiplied", shape_text(x.sizes),
             shape_text(y.sizes));
  return {graph::dense(product_dtype(args), {x.sizes[0], x.sizes[1], y.sizes[2]}, x.device)};
}

// ---- mm, bmm for a GPU ----

// Whether a library reads the last two dimensions of `t` as they lie: one of them is dense, and its lines do
// not overlap.
bool readable(ShapeEnv& env, const lowering::Lazy& t) {
  if (!t.stored()) return false;
  const auto lines = [&](size_t dense, size_t across) {
    return (env.proves(eq(t.strides[dense], 1)) || env.proves(eq(t.sizes[dense], 1))) &&
           (env.proves(ge(t.strides[across], t.sizes[dense])) || env.proves(eq(t.sizes[across], 1)));
  };
  const size_t last = t.sizes.size() - 1;
  return lines(last, last - 1) || lines(last - 1, last);
}

// Sums of products of integers, for which libraries have nothing; they wrap around.
lowering::Lazy sum_products(lowering::Lowering& lowering, const lowering::Lazy& x, const lowering::Lazy& y) {
  using lowering::Index;
  using lowering::V;
  const DType wide = itemsize(x.dtype) == 8 ? x.dtype : DType::int32;
  Exprs sizes(x.sizes.begin(), x.sizes.end() - 1);
  sizes.push_back(y.sizes.back());
  return lowering.reduce({.op = loops::OpCode::reduce_sum,
                          .accumulate = wide,
                          .sizes = sizes,
                          .reduced = {x.sizes.back()},
                          .value = [&](const Index& i, const Index& r) -> std::vector<V> {
                            Index left(i.begin(), i.end() - 1), right(i.begin(), i.end() - 2);
                            left.push_back(r[0]);
                            right.insert(right.end(), {r[0], i.back()});
                            return {cast(lowering.load(x, left), wide) * cast(lowering.load(y, right), wide)};
                          },
                          .dtypes = {x.dtype}})[0];
}

// A call of the library, over operands that it reads; other products in other ways.
lowering::Lazy product_on_gpu(lowering::Lowering& lowering, const graph::LazyArgs& args, DType out) {
  const lowering::Lazy &x = args.tensor(0), &y = args.tensor(1);
  Exprs sizes(x.sizes.begin(), x.sizes.end() - 1);
  sizes.push_back(y.sizes.back());
  if (lowering.env().proves(eq(x.sizes.back(), 0))) {
    return lowering.pointwise(out, sizes, [&](const lowering::Index&) {
      return lowering.constant(loops::compute_dtype(out), int64_t{0});
    });
  }
  if (!is_floating_point(x.dtype)) return sum_products(lowering, x, y);
  std::vector<Argument<lowering::Lazy>> operands(args.values().begin(), args.values().end());
  for (const size_t k : {0, 1}) {
    const lowering::Lazy& t = operands[k].tensor();
    if (!readable(lowering.env(), t)) operands[k] = lowering.copy(t, graph::contiguous_strides(t.sizes));
  }
  if (operands.size() > 2 && operands[2].is_tensor()) {
    const lowering::Lazy& bias = operands[2].tensor();
    if (!bias.stored() || !lowering.env().proves(eq(bias.strides[0], 1)))
      operands[2] = lowering.copy(bias, graph::contiguous_strides(bias.sizes));
  }
  return lowering.external(args.schema().full_name(), graph::LazyArgs(args.schema(), operands),
                           {graph::dense(out, sizes, kCPU)})[0];
}

std::vector<lowering::Lazy> lower_product(lowering::Lowering& lowering, const graph::LazyArgs& args) {
  DType out = args.tensor(0).dtype;
  for (const char* named : {"out_dtype", "dtype"})
    if (args.schema().position(named) >= 0) out = args[named].dtype();
  return {product_on_gpu(lowering, args, out)};
}

// Operands broadcast from one batch to the other's are no matter of it: both are matrices, or both batches.
Metas product_epilogue_meta(ShapeEnv& env, const MetaArgs& args) {
  const Metas product = args.tensor(0).dim() == 3 ? bmm_meta(env, args) : mm_meta(env, args);
  if (args[2].is_tensor()) {
    const TensorMeta& bias = args.tensor(2);
    STAX_ASSERT(bias.dim() == 1 && env.expect(eq(bias.sizes[0], product[0].sizes.back())),
                "product_epilogue: a bias of shape {}", shape_text(bias.sizes));
  }
  return {graph::dense(args["dtype"].dtype(), product[0].sizes, args.tensor(0).device)};
}

graph::Op product_row(std::string_view schema, graph::MetaRule meta,
                      graph::ProductKind kind = graph::ProductKind::plain) {
  graph::Op row = external(schema, meta);
  row.lower = lower_product;
  row.product = kind;
  return row;
}

Var multiply_matrices(Builder& b, std::string_view op, const Var& x, const Var& y, bool wide) {
  if (wide && is_half(x.dtype())) return b.call(std::string(op) + ".dtype", {x, y, DType::float32});
  return b.call(op, {x, y});
}

Var reshape(Builder& b, const Var& x, const Exprs& sizes) {
  return b.call("reshape", {x, sizes});
}

// ---- vectors ----

// Sum of products over the last dimension. The products of half types are not rounded before they are added.
Var dot_last(Builder& b, const Var& x, const Var& y, bool wide) {
  const DType dtype = wide && is_half(x.dtype()) ? DType::float32 : x.dtype();
  const Var product =
      is_half(x.dtype()) ? convert_to(b, x, DType::float32) * convert_to(b, y, DType::float32) : x * y;
  return convert_to(b, b.call("sum.dim_IntList", {product, Exprs{-1}, false, product.dtype()}), dtype);
}

void check_vectors(Builder& b, const Var& x, const Var& y, std::string_view op) {
  STAX_CHECK(x.dim() == 1 && y.dim() == 1, "{}: expected two vectors, got tensors of {} and {} dimensions",
             op, x.dim(), y.dim());
  check_product_dtypes(x.dtype(), y.dtype(), op);
  STAX_CHECK(b.env().expect(eq(x.size(0), y.size(0))), "{}: vectors of {} and {} elements do not match", op,
             x.size(0).str(), y.size(0).str());
}

Vars dot(Builder& b, const VarArgs& a) {
  check_vectors(b, a.tensor(0), a.tensor(1), a.schema().name);
  return {dot_last(b, a.tensor(0), a.tensor(1), false)};
}

Var matrix_vector(Builder& b, const Var& x, const Var& y, bool wide) {
  STAX_CHECK(x.dim() == 2 && y.dim() == 1, "mv: expected a matrix and a vector, got {} and {} dimensions",
             x.dim(), y.dim());
  check_product_dtypes(x.dtype(), y.dtype(), "mv");
  STAX_CHECK(b.env().expect(eq(x.size(1), y.size(0))),
             "mv: a matrix of shape {} and a vector of {} elements cannot be multiplied",
             shape_text(x.sizes()), y.size(0).str());
  return dot_last(b, x, y, wide);
}

Vars outer(Builder& b, const VarArgs& a) {
  STAX_CHECK(a.tensor(0).dim() == 1 && a.tensor(1).dim() == 1,
             "{}: expected two vectors, got tensors of {} and {} dimensions", a.schema().name,
             a.tensor(0).dim(), a.tensor(1).dim());
  return {b.call("unsqueeze", {a[0], 1}) * a.tensor(1)};
}

// ---- matmul ----

// Batches flattened to one dimension.
Var broadcast_product(Builder& b, const Var& x, const Var& y, bool wide) {
  const auto batch_of = [](const Var& v) { return Exprs(v.sizes().begin(), v.sizes().end() - 2); };
  const Exprs batch = graph::broadcast_shapes(b.env(), {batch_of(x), batch_of(y)}, "matmul");
  const auto flatten = [&](const Var& v) {
    Exprs sizes = batch;
    sizes.insert(sizes.end(), v.sizes().end() - 2, v.sizes().end());
    return reshape(b, b.call("expand", {v, sizes}), {product(batch), v.size(-2), v.size(-1)});
  };
  const Var out = multiply_matrices(b, "bmm", flatten(x), flatten(y), wide);
  Exprs sizes = batch;
  sizes.insert(sizes.end(), {out.size(1), out.size(2)});
  return reshape(b, out, sizes);
}

}  // namespace

Var matrix_product(Builder& b, const Var& x, const Var& y, bool wide) {
  STAX_CHECK(x.dim() > 0 && y.dim() > 0,
             "matmul: both operands need at least one dimension, got {} and {}; multiply numbers with *",
             x.dim(), y.dim());
  check_product_dtypes(x.dtype(), y.dtype(), "matmul");
  if (x.dim() == 1 && y.dim() == 1) {
    check_vectors(b, x, y, "matmul");
    return dot_last(b, x, y, wide);
  }
  if (x.dim() == 2 && y.dim() == 1) return matrix_vector(b, x, y, wide);
  if (x.dim() == 2 && y.dim() == 2) return multiply_matrices(b, "mm", x, y, wide);
  STAX_CHECK(b.env().expect(eq(x.size(-1), y.size(y.dim() == 1 ? 0 : -2))),
             "matmul: tensors of shape {} and {} cannot be multiplied", shape_text(x.sizes()),
             shape_text(y.sizes()));
  if (x.dim() == 1) {
    return b.call("squeeze.dim", {matrix_product(b, b.call("unsqueeze", {x, 0}), y, wide), -2});
  }
  if (y.dim() <= 2) {
    // One matrix for the whole batch: the batch is more rows of it.
    Exprs sizes(x.sizes().begin(), x.sizes().end() - 1);
    const Var rows = reshape(b, x, {product(sizes), x.size(-1)});
    const Var out = matrix_product(b, rows, y, wide);
    if (y.dim() == 2) sizes.push_back(y.size(1));
    return reshape(b, out, sizes);
  }
  return broadcast_product(b, x, y, wide);
}

lowering::Lazy multiply_on_gpu(lowering::Lowering& lowering, const lowering::Lazy& x, const lowering::Lazy& y,
                               DType out) {
  const bool wide = out != x.dtype;
  const graph::Schema& schema = table().at(wide ? "bmm.dtype" : "bmm").schema;
  std::vector<Argument<lowering::Lazy>> operands = {x, y};
  if (wide) operands.emplace_back(out);
  return product_on_gpu(lowering, graph::LazyArgs(schema, operands), out);
}

namespace {

// ---- beta * self + alpha * product ----

bool is_number(const VarArg& factor, int64_t value) {
  const Number& n = factor.number();
  return n.is_float() ? n.floating == static_cast<double>(value) : n.integer.is(value);
}

Var times(const Var& x, const VarArg& factor) {
  return is_number(factor, 1) ? x : x * factor.number();
}

// A factor as the tensors' dtype has it: of integers its integer part counts, of bool whether it is not zero.
VarArg factor_for(DType dtype, const VarArg& factor) {
  const Number& n = factor.number();
  if (dtype == DType::boolean) return num(n.is_float() ? n.floating != 0 : !n.integer.is(0));
  if (!is_floating_point(dtype) && n.is_float()) return num(static_cast<int64_t>(n.floating));
  return factor;
}

// `product` may be float32 for a self of a half type; the result is rounded once. A beta of 0 means that self
// is not read.
Vars add_product(Builder& b, const VarArgs& a, const Var& product) {
  const Var self = a.tensor(0);
  const VarArg alpha = factor_for(self.dtype(), a["alpha"]), beta = factor_for(self.dtype(), a["beta"]);
  const Var added = b.call("expand", {self, product.sizes()});
  const Var scaled = times(product, alpha);
  if (is_number(beta, 0)) return {convert_to(b, scaled, self.dtype())};
  const Var sum = times(convert_to(b, added, product.dtype()), beta) + scaled;
  return {convert_to(b, sum, self.dtype())};
}

void check_added(const VarArgs& a) {
  check_product_dtypes(a.tensor(1).dtype(), a.tensor(2).dtype(), a.schema().name);
  check_product_dtypes(a.tensor(0).dtype(), a.tensor(1).dtype(), a.schema().name);
}

Vars addmm(Builder& b, const VarArgs& a) {
  check_added(a);
  return add_product(b, a, multiply_matrices(b, "mm", a.tensor(1), a.tensor(2), true));
}

Vars baddbmm(Builder& b, const VarArgs& a) {
  check_added(a);
  return add_product(b, a, multiply_matrices(b, "bmm", a.tensor(1), a.tensor(2), true));
}

Vars addbmm(Builder& b, const VarArgs& a) {
  check_added(a);
  const Var product = multiply_matrices(b, "bmm", a.tensor(1), a.tensor(2), true);
  return add_product(b, a, b.call("sum.dim_IntList", {product, Exprs{0}, false, product.dtype()}));
}

Vars addmv(Builder& b, const VarArgs& a) {
  check_added(a);
  return add_product(b, a, matrix_vector(b, a.tensor(1), a.tensor(2), true));
}

Vars addr(Builder& b, const VarArgs& a) {
  const Var self = a.tensor(0), product = b.call("outer", {a[1], a[2]});
  const DType dtype = graph::promote_types(self.dtype(), product.dtype());
  const VarArg alpha = factor_for(dtype, a["alpha"]), beta = factor_for(dtype, a["beta"]);
  const Var added = b.call("expand", {self, product.sizes()}), scaled = times(product, alpha);
  return {convert_to(b, is_number(beta, 0) ? scaled : times(added, beta) + scaled, dtype)};
}

Vars linear(Builder& b, const VarArgs& a) {
  const Var weight = a.tensor(1);
  STAX_CHECK(weight.dim() == 1 || weight.dim() == 2, "linear: expected a weight of 1 or 2 dimensions, got {}",
             weight.dim());
  const Var x = a.tensor(0);
  if (a[2].is_none()) return {matrix_product(b, x, b.call("t", {weight}))};
  check_product_dtypes(x.dtype(), a.tensor(2).dtype(), "linear");
  const Var product = matrix_product(b, x, b.call("t", {weight}), true);
  return {convert_to(b, product + convert_to(b, a.tensor(2), product.dtype()), x.dtype())};
}

// ---- products of several matrices ----

// The order of multiplication that needs the fewest multiplications: cost[i][j] of the product of matrices i
// to j, split[i][j] its last multiplication.
Var multiply_chain(Builder& b, const Vars& matrices) {
  const size_t n = matrices.size();
  std::vector<double> size;
  const auto hint = [&](Expr e) { return static_cast<double>(b.env().hint(e).value_or(1)); };
  for (const Var& m : matrices) size.push_back(hint(m.size(0)));
  size.push_back(hint(matrices.back().size(1)));
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length) {
    for (size_t i = 0; i + length <= n; ++i) {
      const size_t j = i + length - 1;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
        if (c < cost[i][j]) {
          cost[i][j] = c;
          split[i][j] = k;
        }
      }
    }
  }
  const std::function<Var(size_t, size_t)> multiply = [&](size_t i, size_t j) -> Var {
    if (i == j) return matrices[i];
    return b.call("mm", {multiply(i, split[i][j]), multiply(split[i][j] + 1, j)});
  };
  return multiply(0, n - 1);
}

Vars multi_dot(Builder& b, const VarArgs& a) {
  const std::string& op = a.schema().name;
  Vars matrices;
  for (const auto& t : a[0].tensors()) matrices.push_back(*t);
  STAX_CHECK(matrices.size() >= 2 || (op == "chain_matmul" && !matrices.empty()),
             "{}: expected at least two tensors, got {}", op, matrices.size());
  const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = b.call("unsqueeze", {matrices.front(), 0});
  if (column) matrices.back() = b.call("unsqueeze", {matrices.back(), 1});
  for (const Var& m : matrices)
    STAX_CHECK(m.dim() == 2, "{}: expected matrices, got a tensor of {}", op, counted(m.dim(), "dimension"));
  Var out = multiply_chain(b, matrices);
  if (column) out = b.call("squeeze.dim", {out, 1});
  if (row) out = b.call("squeeze.dim", {out, 0});
  return {out};
}

// ---- cross ----

Metas cross_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(args.tensor(0).dtype, args.tensor(0).sizes, args.tensor(0).device)};
}

std::vector<lowering::Lazy> lower_cross(lowering::Lowering& lowering, const graph::LazyArgs& args) {
  using lowering::Index;
  using lowering::V;
  const lowering::Lazy &x = args.tensor(0), &y = args.tensor(1);
  const int64_t dim = args["dim"].integer().value();
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) -> V {
    const auto at = [&](int64_t ahead) {
      Index index = i;
      index[dim] = mod(i[dim] + ahead, 3);
      return index;
    };
    return lowering.load(x, at(1)) * lowering.load(y, at(2)) -
           lowering.load(x, at(2)) * lowering.load(y, at(1));
  })};
}

Var cross_along(Builder& b, const Var& x, const Var& y, int64_t dim, std::string_view op) {
  STAX_CHECK(x.dim() == y.dim(), "{}: expected tensors of as many dimensions, got {} and {}", op, x.dim(),
             y.dim());
  dim = graph::wrap_dim(dim, x.dim(), op);
  STAX_CHECK(x.dim() > 0 && b.env().expect(eq(x.size(dim), 3)) && b.env().expect(eq(y.size(dim), 3)),
             "{}: dimension {} must have size 3, got shapes {} and {}", op, dim, shape_text(x.sizes()),
             shape_text(y.sizes()));
  const Exprs sizes = graph::broadcast_shapes(b.env(), {x.sizes(), y.sizes()}, op);
  const DType dtype = graph::promote_types(x.dtype(), y.dtype());
  const auto operand = [&](const Var& v) { return b.call("expand", {convert_to(b, v, dtype), sizes}); };
  return b.call("cross_formula", {operand(x), operand(y), dim});
}

Vars cross(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1);
  if (!a["dim"].is_none()) return {cross_along(b, x, y, a["dim"].integer().value(), "cross")};
  // Without a dimension: the first of size 3.
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (b.env().decide(eq(x.size(d), 3))) return {cross_along(b, x, y, d, "cross")};
  }
  STAX_CHECK(false, "cross: no dimension of shape {} has size 3", shape_text(x.sizes()));
}

Ops product_rows() {
  return {
      product_row("mm(Tensor self, Tensor mat2) -> Tensor", mm_meta),
      product_row("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", mm_meta),
      product_row("bmm(Tensor self, Tensor mat2) -> Tensor", bmm_meta),
      product_row("bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", bmm_meta),
      graph::internal(product_row("product_epilogue(Tensor self, Tensor mat2, Tensor? bias, str activation, "
                                  "ScalarType dtype) -> Tensor",
                                  product_epilogue_meta, graph::ProductKind::joined)),
      composite("mv(Tensor self, Tensor vec) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {matrix_vector(b, a.tensor(0), a.tensor(1), false)};
                }),
      composite("dot(Tensor self, Tensor tensor) -> Tensor", dot),
      composite("vdot(Tensor self, Tensor other) -> Tensor", dot),
      composite(
          "matmul(Tensor self, Tensor other) -> Tensor",
          [](Builder& b, const VarArgs& a) -> Vars { return {matrix_product(b, a.tensor(0), a.tensor(1))}; }),
      composite(
          "linalg_matmul(Tensor self, Tensor other) -> Tensor",
          [](Builder& b, const VarArgs& a) -> Vars { return {matrix_product(b, a.tensor(0), a.tensor(1))}; }),
      in_place(composite(
          "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addmm)),
      in_place(composite(
          "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addmv)),
      in_place(composite(
          "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          addbmm)),
      in_place(composite(
          "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          baddbmm)),
      in_place(composite(
          "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addr)),
      composite("outer(Tensor self, Tensor vec2) -> Tensor", outer),
      composite("ger(Tensor self, Tensor vec2) -> Tensor", outer),
      composite("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", linear),
      composite("chain_matmul(Tensor[] matrices) -> Tensor", multi_dot),
      composite("linalg_multi_dot(Tensor[] tensors) -> Tensor", multi_dot),
      graph::internal(
          lowered("cross_formula(Tensor self, Tensor other, int dim) -> Tensor", cross_meta, lower_cross)),
      composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", cross),
      composite("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {cross_along(b, a.tensor(0), a.tensor(1), a[2].integer().value(), "linalg_cross")};
                }),
  };
}

}  // namespace

Ops matmul_rows() {
  Ops rows = product_rows();
  for (const auto part : {contraction_rows, attention_rows}) {
    for (graph::Op& op : part()) rows.push_back(std::move(op));
  }
  return rows;
}

}  // namespace stax::ops

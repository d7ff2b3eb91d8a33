// The derivative column of the op table: what each operator hands on to its arguments in reverse mode.
//
// A rule gets the call's arguments, its results and their gradients (unset where a result does not matter),
// and gives a gradient for every tensor among the arguments, in order; unset where there is none. Gradients
// have the dtypes and sizes of their tensors. The formulas are those of calculus; where a function has no
// derivative (ties of maxima, relu at 0) the choice is PyTorch's, and said at the rule.
#include <cmath>
#include <numbers>

#include "graph/broadcast.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "support/check.h"

namespace stax::ops {

using graph::DerivativeRule;

namespace {

/// What a rule reads.
struct Call {
  Builder& b;
  const VarArgs& a;  // arguments
  const Vars& r;     // results
  const Vars& g;     // their gradients
};

/// A rule as the op table has it.
template <auto rule>
Vars call_rule(Builder& b, const VarArgs& a, const Vars& r, const Vars& g) {
  return rule(Call{b, a, r, g});
}

/// The gradient of a tensor that was broadcast and converted to the sizes and dtype of `gradient`.
Var as_argument(Builder& b, Var gradient, const Var& argument) {
  const auto extra = static_cast<size_t>(gradient.dim() - argument.dim());
  Exprs summed;
  for (size_t d = 0; d < extra; ++d) summed.push_back(static_cast<int64_t>(d));
  for (size_t d = extra; d < static_cast<size_t>(gradient.dim()); ++d) {
    if (graph::repeats(b.env(), argument.sizes()[d - extra], gradient.sizes()[d]))
      summed.push_back(static_cast<int64_t>(d));
  }
  if (!summed.empty()) {
    gradient = b.call("sum.dim_IntList", {gradient, summed, true});
    if (extra > 0) gradient = b.call("view", {gradient, argument.sizes()});
  }
  if (gradient.dtype() != argument.dtype()) gradient = b.call("to.dtype", {gradient, argument.dtype()});
  return gradient;
}

Var unary(Builder& b, std::string_view op, const Var& x) {
  return b.call(op, {x});
}

/// A function of one variable x with result y: dx = g f'(x).
struct Point {
  Builder& b;
  Var x, y;
  Var call(std::string_view op, const Var& v) const { return unary(b, op, v); }
};

template <auto slope>
Vars pointwise_rule(Builder& b, const VarArgs& a, const Vars& r, const Vars& g) {
  const Var x = a.tensor(0);
  return {as_argument(b, g[0] * slope(Point{b, x, r[0]}), x)};
}

/// The same for dx = g / h(x), where 1 / h(x) may exceed the dtype and the quotient does not.
template <auto divisor>
Vars quotient_rule(Builder& b, const VarArgs& a, const Vars& r, const Vars& g) {
  const Var x = a.tensor(0);
  return {as_argument(b, g[0] / divisor(Point{b, x, r[0]}), x)};
}

Var zero_like(Builder& b, const Var& x) {
  return b.call("zeros_like", {x});
}

Var scaled(const Var& x, const VarArg& factor) {
  return factor.floating() == 1 ? x : x * factor.number();
}

/// A reduced gradient with its dims back, of size 1.
Var with_dims(Builder& b, const Var& gradient, const Var& x, const VarArg& dim, bool keepdim) {
  if (keepdim) return gradient;
  std::vector<bool> reduced(static_cast<size_t>(x.dim()), dim.is_none() || dim.integers().empty());
  if (!dim.is_none()) {
    for (const Expr& d : dim.integers())
      reduced[static_cast<size_t>(graph::wrap_dim(d.value(), x.dim(), "sum"))] = true;
  }
  Exprs sizes;
  for (size_t d = 0; d < reduced.size(); ++d) sizes.push_back(reduced[d] ? Expr(1) : x.sizes()[d]);
  return b.call("view", {gradient, sizes});
}

Var spread(Builder& b, const Var& gradient, const Var& x) {
  return as_argument(b, b.call("expand", {gradient, x.sizes()}), x);
}

Expr reduced_count(const Var& x, const Var& y) {
  return floor_div(x.numel(), max(y.numel(), 1));
}

Exprs inverse_permutation(const VarArg& dims, int64_t rank) {
  Exprs inverse(static_cast<size_t>(rank));
  for (int64_t k = 0; k < rank; ++k) {
    const int64_t d = graph::wrap_dim(dims.integers()[static_cast<size_t>(k)].value(), rank, "permute");
    inverse[static_cast<size_t>(d)] = k;
  }
  return inverse;
}

Var transposed(Builder& b, const Var& x) {
  return b.call("transpose.int", {x, -2, -1});
}

struct Row {
  std::string_view name;
  DerivativeRule rule;
};

/// Gradients of two operands, of which numbers have none.
template <class First, class Second>
Vars of_tensors(const Call& c, First&& first, Second&& second) {
  Vars out;
  if (c.a[0].is_tensor()) out.push_back(as_argument(c.b, first(), c.a[0].tensor()));
  if (c.a[1].is_tensor()) out.push_back(as_argument(c.b, second(), c.a[1].tensor()));
  return out;
}

Var times(const Var& x, const VarArg& factor) {
  return factor.is_tensor() ? x * factor.tensor() : x * factor.number();
}

Var over(const Var& x, const VarArg& divisor) {
  return divisor.is_tensor() ? x / divisor.tensor() : x / divisor.number();
}

Vars add_rule(const Call& c) {
  return of_tensors(
      c, [&] { return c.g[0]; }, [&] { return scaled(c.g[0], c.a[2]); });
}

Vars sub_rule(const Call& c) {
  return of_tensors(
      c, [&] { return c.g[0]; }, [&] { return -scaled(c.g[0], c.a[2]); });
}

Vars mul_rule(const Call& c) {
  return of_tensors(
      c, [&] { return times(c.g[0], c.a[1]); }, [&] { return times(c.g[0], c.a[0]); });
}

Vars div_rule(const Call& c) {
  return of_tensors(
      c, [&] { return over(c.g[0], c.a[1]); }, [&] { return over(-c.g[0] * c.r[0], c.a[1]); });
}

/// Ties share the gradient in halves. Where an operand is NaN, neither is worse, and both have all of it.
Vars extremum_rule(const Call& c, std::string_view worse) {
  const Var half = c.g[0] * num(0.5), zero = zero_like(c.b, c.g[0]);
  const Var tie = c.b.call("eq.Tensor", {c.a[0], c.a[1]});
  const auto part = [&](const VarArg& mine, const VarArg& other) {
    const Var loses = c.b.call(worse, {mine, other});
    return c.b.call("where.self", {tie, half, c.b.call("where.self", {loses, zero, c.g[0]})});
  };
  return of_tensors(
      c, [&] { return part(c.a[0], c.a[1]); }, [&] { return part(c.a[1], c.a[0]); });
}

Vars pow_scalar_rule(const Call& c) {
  const Var x = c.a.tensor(0);
  const double n = c.a[1].floating();
  if (n == 0) return {zero_like(c.b, x)};
  const Var power = n == 2 ? x : c.b.call("pow.Tensor_Tensor", {x, n - 1});
  return {as_argument(c.b, c.g[0] * (power * num(n)), x)};
}

/// 0^y is 0 around every positive y, and x^0 is 1 around every x: both slopes are 0, where the formulas have
/// products of 0 and an infinity. The slope in y at 0^0 is PyTorch's choice.
Vars pow_rule(const Call& c) {
  if (!c.a[1].is_tensor()) return pow_scalar_rule(c);
  const Var y = c.a.tensor(1), zero = zero_like(c.b, c.g[0]);
  const Var base = c.a[0].is_tensor() ? c.a.tensor(0) : c.b.call("full_like", {c.r[0], c.a[0]});
  return of_tensors(
      c,
      [&] {
        const Var slope = times(c.b.call("pow.Tensor_Tensor", {base, y - num(1)}), c.a[1]);
        return c.b.call("where.self", {c.b.call("eq.Tensor", {y, 0}), zero, c.g[0] * slope});
      },
      [&] {
        const Var flat =
            c.b.call("logical_and", {c.b.call("eq.Tensor", {base, 0}), c.b.call("ge.Tensor", {y, 0})});
        return c.b.call("where.self", {flat, zero, c.g[0] * (c.r[0] * unary(c.b, "log", base))});
      });
}

Vars where_rule(const Call& c) {
  const Var zero = zero_like(c.b, c.g[0]), condition = c.a.tensor(0);
  Vars out = {Var()};
  for (const bool chosen : {true, false}) {
    const VarArg& branch = c.a[chosen ? 1 : 2];
    if (!branch.is_tensor()) continue;
    const Var first = chosen ? c.g[0] : zero, second = chosen ? zero : c.g[0];
    out.push_back(as_argument(c.b, c.b.call("where.self", {condition, first, second}), branch.tensor()));
  }
  return out;
}

/// 0 at 0.
Vars relu_rule(const Call& c) {
  return {c.b.call("where.self", {c.b.call("le.Tensor", {c.r[0], 0}), zero_like(c.b, c.g[0]), c.g[0]})};
}

Vars silu_rule(const Call& c) {
  const Var x = c.a.tensor(0), s = unary(c.b, "sigmoid", x);
  return {c.g[0] * (s * (x * (num(1.0) - s) + num(1.0)))};
}

Vars leaky_relu_rule(const Call& c) {
  return {c.b.call("where.self", {c.b.call("gt.Tensor", {c.a[0], 0}), c.g[0], scaled(c.g[0], c.a[1])})};
}

Vars same_rule(const Call& c) {
  return {as_argument(c.b, c.g[0], c.a.tensor(0))};
}

Vars sum_rule(const Call& c) {
  return {spread(c.b, c.g[0], c.a.tensor(0))};
}

Vars sum_dim_rule(const Call& c) {
  const Var x = c.a.tensor(0);
  return {spread(c.b, with_dims(c.b, c.g[0], x, c.a[1], c.a[2].boolean()), x)};
}

Vars mean_rule(const Call& c) {
  const Var x = c.a.tensor(0);
  return {spread(c.b, c.g[0] / num(reduced_count(x, c.r[0])), x)};
}

Vars mean_dim_rule(const Call& c) {
  const Var x = c.a.tensor(0), share = c.g[0] / num(reduced_count(x, c.r[0]));
  return {spread(c.b, with_dims(c.b, share, x, c.a[1], c.a[2].boolean()), x)};
}

/// 1 / n at the n places along `dim` where a condition holds, 0 elsewhere.
Var even_shares(Builder& b, const Var& condition, const VarArg& dim, DType dtype) {
  const Var there = b.call("to.dtype", {condition, dtype});
  return there / b.call("sum.dim_IntList", {there, dim, true});
}

/// Equal maxima share the gradient evenly.
Vars amax_rule(const Call& c) {
  const Var x = c.a.tensor(0);
  const bool keepdim = c.a[2].boolean();
  const Var most = with_dims(c.b, c.r[0], x, c.a[1], keepdim);
  const Var shares = even_shares(c.b, c.b.call("eq.Tensor", {x, most}), c.a[1], x.dtype());
  return {shares * with_dims(c.b, c.g[0], x, c.a[1], keepdim)};
}

/// sign(x) (|x| / norm)^(p - 1); of the infinite orders the gradient goes to the extrema, evenly. Where the
/// norm is 0, and at zeros for p < 1, there is no derivative: 0 stands for it, a subgradient of every norm.
Var norm_slope(Builder& b, const Var& x, const Var& norm, double p, const VarArg& dim) {
  const auto sign = [&] { return unary(b, "sign", x); };
  if (p == 1) return sign();
  const Var size = unary(b, "abs", x);
  if (std::isinf(p)) {
    const Var extreme = b.call("logical_or", {b.call("eq.Tensor", {size, norm}), unary(b, "isnan", size)});
    return sign() * even_shares(b, extreme, dim, x.dtype());
  }
  Var none = b.call("eq.Tensor", {norm, 0});
  const Var divisor = b.call("where.self", {none, 1.0, norm});
  if (p < 1) none = b.call("logical_or", {none, b.call("eq.Tensor", {x, 0})});
  const Var slope = p == 2 ? x / divisor : sign() * b.call("pow.Tensor_Scalar", {size / divisor, num(p - 1)});
  return b.call("where.self", {none, 0.0, slope});
}

Vars vector_norm_rule(const Call& c) {
  const Var x = c.a.tensor(0);
  const double p = c.a[1].floating();
  if (p == 0) return {zero_like(c.b, x)};
  const DType result = c.r[0].dtype(), dtype = is_half(result) ? DType::float32 : result;
  const auto wide = [&](const Var& v) { return v.dtype() == dtype ? v : c.b.call("to.dtype", {v, dtype}); };
  const auto kept = [&](const Var& v) { return with_dims(c.b, wide(v), x, c.a[2], c.a[3].boolean()); };
  return {as_argument(c.b, kept(c.g[0]) * norm_slope(c.b, wide(x), kept(c.r[0]), p, c.a[2]), x)};
}

Vars softmax_rule(const Call& c) {
  const Var y = c.r[0], weighted = c.g[0] * y;
  const Var total = c.b.call("sum.dim_IntList", {weighted, Exprs{c.a[1].integer()}, true});
  return {as_argument(c.b, weighted - y * total, c.a.tensor(0))};
}

Vars log_softmax_rule(const Call& c) {
  const Var total = c.b.call("sum.dim_IntList", {c.g[0], Exprs{c.a[1].integer()}, true});
  return {as_argument(c.b, c.g[0] - unary(c.b, "exp", c.r[0]) * total, c.a.tensor(0))};
}

Vars reshape_rule(const Call& c) {
  return {c.b.call("reshape", {c.g[0], c.a.tensor(0).sizes()})};
}

Vars permute_rule(const Call& c) {
  return {c.b.call("permute", {c.g[0], inverse_permutation(c.a[1], c.g[0].dim())})};
}

Vars slice_rule(const Call& c) {
  const Var zero = zero_like(c.b, c.a.tensor(0));
  return {c.b.call("slice_scatter", {zero, c.g[0], c.a[1], c.a[2], c.a[3], c.a[4]})};
}

Vars select_rule(const Call& c) {
  return {c.b.call("select_scatter", {zero_like(c.b, c.a.tensor(0)), c.g[0], c.a[1], c.a[2]})};
}

Vars diagonal_rule(const Call& c) {
  return {c.b.call("diagonal_scatter", {zero_like(c.b, c.a.tensor(0)), c.g[0], c.a[1], c.a[2], c.a[3]})};
}

/// A tensor with `src` in the place of a view of it: what lies there has no influence, and `src` has that
/// view of the gradient. `view` takes the arguments behind `src`.
Vars scatter_rule(const Call& c, std::string_view scatter, std::string_view view, size_t count) {
  std::vector<VarArg> into = {c.g[0], zero_like(c.b, c.a.tensor(1))}, of = {c.g[0]};
  for (size_t k = 2; k < count; ++k) {
    into.push_back(c.a[k]);
    of.push_back(c.a[k]);
  }
  return {c.b.call_all(scatter, std::move(into))[0], c.b.call_all(view, std::move(of))[0]};
}

Vars slice_scatter_rule(const Call& c) {
  return scatter_rule(c, "slice_scatter", "slice.Tensor", 6);
}

Vars select_scatter_rule(const Call& c) {
  return scatter_rule(c, "select_scatter", "select.int", 4);
}

Vars diagonal_scatter_rule(const Call& c) {
  return scatter_rule(c, "diagonal_scatter", "diagonal", 5);
}

Vars product_rule(const Call& c, std::string_view op) {
  return {c.b.call(op, {c.g[0], transposed(c.b, c.a.tensor(1))}),
          c.b.call(op, {transposed(c.b, c.a.tensor(0)), c.g[0]})};
}

const Row kRows[] = {
    {"add.Tensor", call_rule<add_rule>},
    {"sub.Tensor", call_rule<sub_rule>},
    {"mul.Tensor", call_rule<mul_rule>},
    {"div.Tensor", call_rule<div_rule>},
    {"pow.Tensor_Scalar", call_rule<pow_scalar_rule>},
    {"pow.Tensor_Tensor", call_rule<pow_rule>},
    {"maximum", call_rule<[](const Call& c) { return extremum_rule(c, "lt.Tensor"); }>},
    {"minimum", call_rule<[](const Call& c) { return extremum_rule(c, "gt.Tensor"); }>},
    {"where.self", call_rule<where_rule>},
    {"neg", pointwise_rule<[](const Point&) { return num(-1.0); }>},
    {"reciprocal", pointwise_rule<[](const Point& p) { return -(p.y * p.y); }>},
    {"abs", pointwise_rule<[](const Point& p) { return p.call("sign", p.x); }>},
    {"sign", call_rule<[](const Call& c) { return Vars{zero_like(c.b, c.a.tensor(0))}; }>},
    {"square", pointwise_rule<[](const Point& p) { return p.x * num(2.0); }>},
    {"exp", pointwise_rule<[](const Point& p) { return p.y; }>},
    {"exp2", pointwise_rule<[](const Point& p) { return p.y * num(std::numbers::ln2); }>},
    {"expm1", pointwise_rule<[](const Point& p) { return p.y + num(1.0); }>},
    {"log", quotient_rule<[](const Point& p) { return p.x; }>},
    {"log2", quotient_rule<[](const Point& p) { return p.x * num(std::numbers::ln2); }>},
    {"log10", quotient_rule<[](const Point& p) { return p.x * num(std::numbers::ln10); }>},
    {"log1p", quotient_rule<[](const Point& p) { return p.x + num(1.0); }>},
    {"sqrt", quotient_rule<[](const Point& p) { return p.y * num(2.0); }>},
    {"rsqrt", pointwise_rule<[](const Point& p) { return p.y * p.y * p.y * num(-0.5); }>},
    {"sin", pointwise_rule<[](const Point& p) { return p.call("cos", p.x); }>},
    {"cos", pointwise_rule<[](const Point& p) { return -p.call("sin", p.x); }>},
    {"tan", pointwise_rule<[](const Point& p) { return p.y * p.y + num(1.0); }>},
    {"tanh", pointwise_rule<[](const Point& p) { return num(1.0) - p.y * p.y; }>},
    {"sigmoid", pointwise_rule<[](const Point& p) { return p.y * (num(1.0) - p.y); }>},
    {"erf", pointwise_rule<[](const Point& p) {
       return p.call("exp", -(p.x * p.x)) * num(2 * std::numbers::inv_sqrtpi);
     }>},
    {"relu", call_rule<relu_rule>},
    {"gelu", call_rule<[](const Call& c) {
       return Vars{c.b.call("gelu_backward", {c.g[0], c.a[0], c.a[1]})};
     }>},
    {"silu", call_rule<silu_rule>},
    {"leaky_relu", call_rule<leaky_relu_rule>},
    {"clone", call_rule<same_rule>},
    {"to.dtype", call_rule<same_rule>},
    {"sum", call_rule<sum_rule>},
    {"sum.dim_IntList", call_rule<sum_dim_rule>},
    {"mean", call_rule<mean_rule>},
    {"mean.dim", call_rule<mean_dim_rule>},
    {"amax", call_rule<amax_rule>},
    {"linalg_vector_norm", call_rule<vector_norm_rule>},
    {"softmax.int", call_rule<softmax_rule>},
    {"log_softmax.int", call_rule<log_softmax_rule>},
    {"expand", call_rule<same_rule>},
    {"view", call_rule<reshape_rule>},
    {"permute", call_rule<permute_rule>},
    {"unsqueeze_at", call_rule<reshape_rule>},
    {"reshape_copy", call_rule<reshape_rule>},
    {"slice.Tensor", call_rule<slice_rule>},
    {"select.int", call_rule<select_rule>},
    {"diagonal", call_rule<diagonal_rule>},
    {"slice_scatter", call_rule<slice_scatter_rule>},
    {"select_scatter", call_rule<select_scatter_rule>},
    {"diagonal_scatter", call_rule<diagonal_scatter_rule>},
    {"mm", call_rule<[](const Call& c) { return product_rule(c, "mm"); }>},
    {"bmm", call_rule<[](const Call& c) { return product_rule(c, "bmm"); }>},
};

}  // namespace

DerivativeRule derivative_of(std::string_view full_name) {
  for (const Row& row : kRows)
    if (row.name == full_name) return row.rule;
  return nullptr;
}

}  // namespace stax::ops

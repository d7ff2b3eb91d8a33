// Activations, and dropout.
#include <cmath>
#include <numbers>

#include "ops/loop_vocabulary.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {
namespace {

// The nearest double; 1 / sqrt2 rounds to the one above.
constexpr double kSqrtHalf = 0.70710678118654752440;

double option(const PointwiseArgs& a, std::string_view name) {
  return (*a.args)[name].floating();
}

void require_float(const PointwiseArgs& a) {
  STAX_CHECK(is_floating_point(a[0].dtype()), "{}: expected a floating dtype, got {}", a.args->schema().name,
             name(a[0].dtype()));
}

// x * Phi(x) with the normal distribution function, or its tanh form.
V gelu(const PointwiseArgs& a) {
  require_float(a);
  const V x = a[0];
  const std::string& form = (*a.args)["approximate"].string();
  if (form == "none") return x * 0.5 * (1 + erf(x * (1 / std::numbers::sqrt2)));
  STAX_CHECK(form == "tanh", "gelu: expected approximate to be 'none' or 'tanh', got '{}'", form);
  const double c = std::sqrt(2 / std::numbers::pi);
  return x * 0.5 * (1 + tanh((x + x * x * x * 0.044715) * c));
}

// g (Phi(x) + x phi(x)), and the derivative of the tanh form.
V gelu_backward(const PointwiseArgs& a) {
  require_float(a);
  const V g = a[0], x = a[1];
  if ((*a.args)["approximate"].string() == "none") {
    // One statement a value: the order of instructions is that of the text.
    const double k = 1 / std::sqrt(2 * std::numbers::pi);
    const V distribution = 0.5 * (1 + erf(x * kSqrtHalf));
    const V density = k * exp(-0.5 * (x * x));
    const V slope = x * density;
    return g * (distribution + slope);
  }
  const double c = std::sqrt(2 / std::numbers::pi);
  const V t = tanh((x + x * x * x * 0.044715) * c);
  return g * (0.5 * (1 + t) + x * (0.5 * (1 - t * t)) * ((x * x * (3 * 0.044715) + 1) * c));
}

V elu(V x, double alpha, double scale, double input_scale) {
  const V negative = expm1(x * input_scale) * (alpha * scale);
  return where(gt(x, 0.0), x * scale, negative);
}

// log(1 + exp(beta x)) / beta, x itself where beta x passes the threshold.
V softplus(const PointwiseArgs& a) {
  require_float(a);
  const V x = a[0];
  const double beta = option(a, "beta");
  const V scaled = x * beta;
  return where(gt(scaled, option(a, "threshold")), x, log1p(exp(scaled)) / beta);
}

// min(x, 0) - log(1 + exp(-|x|)).
V log_sigmoid(V x) {
  return minimum(x, 0.0) - log1p(exp(-abs(x)));
}

V mish(V x) {
  return x * tanh(where(gt(x, 20.0), x, log1p(exp(x))));
}

V relu6_of(V x) {
  return minimum(maximum(x, 0.0), 6.0);
}

V hardshrink(V x, double lambda) {
  // NaN is kept, as in PyTorch.
  const V inside = bitwise_and(ge(x, -lambda), le(x, lambda));
  return where(inside, like(x, 0), x);
}

V softshrink(V x, double lambda) {
  const V shrunk = where(gt(x, lambda), x - lambda, where(lt(x, -lambda), x + lambda, x * 0.0));
  return shrunk;
}

// Integers wrap where their magnitude and 1 do, before the division.
Vars softsign(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  if (!is_integral(x.dtype())) return {b.call("softsign_formula", {x})};
  return {x / (b.call("abs", {x}) + num(1))};
}

Vars glu(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  STAX_CHECK(x.dim() > 0, "glu: expected a tensor with dimensions, got a zero-dim one");
  const int64_t dim = graph::wrap_dim(a[1].integer().value(), x.dim(), "glu");
  const Expr half = floor_div(x.size(dim), 2);
  STAX_CHECK(b.env().expect(eq(half * 2, x.size(dim))), "glu: dimension {} has odd size {}", dim,
             x.size(dim).str());
  const Var value = b.call("narrow", {x, dim, 0, half}), gate = b.call("narrow", {x, dim, half, half});
  return {value * b.call("sigmoid", {gate})};
}

Vars prelu(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  Var weight = a.tensor(1);
  STAX_CHECK(x.dtype() == weight.dtype(), "prelu: expected weights of dtype {}, got {}", name(x.dtype()),
             name(weight.dtype()));
  STAX_CHECK(weight.dim() <= 1, "prelu: expected a vector of weights, got {}",
             counted(weight.dim(), "dimension"));
  if (!b.env().decide(eq(weight.numel(), 1))) {
    STAX_CHECK(x.dim() > 0, "prelu: a zero-dim tensor takes one weight, got {}", weight.numel().str());
    const int64_t channel = x.dim() > 1 ? 1 : 0;
    STAX_CHECK(b.env().expect(eq(weight.numel(), x.size(channel))), "prelu: {} weights for {} channels",
               weight.numel().str(), x.size(channel).str());
    std::vector<Expr> shape(x.dim(), Expr(1));
    shape[channel] = weight.numel();
    weight = b.call("reshape", {weight, shape});
  } else {
    weight = b.call("reshape", {weight, std::vector<Expr>(x.dim(), Expr(1))});
  }
  return {b.call("prelu_formula", {x, weight})};
}

Vars dropout(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const double p = a[1].floating();
  STAX_CHECK(p >= 0 && p <= 1, "dropout: expected a probability in [0, 1], got {}", p);
  STAX_CHECK(is_floating_point(x.dtype()) || !a[2].boolean(), "dropout: expected a floating dtype, got {}",
             name(x.dtype()));
  if (!a[2].boolean() || p == 0) return {x};
  // Dropped entries are 0 also where x is NaN or infinite.
  if (p == 1) return {b.call("zeros_like", {x})};
  const Var keep = b.call("bernoulli_mask", {x.sizes(), 1 - p});
  return {b.call("dropout_formula", {x, keep, 1 / (1 - p)})};
}

}  // namespace

Ops activation_rows() {
  return {
      in_place(pointwise("relu(Tensor self) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return lowering::relu(a[0]); })),
      in_place(pointwise("relu6(Tensor self) -> Tensor", Rule::promote,
                         [](const PointwiseArgs& a) { return relu6_of(a[0]); })),
      in_place(pointwise("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           return where(gt(a[0], 0.0), a[0], a[0] * option(a, "negative_slope"));
                         })),
      in_place(pointwise("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           const double low = option(a, "min_val"), high = option(a, "max_val");
                           STAX_CHECK(low <= high, "hardtanh: min_val {} is above max_val {}", low, high);
                           STAX_CHECK(a[0].dtype() != DType::boolean, "hardtanh: expected numbers, got bool");
                           return minimum(maximum(a[0], a[1]), a[2]);
                         })),
      in_place(pointwise("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
                         Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           return elu(a[0], option(a, "alpha"), option(a, "scale"), option(a, "input_scale"));
                         })),
      in_place(pointwise("celu(Tensor self, Scalar alpha=1.0) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           const double alpha = option(a, "alpha");
                           STAX_CHECK(alpha != 0, "celu: alpha must not be 0");
                           return elu(a[0], alpha, 1, 1 / alpha);
                         })),
      in_place(pointwise("selu(Tensor self) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           return elu(a[0], 1.6732632423543772848170429916717,
                                      1.0507009873554804934193349852946, 1);
                         })),
      in_place(pointwise("silu(Tensor self) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           return a[0] / (1 + exp(-a[0]));
                         })),
      pointwise("gelu(Tensor self, *, str approximate='none') -> Tensor", Rule::self, gelu),
      internal(
          pointwise("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
                    Rule::self, gelu_backward)),
      in_place(pointwise("mish(Tensor self) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           return mish(a[0]);
                         })),
      in_place(pointwise("hardsigmoid(Tensor self) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           return relu6_of(a[0] + 3.0) / 6.0;
                         })),
      in_place(pointwise("hardswish(Tensor self) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           require_float(a);
                           return a[0] * relu6_of(a[0] + 3.0) / 6.0;
                         })),
      pointwise("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", Rule::self,
                [](const PointwiseArgs& a) { return hardshrink(a[0], option(a, "lambd")); }),
      pointwise("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", Rule::self,
                [](const PointwiseArgs& a) {
                  require_float(a);
                  const double lambda = option(a, "lambd");
                  STAX_CHECK(lambda >= 0, "softshrink: lambd must not be negative, got {}", lambda);
                  return softshrink(a[0], lambda);
                }),
      pointwise("tanhshrink(Tensor self) -> Tensor", Rule::promote_float,
                [](const PointwiseArgs& a) { return a[0] - tanh(a[0]); }),
      composite("softsign(Tensor self) -> Tensor", softsign),
      internal(pointwise("softsign_formula(Tensor self) -> Tensor", Rule::promote_float,
                         [](const PointwiseArgs& a) { return a[0] / (1 + abs(a[0])); })),
      pointwise("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", Rule::self, softplus),
      pointwise("logsigmoid(Tensor self) -> Tensor", Rule::self,
                [](const PointwiseArgs& a) {
                  require_float(a);
                  return log_sigmoid(a[0]);
                }),
      composite("log_sigmoid(Tensor self) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars { return {b.call("logsigmoid", {a[0]})}; }),
      in_place(pointwise("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) { return where(le(a[0], a[1]), a[2], a[0]); })),
      composite("glu(Tensor self, int dim=-1) -> Tensor", glu),
      composite("prelu(Tensor self, Tensor weight) -> Tensor", prelu),
      internal(pointwise("prelu_formula(Tensor self, Tensor weight) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) { return where(gt(a[0], 0.0), a[0], a[0] * a[1]); })),
      composite("dropout(Tensor input, float p=0.5, bool training=True) -> Tensor", dropout),
      internal(pointwise("dropout_formula(Tensor self, Tensor keep, float scale) -> Tensor", Rule::self,
                         [](const PointwiseArgs& a) {
                           return where(cast(a[1], DType::boolean), a[0] * option(a, "scale"), like(a[0], 0));
                         })),
      composite(
          "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
          [](Builder&, const VarArgs& a) -> Vars { return {a.tensor(0) * a.tensor(1) * a[2].number()}; }),
  };
}

}  // namespace stax::ops

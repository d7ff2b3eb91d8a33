// Losses. Reductions are named 'none', 'mean' and 'sum', as in PyTorch.
#include <cmath>
#include <numbers>

#include "graph/broadcast.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/vocabulary.h"
#include "ops/widen.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

Var reduced(Builder& b, const Var& loss, const VarArg& reduction) {
  const std::string& how = reduction.string();
  if (how == "mean") return b.call("mean", {loss});
  if (how == "sum") return b.call("sum", {loss});
  STAX_CHECK(how == "none", "loss: expected reduction 'none', 'mean' or 'sum', got '{}'", how);
  return loss;
}

Var where(Builder& b, const Var& condition, const VarArg& yes, const VarArg& no) {
  return b.call("where.self", {condition, yes, no});
}

Vars mse_loss(Builder& b, const VarArgs& a) {
  const Var d = a.tensor(0) - a.tensor(1);
  return {reduced(b, d * d, a[2])};
}

Vars l1_loss(Builder& b, const VarArgs& a) {
  return {reduced(b, b.call("abs", {a.tensor(0) - a.tensor(1)}), a[2])};
}

// d^2 / (2 beta) below beta, |d| - beta / 2 above.
Vars smooth_l1_loss(Builder& b, const VarArgs& a) {
  const Var d = b.call("abs", {a.tensor(0) - a.tensor(1)});
  const double beta = a[3].floating();
  STAX_CHECK(beta >= 0, "smooth_l1_loss: beta must not be negative, got {}", beta);
  if (beta == 0) return {reduced(b, d, a[2])};
  const Var loss =
      where(b, b.call("lt.Tensor", {d, beta}), d * d * num(0.5) / num(beta), d - num(0.5 * beta));
  return {reduced(b, loss, a[2])};
}

Vars huber_loss(Builder& b, const VarArgs& a) {
  const Var d = b.call("abs", {a.tensor(0) - a.tensor(1)});
  const double delta = a[3].floating();
  STAX_CHECK(delta > 0, "huber_loss: delta must be positive, got {}", delta);
  const Var loss =
      where(b, b.call("le.Tensor", {d, delta}), d * d * num(0.5), (d - num(0.5 * delta)) * num(delta));
  return {reduced(b, loss, a[2])};
}

Vars kl_div(Builder& b, const VarArgs& a) {
  const Var input = a.tensor(0), target = a.tensor(1);
  const Var loss = a[3].boolean() ? b.call("exp", {target}) * (target - input)
                                  : b.call("xlogy.Tensor", {target, target}) - target * input;
  if (a[2].string() == "batchmean") {
    const Expr batch = input.dim() == 0 ? Expr(1) : input.size(0);
    return {b.call("sum", {loss}) / num(batch)};
  }
  return {reduced(b, loss, a[2])};
}

Vars binary_cross_entropy(Builder& b, const VarArgs& a) {
  const Var p = a.tensor(0), y = a.tensor(1);
  STAX_CHECK(graph::same_sizes(b.env(), p.sizes(), y.sizes()),
             "binary_cross_entropy: expected a target of shape {}, got {}", shape_text(p.sizes()),
             shape_text(y.sizes()));
  // The logarithms are kept at -100 or above, as in PyTorch.
  const Var log_p = b.call("clamp_min", {b.call("log", {p}), -100.0});
  const Var log_q = b.call("clamp_min", {b.call("log1p", {-p}), -100.0});
  Var loss = (y - num(1)) * log_q - y * log_p;
  if (!a[2].is_none()) loss = loss * a[2].tensor();
  return {reduced(b, loss, a[3])};
}

// (1 - y) x + w log(1 + exp(-x)), in the form that does not overflow.
Vars binary_cross_entropy_with_logits(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1);
  STAX_CHECK(graph::same_sizes(b.env(), x.sizes(), y.sizes()),
             "binary_cross_entropy_with_logits: expected a target of shape {}, got {}", shape_text(x.sizes()),
             shape_text(y.sizes()));
  const Var log_sigmoid = b.call("logsigmoid", {x});
  Var loss;
  if (a[3].is_none()) {
    loss = (num(1) - y) * x - log_sigmoid;
  } else {
    const Var weight = (a[3].tensor() - num(1)) * y + num(1);
    loss = (num(1) - y) * x - weight * log_sigmoid;
  }
  if (!a[2].is_none()) loss = loss * a[2].tensor();
  return {reduced(b, loss, a[4])};
}

// Class dimension brought last: logits [N, C, d...] -> [N, d..., C].
Var class_last(Builder& b, const Var& x) {
  return x.dim() <= 2 ? x : b.call("movedim.intlist", {x, Exprs{1}, Exprs{-1}});
}

struct Picked {
  Var loss, weight;  // per sample; the weight is 0 for ignored targets
};

// -weight[t] * log_probability[t] for each target t.
Picked pick(Builder& b, const Var& log_probability, const Var& target, const VarArg& weight,
            const VarArg& ignore) {
  const Expr classes = log_probability.size(-1);
  const Var ignored = b.call("eq.Tensor", {target, ignore});
  const Var safe = b.call("masked_fill_formula", {target, ignored, 0});
  const Var chosen =
      b.call("squeeze.dim", {b.call("gather", {log_probability, -1, b.call("unsqueeze", {safe, -1})}), -1});
  Var w;
  if (weight.is_none()) {
    w = b.call("to.dtype", {b.call("logical_not", {ignored}), log_probability.dtype()});
  } else {
    STAX_CHECK(b.env().expect(eq(weight.tensor().numel(), classes)),
               "nll_loss: expected a weight for each of {} classes, got {}", classes.str(),
               weight.tensor().numel().str());
    const Var flat = b.call("index_select", {weight, 0, b.call("reshape", {safe, Exprs{-1}})});
    w = b.call("masked_fill_formula", {b.call("reshape", {flat, safe.sizes()}), ignored, 0.0});
  }
  const Var loss = b.call("masked_fill_formula", {-(chosen * w), ignored, 0.0});
  return {loss, w};
}

Var reduce_picked(Builder& b, const Picked& p, const VarArg& reduction) {
  if (reduction.string() != "mean") return reduced(b, p.loss, reduction);
  return b.call("sum", {p.loss}) / b.call("sum", {p.weight});
}

void check_target(const Var& x, const Var& target, const char* op) {
  const Var& t = target;
  STAX_CHECK(x.dim() >= 1, "{}: expected logits with a class dimension, got a zero-dim tensor", op);
  STAX_CHECK(is_integral(t.dtype()), "{}: expected an integer target, got {}", op, name(t.dtype()));
  Exprs expected = x.sizes();
  expected.erase(expected.begin() + (x.dim() > 1 ? 1 : 0));
  STAX_CHECK(graph::same_sizes(t.builder().env(), t.sizes(), expected),
             "{}: expected a target of shape {}, got {}", op, shape_text(expected), shape_text(t.sizes()));
}

Vars nll_loss(Builder& b, const VarArgs& a) {
  check_target(a.tensor(0), a.tensor(1), "nll_loss");
  return {reduce_picked(b, pick(b, class_last(b, a.tensor(0)), a.tensor(1), a[2], a[3]), a[4])};
}

// Targets given as class probabilities.
Var cross_entropy_probabilities(Builder& b, const Var& log_p, const VarArgs& a, double smoothing) {
  const int64_t dim = log_p.dim() > 1 ? 1 : 0;
  const Expr classes = log_p.size(dim);
  Var target = a.tensor(1);
  if (smoothing > 0) target = (target * num(1 - smoothing) * num(classes) + num(smoothing)) / num(classes);
  Var product = log_p * target;
  if (!a[2].is_none()) {
    Exprs shape(log_p.dim(), Expr(1));
    shape[dim] = classes;
    product = product * b.call("reshape", {a[2], shape});
  }
  const Var loss = -b.call("sum.dim_IntList", {product, Exprs{dim}});
  if (a[4].string() != "mean") return reduced(b, loss, a[4]);
  return b.call("sum", {loss}) / num(log_p.dim() == 1 ? Expr(1) : floor_div(log_p.numel(), max(classes, 1)));
}

Vars cross_entropy(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const double smoothing = a[5].floating();
  STAX_CHECK(smoothing >= 0 && smoothing <= 1, "cross_entropy: expected label_smoothing in [0, 1], got {}",
             smoothing);
  STAX_CHECK(x.dim() >= 1, "cross_entropy: expected logits with a class dimension, got a zero-dim tensor");
  const bool probabilities =
      is_floating_point(a.tensor(1).dtype()) && graph::same_sizes(b.env(), a.tensor(1).sizes(), x.sizes());
  if (probabilities) {
    return {
        cross_entropy_probabilities(b, b.call("log_softmax.int", {x, x.dim() > 1 ? 1 : 0}), a, smoothing)};
  }
  check_target(x, a.tensor(1), "cross_entropy");
  const Var log_p = b.call("log_softmax.int", {class_last(b, x), -1});
  const Picked picked = pick(b, log_p, a.tensor(1), a[2], a[3]);
  const Var plain = reduce_picked(b, picked, a[4]);
  if (smoothing == 0) return {plain};
  const Var weighted = a[2].is_none() ? log_p : log_p * a[2].tensor();
  Var smooth = -b.call("sum.dim_IntList", {weighted, Exprs{-1}});
  smooth = b.call("masked_fill_formula", {smooth, b.call("eq.Tensor", {a[1], a[3]}), 0.0});
  Var spread;
  if (a[4].string() == "mean") {
    spread = b.call("sum", {smooth}) / b.call("sum", {picked.weight});
  } else {
    spread = reduced(b, smooth, a[4]);
  }
  return {plain * num(1 - smoothing) + spread * num(smoothing) / num(log_p.size(-1))};
}

Vars hinge_embedding_loss(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1);
  const Var margin = b.call("clamp_min", {num(a[2].floating()) - x, 0});
  const Var loss =
      where(b, b.call("ne.Tensor", {y, 1}), margin, 0) + where(b, b.call("ne.Tensor", {y, -1}), x, 0);
  return {reduced(b, loss, a[3])};
}

Vars margin_ranking_loss(Builder& b, const VarArgs& a) {
  const Var loss = b.call("clamp_min", {(-a.tensor(2)) * (a.tensor(0) - a.tensor(1)) + a[3].number(), 0});
  return {reduced(b, loss, a[4])};
}

Vars soft_margin_loss(Builder& b, const VarArgs& a) {
  const Var loss = b.call("log1p", {b.call("exp", {(-a.tensor(1)) * a.tensor(0)})});
  return {reduced(b, loss, a[2])};
}

Vars gaussian_nll_loss(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), target = a.tensor(1);
  Var var = a[2].is_number() ? b.call("full_like", {x, a[2]}) : a.tensor(2);
  const bool same = graph::same_sizes(b.env(), var.sizes(), x.sizes());
  if (!same && var.dim() + 1 == x.dim() &&
      graph::same_sizes(b.env(), Exprs(x.sizes().begin(), x.sizes().end() - 1), var.sizes())) {
    var = b.call("unsqueeze", {var, -1});
  } else {
    STAX_CHECK(same || (var.dim() == x.dim() && b.env().decide(eq(var.size(-1), 1))),
               "gaussian_nll_loss: variance of shape {} does not fit {}", shape_text(var.sizes()),
               shape_text(x.sizes()));
  }
  const Var v = b.call("clamp_min", {var, a[4].floating()});
  const Var d = x - target;
  Var loss = (b.call("log", {v}) + d * d / v) * num(0.5);
  if (a[3].boolean()) loss = loss + num(0.5 * std::log(2 * std::numbers::pi));
  return {reduced(b, loss, a[5])};
}

Vars poisson_nll_loss(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1);
  Var loss = a[2].boolean() ? b.call("exp", {x}) - y * x : x - y * b.call("log", {x + num(a[4].floating())});
  if (a[3].boolean()) {
    // Stirling's approximation of log(y!), for y > 1.
    const Var stirling =
        y * b.call("log", {y}) - y + b.call("log", {y * num(2 * std::numbers::pi)}) * num(0.5);
    loss = loss + b.call("masked_fill_formula", {stirling, b.call("le.Tensor", {y, 1}), 0});
  }
  return {reduced(b, loss, a[5])};
}

Vars pairwise_distance(Builder& b, const VarArgs& a) {
  const Var d = a.tensor(0) - a.tensor(1) + num(a[3].floating());
  return {b.call("norm", {d, a[2], Exprs{-1}, a[4]})};
}

Vars cosine_similarity(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1);
  const Exprs dims{a[2].integer()};
  const double eps = a[3].floating();
  // Each norm is kept at eps or above.
  const auto unit = [&](const Var& v) {
    return v / b.call("clamp_min", {b.call("norm", {v, 2, dims, true}), eps});
  };
  const Exprs shape = graph::broadcast_shapes(b.env(), {x.sizes(), y.sizes()}, "cosine_similarity");
  return {b.call("sum.dim_IntList",
                 {unit(b.call("expand", {x, shape})) * unit(b.call("expand", {y, shape})), dims})};
}

Vars cosine_embedding_loss(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1), target = a.tensor(2);
  const auto sum = [&](const Var& v) { return b.call("sum.dim_IntList", {v, Exprs{-1}}); };
  constexpr double kEpsilon = 1e-12;
  const Var norm = b.call("sqrt", {(sum(x * x) + num(kEpsilon)) * (sum(y * y) + num(kEpsilon))});
  const Var cosine = sum(x * y) / norm;
  const Var near = where(b, b.call("eq.Tensor", {target, 1}), num(1) - cosine, 0);
  const Var far =
      where(b, b.call("eq.Tensor", {target, -1}), b.call("clamp_min", {cosine - num(a[3].floating()), 0}), 0);
  return {reduced(b, near + far, a[4])};
}

Vars triplet_margin_loss(Builder& b, const VarArgs& a) {
  const auto distance = [&](const Var& x, const Var& y) {
    return b.call("pairwise_distance", {x, y, a[4].floating(), a[5].floating()});
  };
  STAX_CHECK(a[3].floating() > 0, "triplet_margin_loss: the margin must be greater than 0, got {}",
             a[3].floating());
  const Var near = distance(a.tensor(0), a.tensor(1));
  Var far = distance(a.tensor(0), a.tensor(2));
  if (a[6].boolean()) far = b.call("minimum", {far, distance(a.tensor(1), a.tensor(2))});
  return {reduced(b, b.call("clamp_min", {near - far + num(a[3].floating()), 0}), a[7])};
}

Vars multilabel_soft_margin_loss(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1);
  Var loss = -(y * b.call("logsigmoid", {x}) + (num(1) - y) * b.call("logsigmoid", {-x}));
  if (!a[2].is_none()) loss = loss * a[2].tensor();
  const Var per_sample = b.call("mean.dim", {loss, Exprs{-1}});
  return {reduced(b, per_sample, a[3])};
}

// Margins between classes take a sample [C] or samples [N, C]; a zero-dim tensor is a sample of one class.
Var as_samples(Builder& b, const Var& x, const char* op) {
  STAX_CHECK(x.dim() <= 2 && b.env().expect(gt(x.dim() == 0 ? Expr(1) : x.size(-1), 0)),
             "{}: expected scores of shape [C] or [N, C] with classes, got {}", op, shape_text(x.sizes()));
  return x.dim() == 2 ? x : b.call("reshape", {x, Exprs{1, x.numel()}});
}

// mean over classes j other than the target t of w[t] max(0, margin - x[t] + x[j])^p.
Vars multi_margin_loss(Builder& b, const VarArgs& a) {
  const Var x = as_samples(b, a.tensor(0), "multi_margin_loss"), target = a.tensor(1);
  const double p = a[2].floating();
  STAX_CHECK(p == 1 || p == 2, "multi_margin_loss: expected p to be 1 or 2, got {}", p);
  STAX_CHECK(target.dtype() == DType::int64, "multi_margin_loss: expected an int64 target, got {}",
             name(target.dtype()));
  STAX_CHECK(target.dim() <= 1 && b.env().expect(eq(target.numel(), x.size(0))),
             "multi_margin_loss: expected {} targets, got shape {}", x.size(0).str(),
             shape_text(target.sizes()));
  const Var at = b.call("reshape", {target, Exprs{x.size(0), 1}});
  const Var short_of = b.call("clamp_min", {x - b.call("gather", {x, 1, at}) + a[3].number(), 0});
  Var loss = p == 1 ? short_of : short_of * short_of;
  if (!a[4].is_none()) {
    const Var weight = a[4].tensor();
    STAX_CHECK(weight.dim() <= 1 && b.env().expect(eq(weight.numel(), x.size(1))),
               "multi_margin_loss: expected a weight for each of {} classes, got shape {}", x.size(1).str(),
               shape_text(weight.sizes()));
    const Var chosen = b.call(
        "index_select", {b.call("reshape", {weight, Exprs{-1}}), 0, b.call("reshape", {at, Exprs{-1}})});
    loss = loss * b.call("unsqueeze", {chosen, 1});
  }
  const Var classes = b.call("arange", {x.size(1)});
  loss = b.call("masked_fill_formula", {loss, b.call("eq.Tensor", {classes, at}), 0.0});
  loss = b.call("sum.dim_IntList", {loss, Exprs{1}}) / num(x.size(1));
  return {reduced(b, target.dim() == 0 ? b.call("reshape", {loss, Exprs{}}) : loss, a[5])};
}

// mean over classes j that are no targets, summed over targets t, of max(0, 1 - x[t] + x[j]). Targets are the
// entries of a row before its first negative one.
Vars multilabel_margin_loss(Builder& b, const VarArgs& a) {
  const Var given = a.tensor(0);
  const Var x = as_samples(b, given, "multilabel_margin_loss");
  STAX_CHECK(graph::same_sizes(b.env(), a.tensor(1).sizes(), given.sizes()) ||
                 (given.dim() == 0 && a.tensor(1).numel().is(1)),
             "multilabel_margin_loss: expected a target of shape {}, got {}", shape_text(given.sizes()),
             shape_text(a.tensor(1).sizes()));
  STAX_CHECK(a.tensor(1).dtype() == DType::int64, "multilabel_margin_loss: expected an int64 target, got {}",
             name(a.tensor(1).dtype()));
  const Var target = b.call("reshape", {a[1], x.sizes()});
  const Var ended = b.call("cumsum", {b.call("lt.Tensor", {target, 0}), 1});
  const Var absent = b.call("ne.Tensor", {ended, 0});
  const Var at = b.call("masked_fill_formula", {target, absent, 0});
  // [N, t, j]: every entry of the target with every class.
  const auto across = [&](const Var& v) { return b.call("unsqueeze", {v, 2}); };
  const Var names = b.call("eq.Tensor", {across(at), b.call("arange", {x.size(1)})});
  const Var is_target = b.call(
      "any.dims", {b.call("logical_and", {names, across(b.call("logical_not", {absent}))}), Exprs{1}, true});
  const Var margin = num(1) - across(b.call("gather", {x, 1, at})) + b.call("unsqueeze", {x, 1});
  Var loss = b.call("clamp_min", {margin, 0});
  loss = b.call("masked_fill_formula", {loss, b.call("logical_or", {across(absent), is_target}), 0.0});
  loss = b.call("sum.dim_IntList", {loss, Exprs{1, 2}}) / num(x.size(1));
  return {reduced(b, given.dim() == 2 ? loss : b.call("reshape", {loss, Exprs{}}), a[2])};
}

}  // namespace

Ops loss_rows() {
  return {
      decomposed("mse_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor",
                 computed_wide<mse_loss>),
      decomposed("l1_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor",
                 computed_wide<l1_loss>),
      decomposed("smooth_l1_loss(Tensor self, Tensor target, str reduction='mean', float beta=1.0) -> Tensor",
                 computed_wide<smooth_l1_loss>),
      decomposed("huber_loss(Tensor self, Tensor target, str reduction='mean', float delta=1.0) -> Tensor",
                 computed_wide<huber_loss>),
      decomposed("kl_div(Tensor self, Tensor target, str reduction='mean', bool log_target=False) -> Tensor",
                 computed_wide<kl_div>),
      decomposed("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, str "
                 "reduction='mean') -> Tensor",
                 computed_wide<binary_cross_entropy>),
      decomposed("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
                 "pos_weight=None, "
                 "str reduction='mean') -> Tensor",
                 computed_wide<binary_cross_entropy_with_logits>),
      decomposed("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int ignore_index=-100, str "
                 "reduction='mean') -> Tensor",
                 computed_wide<nll_loss>),
      decomposed("cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int ignore_index=-100, str "
                 "reduction='mean', "
                 "float label_smoothing=0.0) -> Tensor",
                 computed_wide<cross_entropy>),
      decomposed("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, str reduction='mean') "
                 "-> Tensor",
                 computed_wide<hinge_embedding_loss>),
      decomposed("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, str "
                 "reduction='mean') -> Tensor",
                 computed_wide<margin_ranking_loss>),
      decomposed("soft_margin_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor",
                 computed_wide<soft_margin_loss>),
      decomposed(
          "gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-06, "
          "str reduction='mean') -> Tensor",
          computed_wide<gaussian_nll_loss>),
      decomposed("poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, float "
                 "eps=1e-08, "
                 "str reduction='mean') -> Tensor",
                 computed_wide<poisson_nll_loss>),
      decomposed("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) "
                 "-> Tensor",
                 computed_wide<pairwise_distance>),
      decomposed("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
                 computed_wide<cosine_similarity>),
      decomposed("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, str "
                 "reduction='mean') -> Tensor",
                 computed_wide<cosine_embedding_loss>),
      decomposed("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
                 "float p=2.0, "
                 "float eps=1e-06, bool swap=False, str reduction='mean') -> Tensor",
                 computed_wide<triplet_margin_loss>),
      decomposed("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
                 "weight=None, str reduction='mean') -> Tensor",
                 computed_wide<multi_margin_loss>),
      decomposed("multilabel_margin_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor",
                 computed_wide<multilabel_margin_loss>),
      decomposed("multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, str "
                 "reduction='mean') -> Tensor",
                 computed_wide<multilabel_soft_margin_loss>),
  };
}

}  // namespace stax::ops

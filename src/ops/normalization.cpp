// Softmax and normalisations: formulas over reductions and pointwise operators.
#include <cmath>

#include "graph/broadcast.h"
#include "ops/loop_vocabulary.h"
#include "ops/reduction_rules.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// ---- softmax ----

// Half types are computed in float32 throughout and rounded once.
Var widen(Builder& b, const Var& x) {
  return is_half(x.dtype()) ? b.call("to.dtype", {x, DType::float32}) : x;
}
Var narrow_to(Builder& b, const Var& x, DType dtype) {
  return x.dtype() == dtype ? x : b.call("to.dtype", {x, dtype});
}

Var softmax_input(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  if (!a[2].is_none()) return b.call("to.dtype", {x, a[2]});
  STAX_CHECK(is_floating_point(x.dtype()),
             "{}: expected a floating dtype, got {}; pass dtype=", a.schema().name, name(x.dtype()));
  return x;
}

// m = max x; y = exp(x - m) / sum exp(x - m).
Vars softmax(Builder& b, const VarArgs& a) {
  const Var x = softmax_input(b, a);
  const int64_t dim = wrap_dim(a[1].integer().value(), x.dim(), a.schema().name);
  if (b.env().surely(eq(x.numel(), 0))) return {b.call("clone", {x})};
  const Exprs dims = x.dim() == 0 ? Exprs{} : Exprs{dim};
  const Var wide = widen(b, x);
  const Var e = b.call("exp", {wide - row_max(b, wide, dims)});
  const Var y = b.call("div_relaxed", {e, b.call("sum.dim_IntList", {e, dims, true})});
  return {narrow_to(b, y, x.dtype())};
}

// (x - m) - log(sum exp(x - m)).
Vars log_softmax(Builder& b, const VarArgs& a) {
  const Var x = softmax_input(b, a);
  const int64_t dim = wrap_dim(a[1].integer().value(), x.dim(), a.schema().name);
  if (b.env().surely(eq(x.numel(), 0))) return {b.call("clone", {x})};
  const Exprs dims = x.dim() == 0 ? Exprs{} : Exprs{dim};
  const Var wide = widen(b, x);
  const Var shifted = wide - row_max(b, wide, dims);
  const Var y = shifted - b.call("log", {b.call("sum.dim_IntList", {b.call("exp", {shifted}), dims, true})});
  return {narrow_to(b, y, x.dtype())};
}

Vars softmin(Builder& b, const VarArgs& a) {
  return {b.call("softmax.int", {-a.tensor(0), a[1], a[2]})};
}

// As softmax, with 0 instead of NaN where a whole row is -inf.
Vars safe_softmax(Builder& b, const VarArgs& a) {
  const Var x = softmax_input(b, a);
  const Var y = b.call("softmax.int", {x, a[1]});
  if (x.dim() == 0) return {y};
  const Var masked = b.call("all.dims", {b.call("isneginf", {x}), Exprs{a[1].integer()}, true});
  return {b.call("masked_fill_formula", {y, masked, 0.0})};
}

// (g - sum(g y)) y.
Vars softmax_backward(Builder& b, const VarArgs& a) {
  const Var g = widen(b, a.tensor(0)), y = widen(b, a.tensor(1));
  const Var sum = b.call("sum.dim_IntList", {g * y, Exprs{a[2].integer()}, true});
  return {narrow_to(b, g * y - y * sum, a[3].dtype())};
}

// ---- normalisations ----

Exprs last_dims(int64_t count) {
  Exprs dims;
  for (int64_t k = count; k > 0; --k) dims.emplace_back(-k);
  return dims;
}

void check_normalized(const Var& x, const Exprs& shape, const std::string& op) {
  STAX_CHECK(!shape.empty() && static_cast<int64_t>(shape.size()) <= x.dim(),
             "{}: normalized_shape {} does not fit a tensor of shape {}", op, shape_text(shape),
             shape_text(x.sizes()));
  for (size_t k = 0; k < shape.size(); ++k) {
    STAX_CHECK(
        x.builder().env().expect(eq(shape[shape.size() - 1 - k], x.size(-1 - static_cast<int64_t>(k)))),
        "{}: normalized_shape {} does not fit a tensor of shape {}", op, shape_text(shape),
        shape_text(x.sizes()));
  }
}

void check_affine(const VarArg& v, const Exprs& shape, const std::string& op, const char* what) {
  if (v.is_none()) return;
  STAX_CHECK(graph::same_sizes(v.tensor().builder().env(), v.tensor().sizes(), shape),
             "{}: expected {} of shape {}, got {}", op, what, shape_text(shape),
             shape_text(v.tensor().sizes()));
}

// y = (x - mean) / sqrt(var + eps) * weight + bias, with the biased variance; also mean and 1 / sqrt(var +
// eps).
Vars normalize_last(Builder& b, const Var& x, const Exprs& shape, const VarArg& weight, const VarArg& bias,
                    double eps) {
  const Var wide = widen(b, x);
  const Vars moments =
      b.call_all("var_mean.correction", {wide, last_dims(static_cast<int64_t>(shape.size())), 0, true});
  const Var scale = b.call("rsqrt", {moments[0] + num(eps)});
  Var y = (wide - moments[1]) * scale;
  if (!weight.is_none()) y = y * weight.tensor();
  if (!bias.is_none()) y = y + bias.tensor();
  return {narrow_to(b, y, x.dtype()), moments[1], scale};
}

Vars layer_norm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs& shape = a[1].integers();
  check_normalized(x, shape, "layer_norm");
  check_affine(a[2], shape, "layer_norm", "weight");
  check_affine(a[3], shape, "layer_norm", "bias");
  return {normalize_last(b, x, shape, a[2], a[3], a[4].floating())[0]};
}

Vars native_layer_norm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs& shape = a[1].integers();
  check_normalized(x, shape, "native_layer_norm");
  check_affine(a[2], shape, "native_layer_norm", "weight");
  check_affine(a[3], shape, "native_layer_norm", "bias");
  Vars out = normalize_last(b, x, shape, a[2], a[3], a[4].floating());
  if (is_half(x.dtype())) {
    out[1] = narrow_to(b, out[1], x.dtype());
    out[2] = narrow_to(b, out[2], x.dtype());
  }
  return out;
}

Vars rms_norm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Exprs& shape = a[1].integers();
  check_normalized(x, shape, "rms_norm");
  check_affine(a[2], shape, "rms_norm", "weight");
  const double machine_eps = x.dtype() == DType::float64    ? 0x1p-52
                             : x.dtype() == DType::float32  ? 0x1p-23
                             : x.dtype() == DType::bfloat16 ? 0x1p-7
                                                            : 0x1p-10;
  const double eps = a[3].is_none() ? machine_eps : a[3].floating();
  const Var wide = widen(b, x);
  const Var square = b.call("mean.dim", {wide * wide, last_dims(static_cast<int64_t>(shape.size())), true});
  Var y = wide * b.call("rsqrt", {square + num(eps)});
  if (!a[2].is_none()) y = y * a[2].tensor();
  return {narrow_to(b, y, x.dtype())};
}

// A per-channel vector seen as [1, C, 1, ...].
Var per_channel(Builder& b, const Var& v, int64_t rank) {
  Exprs shape(std::max<int64_t>(rank, 2), Expr(1));
  shape[1] = v.numel();
  return b.call("reshape", {v, shape});
}

Exprs dims_but_channel(int64_t rank) {
  Exprs dims{0};
  for (int64_t d = 2; d < rank; ++d) dims.emplace_back(d);
  return dims;
}

// Statistics of the batch, or the running ones; results (y, mean, 1 / sqrt(var + eps)).
Vars batch_norm_parts(Builder& b, const Var& x, const VarArg& weight, const VarArg& bias,
                      const VarArg& running_mean, const VarArg& running_var, bool training, double eps) {
  STAX_CHECK(x.dim() >= 2, "batch_norm: expected at least 2 dimensions, got {}", x.dim());
  for (const VarArg* v : {&weight, &bias, &running_mean, &running_var}) {
    STAX_CHECK(v->is_none() || b.env().expect(eq(v->tensor().numel(), x.size(1))),
               "batch_norm: expected {} values per channel, got {}", x.size(1).str(),
               v->tensor().numel().str());
  }
  const Var wide = widen(b, x);
  Var mean, scale;
  if (training) {
    const Vars moments = b.call_all("var_mean.correction", {wide, dims_but_channel(x.dim()), 0, false});
    mean = moments[1];
    scale = b.call("rsqrt", {moments[0] + num(eps)});
  } else {
    STAX_CHECK(!running_mean.is_none() && !running_var.is_none(),
               "batch_norm: evaluation needs running mean and variance");
    mean = widen(b, running_mean.tensor());
    scale = b.call("rsqrt", {widen(b, running_var.tensor()) + num(eps)});
  }
  Var y = (wide - per_channel(b, mean, x.dim())) * per_channel(b, scale, x.dim());
  if (!weight.is_none()) y = y * per_channel(b, widen(b, weight.tensor()), x.dim());
  if (!bias.is_none()) y = y + per_channel(b, widen(b, bias.tensor()), x.dim());
  return {narrow_to(b, y, x.dtype()), mean, scale};
}

Vars batch_norm(Builder& b, const VarArgs& a) {
  if (b.env().surely(eq(a.tensor(0).numel(), 0))) return {b.call("clone", {a[0]})};
  return {batch_norm_parts(b, a.tensor(0), a[3], a[4], a[1], a[2], a[5].boolean(), a[7].floating())[0]};
}

Vars native_batch_norm(Builder& b, const VarArgs& a) {
  const bool training = a[5].boolean();
  Vars out = batch_norm_parts(b, a.tensor(0), a[1], a[2], a[3], a[4], training, a[7].floating());
  if (!training) {
    // Evaluation saves nothing.
    const Var empty = b.call("full", {Exprs{0}, 0, a.tensor(0).dtype()});
    return {out[0], empty, empty};
  }
  for (size_t k = 1; k < out.size(); ++k) out[k] = narrow_to(b, out[k], a.tensor(0).dtype());
  return out;
}

Vars instance_norm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  STAX_CHECK(x.dim() >= 3, "instance_norm: expected at least 3 dimensions, got {}", x.dim());
  if (!a[5].boolean()) return {batch_norm_parts(b, x, a[3], a[4], a[1], a[2], false, a[7].floating())[0]};
  const Var wide = widen(b, x);
  Exprs dims;
  for (int64_t d = 2; d < x.dim(); ++d) dims.emplace_back(d);
  const Vars moments = b.call_all("var_mean.correction", {wide, dims, 0, true});
  Var y = (wide - moments[1]) * b.call("rsqrt", {moments[0] + num(a[7].floating())});
  if (!a[3].is_none()) y = y * per_channel(b, widen(b, a[3].tensor()), x.dim());
  if (!a[4].is_none()) y = y + per_channel(b, widen(b, a[4].tensor()), x.dim());
  return {narrow_to(b, y, x.dtype())};
}

Vars group_norm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t groups = b.env().specialize(a[1].integer());
  STAX_CHECK(x.dim() >= 2, "group_norm: expected at least 2 dimensions, got {}", x.dim());
  STAX_CHECK(groups > 0 && b.env().expect(eq(mod(x.size(1), groups), 0)),
             "group_norm: {} channels do not divide into {}", x.size(1).str(), counted(groups, "group"));
  const Var wide = widen(b, x);
  // Not from the number of elements: for one image the division would say less of its length than for more.
  Expr inner = floor_div(x.size(1), groups);
  for (int64_t d = 2; d < x.dim(); ++d) inner *= x.size(d);
  const Var grouped = b.call("reshape", {wide, Exprs{x.size(0), groups, inner}});
  const Vars moments = b.call_all("var_mean.correction", {grouped, Exprs{-1}, 0, true});
  Var y = (grouped - moments[1]) * b.call("rsqrt", {moments[0] + num(a[4].floating())});
  y = b.call("reshape", {y, x.sizes()});
  if (!a[2].is_none()) y = y * per_channel(b, widen(b, a[2].tensor()), x.dim());
  if (!a[3].is_none()) y = y + per_channel(b, widen(b, a[3].tensor()), x.dim());
  return {narrow_to(b, y, x.dtype())};
}

Vars normalize(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Var norm = b.call("norm", {x, a[1], a[2], true});
  return {x / b.call("clamp_min", {norm, a[3].floating()})};
}

// x / (k + alpha / n * sum of squares over n neighbouring channels)^beta.
Vars local_response_norm(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t n = b.env().specialize(a[1].integer());
  STAX_CHECK(x.dim() >= 3, "local_response_norm: expected at least 3 dimensions, got {}", x.dim());
  if (b.env().decide(eq(x.numel(), 0))) return {b.call("clone", {x})};
  Exprs pad(2 * (x.dim() - 1), Expr(0));
  pad[pad.size() - 2] = Expr(n / 2);
  pad[pad.size() - 1] = Expr((n - 1) / 2);
  const Var padded = b.call("constant_pad_nd", {x * x, pad, 0});
  const Var sum = b.call("sum.dim_IntList", {b.call("unfold", {padded, 1, n, 1}), Exprs{-1}});
  // The mean of integers is an integer, as in PyTorch.
  const Var mean = is_floating_point(x.dtype()) ? sum / num(n) : b.call("trunc_divide", {sum, n});
  const Var base = mean * num(a[2].floating()) + num(a[4].floating());
  return {x / b.call("pow.Tensor_Scalar", {base, a[3].floating()})};
}

Vars channel_shuffle(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const int64_t groups = b.env().specialize(a[1].integer());
  STAX_CHECK(x.dim() >= 3 && groups > 0 && b.env().expect(eq(mod(x.size(1), groups), 0)),
             "channel_shuffle: a tensor of shape {} does not divide into {}", shape_text(x.sizes()),
             counted(groups, "group"));
  Exprs split = x.sizes();
  split[1] = floor_div(x.size(1), groups);
  split.insert(split.begin() + 1, Expr(groups));
  const Var swapped = b.call("transpose.int", {b.call("reshape", {x, split}), 1, 2});
  return {b.call("reshape_copy", {swapped, x.sizes()})};
}

}  // namespace

Ops normalization_rows() {
  return {
      internal(pointwise("div_relaxed(Tensor self, Tensor other) -> Tensor", graph::DTypeRule::promote_float,
                         [](const lowering::PointwiseArgs& a) { return lowering::div_relaxed(a[0], a[1]); })),
      decomposed("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax),
      decomposed("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", log_softmax),
      composite("softmin(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmin),
      decomposed("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", safe_softmax),
      decomposed("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
                 "-> Tensor",
                 softmax_backward),
      decomposed("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
                 "float eps=1e-05) -> Tensor",
                 layer_norm),
      decomposed("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
                 "float eps) -> "
                 "(Tensor, Tensor, Tensor)",
                 native_layer_norm),
      decomposed(
          "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
          rms_norm),
      decomposed("batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
                 "Tensor? bias=None, "
                 "bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
                 batch_norm),
      decomposed("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
                 "Tensor? running_var, "
                 "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
                 native_batch_norm),
      decomposed(
          "instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? "
          "weight=None, "
          "Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
          instance_norm),
      decomposed("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
                 "eps=1e-05) -> Tensor",
                 group_norm),
      composite("normalize(Tensor input, float p=2.0, int[1] dim=1, float eps=1e-12) -> Tensor", normalize),
      composite("local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float "
                "k=1.0) -> Tensor",
                local_response_norm),
      composite("channel_shuffle(Tensor self, int groups) -> Tensor", channel_shuffle),
  };
}

}  // namespace stax::ops

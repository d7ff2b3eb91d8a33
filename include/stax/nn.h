// nn::functional: libtorch's names and option structs over the operators. Functions whose operators need no
// options are those of functions.h.
//
// Here and in the headers of layers and losses: tensors are of a floating dtype unless something else is
// said, and activations give the shape and dtype of their input. Where a shape, a dtype or an option does not
// fit, a UserError names the operation, what it expects and what it got.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stax/functions.h"
#include "stax/nn_layers.h"
#include "stax/nn_losses.h"
#include "stax/nn_options.h"
#include "stax/tensor.h"

namespace stax {
namespace nn::functional {

using stax::bilinear;
using stax::hardsigmoid;
using stax::hardswish;
using stax::linear;
using stax::logsigmoid;
using stax::mish;
using stax::one_hot;
using stax::prelu;
using stax::relu;
using stax::relu6;
using stax::scaled_dot_product_attention;
using stax::selu;
using stax::sigmoid;
using stax::silu;
using stax::softsign;
using stax::tanh;
using stax::tanhshrink;

class GELUFuncOptions {
  STAX_OPTION(GELUFuncOptions, std::string, approximate, = "none");
};
/// x * P(X <= x) for a standard normal X; approximate "tanh" takes
/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
inline Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {}) {
  return stax::gelu(input, options.approximate());
}

class LeakyReLUFuncOptions {
  STAX_OPTION(LeakyReLUFuncOptions, double, negative_slope, = 0.01);
};
/// x where it is positive, negative_slope * x elsewhere.
inline Tensor leaky_relu(const Tensor& input, const LeakyReLUFuncOptions& options = {}) {
  return stax::leaky_relu(input, options.negative_slope());
}

class ELUFuncOptions {
  STAX_OPTION(ELUFuncOptions, double, alpha, = 1.0);
};
/// x where it is positive, alpha * (exp(x) - 1) elsewhere.
inline Tensor elu(const Tensor& input, const ELUFuncOptions& options = {}) {
  return stax::elu(input, options.alpha());
}

class CELUFuncOptions {
  STAX_OPTION(CELUFuncOptions, double, alpha, = 1.0);
};
/// x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere.
inline Tensor celu(const Tensor& input, const CELUFuncOptions& options = {}) {
  return stax::celu(input, options.alpha());
}

class GLUFuncOptions {
 public:
  GLUFuncOptions(int64_t dim = -1) : dim_(dim) {}  // NOLINT
  STAX_OPTION(GLUFuncOptions, int64_t, dim, );
};
/// a * sigmoid(b) for the halves a and b of the input along `dim`, which has to be of even size.
inline Tensor glu(const Tensor& input, const GLUFuncOptions& options = {}) {
  return stax::glu(input, options.dim());
}

/// Half the width of the interval around 0 that becomes 0.
class ShrinkFuncOptions {
 public:
  ShrinkFuncOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  STAX_OPTION(ShrinkFuncOptions, double, lambda, );
};
using HardshrinkFuncOptions = ShrinkFuncOptions;
using SoftshrinkFuncOptions = ShrinkFuncOptions;
/// x where |x| > lambda, 0 elsewhere.
inline Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {}) {
  return stax::hardshrink(input, options.lambda());
}
/// x - lambda where x > lambda, x + lambda where x < -lambda, 0 between.
inline Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {}) {
  return stax::softshrink(input, options.lambda());
}

/// What is not above `threshold` becomes `value`.
class ThresholdFuncOptions {
 public:
  ThresholdFuncOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  STAX_OPTION(ThresholdFuncOptions, double, threshold, );
  STAX_OPTION(ThresholdFuncOptions, double, value, );
};
/// x where it is above `threshold`, `value` elsewhere.
inline Tensor threshold(const Tensor& input, const ThresholdFuncOptions& options) {
  return stax::threshold(input, options.threshold(), options.value());
}

class HardtanhFuncOptions {
  STAX_OPTION(HardtanhFuncOptions, double, min_val, = -1.0);
  STAX_OPTION(HardtanhFuncOptions, double, max_val, = 1.0);
};
/// x, kept between min_val and max_val.
inline Tensor hardtanh(const Tensor& input, const HardtanhFuncOptions& options = {}) {
  return stax::hardtanh(input, options.min_val(), options.max_val());
}

class SoftplusFuncOptions {
  STAX_OPTION(SoftplusFuncOptions, double, beta, = 1.0);
  STAX_OPTION(SoftplusFuncOptions, double, threshold, = 20.0);
};
/// log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold.
inline Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {}) {
  return stax::softplus(input, options.beta(), options.threshold());
}

/// The dimension along which softmax, softmin and log_softmax sum to one, and the dtype to compute in.
class SoftmaxFuncOptions {
 public:
  SoftmaxFuncOptions(int64_t dim) : dim_(dim) {}  // NOLINT: softmax(x, -1)
  STAX_OPTION(SoftmaxFuncOptions, int64_t, dim, );
  STAX_OPTION(SoftmaxFuncOptions, std::optional<DType>, dtype, );
};
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;
using SoftminFuncOptions = SoftmaxFuncOptions;
/// exp(x) over its sum along `dim`. The result is of the input's dtype, or of `dtype`, to which the input is
/// converted first; so are those of the two below.
inline Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options) {
  return stax::softmax(input, options.dim(), options.dtype());
}
/// The logarithm of softmax, computed as x - logsumexp(x).
inline Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options) {
  return stax::log_softmax(input, options.dim(), options.dtype());
}
/// The softmax of -x.
inline Tensor softmin(const Tensor& input, const SoftminFuncOptions& options) {
  return stax::softmin(input, options.dim(), options.dtype());
}

class DropoutFuncOptions {
  STAX_OPTION(DropoutFuncOptions, double, p, = 0.5);
  STAX_OPTION(DropoutFuncOptions, bool, training, = false);
};
/// With `training`, elements become 0 with probability p in [0, 1] and the others are divided by 1 - p; else
/// the input.
inline Tensor dropout(const Tensor& input, const DropoutFuncOptions& options = {}) {
  return stax::dropout(input, options.p(), options.training());
}

class EmbeddingFuncOptions {
  STAX_OPTION(EmbeddingFuncOptions, std::optional<int64_t>, padding_idx, );
  STAX_OPTION(EmbeddingFuncOptions, std::optional<double>, max_norm, );
  STAX_OPTION(EmbeddingFuncOptions, double, norm_type, = 2.0);
  STAX_OPTION(EmbeddingFuncOptions, bool, scale_grad_by_freq, = false);
  STAX_OPTION(EmbeddingFuncOptions, bool, sparse, = false);
};
/// Rows of `weight`, which is [rows, features], for int64 or int32 indices `input` of any shape. Unlike the
/// operator it takes the indices first, as libtorch's does. Rows whose norm exceeds max_norm come scaled down
/// to it; the weight itself stays as it is.
inline Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o = {}) {
  std::optional<SymInt> padding;
  if (o.padding_idx()) padding = *o.padding_idx();
  if (o.max_norm())
    return stax::embedding(weight, input, *o.max_norm(), o.norm_type(), padding, o.scale_grad_by_freq(),
                           o.sparse());
  return stax::embedding(weight, input, padding.value_or(-1), o.scale_grad_by_freq(), o.sparse());
}

#undef STAX_OPTION

}  // namespace nn::functional
}  // namespace stax

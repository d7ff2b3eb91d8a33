// nn::functional: libtorch's names and option structs over the operators. Functions whose operators need no
// options are those of functions.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stax/functions.h"
#include "stax/tensor.h"

namespace stax {

/// How a loss joins its elements: .reduction(kMean).
inline constexpr std::string_view kMean = "mean", kSum = "sum", kNone = "none";

namespace nn::functional {

using stax::glu;
using stax::hardsigmoid;
using stax::hardswish;
using stax::linear;
using stax::logsigmoid;
using stax::mish;
using stax::prelu;
using stax::relu;
using stax::relu6;
using stax::selu;
using stax::sigmoid;
using stax::silu;
using stax::softsign;
using stax::tanh;
using stax::tanhshrink;

// name(): the value; name(v): sets it.
#define STAX_OPTION(Class, Type, name, ...) \
 public:                                    \
  Class& name(Type value) {                 \
    name##_ = std::move(value);             \
    return *this;                           \
  }                                         \
  const Type& name() const {                \
    return name##_;                         \
  }                                         \
                                            \
 private:                                   \
  Type name##_ __VA_ARGS__

class GELUFuncOptions {
  STAX_OPTION(GELUFuncOptions, std::string, approximate, = "none");
};
inline Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {}) {
  return stax::gelu(input, options.approximate());
}

class LeakyReLUFuncOptions {
  STAX_OPTION(LeakyReLUFuncOptions, double, negative_slope, = 0.01);
};
inline Tensor leaky_relu(const Tensor& input, const LeakyReLUFuncOptions& options = {}) {
  return stax::leaky_relu(input, options.negative_slope());
}

class ELUFuncOptions {
  STAX_OPTION(ELUFuncOptions, double, alpha, = 1.0);
};
inline Tensor elu(const Tensor& input, const ELUFuncOptions& options = {}) {
  return stax::elu(input, options.alpha());
}

class HardtanhFuncOptions {
  STAX_OPTION(HardtanhFuncOptions, double, min_val, = -1.0);
  STAX_OPTION(HardtanhFuncOptions, double, max_val, = 1.0);
};
inline Tensor hardtanh(const Tensor& input, const HardtanhFuncOptions& options = {}) {
  return stax::hardtanh(input, options.min_val(), options.max_val());
}

class SoftplusFuncOptions {
  STAX_OPTION(SoftplusFuncOptions, double, beta, = 1.0);
  STAX_OPTION(SoftplusFuncOptions, double, threshold, = 20.0);
};
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
inline Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options) {
  return stax::softmax(input, options.dim(), options.dtype());
}
inline Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options) {
  return stax::log_softmax(input, options.dim(), options.dtype());
}
inline Tensor softmin(const Tensor& input, const SoftminFuncOptions& options) {
  return stax::softmin(input, options.dim(), options.dtype());
}

/// Sizes of the trailing dimensions that layer_norm normalises, and its affine parameters.
class LayerNormFuncOptions {
 public:
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)  // NOLINT
      : normalized_shape_(std::move(normalized_shape)) {}
  STAX_OPTION(LayerNormFuncOptions, std::vector<int64_t>, normalized_shape, );
  STAX_OPTION(LayerNormFuncOptions, Tensor, weight, );
  STAX_OPTION(LayerNormFuncOptions, Tensor, bias, );
  STAX_OPTION(LayerNormFuncOptions, double, eps, = 1e-5);
};
inline Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options) {
  return stax::layer_norm(input, options.normalized_shape(), options.weight(), options.bias(), options.eps());
}

class DropoutFuncOptions {
  STAX_OPTION(DropoutFuncOptions, double, p, = 0.5);
  STAX_OPTION(DropoutFuncOptions, bool, training, = false);
};
inline Tensor dropout(const Tensor& input, const DropoutFuncOptions& options = {}) {
  return stax::dropout(input, options.p(), options.training());
}

class MSELossFuncOptions {
  STAX_OPTION(MSELossFuncOptions, std::string_view, reduction, = kMean);
};
using L1LossFuncOptions = MSELossFuncOptions;
inline Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {}) {
  return stax::mse_loss(input, target, options.reduction());
}
inline Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {}) {
  return stax::l1_loss(input, target, options.reduction());
}

class CrossEntropyFuncOptions {
  STAX_OPTION(CrossEntropyFuncOptions, Tensor, weight, );
  STAX_OPTION(CrossEntropyFuncOptions, int64_t, ignore_index, = -100);
  STAX_OPTION(CrossEntropyFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(CrossEntropyFuncOptions, double, label_smoothing, = 0.0);
};
inline Tensor cross_entropy(const Tensor& input, const Tensor& target,
                            const CrossEntropyFuncOptions& options = {}) {
  return stax::cross_entropy(input, target, options.weight(), options.ignore_index(), options.reduction(),
                             options.label_smoothing());
}

#undef STAX_OPTION

}  // namespace nn::functional
}  // namespace stax

// nn::functional: convolutions, pools, normalisations, padding and resampling.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "stax/functions.h"
#include "stax/nn_options.h"
#include "stax/tensor.h"

namespace stax::nn::functional {

// ---- convolutions ----
//
// Inputs are [N, C, spatial...] with 1, 2 or 3 spatial dimensions, or the same without N; `bias` is
// [outputs]. Windows do not reach out of the padded input, and results are not empty.
//
// conv takes weights [outputs, C / groups, window...] and gives, for a spatial size `in`,
//     floor((in + 2 padding - dilation (window - 1) - 1) / stride) + 1
// conv_transpose takes weights [C, outputs / groups, window...] and gives
//     (in - 1) stride - 2 padding + dilation (window - 1) + output_padding + 1

/// kSame keeps the spatial sizes, and needs a stride of 1; kValid is no padding.
class ConvFuncOptions {
 public:
  /// kSame or kValid in place of numbers.
  template <std::same_as<std::string_view> T>
  ConvFuncOptions& padding(T mode) {
    padding_mode_ = mode;
    return *this;
  }
  std::string_view padding_mode() const { return padding_mode_; }

  STAX_OPTION(ConvFuncOptions, Tensor, bias, );
  STAX_OPTION(ConvFuncOptions, Sizes, stride, = 1);
  STAX_OPTION(ConvFuncOptions, Sizes, padding, = 0);
  STAX_OPTION(ConvFuncOptions, Sizes, dilation, = 1);
  STAX_OPTION(ConvFuncOptions, SymInt, groups, = 1);
  std::string_view padding_mode_;
};
using Conv1dFuncOptions = ConvFuncOptions;
using Conv2dFuncOptions = ConvFuncOptions;
using Conv3dFuncOptions = ConvFuncOptions;

class ConvTransposeFuncOptions {
  STAX_OPTION(ConvTransposeFuncOptions, Tensor, bias, );
  STAX_OPTION(ConvTransposeFuncOptions, Sizes, stride, = 1);
  STAX_OPTION(ConvTransposeFuncOptions, Sizes, padding, = 0);
  STAX_OPTION(ConvTransposeFuncOptions, Sizes, output_padding, = 0);
  STAX_OPTION(ConvTransposeFuncOptions, SymInt, groups, = 1);
  STAX_OPTION(ConvTransposeFuncOptions, Sizes, dilation, = 1);
};
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions;

#define STAX_CONVOLUTION(n)                                                                                  \
  inline Tensor conv##n##d(const Tensor& input, const Tensor& weight, const ConvFuncOptions& options = {}) { \
    if (!options.padding_mode().empty())                                                                     \
      return stax::conv##n##d(input, weight, options.bias(), options.stride(), options.padding_mode(),       \
                              options.dilation(), options.groups());                                         \
    return stax::conv##n##d(input, weight, options.bias(), options.stride(), options.padding(),              \
                            options.dilation(), options.groups());                                           \
  }                                                                                                          \
  inline Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight,                              \
                                     const ConvTransposeFuncOptions& options = {}) {                         \
    return stax::conv_transpose##n##d(input, weight, options.bias(), options.stride(), options.padding(),    \
                                      options.output_padding(), options.groups(), options.dilation());       \
  }
STAX_CONVOLUTION(1)
STAX_CONVOLUTION(2)
STAX_CONVOLUTION(3)
#undef STAX_CONVOLUTION

// ---- pools ----
//
// Inputs are [N, C, spatial...] or the same without N, of a dtype that the result has, too; maxima and
// averages take integers. The stride is the window's size by default, the padding at most half a window. For
// a spatial size `in` the result has
//     floor((in + 2 padding - dilation (window - 1) - 1) / stride) + 1
// elements; with ceil_mode that is rounded up, but no window starts behind the input.

class MaxPoolFuncOptions {
 public:
  MaxPoolFuncOptions(Sizes kernel_size) : kernel_size_(std::move(kernel_size)) {}  // NOLINT
  STAX_OPTION(MaxPoolFuncOptions, Sizes, kernel_size, );
  STAX_OPTION(MaxPoolFuncOptions, Sizes, stride, );
  STAX_OPTION(MaxPoolFuncOptions, Sizes, padding, = 0);
  STAX_OPTION(MaxPoolFuncOptions, Sizes, dilation, = 1);
  STAX_OPTION(MaxPoolFuncOptions, bool, ceil_mode, = false);
};
using MaxPool1dFuncOptions = MaxPoolFuncOptions;
using MaxPool2dFuncOptions = MaxPoolFuncOptions;
using MaxPool3dFuncOptions = MaxPoolFuncOptions;

/// Sums are divided by the number of elements of the window, those of the padding among them unless
/// count_include_pad is false; or by divisor_override.
class AvgPoolFuncOptions {
 public:
  AvgPoolFuncOptions(Sizes kernel_size) : kernel_size_(std::move(kernel_size)) {}  // NOLINT
  STAX_OPTION(AvgPoolFuncOptions, Sizes, kernel_size, );
  STAX_OPTION(AvgPoolFuncOptions, Sizes, stride, );
  STAX_OPTION(AvgPoolFuncOptions, Sizes, padding, = 0);
  STAX_OPTION(AvgPoolFuncOptions, bool, ceil_mode, = false);
  STAX_OPTION(AvgPoolFuncOptions, bool, count_include_pad, = true);
  STAX_OPTION(AvgPoolFuncOptions, std::optional<SymInt>, divisor_override, );
};
using AvgPool1dFuncOptions = AvgPoolFuncOptions;
using AvgPool2dFuncOptions = AvgPoolFuncOptions;
using AvgPool3dFuncOptions = AvgPoolFuncOptions;
inline Tensor avg_pool1d(const Tensor& input, const AvgPoolFuncOptions& o) {
  return stax::avg_pool1d(input, o.kernel_size(), o.stride().optional(), o.padding(), o.ceil_mode(),
                          o.count_include_pad());
}
inline Tensor avg_pool2d(const Tensor& input, const AvgPoolFuncOptions& o) {
  return stax::avg_pool2d(input, o.kernel_size(), o.stride().optional(), o.padding(), o.ceil_mode(),
                          o.count_include_pad(), o.divisor_override());
}
inline Tensor avg_pool3d(const Tensor& input, const AvgPoolFuncOptions& o) {
  return stax::avg_pool3d(input, o.kernel_size(), o.stride().optional(), o.padding(), o.ceil_mode(),
                          o.count_include_pad(), o.divisor_override());
}

/// (sum of x^norm_type over the window)^(1 / norm_type).
class LPPoolFuncOptions {
 public:
  LPPoolFuncOptions(double norm_type, Sizes kernel_size)
      : norm_type_(norm_type), kernel_size_(std::move(kernel_size)) {}
  STAX_OPTION(LPPoolFuncOptions, double, norm_type, );
  STAX_OPTION(LPPoolFuncOptions, Sizes, kernel_size, );
  STAX_OPTION(LPPoolFuncOptions, Sizes, stride, );
  STAX_OPTION(LPPoolFuncOptions, bool, ceil_mode, = false);
};
using LPPool1dFuncOptions = LPPoolFuncOptions;
using LPPool2dFuncOptions = LPPoolFuncOptions;
using LPPool3dFuncOptions = LPPoolFuncOptions;

/// The result's spatial sizes. Of `in` elements, window i of `out` has those from floor(i in / out) to
/// ceil((i + 1) in / out) - 1.
class AdaptivePoolFuncOptions {
 public:
  AdaptivePoolFuncOptions(Sizes output_size) : output_size_(std::move(output_size)) {}  // NOLINT
  STAX_OPTION(AdaptivePoolFuncOptions, Sizes, output_size, );
};
using AdaptiveAvgPool1dFuncOptions = AdaptivePoolFuncOptions;
using AdaptiveAvgPool2dFuncOptions = AdaptivePoolFuncOptions;
using AdaptiveAvgPool3dFuncOptions = AdaptivePoolFuncOptions;
using AdaptiveMaxPool1dFuncOptions = AdaptivePoolFuncOptions;
using AdaptiveMaxPool2dFuncOptions = AdaptivePoolFuncOptions;
using AdaptiveMaxPool3dFuncOptions = AdaptivePoolFuncOptions;

/// Puts each value at its place in the plane, int64 `indices` of the input's shape as max_pool gives them,
/// and 0 elsewhere. A plane has the sizes `output_size`, by default (in - 1) stride - 2 padding + window.
class MaxUnpoolFuncOptions {
 public:
  MaxUnpoolFuncOptions(Sizes kernel_size) : kernel_size_(std::move(kernel_size)) {}  // NOLINT
  STAX_OPTION(MaxUnpoolFuncOptions, Sizes, kernel_size, );
  STAX_OPTION(MaxUnpoolFuncOptions, Sizes, stride, );
  STAX_OPTION(MaxUnpoolFuncOptions, Sizes, padding, = 0);
  STAX_OPTION(MaxUnpoolFuncOptions, Sizes, output_size, );
};
using MaxUnpool1dFuncOptions = MaxUnpoolFuncOptions;
using MaxUnpool2dFuncOptions = MaxUnpoolFuncOptions;
using MaxUnpool3dFuncOptions = MaxUnpoolFuncOptions;

// The adaptive sizes of several dimensions may be one number: both dimensions of a square.
#define STAX_POOL(n)                                                                                         \
  inline Tensor max_pool##n##d(const Tensor& input, const MaxPoolFuncOptions& o) {                           \
    return stax::max_pool##n##d(input, o.kernel_size(), o.stride().optional(), o.padding(), o.dilation(),    \
                                o.ceil_mode());                                                              \
  }                                                                                                          \
  inline std::tuple<Tensor, Tensor> max_pool##n##d_with_indices(const Tensor& input,                         \
                                                                const MaxPoolFuncOptions& o) {               \
    return stax::max_pool##n##d_with_indices(input, o.kernel_size(), o.stride().optional(), o.padding(),     \
                                             o.dilation(), o.ceil_mode());                                   \
  }                                                                                                          \
  inline Tensor lp_pool##n##d(const Tensor& input, const LPPoolFuncOptions& o) {                             \
    return stax::lp_pool##n##d(input, o.norm_type(), o.kernel_size(), o.stride().optional(), o.ceil_mode()); \
  }                                                                                                          \
  inline Tensor adaptive_avg_pool##n##d(const Tensor& input, const AdaptivePoolFuncOptions& o) {             \
    return stax::adaptive_avg_pool##n##d(input, o.output_size());                                            \
  }                                                                                                          \
  inline Tensor adaptive_max_pool##n##d(const Tensor& input, const AdaptivePoolFuncOptions& o) {             \
    return std::get<0>(stax::adaptive_max_pool##n##d(input, o.output_size()));                               \
  }                                                                                                          \
  inline std::tuple<Tensor, Tensor> adaptive_max_pool##n##d_with_indices(const Tensor& input,                \
                                                                         const AdaptivePoolFuncOptions& o) { \
    return stax::adaptive_max_pool##n##d(input, o.output_size());                                            \
  }                                                                                                          \
  inline Tensor max_unpool##n##d(const Tensor& input, const Tensor& indices,                                 \
                                 const MaxUnpoolFuncOptions& o) {                                            \
    return stax::max_unpool##n##d(input, indices, o.kernel_size(), o.stride().optional(), o.padding(),       \
                                  o.output_size().optional());                                               \
  }
STAX_POOL(1)
STAX_POOL(2)
STAX_POOL(3)
#undef STAX_POOL

/// Windows as columns, im2col: [N, C, H, W], or the same without N, to [N, C * window, number of windows].
class UnfoldFuncOptions {
 public:
  UnfoldFuncOptions(Sizes kernel_size) : kernel_size_(std::move(kernel_size)) {}  // NOLINT
  STAX_OPTION(UnfoldFuncOptions, Sizes, kernel_size, );
  STAX_OPTION(UnfoldFuncOptions, Sizes, dilation, = 1);
  STAX_OPTION(UnfoldFuncOptions, Sizes, padding, = 0);
  STAX_OPTION(UnfoldFuncOptions, Sizes, stride, = 1);
};
inline Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  return stax::im2col(input, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

// ---- normalisations: results are of the shape and dtype of the input, [N, C, ...] ----

/// `weight`, `bias` and the statistics are [C]. With `training` the mean and variance are those of the batch,
/// over all dimensions but C, and the running ones may be undefined; they are not updated.
class BatchNormFuncOptions {
  STAX_OPTION(BatchNormFuncOptions, Tensor, weight, );
  STAX_OPTION(BatchNormFuncOptions, Tensor, bias, );
  STAX_OPTION(BatchNormFuncOptions, bool, training, = false);
  STAX_OPTION(BatchNormFuncOptions, double, momentum, = 0.1);
  STAX_OPTION(BatchNormFuncOptions, double, eps, = 1e-5);
};
inline Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                         const BatchNormFuncOptions& o = {}) {
  return stax::batch_norm(input, running_mean, running_var, o.weight(), o.bias(), o.training(), o.momentum(),
                          o.eps());
}

/// As batch_norm, with the statistics of each sample and channel where use_input_stats is set; at least one
/// spatial dimension.
class InstanceNormFuncOptions {
  STAX_OPTION(InstanceNormFuncOptions, Tensor, running_mean, );
  STAX_OPTION(InstanceNormFuncOptions, Tensor, running_var, );
  STAX_OPTION(InstanceNormFuncOptions, Tensor, weight, );
  STAX_OPTION(InstanceNormFuncOptions, Tensor, bias, );
  STAX_OPTION(InstanceNormFuncOptions, bool, use_input_stats, = true);
  STAX_OPTION(InstanceNormFuncOptions, double, momentum, = 0.1);
  STAX_OPTION(InstanceNormFuncOptions, double, eps, = 1e-5);
};
inline Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o = {}) {
  return stax::instance_norm(input, o.running_mean(), o.running_var(), o.weight(), o.bias(),
                             o.use_input_stats(), o.momentum(), o.eps());
}

/// Mean and variance of each sample over its C / num_groups channels and what follows them; `weight` and
/// `bias` are [C].
class GroupNormFuncOptions {
 public:
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}  // NOLINT
  STAX_OPTION(GroupNormFuncOptions, int64_t, num_groups, );
  STAX_OPTION(GroupNormFuncOptions, Tensor, weight, );
  STAX_OPTION(GroupNormFuncOptions, Tensor, bias, );
  STAX_OPTION(GroupNormFuncOptions, double, eps, = 1e-5);
};
inline Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return stax::group_norm(input, o.num_groups(), o.weight(), o.bias(), o.eps());
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

/// x / (k + alpha * m)^beta, where m is the mean of the squares of `size` neighbouring channels; at least one
/// spatial dimension.
class LocalResponseNormFuncOptions {
 public:
  LocalResponseNormFuncOptions(int64_t size) : size_(size) {}  // NOLINT
  STAX_OPTION(LocalResponseNormFuncOptions, int64_t, size, );
  STAX_OPTION(LocalResponseNormFuncOptions, double, alpha, = 1e-4);
  STAX_OPTION(LocalResponseNormFuncOptions, double, beta, = 0.75);
  STAX_OPTION(LocalResponseNormFuncOptions, double, k, = 1.0);
};
inline Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& o) {
  return stax::local_response_norm(input, o.size(), o.alpha(), o.beta(), o.k());
}

/// x / max(n, eps), where n is the p-norm along `dim`.
class NormalizeFuncOptions {
  STAX_OPTION(NormalizeFuncOptions, double, p, = 2.0);
  STAX_OPTION(NormalizeFuncOptions, int64_t, dim, = 1);
  STAX_OPTION(NormalizeFuncOptions, double, eps, = 1e-12);
};
inline Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o = {}) {
  return stax::normalize(input, o.p(), o.dim(), o.eps());
}

// ---- padding, resampling, channels ----

/// Elements to add before and after, for the last dimension first; negative numbers crop. kReflect takes less
/// than the size of the dimension, kCircular at most it.
class PadFuncOptions {
 public:
  PadFuncOptions(Sizes pad) : pad_(std::move(pad)) {}  // NOLINT
  STAX_OPTION(PadFuncOptions, Sizes, pad, );
  STAX_OPTION(PadFuncOptions, std::string_view, mode, = kConstant);
  STAX_OPTION(PadFuncOptions, double, value, = 0);
};
inline Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  if (o.mode() != kConstant) return stax::pad(input, o.pad(), o.mode());
  return stax::pad(input, o.pad(), o.mode(), o.value());
}

/// [N, C, spatial...] to the spatial sizes `size`, or to floor(size * scale_factor): one of the two. kLinear
/// takes one spatial dimension, kBilinear and kBicubic two, kTrilinear three, the others any number;
/// align_corners and antialias are for the modes in which they have a meaning.
class InterpolateFuncOptions {
  STAX_OPTION(InterpolateFuncOptions, std::optional<std::vector<int64_t>>, size, );
  STAX_OPTION(InterpolateFuncOptions, std::optional<std::vector<double>>, scale_factor, );
  STAX_OPTION(InterpolateFuncOptions, std::string_view, mode, = kNearest);
  STAX_OPTION(InterpolateFuncOptions, std::optional<bool>, align_corners, );
  STAX_OPTION(InterpolateFuncOptions, std::optional<bool>, recompute_scale_factor, );
  STAX_OPTION(InterpolateFuncOptions, bool, antialias, = false);
};
inline Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o = {}) {
  OptionalFloatList scales;
  if (o.scale_factor()) scales = *o.scale_factor();
  return stax::interpolate(input, OptionalIntList(o.size()), scales, o.mode(), o.align_corners(),
                           o.recompute_scale_factor(), o.antialias());
}

/// [..., C r^2, H, W] to [..., C, H r, W r] for the factor r, and back.
class PixelShuffleFuncOptions {
 public:
  PixelShuffleFuncOptions(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}  // NOLINT
  STAX_OPTION(PixelShuffleFuncOptions, int64_t, upscale_factor, );
};
class PixelUnshuffleFuncOptions {
 public:
  PixelUnshuffleFuncOptions(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}  // NOLINT
  STAX_OPTION(PixelUnshuffleFuncOptions, int64_t, downscale_factor, );
};
inline Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& o) {
  return stax::pixel_shuffle(input, o.upscale_factor());
}
inline Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& o) {
  return stax::pixel_unshuffle(input, o.downscale_factor());
}

}  // namespace stax::nn::functional

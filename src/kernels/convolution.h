// Convolutions of dense tensors, by plain loops: the dtypes and shapes that oneDNN has none for.
#pragma once

#include <array>
#include <cstdint>

namespace stax::kernels {

/// Sizes of one convolution; the last three of each list are spatial, leading ones are 1 where there are
/// fewer. Tensors are dense and, unless they are told to lie with their channels last, row-major: x [batch,
/// groups * in, ...], y [batch, groups * out, ...], weight [groups * out, in, window...] or, transposed,
/// [groups * in, out, window...].
struct ConvolutionProblem {
  int64_t batch = 1, groups = 1, in = 1, out = 1;  // channels a group
  std::array<int64_t, 3> in_sizes{1, 1, 1}, out_sizes{1, 1, 1}, window{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  int32_t spatial = 1;  // how many of the three are meant
  bool bias = false;
  bool transposed = false;
  /// The channels lie innermost: [batch, ..., channels].
  bool x_channels_last = false, y_channels_last = false;
  /// Each image is computed by itself, by one thread: in one way, however many images and threads there are.
  bool by_images = false;
  friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
};

}  // namespace stax::kernels

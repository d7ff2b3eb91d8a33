// Convolutions for a GPU: gathers that are generated, and a product of matrices.
#pragma once

#include "ops/loop_vocabulary.h"

namespace stax::ops {

/// Of conv1d, conv2d, conv3d: the windows of the input as columns of matrices, which the weights multiply.
/// Grouped convolutions and those of integers are sums over the window.
Lazies lower_convolution(Lowering& lowering, const LazyArgs& args);

/// Of conv_transpose1d, ...: the weights multiply the input, and each element of the result adds up those
/// products that fall on it.
Lazies lower_transposed_convolution(Lowering& lowering, const LazyArgs& args);

}  // namespace stax::ops

// The operators of Stax. Each family is one file of rows; adding an operator is adding a row to one of them.
#pragma once

#include "graph/op.h"

namespace stax::ops {

/// All rows, parsed once.
const graph::OpTable& table();

// The families.
std::vector<graph::Op>
pointwise_rows();  // arithmetic, exponentials, trigonometry, rounding, comparisons, bits
std::vector<graph::Op> activation_rows();     // relu, gelu, ..., softmax, dropout
std::vector<graph::Op> reduction_rows();      // sum, amax, var, argmax, cumsum, norm, ...
std::vector<graph::Op> normalization_rows();  // softmax, layer_norm, batch_norm, ...
std::vector<graph::Op> loss_rows();           // mse_loss, cross_entropy, ...
std::vector<graph::Op> view_rows();           // view, permute, slice, expand, ... and their composites
std::vector<graph::Op> shape_rows();          // cat, stack, pad, flip, roll, repeat, tril, ...
std::vector<graph::Op> indexing_rows();       // gather, scatter, index, embedding, ...
std::vector<graph::Op> sorting_rows();        // sort, topk, unique, nonzero, ...
std::vector<graph::Op> matmul_rows();         // mm, bmm, matmul, linear, einsum, attention
std::vector<graph::Op> convolution_rows();    // conv1d, ..., conv_transpose3d
std::vector<graph::Op> pooling_rows();        // max_pool2d, adaptive_avg_pool2d, im2col, ...
std::vector<graph::Op> interpolation_rows();  // interpolate, pixel_shuffle, ...
std::vector<graph::Op> factory_rows();        // full, arange, eye, random numbers

}  // namespace stax::ops

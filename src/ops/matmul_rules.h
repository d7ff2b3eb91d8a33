// What the rows of matrix products share.
#pragma once

#include <vector>

#include "graph/builder.h"
#include "lowering/lowering.h"

namespace stax::ops {

/// torch.matmul: vectors, matrices and batches of them, batches broadcast. With `wide`, products of the half
/// types come as float32, for a caller that goes on computing before it rounds.
graph::Var matrix_product(graph::Builder& b, const graph::Var& x, const graph::Var& y, bool wide = false);

/// While lowering for a GPU: the product of two batches of matrices, as a call of a library where one does
/// it. `out` is their dtype, or float32 for half types.
lowering::Lazy multiply_on_gpu(lowering::Lowering& lowering, const lowering::Lazy& x, const lowering::Lazy& y,
                               DType out);

/// `x` converted to `dtype`; x itself when it has it.
graph::Var convert_to(graph::Builder& b, const graph::Var& x, DType dtype);

/// UserError unless both have one dtype and it is not bool.
void check_product_dtypes(DType a, DType b, std::string_view op);

// Parts of the family matmul_rows().
std::vector<graph::Op> contraction_rows();  // einsum, tensordot, inner, bilinear
std::vector<graph::Op> attention_rows();    // scaled_dot_product_attention and its softmax

}  // namespace stax::ops

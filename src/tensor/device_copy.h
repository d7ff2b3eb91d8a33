// Copies within a GPU that are more than a copy of bytes: by kernels, which layers further down know.
#pragma once

#include "tensor/tensor_view.h"

namespace stax {

/// Converts elements and changes their places: both views lie on one GPU, have the same sizes and share no
/// element. False where it cannot be done there: then elements take the way through host memory. src/compiler
/// defines it.
bool copy_by_kernel(const TensorView& source, const TensorView& target);

}  // namespace stax

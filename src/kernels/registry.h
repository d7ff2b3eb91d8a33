// The functions that the table of src/kernels/registry.cpp lists, one declaration each.
#pragma once

#include "kernels/dynamic.h"
#include "kernels/external.h"

namespace stax::kernels {

using Arguments = std::span<const Argument<TensorView>>;
using Results = std::span<const TensorView>;

// matmul.cpp
void multiply_matrices(Arguments arguments, Results results);

// indexing.cpp
void scatter_combine(Arguments arguments, Results results);
void searchsorted(Arguments arguments, Results results);
void tril_indices(Arguments arguments, Results results);
void triu_indices(Arguments arguments, Results results);

}  // namespace stax::kernels

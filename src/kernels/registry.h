// The functions that the table of src/kernels/registry.cpp lists, one declaration each.
#pragma once

#include "kernels/dynamic.h"
#include "kernels/external.h"

namespace stax::kernels {

using Arguments = std::span<const Argument<TensorView>>;
using Results = std::span<const TensorView>;

using Prepared = std::unique_ptr<const PreparedExternal>;

// matmul.cpp
void multiply_matrices(Arguments arguments, Results results);
/// The same by the loops alone: each element is added up in the order of the inner dimension.
void multiply_matrices_in_order(Arguments arguments, Results results);
Prepared prepare_product(Arguments arguments, Results results);

// product_epilogue.cpp
void multiply_with_epilogue(Arguments arguments, Results results);

// indexing.cpp
void scatter_combine(Arguments arguments, Results results);
void searchsorted(Arguments arguments, Results results);
void tril_indices(Arguments arguments, Results results);
void triu_indices(Arguments arguments, Results results);

// sorting.cpp
void sort_stable(Arguments arguments, Results results);
void topk(Arguments arguments, Results results);
void kthvalue(Arguments arguments, Results results);
void median(Arguments arguments, Results results);
void median_dim(Arguments arguments, Results results);
void nanmedian(Arguments arguments, Results results);
void nanmedian_dim(Arguments arguments, Results results);
void mode(Arguments arguments, Results results);
void quantile(Arguments arguments, Results results);
void nanquantile(Arguments arguments, Results results);
void histc(Arguments arguments, Results results);
void combinations(Arguments arguments, Results results);

// singular_values.cpp
void singular_values(Arguments arguments, Results results);

// dynamic.cpp
void nonzero(Arguments arguments, const AllocateResult& allocate);
void nonzero_tuple(Arguments arguments, const AllocateResult& allocate);
void masked_select(Arguments arguments, const AllocateResult& allocate);
void unique(Arguments arguments, const AllocateResult& allocate);
void unique_consecutive(Arguments arguments, const AllocateResult& allocate);
void bincount(Arguments arguments, const AllocateResult& allocate);
void repeat_positions(Arguments arguments, const AllocateResult& allocate);
void repeat_interleave(Arguments arguments, const AllocateResult& allocate);
void one_hot(Arguments arguments, const AllocateResult& allocate);
void bind_value(Arguments arguments, const AllocateResult& allocate);

// convolution.cpp
void convolution(Arguments arguments, Results results);
void convolution_transposed(Arguments arguments, Results results);
/// Each image by itself, as a whole.
void convolution_by_images(Arguments arguments, Results results);
void convolution_transposed_by_images(Arguments arguments, Results results);
Prepared prepare_convolution(Arguments arguments, Results results);
Prepared prepare_convolution_transposed(Arguments arguments, Results results);

}  // namespace stax::kernels

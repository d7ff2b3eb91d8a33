// Functions behind dynamic operators, whose result sizes only the data determines (nonzero, unique, ...).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/argument.h"
#include "tensor/tensor_view.h"

namespace stax::kernels {

/// Allocates the next result, row-major, and returns where its elements are to be written. Called once a
/// result, in the order of the operator's returns.
using AllocateResult = std::function<TensorView(DType dtype, const std::vector<int64_t>& sizes)>;

/// Arguments come in the order of the operator's schema, defaults filled in, with any strides. Raises
/// UserError for values that the operator does not take.
using DynamicFunction = void (*)(std::span<const Argument<TensorView>> arguments,
                                 const AllocateResult& allocate);

/// The function of that name; an internal error when there is none.
DynamicFunction find_dynamic(std::string_view name);

}  // namespace stax::kernels

// Functions behind external nodes: one an operator, found by the operator's name ("sort.stable", "mm", ...).
#pragma once

#include <span>
#include <string_view>

#include "tensor/argument.h"
#include "tensor/tensor_view.h"

namespace stax::kernels {

/// Arguments come in the order of the operator's schema, defaults filled in, sizes as constants. Results are
/// allocated and have the dtypes, sizes and strides of the operator's meta rule; the function writes every
/// element.
using ExternalFunction = void (*)(std::span<const Argument<TensorView>> arguments,
                                  std::span<const TensorView> results);

/// The function of that name; an internal error when there is none.
ExternalFunction find_external(std::string_view name);

}  // namespace stax::kernels

// The arguments of a call at other sizes, for artifacts that serve many.
#pragma once

#include <vector>

#include "capture/captured.h"
#include "compiler/guards.h"
#include "stax/tensor.h"

namespace stax::cli {

/// Arguments like `arguments`, which `captured` was traced with, at up to `count` other sizes that its guards
/// let through: tiled where they are longer, cropped where they are shorter. Empty where no size is free, or
/// none of the sizes that are tried fits.
std::vector<std::vector<Tensor>> at_other_sizes(const capture::Captured& captured,
                                                const compiler::Guards& guards,
                                                const std::vector<Tensor>& arguments, size_t count);

}  // namespace stax::cli

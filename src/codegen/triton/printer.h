// Prints tile kernels as Triton source.
#pragma once

#include <string>

#include "codegen/tile/tile_kernel.h"

namespace stax::codegen {

/// One Python file: the kernel under its decorator, with what it imports. Run by itself it compiles, checks
/// and times the kernel.
std::string print_triton(const TileKernel& kernel);

}  // namespace stax::codegen

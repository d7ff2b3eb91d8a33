// The launch configurations that a kernel may take.
#pragma once

#include "codegen/tile/tile_kernel.h"

namespace stax::tuning {

/// The configuration that is taken where nothing is measured.
codegen::LaunchConfig default_config(const codegen::TileKernel& kernel);

}  // namespace stax::tuning

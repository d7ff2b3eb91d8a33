// The launch configurations that a kernel may take.
#pragma once

#include "codegen/tile/tile_kernel.h"

namespace stax::tuning {

/// For how many steps a staged loop with these blocks holds what it loads, as far as shared memory goes; 1
/// where loops are not staged.
int32_t stages_for(const codegen::TileKernel& kernel, const codegen::LaunchConfig& config);

/// Whether the kernel sorts its rows.
bool sorts(const codegen::TileKernel& kernel);

/// The configuration that is taken where nothing is measured.
codegen::LaunchConfig default_config(const codegen::TileKernel& kernel);

}  // namespace stax::tuning

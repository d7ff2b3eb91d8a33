// Which loops of a group form which axis of its kernel.
#pragma once

#include "codegen/kernel/flat.h"
#include "codegen/tile/tile_kernel.h"

namespace stax::codegen {

/// The axes of a kernel: iteration loops cut into at most `max_tiles` runs so that the most bytes are
/// accessed in order along the innermost loop of some run (fewer runs where that gains nothing), reduction
/// loops in one.
std::vector<TileAxis> choose_axes(const loops::Program& program, const schedule::Group& group,
                                  const FlatGroup& flat, int max_tiles);

/// The reduction's direction in memory.
ReductionHint reduction_hint(const schedule::Group& group, const FlatGroup& flat);

/// One block for the whole reduction, or a loop.
TileForm choose_form(const schedule::Group& group, const FlatGroup& flat, ReductionHint hint);

}  // namespace stax::codegen

// Which loops of a group form which axis of its kernel.
#pragma once

#include "codegen/kernel/flat.h"
#include "codegen/tile/tile_kernel.h"
#include "symbolic/sizes.h"

namespace stax::codegen {

/// The axes of a kernel: iteration loops cut into at most `max_tiles` runs so that the most bytes are
/// accessed in order along the innermost loop of some run (fewer runs where that gains nothing), reduction
/// loops in one.
std::vector<TileAxis> choose_axes(const loops::Program& program, const schedule::Group& group,
                                  const FlatGroup& flat, int max_tiles, Chooser& chooser);

/// The reduction's direction in memory.
ReductionHint reduction_hint(const schedule::Group& group, const FlatGroup& flat);

/// One block for the whole reduction, where its length has an upper bound that is low enough, or a loop.
TileForm choose_form(const schedule::Group& group, const FlatGroup& flat, ReductionHint hint,
                     Chooser& chooser);

}  // namespace stax::codegen

// Which loops of a group form which axis of its kernel.
#pragma once

#include "codegen/kernel/flat.h"
#include "codegen/tile/tile_kernel.h"
#include "symbolic/sizes.h"

namespace stax::codegen {

/// The axes of a kernel: iteration loops cut into at most `max_tiles` runs so that the most bytes are
/// accessed in order along the innermost loop of some run (fewer runs where that gains nothing), reduction
/// loops in one, with blocks of `row_block` unless that is 0.
std::vector<TileAxis> choose_axes(const loops::Program& program, const schedule::Group& group,
                                  const FlatGroup& flat, int max_tiles, int64_t row_block,
                                  const Sizes& sizes);

/// The reduction's direction in memory.
ReductionHint reduction_hint(const schedule::Group& group, const FlatGroup& flat);

/// The size of one block for the whole reduction, where its length has an upper bound that is low enough or
/// each launch asks for its length, if it may (`asks`); 0 for a loop.
int64_t row_block(const schedule::Group& group, ReductionHint hint, bool asks, Chooser& chooser);

/// The size of that block for what needs a whole row at once, whose length has an upper bound: for the
/// longest row, or, where each launch may ask, for rows as short as the example's.
int64_t whole_row_block(const schedule::Group& group, bool asks, Chooser& chooser);

/// That of row_block() where sums may depend on nothing but the row's length: for rows along memory whose
/// length is a number.
int64_t fixed_row_block(const schedule::Group& group, ReductionHint hint);

/// The peel that aligns the most accesses along the reduction; none where they start aligned (by the hint,
/// where sizes change) or where that cannot be had. Either is right.
std::optional<TilePeel> choose_peel(const loops::Program& program, const FlatGroup& flat,
                                    const TileAxis& reduction, Chooser& chooser);

/// Whether `index`, along the reduction's one loop, stays a whole number of vectors from the peel's start.
bool aligned_by(const TilePeel& peel, Expr index, const TileAxis& reduction);

}  // namespace stax::codegen

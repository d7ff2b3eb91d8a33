// Reads the text form of loop programs.
#pragma once

#include <string_view>

#include "loops/program.h"

namespace stax::loops {

/// Reads what Program::str() prints. Raises UserError with the line number of what it cannot read. The
/// program is not verified (see verify()).
///
///     buffer in0 float32 [64, 128] strides [128, 1] input
///     buffer out0 float32 [64] output
///     node op0 "sum" [i0 < 64] [r0 < 128]
///       v0 = load float32 in0[r0 + 128*i0]
///       v1 = reduce_sum float32 v0
///       store out0[i0] v1
///
/// May be left out: strides (row-major), the lists `inputs [...]` and `outputs [...]` (buffers of that role
/// in order), a node's quoted origin. Empty lines and what follows a # are skipped. Instructions are numbered
/// v0, v1, ...; a store takes a number too, which no text shows.
Program parse_program(std::string_view text);

}  // namespace stax::loops

// How the results of reductions and scans are merged.
#pragma once

#include "loops/body.h"

namespace stax::loops {

/// The value that folds to nothing under a reduction or scan: 0 for sums, -inf for maxima, ...
Constant identity_of(OpCode op, DType dtype);

/// The binary instruction that folds two partial results of a reduction or scan.
OpCode fold_of(OpCode op);

}  // namespace stax::loops

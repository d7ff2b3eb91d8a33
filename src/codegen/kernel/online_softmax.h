// The maximum of a row and the sum of its exponentials in one pass.
#pragma once

#include "codegen/kernel/flat.h"

namespace stax::codegen {

/// Where a body sums exp(x - m) for the maximum m of the same x (or for 0 where that is infinite), both
/// become one reduce_softmax, whose loop reads x once. Results stay what they were, up to the order of
/// additions.
void merge_softmax(FlatGroup& flat);

}  // namespace stax::codegen

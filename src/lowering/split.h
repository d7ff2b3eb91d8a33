// Reduction splitting: a long reduction with few results becomes count x chunk partial results, then a short
// reduction.
#pragma once

#include "device/target.h"
#include "symbolic/sizes.h"

namespace stax::lowering {

/// A reduction over `count` chunks of `chunk` values; count 1: not split. count * chunk may pass the length:
/// the last chunk is then shorter.
struct Split {
  Expr count = 1, chunk;
};

/// Chosen from the hints of `outputs` (number of results) and `length` (values of each), and right for every
/// value.
Split split_reduction(const Target& target, Expr outputs, Expr length, Chooser& chooser);

}  // namespace stax::lowering

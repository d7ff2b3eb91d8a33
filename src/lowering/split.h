// Splitting: a long reduction with few results becomes count x chunk partial results, then a short reduction.
// A long scan of few rows becomes the totals of its chunks, what comes before each chunk, and the scans of
// the chunks.
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

/// Of scans of `length` values each, one for each index of `outer` x `inner`; those along `inner` lie side by
/// side. Chunks have a fixed length, chosen by the hints; where sizes change there are as many of them as it
/// takes.
Split split_scan(const Target& target, Expr outer, Expr inner, Expr length, Chooser& chooser);

}  // namespace stax::lowering

// Sums of exponentials below a maximum, as softmax and its relatives have them.
#pragma once

#include <optional>

#include "loops/program.h"

namespace stax::loops {

/// exp(x - maximum), whatever value `maximum` is, or, where `guarded`, exp(x - 0) where that is infinite.
struct ShiftedExponential {
  ValueId x = -1, maximum = -1;
  bool guarded = false;
};

/// What value `v` is, if it is one.
std::optional<ShiftedExponential> shifted_exponential(const Body& body, ValueId v);

/// Where chunks of rows have their maxima m_k found, and the sums of exp(x - m) for the maximum m of each row
/// (or for 0 where that is infinite), both are found in one pass over x, by reduce_softmax: the sums s_k of
/// exp(x - m_k), of which the sum of exp(x - m) is the sum of s_k exp(m_k - m). Results stay what they were,
/// up to rounding.
void merge_split_softmax(Program& program);

}  // namespace stax::loops

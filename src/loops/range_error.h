// What check_index says of a value outside its range.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace stax::loops {

/// Probabilities that data gives are checked as indices are. Doubles from 0 on are ordered as their bits are:
/// those of [0, 1], and no others, have bits in [0, kProbabilityEnd). No dimension has that size.
inline constexpr int64_t kProbabilityEnd = std::bit_cast<int64_t>(1.0) + 1;

/// `op`: the operators whose value it is.
std::string range_error(const std::string& op, int64_t value, int64_t size);

}  // namespace stax::loops

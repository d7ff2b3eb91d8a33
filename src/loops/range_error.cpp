#include "loops/range_error.h"

#include <fmt/core.h>

namespace stax::loops {

std::string range_error(const std::string& op, int64_t value, int64_t size) {
  if (size == kProbabilityEnd)
    return fmt::format("[{}] expected probabilities in [0, 1], got {}; check the tensor passed to it", op,
                       std::bit_cast<double>(value));
  return fmt::format(
      "[{}] index {} is out of range for a dimension of size {}; check the indices passed to it", op, value,
      size);
}

}  // namespace stax::loops

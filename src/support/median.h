// The middle of measured values.
#pragma once

#include <algorithm>
#include <vector>

namespace stax {

/// The middle one of `values`, the mean of the two middle ones where their number is even; 0 for none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace stax

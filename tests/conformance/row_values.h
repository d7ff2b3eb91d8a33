// Calls of rows that recorded calls do not reach, most of them other names or forms of rows that they do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "capture/dispatch.h"

namespace stax {

struct RowValues {
  std::string row;  ///< full name
  capture::Arguments arguments;
  std::vector<std::vector<double>> expected;  ///< the elements of each result, by definition of the operator
  std::vector<std::pair<std::string, Argument<Tensor>>> named = {};
};

std::vector<RowValues> row_values();

}  // namespace stax

// What Python's functions do with their arguments before the operator.
#pragma once

#include <string_view>

#include "cli/verify/translate.h"

namespace stax::cli {

/// Whether it is a number, and not 0.
inline bool is_true(const Argument<Tensor>& value) {
  return value.is_number() && value.boolean();
}

/// The number, or `otherwise` where there is none.
inline int64_t integer_or(const Argument<Tensor>& value, int64_t otherwise) {
  return value.is_number() ? value.integer().value() : otherwise;
}

/// Turns a recorded call of the function `recorded` (`stripped` of its namespace) into one of an operator of
/// the table: its name, the order and kind of its arguments.
void adapt(Request& call, std::string_view recorded, std::string_view stripped);

}  // namespace stax::cli

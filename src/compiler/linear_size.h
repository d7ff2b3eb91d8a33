// Sizes of the form scale * symbol + offset: from such a one the symbol's value can be found.
#pragma once

#include <cstdint>
#include <optional>

#include "symbolic/expr.h"

namespace stax::compiler {

/// scale * symbol + offset with a positive scale; nothing for other expressions.
struct LinearSize {
  Symbol symbol;
  int64_t scale = 1, offset = 0;
};
std::optional<LinearSize> linear_size(Expr e);

}  // namespace stax::compiler

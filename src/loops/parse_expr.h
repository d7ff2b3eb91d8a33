// Reads the text form of integer expressions.
#pragma once

#include <string_view>

#include "symbolic/expr.h"

namespace stax::loops {

/// Reads what Expr::str() prints: sums, products, `//`, `%`, min(a, b), max(a, b), parentheses, symbols such
/// as s0, u0, i0, r0, t0, x0 and decimal integers. Raises UserError naming the position of what it cannot
/// read.
Expr parse_expr(std::string_view text);

}  // namespace stax::loops

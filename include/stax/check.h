// Conditions that a program states about its sizes.
#pragma once

#include <source_location>
#include <string_view>

#include "stax/api.h"
#include "stax/symint.h"

namespace stax {

/// States that `condition` holds; `words` say why. Outside tracing a condition that does not hold raises
/// UserError. While tracing, one that the example violates raises at once, and every other becomes a check
/// that the compiled program makes when it runs, before anything that depends on the sizes in it: no guard,
/// no recompilation. What only data determines (the length of nonzero(), item()) has no example: the check
/// tells the compiler what it may rely on. A conjunction `a & b` is a check of each part.
STAX_API void check(const SymBool& condition, std::string_view words = {},
                    const std::source_location& where = std::source_location::current());

STAX_API void check(const SymConjunction& conditions, std::string_view words = {},
                    const std::source_location& where = std::source_location::current());

}  // namespace stax

// What the sizes of a call are, for errors about them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "capture/captured.h"

namespace stax::compiler {

/// "s0 = 4096 is dimension 0 of tensor 1, declared as n within [2, inf); ...". `symbols`: values
/// by number. Empty where all sizes are numbers.
std::string size_text(const capture::Captured& captured, std::span<const int64_t> symbols);

}  // namespace stax::compiler

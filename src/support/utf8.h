// Checking text that comes from outside.
#pragma once

#include <string_view>

namespace stax {

/// True when the bytes are UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
/// U+10FFFF, no sequence cut off at the end.
bool is_valid_utf8(std::string_view bytes);

}  // namespace stax

// Text with places to be filled in: the tables of spellings are written so.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stax::codegen {

/// `pattern` with every $c replaced by value_of(c).
std::string fill_pattern(std::string_view pattern, const std::function<std::string(char)>& value_of);

}  // namespace stax::codegen

#include "codegen/pattern.h"

namespace stax::codegen {

std::string fill_pattern(std::string_view pattern, const std::function<std::string(char)>& value_of) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '$')
      out += value_of(pattern[++i]);
    else
      out += pattern[i];
  }
  return out;
}

}  // namespace stax::codegen

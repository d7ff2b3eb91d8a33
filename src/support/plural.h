// Counts in messages: "1 kernel", "2 kernels".
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace stax {

/// The number and its noun; `plural` where that is not the noun with an s.
template <class Number>
std::string counted(Number number, std::string_view noun, std::string_view plural = {}) {
  if (number == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", number, noun) : fmt::format("{} {}", number, plural);
}

}  // namespace stax

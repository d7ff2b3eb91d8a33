// Settings that environment variables hold. Values that make no sense are warned of, and count as unset.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace stax {

/// The positive integer in `variable`; more than `most` counts as `most`.
std::optional<int32_t> environment_count(const char* variable, int32_t most);

/// That of the `known` words which `variable` holds. Of any other it is warned once.
std::optional<std::string_view> environment_word(const char* variable,
                                                 std::span<const std::string_view> known);

/// Those of the `known` words that `variable` holds, separated by commas.
std::vector<std::string_view> environment_words(const char* variable,
                                                std::span<const std::string_view> known);

}  // namespace stax

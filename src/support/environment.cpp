#include "support/environment.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "support/log.h"

namespace stax {

std::optional<int32_t> environment_count(const char* variable, int32_t most) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view digits = value;
  int32_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool number = end == digits.data() + digits.size() && digits[0] != '-';
  if (number && error == std::errc::result_out_of_range) return most;
  if (number && error == std::errc() && count > 0) return std::min(count, most);
  log::warn(fmt::format("{} is '{}', which is no positive number; it is left aside", variable, value));
  return std::nullopt;
}

std::optional<std::string_view> environment_word(const char* variable,
                                                 std::span<const std::string_view> known) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  if (const auto at = std::ranges::find(known, value); at != known.end()) return *at;
  static std::mutex mutex;
  static std::set<std::pair<std::string, std::string>> warned;
  const std::lock_guard lock(mutex);
  if (warned.emplace(variable, value).second)
    log::warn(
        fmt::format("{} is '{}', which is left aside; expected {}", variable, value, fmt::join(known, ", ")));
  return std::nullopt;
}

std::vector<std::string_view> environment_words(const char* variable,
                                                std::span<const std::string_view> known) {
  std::vector<std::string_view> words;
  const char* value = std::getenv(variable);
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (word.empty()) continue;
    if (const auto at = std::ranges::find(known, word); at != known.end())
      words.push_back(*at);
    else
      log::warn(fmt::format("{} names '{}'; there are {}", variable, word, fmt::join(known, ", ")));
  }
  return words;
}

}  // namespace stax

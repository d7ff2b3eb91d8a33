#include "support/log.h"

#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace stax::log {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"recompiles", "guards", "fusion",
                                                    "kernels",    "graph",  "autotune"};

uint32_t channels_of_environment() {
  const char* list = std::getenv("STAX_LOG");
  if (list == nullptr) return 0;
  std::string unknown;
  const uint32_t channels = parse_channels(list, &unknown);
  if (!unknown.empty())
    warn(fmt::format("STAX_LOG names {}, which is no channel; there are {} and all", unknown,
                     fmt::join(kNames, ", ")));
  return channels;
}

void put(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

uint32_t parse_channels(std::string_view list, std::string* unknown) {
  uint32_t channels = 0;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    if (word.empty()) continue;
    bool known = word == "all";
    if (known) channels = (1u << kNames.size()) - 1;
    for (size_t k = 0; k < kNames.size(); ++k) {
      if (kNames[k] != word) continue;
      channels |= 1u << k;
      known = true;
    }
    if (!known && unknown) *unknown += fmt::format("{}'{}'", unknown->empty() ? "" : ", ", word);
  }
  return channels;
}

bool enabled(Channel channel) {
  static const uint32_t channels = channels_of_environment();
  return (channels >> static_cast<int>(channel) & 1) != 0;
}

void write(Channel channel, std::string_view text) {
  put(fmt::format("stax: [{}] {}\n", kNames[static_cast<size_t>(channel)], text));
}

void warn(std::string_view text) {
  put(fmt::format("stax: warning: {}\n", text));
}

}  // namespace stax::log

// Messages for people, on stderr. STAX_LOG=recompiles,kernels chooses the channels; "all" is every one.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stax::log {

enum class Channel : uint8_t { recompiles, guards, fusion, kernels, graph, autotune };

/// The channels that `list` names, as bits (1 << channel). Names that are none are left out and, where
/// `unknown` is given, collected there.
uint32_t parse_channels(std::string_view list, std::string* unknown = nullptr);

/// Whether STAX_LOG, read once, names the channel.
bool enabled(Channel channel);

/// Writes "stax: [channel] text" in one piece.
void write(Channel channel, std::string_view text);
/// Writes "stax: warning: text", whatever STAX_LOG says.
void warn(std::string_view text);

/// Formats and writes where the channel is enabled.
template <class... Args>
void print(Channel channel, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(channel)) write(channel, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace stax::log

// Content hashes for keys that outlive the process.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stax {

/// SHA-256 of `bytes`.
std::array<uint8_t, 32> sha256(std::string_view bytes);

/// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace stax

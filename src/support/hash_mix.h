// Hashes of tables in memory. Keys that outlive the process are content hashes: support/hash.h.
#pragma once

#include <cstdint>

namespace stax {

/// `hash` after one more `word`: a multiplicative hash whose product folds its upper half in, so that all
/// bits of both reach those that a table looks at.
constexpr uint64_t mix(uint64_t hash, uint64_t word) {
  const auto product = static_cast<unsigned __int128>(hash ^ word) * 0x9e3779b97f4a7c15u;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace stax

// What the environment asks of the fuzzers.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace stax::fuzz {

inline int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

/// Seed of the first program; the next one's is one higher.
inline int64_t first_seed() {
  return setting("STAX_FUZZ_SEED", 1);
}
inline int64_t program_count() {
  return setting("STAX_FUZZ_COUNT", 2000);
}

}  // namespace stax::fuzz

// Random number generators.
#pragma once

#include <cstdint>
#include <utility>

#include "stax/api.h"

namespace stax {

/// A counter-based generator (Philox-4x32-10): its state is a seed and how many counters were drawn. Eager
/// and compiled programs draw the same numbers. Safe to use from several threads.
class STAX_API Generator {
 public:
  explicit Generator(uint64_t seed = 67280421310721);
  Generator(const Generator& other);
  Generator& operator=(const Generator& other);
  ~Generator();

  /// Starts again from `seed`.
  void manual_seed(uint64_t seed);
  uint64_t seed() const;
  /// Counters drawn so far.
  uint64_t offset() const;
  void set_offset(uint64_t offset);
  /// Takes `count` counters: (seed, the first one).
  std::pair<uint64_t, uint64_t> draw(uint64_t count);

 private:
  struct State;
  State* state_;
};

/// The generator of the process, which random operators draw from.
STAX_API Generator& default_generator();
/// Starts the generator of the process again from `seed`.
STAX_API Generator& manual_seed(uint64_t seed);

}  // namespace stax

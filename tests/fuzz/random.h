// Random choices, the same for a seed on every machine (those of the standard library are not).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace stax::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /// 64 random bits (splitmix64).
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// An integer in [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  /// A number in [low, high).
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  /// True in one case of `n`.
  bool one_in(int64_t n) { return integer(1, n) == 1; }
  template <class T>
  const T& of(const std::vector<T>& items) {
    return items[static_cast<size_t>(integer(0, static_cast<int64_t>(items.size()) - 1))];
  }
  template <class T>
  T of(std::initializer_list<T> items) {
    return items.begin()[integer(0, static_cast<int64_t>(items.size()) - 1)];
  }

 private:
  uint64_t state_;
};

}  // namespace stax::fuzz

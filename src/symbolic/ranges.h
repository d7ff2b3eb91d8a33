// Ranges of symbols, and what they say about expressions: intervals, comparisons, rewrites.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "symbolic/expr.h"

namespace stax {

/// Closed interval of integers; a missing bound is infinite.
struct Interval {
  std::optional<int64_t> lower, upper;
  static Interval of(int64_t lower, int64_t upper) { return {lower, upper}; }
  static Interval at_least(int64_t lower) { return {lower, std::nullopt}; }
  std::string str() const;  // "[2, 4096]", "[0, inf)"
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// The values that are in both; may be empty (lower > upper).
Interval intersect(const Interval& a, const Interval& b);

/// What is known about symbols: an interval each and, for a loop variable, an extent (0 <= symbol < extent)
/// that may itself be symbolic. A symbol without a fact may be any integer.
class Ranges {
 public:
  void set(Symbol symbol, Interval interval);
  void set_extent(Symbol symbol, Expr extent);
  std::optional<Expr> extent(Symbol symbol) const;
  Interval interval(Symbol symbol) const;
  /// Interval of the values that `e` takes where it is defined (no divisor is zero). A bound that leaves
  /// int64 is given as infinite.
  Interval interval(Expr e) const;

 private:
  struct Fact {
    Interval interval;
    std::optional<Expr> extent;
  };
  std::unordered_map<Symbol, Fact> facts_;
};

enum class Relation : uint8_t { eq, ne, lt, le };

/// A comparison of two expressions.
struct Condition {
  Relation relation;
  Expr left, right;
  std::string str() const;  // "s0 <= 4"
  Condition negated() const;
  friend bool operator==(const Condition&, const Condition&) = default;
};
inline Condition eq(Expr a, Expr b) {
  return {Relation::eq, a, b};
}
inline Condition ne(Expr a, Expr b) {
  return {Relation::ne, a, b};
}
inline Condition lt(Expr a, Expr b) {
  return {Relation::lt, a, b};
}
inline Condition le(Expr a, Expr b) {
  return {Relation::le, a, b};
}
inline Condition gt(Expr a, Expr b) {
  return {Relation::lt, b, a};
}
inline Condition ge(Expr a, Expr b) {
  return {Relation::le, b, a};
}

bool holds(Relation relation, int64_t left, int64_t right);

/// True or false where the ranges decide it for every value, otherwise nothing.
std::optional<bool> decide(const Condition& condition, const Ranges& ranges);

/// Rewrites `e` into a cheaper expression that is equal for all values within `ranges` for which `e` is
/// defined: (32*i + j)//32 -> i and (32*i + j) % 32 -> j for 0 <= j < 32, nested // and %, min and max that
/// one side wins, the same with symbolic extents. Idempotent.
Expr simplify(Expr e, const Ranges& ranges);

}  // namespace stax

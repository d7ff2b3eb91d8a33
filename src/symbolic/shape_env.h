// Facts about symbols, and the one place where a decision about sizes is made.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolic/expr.h"

namespace stax {

/// Closed interval of integers; a missing bound is infinite.
struct Interval {
  std::optional<int64_t> lower, upper;
  static Interval of(int64_t lower, int64_t upper) { return {lower, upper}; }
  static Interval at_least(int64_t lower) { return {lower, std::nullopt}; }
  std::string str() const;  // "[2, 4096]", "[0, inf)"
};

/// What is known about symbols: an interval each and, for a loop variable, an extent (0 <= symbol < extent)
/// that may itself be symbolic.
class Ranges {
 public:
  void set(Symbol symbol, Interval interval);
  void set_extent(Symbol symbol, Expr extent);
  std::optional<Expr> extent(Symbol symbol) const;
  /// Interval of the values that `e` takes.
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

/// True or false where the ranges decide it for every value, otherwise nothing.
std::optional<bool> decide(const Condition& condition, const Ranges& ranges);

/// Rewrites `e` into a cheaper expression that is equal for all values within `ranges`: (32*i + j)//32 -> i
/// and (32*i + j) % 32 -> j for 0 <= j < 32, nested // and %, min and max that one side wins, the same with
/// symbolic extents. Idempotent.
Expr simplify(Expr e, const Ranges& ranges);

/// A decision that was made on a hint, with the place in the user's program that asked for it.
struct Guard {
  Condition condition;
  std::string where;  // file:line, or empty
};

/// Symbols with range and hint, and the guards recorded so far. Sizes of a fixed-shape program are constants,
/// so everything there is decided without a guard.
class ShapeEnv {
 public:
  Symbol new_symbol(SymbolKind kind, std::optional<int64_t> hint, Interval interval);
  std::optional<int64_t> hint(Symbol symbol) const;
  /// The value that the hints give `e`; nothing when a symbol without hint is in it.
  std::optional<int64_t> hint(Expr e) const;
  const Ranges& ranges() const { return ranges_; }
  Ranges& ranges() { return ranges_; }

  /// Decides for the compiler or the user's program: from the ranges where possible, otherwise by the hints,
  /// which records a guard. A condition that involves a symbol without hint and is undetermined raises
  /// UserError.
  bool decide(const Condition& condition, const std::string& where = {});
  /// Like decide(), but takes no hint: true only where the ranges and the recorded guards prove it.
  bool proves(const Condition& condition) const;
  const std::vector<Guard>& guards() const { return guards_; }

 private:
  struct Entry {
    Symbol symbol;
    std::optional<int64_t> hint;
  };
  std::vector<Entry> symbols_;
  Ranges ranges_;
  std::vector<Guard> guards_;
};

}  // namespace stax

// Comparisons with three answers.
#include "support/check.h"
#include "symbolic/node.h"
#include "symbolic/prover.h"

namespace stax {

using namespace symbolic;

namespace {

/// left == right is impossible: a common divisor of the coefficients does not divide the constant.
bool differs_by_divisibility(Expr difference) {
  int64_t g = content_without_offset(difference);
  return g > 1 && offset_of(difference) % g != 0;
}

std::optional<bool> decide_equal(Expr difference, const Prover& prover) {
  Interval interval = prover.ranges().interval(difference);
  if (interval.lower == 0 && interval.upper == 0) return true;
  if (differs_by_divisibility(difference)) return false;
  if (prover.positive(difference) || prover.positive(-difference)) return false;
  if (prover.nonnegative(difference) && prover.nonnegative(-difference)) return true;
  return std::nullopt;
}

}  // namespace

std::string Condition::str() const {
  constexpr const char* kNames[] = {"==", "!=", "<", "<="};
  return fmt::format("{} {} {}", left.str(), kNames[static_cast<size_t>(relation)], right.str());
}

Condition Condition::negated() const {
  switch (relation) {
    case Relation::eq:
      return ne(left, right);
    case Relation::ne:
      return eq(left, right);
    case Relation::lt:
      return le(right, left);
    case Relation::le:
      return lt(right, left);
  }
  return *this;
}

std::optional<bool> decide(const Condition& condition, const Ranges& ranges) {
  Prover prover(ranges);
  // right - left, after both have been rewritten: what stays in both cancels.
  Expr difference = simplify(condition.right - condition.left, ranges);
  if (difference.is_constant()) {
    int64_t d = difference.value();
    switch (condition.relation) {
      case Relation::eq:
        return d == 0;
      case Relation::ne:
        return d != 0;
      case Relation::lt:
        return d > 0;
      case Relation::le:
        return d >= 0;
    }
  }
  switch (condition.relation) {
    case Relation::eq:
      return decide_equal(difference, prover);
    case Relation::ne: {
      std::optional<bool> equal = decide_equal(difference, prover);
      return equal ? std::optional(!*equal) : std::nullopt;
    }
    case Relation::lt:
      if (prover.positive(difference)) return true;
      return prover.nonnegative(-difference) ? std::optional(false) : std::nullopt;
    case Relation::le:
      if (prover.nonnegative(difference)) return true;
      return prover.positive(-difference) ? std::optional(false) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace stax

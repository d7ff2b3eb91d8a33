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
  if (difference.is_constant()) return difference.is(0);
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

namespace {

/// From the intervals of both sides alone: nothing can overflow, and most questions end here.
std::optional<bool> decide_by_intervals(const Condition& c, const Ranges& ranges) {
  Interval a = ranges.interval(c.left), b = ranges.interval(c.right);
  auto below = [](const Interval& x, const Interval& y) { return x.upper && y.lower && *x.upper < *y.lower; };
  auto at_most = [](const Interval& x, const Interval& y) {
    return x.upper && y.lower && *x.upper <= *y.lower;
  };
  bool apart = below(a, b) || below(b, a), same = at_most(a, b) && at_most(b, a);
  auto answer = [](bool yes, bool no) {
    return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt;
  };
  switch (c.relation) {
    case Relation::eq:
      return answer(same, apart);
    case Relation::ne:
      return answer(apart, same);
    case Relation::lt:
      return answer(below(a, b), at_most(b, a));
    case Relation::le:
      return answer(at_most(a, b), below(b, a));
  }
  return std::nullopt;
}

/// `difference` is right - left.
std::optional<bool> decide_by_difference(Relation relation, Expr difference, const Prover& prover) {
  switch (relation) {
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

}  // namespace

std::optional<bool> decide(const Condition& condition, const Ranges& ranges) {
  if (std::optional<bool> answer = decide_by_intervals(condition, ranges)) return answer;
  try {
    // What is in both sides cancels before and after each is rewritten.
    Expr difference = simplify(condition.right - condition.left, ranges);
    return decide_by_difference(condition.relation, difference, Prover(ranges));
  } catch (const UserError&) {
    return std::nullopt;  // a constant left int64 on the way
  }
}

}  // namespace stax

// Proofs of inequalities from ranges. Internal to src/symbolic.
#pragma once

#include "symbolic/ranges.h"

namespace stax::symbolic {

/// Answers "does this hold for every value within the ranges"; false means "not proved".
///
/// Method: the expression is bounded below by one without loop variables (each is replaced by 0 or extent -
/// 1, whichever makes its term smaller; x//d and x % d by their bounds; min and max case by case). What is
/// left over size symbols is bounded by intervals or, for a polynomial, by writing each symbol as its lower
/// bound plus a non-negative rest and looking for negative coefficients. The values are those for which all
/// loops that have a variable in the expression run, so their extents are positive.
class Prover {
 public:
  explicit Prover(const Ranges& ranges) : ranges_(ranges) {}
  bool nonnegative(Expr e) const;
  bool positive(Expr e) const { return nonnegative(e - 1); }
  bool less_equal(Expr a, Expr b) const { return nonnegative(b - a); }
  /// 0 <= e < bound.
  bool within(Expr e, Expr bound) const;
  const Ranges& ranges() const { return ranges_; }

 private:
  const Ranges& ranges_;
};

}  // namespace stax::symbolic

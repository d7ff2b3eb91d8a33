#include "symbolic/prover.h"

#include <algorithm>

#include "support/check.h"
#include "symbolic/node.h"

namespace stax::symbolic {
namespace {

bool is_nonnegative(const Interval& interval) {
  return interval.lower && *interval.lower >= 0;
}
bool is_nonpositive(const Interval& interval) {
  return interval.upper && *interval.upper <= 0;
}

/// One attempt to bound an expression below, with the facts that its loop variables imply.
class LowerBound {
 public:
  LowerBound(const Ranges& ranges, Expr e) : ranges_(ranges) {
    for (Symbol symbol : e.symbols()) note_extent(symbol);
  }

  /// True where `e` is proved to be at least 0.
  bool nonnegative(Expr e, int depth) const {
    if (is_nonnegative(ranges_.interval(e))) return true;
    if (depth == 0) return false;
    if (auto cases = split_extremum(e)) {
      auto proved = [&](Expr c) { return nonnegative(c, depth - 1); };
      return cases->all ? std::ranges::all_of(cases->values, proved)
                        : std::ranges::any_of(cases->values, proved);
    }
    if (auto smaller = lower_symbol(e, true)) return nonnegative(*smaller, depth - 1);
    if (auto smaller = lower_quotient(e)) return nonnegative(*smaller, depth - 1);
    if (shifted_nonnegative(e)) return true;
    if (auto smaller = lower_symbol(e, false)) return nonnegative(*smaller, depth - 1);
    return false;
  }

 private:
  struct Cases {
    bool all;
    std::vector<Expr> values;
  };

  /// The loop of `symbol` runs, so that every factor of its extent is at least 1 if none is negative.
  void note_extent(Symbol symbol) {
    std::optional<Expr> extent = ranges_.extent(symbol);
    if (!extent || extent->is_constant()) return;
    std::span<const Expr> factors = factors_of(*extent);
    bool clear =
        coefficient_of(*extent) > 0 && std::ranges::all_of(factors, [&](Expr f) {
          return f.kind() == ExprKind::symbol && (factors.size() == 1 || is_nonnegative(ranges_.interval(f)));
        });
    if (!clear) return;
    for (Expr factor : factors) positive_.push_back(factor.symbol());
  }

  Interval interval_of(Symbol symbol) const {
    Interval known = ranges_.interval(symbol);
    bool positive = std::ranges::find(positive_, symbol) != positive_.end();
    return positive ? intersect(known, Interval::at_least(1)) : known;
  }

  /// The coefficient of `symbol` in e, where e is linear in it.
  std::optional<Expr> coefficient(Expr e, Symbol symbol) const {
    std::vector<Expr> parts;
    for (Expr term : terms_of(e)) {
      if (!term.contains(symbol)) continue;
      std::optional<Expr> c = divide_exactly(term, Expr(symbol));
      if (!c || c->contains(symbol)) return std::nullopt;
      parts.push_back(*c);
    }
    return sum(parts);
  }

  /// 1, -1 or 0 (unknown).
  int sign(Expr e) const {
    Interval interval = ranges_.interval(e);
    if (is_nonnegative(interval)) return 1;
    if (is_nonpositive(interval)) return -1;
    if (shifted_nonnegative(e)) return 1;
    return shifted_nonnegative(-e) ? -1 : 0;
  }

  /// c*v + x >= x + c*(lower bound of v, or upper bound where c <= 0), for a loop variable or a size with
  /// such a bound.
  std::optional<Expr> lower_symbol(Expr e, bool loop_variables) const {
    for (Symbol symbol : e.symbols()) {
      std::optional<Expr> extent = ranges_.extent(symbol);
      if (extent.has_value() != loop_variables) continue;
      std::optional<Expr> c = coefficient(e, symbol);
      if (!c) continue;
      int direction = sign(*c);
      if (direction == 0) continue;
      Interval bounds = interval_of(symbol);
      std::optional<Expr> bound;
      if (direction > 0 && bounds.lower) bound = Expr(*bounds.lower);
      if (direction < 0 && bounds.upper) bound = Expr(*bounds.upper);
      if (direction < 0 && extent && !extent->is_constant() && !extent->contains(symbol)) bound = *extent - 1;
      if (bound) return substitute(e, symbol, *bound);
    }
    return std::nullopt;
  }

  /// A lower bound of k*(x//d) or k*(x % d) for d > 0, without the division where that keeps more.
  std::optional<Expr> lower_factor(Expr k, Expr factor) const {
    Expr x = factor.args()[0], d = factor.args()[1];
    if (!divisor_positive(d)) return std::nullopt;
    int direction = sign(k);
    if (direction == 0) return std::nullopt;
    if (factor.kind() == ExprKind::mod) {
      // 0 <= x % d <= d - 1
      return direction > 0 ? Expr(0) : k * (d - 1);
    }
    if (std::optional<Expr> q = divide_exactly(k, d)) {
      // x - d + 1 <= d*(x//d) <= x
      return direction > 0 ? *q * (x - d + 1) : *q * x;
    }
    // x//d is monotone in x, and 0 <= x//d for 0 <= x
    Interval interval = ranges_.interval(factor);
    if (direction > 0 && interval.lower) return k * *interval.lower;
    std::optional<Expr> bound = extreme(x, direction < 0);
    if (!bound) return std::nullopt;
    return k * floor_div(*bound, d);
  }

  bool divisor_positive(Expr d) const {
    Interval interval = ranges_.interval(d);
    // A divisor is not zero where the expression is defined.
    return is_nonnegative(interval) || shifted_nonnegative(d - 1);
  }

  /// A bound of x without loop variables, different from x.
  std::optional<Expr> extreme(Expr x, bool upper) const {
    Expr e = upper ? -x : x, start = e;
    while (std::optional<Expr> next = lower_symbol(e, true)) e = *next;
    if (e == start) return std::nullopt;
    return upper ? -e : e;
  }

  std::optional<Expr> lower_quotient(Expr e) const {
    for (Expr term : terms_of(e)) {
      for (Expr factor : factors_of(term)) {
        if (factor.kind() != ExprKind::floor_div && factor.kind() != ExprKind::mod) continue;
        std::optional<Expr> k = divide_exactly(term, factor);
        if (!k) continue;
        if (std::optional<Expr> bound = lower_factor(*k, factor)) return e - term + *bound;
      }
    }
    return std::nullopt;
  }

  /// k*min(a, b) + x >= 0: for k >= 0 both k*a + x and k*b + x must be, for k <= 0 one of them suffices.
  std::optional<Cases> split_extremum(Expr e) const {
    for (Expr term : terms_of(e)) {
      for (Expr factor : factors_of(term)) {
        if (factor.kind() != ExprKind::min && factor.kind() != ExprKind::max) continue;
        std::optional<Expr> k = divide_exactly(term, factor);
        int direction = k ? sign(*k) : 0;
        if (direction == 0) continue;
        Cases cases{(factor.kind() == ExprKind::min) == (direction > 0), {}};
        for (Expr arg : factor.args()) cases.values.push_back(e - term + *k * arg);
        return cases;
      }
    }
    return std::nullopt;
  }

  /// With s = lower + s', s' >= 0 for every symbol, no coefficient is negative.
  bool shifted_nonnegative(Expr e) const {
    bool bounded = true;
    Expr shifted = substitute(e, [&](Symbol symbol) -> std::optional<Expr> {
      Interval bounds = interval_of(symbol);
      if (!bounds.lower) {
        bounded = false;
        return std::nullopt;
      }
      return Expr(symbol) + *bounds.lower;
    });
    if (!bounded || !e.node()->polynomial) return false;
    return std::ranges::all_of(terms_of(shifted), [](Expr term) {
      return coefficient_of(term) >= 0 && term.node()->polynomial && term.kind() != ExprKind::add &&
             std::ranges::none_of(factors_of(term), [](Expr f) { return f.kind() == ExprKind::add; });
    });
  }

  const Ranges& ranges_;
  std::vector<Symbol> positive_;
};

}  // namespace

bool Prover::nonnegative(Expr e) const {
  constexpr int kMaxSteps = 12;
  if (e.is_constant()) return e.value() >= 0;
  if (is_nonnegative(ranges_.interval(e))) return true;
  try {
    return LowerBound(ranges_, e).nonnegative(e, kMaxSteps);
  } catch (const UserError&) {
    return false;  // a bound left int64, so it proves nothing
  }
}

bool Prover::within(Expr e, Expr bound) const {
  if (bound.is_constant() && e.is_constant()) return e.value() >= 0 && e.value() < bound.value();
  Interval interval = ranges_.interval(e);
  if (bound.is_constant() && is_nonnegative(interval) && interval.upper && *interval.upper < bound.value())
    return true;
  return nonnegative(e) && positive(bound - e);
}

}  // namespace stax::symbolic

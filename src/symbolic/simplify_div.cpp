// Floor division: rewrites that hold within ranges.
#include <array>

#include "symbolic/node.h"
#include "symbolic/simplify.h"

namespace stax::symbolic {
namespace {

/// What a term and a divisor have in common, constant included; 1 for a divisor that is a sum.
Expr common_divisor(Expr term, Expr divisor) {
  if (divisor.kind() == ExprKind::add) return 1;
  return common_factors(term, divisor) * gcd_int(coefficient_of(term), coefficient_of(divisor));
}

std::optional<Split> split_by(Expr x, Expr divisor, Expr g, const Prover& prover) {
  if (g.is(1) || g.is(0)) return std::nullopt;
  std::optional<Expr> divided = divide_exactly(divisor, g);
  if (!divided) return std::nullopt;
  Multiples parts = split_multiples(x, g);
  if (parts.quotient.is(0) || !prover.within(parts.rest, g)) return std::nullopt;
  return Split{parts.quotient, parts.rest, g, *divided};
}

}  // namespace

std::optional<Split> split_by_common_factor(Expr x, Expr divisor, const Prover& prover) {
  ShortList<Expr> tried;
  auto attempt = [&](Expr g) -> std::optional<Split> {
    for (Expr t : tried.span()) {
      if (t == g) return std::nullopt;
    }
    tried.push_back(g);
    return split_by(x, divisor, g, prover);
  };
  std::span<const Expr> terms = terms_of(x);
  for (Expr term : terms) {
    if (term.is_constant()) continue;
    if (auto split = attempt(common_divisor(term, divisor))) return split;
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t j = i + 1; j < terms.size(); ++j) {
      if (terms[j].is_constant()) continue;
      Expr g = common_divisor(terms[i], divisor);
      if (auto split = attempt(common_divisor(terms[j], g))) return split;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> constant_quotient(Expr x, Expr d, const Prover& prover) {
  if (!d.is_constant() || d.value() <= 0) return std::nullopt;
  Interval interval = prover.ranges().interval(x);
  if (!interval.lower || !interval.upper) return std::nullopt;
  int64_t k = floor_div_int(*interval.lower, d.value());
  if (k != floor_div_int(*interval.upper, d.value())) return std::nullopt;
  return k;
}

Expr simplify_floor_div(Expr a, Expr b, const Prover& prover) {
  // x//d -> k for k*d <= x < (k + 1)*d
  if (std::optional<int64_t> k = constant_quotient(a, b, prover)) return *k;
  // x//d -> 0 for 0 <= x < d
  if (prover.within(a, b)) return 0;
  // x//d -> -1 for -d <= x < 0
  if (prover.within(a + b, b)) return -1;
  // (g*x + r)//(g*d) -> x//d for 0 <= r < g
  if (std::optional<Split> s = split_by_common_factor(a, b, prover))
    return floor_div(s->quotient, s->divided);
  // (x//n)//d -> x//(n*d) for d > 0
  if (a.kind() == ExprKind::floor_div && !b.is_constant() && prover.positive(b)) {
    return floor_div(a.args()[0], a.args()[1] * b);
  }
  if (a.kind() == ExprKind::mod) {
    // (x % (n*d))//d -> (x//d) % n for n > 0, d > 0
    std::optional<Expr> n = divide_exactly(a.args()[1], b);
    if (n && prover.positive(b) && prover.positive(*n)) return mod(floor_div(a.args()[0], b), *n);
  }
  return intern(ExprKind::floor_div, 0, std::array{a, b});
}

}  // namespace stax::symbolic

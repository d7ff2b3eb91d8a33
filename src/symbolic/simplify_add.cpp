// Sums: quotients and remainders that belong together.
#include "symbolic/node.h"
#include "symbolic/simplify.h"

namespace stax::symbolic {
namespace {

/// What replaces c*(x % d) + other, if anything.
std::optional<Expr> join(Expr c, Expr x, Expr d, Expr other, const Prover& prover) {
  Expr cd = c * d;
  // c*d*(x//d) + c*(x % d) -> c*x
  if (cd * floor_div(x, d) == other) return c * x;
  for (Expr factor : factors_of(other)) {
    // c*d*((x//d) % n) + c*(x % d) -> c*(x % (n*d)) for n > 0, d > 0
    if (factor.kind() != ExprKind::mod || factor.args()[0] != floor_div(x, d)) continue;
    Expr n = factor.args()[1];
    if (cd * factor == other && prover.positive(n) && prover.positive(d)) return c * mod(x, n * d);
  }
  return std::nullopt;
}

std::optional<Expr> join_any(std::span<const Expr> terms, const Prover& prover) {
  for (size_t i = 0; i < terms.size(); ++i) {
    for (Expr factor : factors_of(terms[i])) {
      if (factor.kind() != ExprKind::mod) continue;
      Expr c = *divide_exactly(terms[i], factor);
      for (size_t j = 0; j < terms.size(); ++j) {
        if (i == j) continue;
        std::optional<Expr> joined = join(c, factor.args()[0], factor.args()[1], terms[j], prover);
        if (joined) return sum(terms) - terms[i] - terms[j] + *joined;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Expr simplify_sum(std::span<const Expr> terms, const Prover& prover) {
  Expr result = sum(terms);
  while (result.kind() == ExprKind::add) {
    std::optional<Expr> joined = join_any(result.args(), prover);
    if (!joined) break;
    result = *joined;
  }
  return result;
}

}  // namespace stax::symbolic

// Modulo: rewrites that hold within ranges.
#include <array>

#include "symbolic/node.h"
#include "symbolic/simplify.h"

namespace stax::symbolic {

Expr simplify_mod(Expr a, Expr b, const Prover& prover) {
  // x % d -> x - k*d for k*d <= x < (k + 1)*d
  if (std::optional<int64_t> k = constant_quotient(a, b, prover)) return a - b * *k;
  // x % d -> x for 0 <= x < d
  if (prover.within(a, b)) return a;
  // x % d -> x + d for -d <= x < 0
  if (prover.within(a + b, b)) return a + b;
  // (g*x + r) % (g*d) -> g*(x % d) + r for 0 <= r < g
  if (std::optional<Split> s = split_by_common_factor(a, b, prover)) {
    return s->g * mod(s->quotient, s->divided) + s->rest;
  }
  return intern(ExprKind::mod, 0, std::array{a, b});
}

}  // namespace stax::symbolic

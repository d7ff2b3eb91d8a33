// Modulo: rewrites that hold for all values of the symbols.
#include <array>

#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace {

/// Common factors of dividend and divisor.
std::optional<Expr> cancel(Expr a, Expr b) {
  // (m*x) % (m*y) -> m * (x % y)
  if (Expr m = common_factors(a, b); !m.is(1)) return m * mod(*divide_exactly(a, m), *divide_exactly(b, m));
  int64_t g = gcd_int(content_without_offset(a), content_of(b));
  if (g <= 1) return std::nullopt;
  // (g*x + c) % (g*y) -> g * ((x + c//g) % y) + c % g where y > 0 or g divides c
  int64_t c = offset_of(a);
  if (c % g != 0 && !b.is_constant()) return std::nullopt;
  return scale(mod(*divide_exactly(without_offset(a), g) + floor_div_int(c, g), *divide_exactly(b, g)), g) +
         floor_mod_int(c, g);
}

/// The same value modulo the constant d > 0 with coefficients below d.
Expr reduce_coefficients(Expr a, int64_t d) {
  ShortList<Expr> terms;
  for (Expr term : terms_of(a)) {
    int64_t c = coefficient_of(term);
    if (term.is_constant()) {
      // (x + c) % d -> (x + c % d) % d
      terms.push_back(floor_mod_int(c, d));
    } else {
      // (c*x + y) % d -> ((c rem d)*x + y) % d, which keeps the sign of c
      terms.push_back(c > -d && c < d ? term : make_term(c % d, factors_of(term)));
    }
  }
  return sum(terms.span());
}

/// (k*(x % n) + y) % d -> (k*x + y) % d where d divides k*n.
Expr drop_inner_mods(Expr a, Expr b) {
  auto dropped = [&](Expr term, Expr inner) -> std::optional<Expr> {
    Expr k = *divide_exactly(term, inner), x = inner.args()[0], n = inner.args()[1];
    return unless_overflow([&] { return divide_exactly(k * n, b) ? a - term + k * x : a; });
  };
  for (Expr term : terms_of(a)) {
    for (Expr factor : factors_of(term)) {
      if (factor.kind() != ExprKind::mod) continue;
      if (Expr rest = dropped(term, factor).value_or(a); rest != a) return rest;
    }
  }
  return a;
}

}  // namespace

Expr mod(Expr a, Expr b) {
  if (b.is(0)) return intern(ExprKind::mod, 0, std::array{a, b});
  // x % 1 -> 0, 0 % x -> 0, x % x -> 0
  if (b.is(1) || a.is(0) || a == b) return 0;
  if (a.is_constant() && b.is_constant()) return floor_mod_int(a.value(), b.value());
  // x % (-y) -> -((-x) % y)
  if (coefficient_of(terms_of(b)[0]) < 0) return -mod(-a, -b);
  if (std::optional<Expr> cancelled = cancel(a, b)) return *cancelled;
  // (q*d + r) % d -> r % d
  Expr reduced = b.is_constant() ? reduce_coefficients(a, b.value()) : split_multiples(a, b).rest;
  reduced = drop_inner_mods(reduced, b);
  if (reduced != a) return mod(reduced, b);
  return intern(ExprKind::mod, 0, std::array{a, b});
}

}  // namespace stax

// Products: factors in canonical order behind a constant. A product of sums is multiplied out while it stays
// small.
#include <algorithm>

#include "support/check.h"
#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace {

constexpr size_t kMaxExpandedTerms = 32;

int64_t multiply_coefficients(Expr e, int64_t a, int64_t b) {
  int64_t result = 0;
  STAX_CHECK(!__builtin_mul_overflow(a, b, &result),
             "integer overflow: {} times {} does not fit in 64 bits; use smaller sizes", e.str(), b);
  return result;
}

/// (c*m) * (d*n) -> (c*d)*(m*n)
Expr multiply_terms(Expr a, Expr b) {
  std::span<const Expr> x = factors_of(a), y = factors_of(b);
  int64_t coefficient = multiply_coefficients(a, coefficient_of(a), coefficient_of(b));
  ShortList<Expr> factors;
  std::ranges::merge(x, y, std::back_inserter(*factors), [](Expr l, Expr r) { return compare(l, r) < 0; });
  return make_term(coefficient, factors.span());
}

/// (a + b) * (c + d) -> a*c + a*d + b*c + b*d
Expr expand(Expr a, Expr b) {
  ShortList<Expr> terms;
  for (Expr x : terms_of(a)) {
    for (Expr y : terms_of(b)) terms.push_back(multiply_terms(x, y));
  }
  return sum(terms.span());
}

/// A sum that stays a factor, without its common constant: 2*a - 4*b -> 2 * (a - 2*b). The first term is
/// positive.
std::pair<int64_t, Expr> primitive(Expr e) {
  if (e.kind() != ExprKind::add) return {1, e};
  int64_t content = content_of(e);
  if (coefficient_of(e.args()[0]) < 0) content = -content;
  if (content == 1) return {1, e};
  std::optional<Expr> quotient = divide_exactly(e, content);
  return quotient ? std::pair{content, *quotient} : std::pair{int64_t{1}, e};
}

}  // namespace

namespace symbolic {

Expr scale(Expr e, int64_t k) {
  if (k == 1) return e;
  if (k == 0) return 0;
  // k * (a + b) -> k*a + k*b
  if (e.kind() == ExprKind::add) {
    ShortList<Expr> terms;
    for (Expr term : e.args()) terms.push_back(scale(term, k));
    return intern(ExprKind::add, 0, terms.span());
  }
  int64_t coefficient = multiply_coefficients(e, coefficient_of(e), k);
  if (e.is_constant()) return coefficient;
  return make_term(coefficient, factors_of(e));
}

}  // namespace symbolic

Expr operator*(Expr a, Expr b) {
  if (a.is_constant()) return scale(b, a.value());
  if (b.is_constant()) return scale(a, b.value());
  if (a.kind() != ExprKind::add && b.kind() != ExprKind::add) return multiply_terms(a, b);
  if (terms_of(a).size() * terms_of(b).size() <= kMaxExpandedTerms) return expand(a, b);
  auto [c, x] = primitive(a);
  auto [d, y] = primitive(b);
  return scale(multiply_terms(x, y), checked_mul(c, d));
}

Expr product(std::span<const Expr> factors) {
  Expr result = 1;
  for (Expr factor : factors) result = result * factor;
  return result;
}

}  // namespace stax

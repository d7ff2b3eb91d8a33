// Sums: terms in canonical order, one for each product of factors, the constant last.
#include <algorithm>

#include "support/check.h"
#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace symbolic {

Expr make_term(int64_t coefficient, std::span<const Expr> factors) {
  if (factors.empty() || coefficient == 0) return coefficient;
  if (factors.size() == 1 && (coefficient == 1 || factors[0].kind() == ExprKind::add)) {
    return scale(factors[0], coefficient);
  }
  if (coefficient == 1) return intern(ExprKind::mul, 0, factors);
  ShortList<Expr> args;
  args.push_back(coefficient);
  for (Expr factor : factors) args.push_back(factor);
  return intern(ExprKind::mul, 0, args.span());
}

Expr without_offset(Expr e) {
  if (e.is_constant()) return 0;
  if (e.kind() != ExprKind::add || !e.args().back().is_constant()) return e;
  std::span<const Expr> rest = e.args().first(e.args().size() - 1);
  return rest.size() == 1 ? rest[0] : intern(ExprKind::add, 0, rest);
}

}  // namespace symbolic

namespace {

int64_t add_coefficients(Expr a, Expr b) {
  int64_t result = 0;
  STAX_CHECK(!__builtin_add_overflow(coefficient_of(a), coefficient_of(b), &result),
             "integer overflow: the sum of {} and {} does not fit in 64 bits; use smaller sizes", a.str(),
             b.str());
  return result;
}

Expr make_sum(std::span<const Expr> terms) {
  if (terms.empty()) return 0;
  return terms.size() == 1 ? terms[0] : intern(ExprKind::add, 0, terms);
}

/// Appends a term that is not before the last one: c*m + d*m -> (c + d)*m.
void append(std::pmr::vector<Expr>& terms, Expr term) {
  if (!terms.empty() && compare_factors(factors_of(terms.back()), factors_of(term)) == 0) {
    int64_t coefficient = add_coefficients(terms.back(), term);
    term = make_term(coefficient, factors_of(term));
    terms.pop_back();
  }
  if (!term.is(0)) terms.push_back(term);
}

}  // namespace

Expr operator+(Expr a, Expr b) {
  // x + 0 -> x
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  std::span<const Expr> x = terms_of(a), y = terms_of(b);
  ShortList<Expr> merged;
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    int order = compare_factors(factors_of(x[i]), factors_of(y[j]));
    if (order == 0) {
      int64_t coefficient = add_coefficients(x[i], y[j]);
      // c*m - c*m -> 0
      if (coefficient != 0) merged.push_back(make_term(coefficient, factors_of(x[i])));
      ++i, ++j;
    } else {
      merged.push_back(order < 0 ? x[i++] : y[j++]);
    }
  }
  for (; i < x.size(); ++i) merged.push_back(x[i]);
  for (; j < y.size(); ++j) merged.push_back(y[j]);
  return make_sum(merged.span());
}

Expr sum(std::span<const Expr> summands) {
  if (summands.size() == 1) return summands[0];
  if (summands.size() == 2) return summands[0] + summands[1];
  ShortList<Expr> all, merged;
  for (Expr e : summands) {
    for (Expr term : terms_of(e)) all.push_back(term);
  }
  std::ranges::stable_sort(*all,
                           [](Expr a, Expr b) { return compare_factors(factors_of(a), factors_of(b)) < 0; });
  for (Expr term : all.span()) append(*merged, term);
  return make_sum(merged.span());
}

Expr operator-(Expr a) {
  return scale(a, -1);
}

Expr operator-(Expr a, Expr b) {
  return a + scale(b, -1);
}

}  // namespace stax

// Exact integer arithmetic, and division of polynomials.
#include <algorithm>
#include <numeric>

#include "support/check.h"
#include "symbolic/node.h"

namespace stax::symbolic {

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result = 0;
  STAX_CHECK(!__builtin_mul_overflow(a, b, &result),
             "integer overflow: {} * {} does not fit in 64 bits; use smaller sizes", a, b);
  return result;
}

int64_t floor_div_int(int64_t a, int64_t b) {
  if (b == -1) return checked_mul(a, -1);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floor_mod_int(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t gcd_int(int64_t a, int64_t b) {
  auto magnitude = [](int64_t v) { return v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v); };
  uint64_t g = std::gcd(magnitude(a), magnitude(b));
  return g > static_cast<uint64_t>(INT64_MAX) ? 1 : static_cast<int64_t>(g);
}

namespace {

/// The multiset `a` without `b`; false where `b` is no part of `a`. Both are sorted.
bool remove_factors(std::span<const Expr> a, std::span<const Expr> b, std::pmr::vector<Expr>& rest) {
  size_t j = 0;
  for (Expr factor : a) {
    if (j < b.size() && factor == b[j]) {
      ++j;
    } else {
      rest.push_back(factor);
    }
  }
  return j == b.size();
}

std::optional<Expr> divide_term(Expr term, Expr divisor) {
  int64_t k = coefficient_of(divisor), c = coefficient_of(term);
  if (k == 0 || (k == -1 && c == INT64_MIN) || (k != -1 && c % k != 0)) return std::nullopt;
  ShortList<Expr> rest;
  if (!remove_factors(factors_of(term), factors_of(divisor), *rest)) return std::nullopt;
  return make_term(c / k, rest.span());
}

/// Long division by a sum; a few steps, since indices have few terms.
std::optional<Expr> divide_by_sum(Expr e, Expr divisor) {
  constexpr int kMaxSteps = 8;
  Expr quotient = 0, rest = e;
  Expr leading = divisor.args()[0];
  for (int step = 0; step < kMaxSteps; ++step) {
    if (rest.is(0)) return quotient;
    std::optional<Expr> q;
    for (Expr term : terms_of(rest)) {
      if ((q = divide_term(term, leading))) break;
    }
    if (!q) return std::nullopt;
    quotient += *q;
    rest -= *q * divisor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Expr> divide_exactly(Expr e, Expr divisor) {
  if (divisor.is(1)) return e;
  if (divisor.is(0)) return std::nullopt;
  if (e == divisor) return Expr(1);
  if (divisor.kind() == ExprKind::add) return divide_by_sum(e, divisor);
  ShortList<Expr> quotients;
  for (Expr term : terms_of(e)) {
    std::optional<Expr> q = divide_term(term, divisor);
    if (!q) return std::nullopt;
    quotients.push_back(*q);
  }
  return sum(quotients.span());
}

Multiples split_multiples(Expr e, Expr divisor) {
  if (divisor.kind() == ExprKind::add) {
    if (std::optional<Expr> q = divide_exactly(e, divisor)) return {*q, 0};
    return {0, e};
  }
  ShortList<Expr> quotients, rest;
  for (Expr term : terms_of(e)) {
    std::optional<Expr> q = divide_term(term, divisor);
    (q ? quotients : rest).push_back(q ? *q : term);
  }
  if (quotients.size() == 0) return {0, e};
  return {sum(quotients.span()), sum(rest.span())};
}

int64_t content_of(Expr e) {
  int64_t g = 0;
  for (Expr term : terms_of(e)) g = gcd_int(g, coefficient_of(term));
  return g;
}

int64_t content_without_offset(Expr e) {
  int64_t g = 0;
  for (Expr term : terms_of(e)) {
    if (!term.is_constant()) g = gcd_int(g, coefficient_of(term));
  }
  return g;
}

Expr common_factors(Expr a, Expr b) {
  std::span<const Expr> first = factors_of(terms_of(b)[0]);
  if (first.empty()) return 1;
  std::vector<Expr> common(first.begin(), first.end());
  auto keep_those_of = [&](Expr term) {
    std::span<const Expr> factors = factors_of(term);
    std::vector<Expr> kept;
    size_t at = 0;
    for (Expr factor : factors) {
      auto found = std::find(common.begin() + static_cast<ptrdiff_t>(at), common.end(), factor);
      if (found == common.end()) continue;
      kept.push_back(factor);
      at = static_cast<size_t>(found - common.begin()) + 1;
    }
    common = std::move(kept);
  };
  for (Expr term : terms_of(a)) {
    if (common.empty()) return 1;
    keep_those_of(term);
  }
  for (Expr term : terms_of(b)) {
    if (common.empty()) return 1;
    keep_those_of(term);
  }
  return make_term(1, common);
}

}  // namespace stax::symbolic

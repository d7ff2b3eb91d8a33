// Floor division: rewrites that hold for all values of the symbols.
#include <array>

#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace {

bool is_positive_constant(Expr e) {
  return e.is_constant() && e.value() > 0;
}

/// Common factors of dividend and divisor.
std::optional<Expr> cancel(Expr a, Expr b) {
  // (m*x)//(m*y) -> x//y
  if (Expr m = common_factors(a, b); !m.is(1)) return floor_div(*divide_exactly(a, m), *divide_exactly(b, m));
  int64_t g = gcd_int(content_without_offset(a), content_of(b));
  if (g <= 1) return std::nullopt;
  // (g*x + c)//(g*y) -> (x + c//g)//y where y > 0 or g divides c
  int64_t c = offset_of(a);
  if (c % g != 0 && !is_positive_constant(b)) return std::nullopt;
  return floor_div(*divide_exactly(without_offset(a), g) + floor_div_int(c, g), *divide_exactly(b, g));
}

/// (x//n + c)//d for a constant d > 0.
std::optional<Expr> flatten(Expr a, int64_t d) {
  Expr inner = terms_of(a)[0];
  if (inner.kind() != ExprKind::floor_div) return std::nullopt;
  Expr x = inner.args()[0], n = inner.args()[1];
  // (x//n)//d -> x//(n*d)
  if (a == inner) return unless_overflow([&] { return floor_div(x, n * d); });
  // (x//n + c)//d -> (x + c*n)//(n*d)
  if (terms_of(a).size() == 2 && is_positive_constant(n) && terms_of(a)[1].is_constant()) {
    return unless_overflow([&] { return floor_div(x + terms_of(a)[1] * n, n * d); });
  }
  return std::nullopt;
}

}  // namespace

Expr floor_div(Expr a, Expr b) {
  if (b.is(0)) return intern(ExprKind::floor_div, 0, std::array{a, b});
  // x//1 -> x, 0//x -> 0, x//x -> 1
  if (b.is(1) || a.is(0)) return a;
  if (a == b) return 1;
  if (a.is_constant() && b.is_constant()) return floor_div_int(a.value(), b.value());
  // x//(-y) -> (-x)//y
  if (coefficient_of(terms_of(b)[0]) < 0) return floor_div(-a, -b);
  if (std::optional<Expr> cancelled = cancel(a, b)) return *cancelled;
  // (q*d + r)//d -> q + r//d
  Multiples parts = split_multiples(a, b);
  if (!parts.quotient.is(0)) return parts.quotient + floor_div(parts.rest, b);
  if (is_positive_constant(b)) {
    int64_t d = b.value(), c = offset_of(a);
    // (x + c)//d -> c//d + (x + c % d)//d
    if (c < 0 || c >= d) return floor_div_int(c, d) + floor_div(without_offset(a) + floor_mod_int(c, d), b);
    if (std::optional<Expr> flat = flatten(a, d)) return *flat;
    // (x % (n*d))//d -> (x//d) % n
    if (a.kind() == ExprKind::mod && is_positive_constant(a.args()[1]) && a.args()[1].value() % d == 0) {
      return mod(floor_div(a.args()[0], b), a.args()[1].value() / d);
    }
  }
  return intern(ExprKind::floor_div, 0, std::array{a, b});
}

Expr ceil_div(Expr a, Expr b) {
  // ceil(a/d) -> (a + d - 1)//d for d > 0, -((-a)//b) otherwise
  if (is_positive_constant(b)) return floor_div(a + (b - 1), b);
  return -floor_div(-a, b);
}

}  // namespace stax

// Interval arithmetic.
#include "symbolic/ranges.h"

#include <algorithm>

#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace {

using Bound = std::optional<int64_t>;

Bound add_bounds(Bound a, Bound b) {
  int64_t result = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}

Interval add(const Interval& a, const Interval& b) {
  return {add_bounds(a.lower, b.lower), add_bounds(a.upper, b.upper)};
}

Interval negate(const Interval& a) {
  auto minus = [](Bound b) { return b && *b != INT64_MIN ? Bound(-*b) : std::nullopt; };
  return {minus(a.upper), minus(a.lower)};
}

/// A product of bounds; nullopt bounds are infinities whose sign is that of their side.
struct Extended {
  int infinity = 0;  // -1, 0, 1
  int64_t value = 0;
};

Extended lower_end(const Interval& a) {
  return a.lower ? Extended{0, *a.lower} : Extended{-1, 0};
}
Extended upper_end(const Interval& a) {
  return a.upper ? Extended{0, *a.upper} : Extended{1, 0};
}

int sign_of(const Extended& a) {
  return a.infinity ? a.infinity : (a.value > 0) - (a.value < 0);
}

bool before(const Extended& a, const Extended& b) {
  return a.infinity != b.infinity ? a.infinity < b.infinity : a.infinity == 0 && a.value < b.value;
}

Extended multiply_ends(const Extended& a, const Extended& b) {
  int sign = sign_of(a) * sign_of(b);
  int64_t result = 0;
  if (sign == 0) return {0, 0};
  if (a.infinity || b.infinity || __builtin_mul_overflow(a.value, b.value, &result)) return {sign, 0};
  return {0, result};
}

/// An end that overflowed to the wrong side says nothing: the bound is infinite on its own side.
Interval from_ends(const Extended& lower, const Extended& upper) {
  Interval result;
  if (lower.infinity == 0) result.lower = lower.value;
  if (upper.infinity == 0) result.upper = upper.value;
  return result;
}

Interval multiply(const Interval& a, const Interval& b) {
  Extended corners[4] = {multiply_ends(lower_end(a), lower_end(b)), multiply_ends(lower_end(a), upper_end(b)),
                         multiply_ends(upper_end(a), lower_end(b)),
                         multiply_ends(upper_end(a), upper_end(b))};
  auto [least, most] = std::minmax_element(corners, corners + 4, before);
  return from_ends(*least, *most);
}

/// A divisor is not zero where an expression is defined. Says nothing where no value is left.
Interval without_zero(Interval b) {
  if (b.lower == 0) b.lower = 1;
  if (b.upper == 0) b.upper = -1;
  bool empty = b.lower && b.upper && *b.lower > *b.upper;
  return empty ? Interval{} : b;
}

Interval divide(const Interval& a, Interval b) {
  b = without_zero(b);
  if (b.upper && *b.upper < 0) return divide(negate(a), negate(b));
  if (!b.lower || *b.lower < 1) return {};
  Interval result;
  if (a.lower) {
    // A negative dividend is smallest over the smallest divisor, any other over the largest.
    result.lower = *a.lower < 0 ? floor_div_int(*a.lower, *b.lower)
                   : b.upper    ? floor_div_int(*a.lower, *b.upper)
                                : 0;
  }
  if (a.upper) {
    result.upper = *a.upper >= 0 ? floor_div_int(*a.upper, *b.lower)
                   : b.upper     ? floor_div_int(*a.upper, *b.upper)
                                 : -1;
  }
  return result;
}

Interval modulo(const Interval& a, Interval b) {
  b = without_zero(b);
  if (b.upper && *b.upper < 0) return negate(modulo(negate(a), negate(b)));
  if (!b.lower || *b.lower < 1) return {};
  Interval result = Interval::at_least(0);
  if (b.upper) result.upper = *b.upper - 1;
  if (!a.lower) return result;
  // x % d == x for 0 <= x < d
  if (*a.lower >= 0 && a.upper && *a.upper < *b.lower) return a;
  // x % d == x - d*(x//d), which is monotone within one block
  if (a.upper && b.lower == b.upper &&
      floor_div_int(*a.lower, *b.lower) == floor_div_int(*a.upper, *b.lower)) {
    return Interval::of(floor_mod_int(*a.lower, *b.lower), floor_mod_int(*a.upper, *b.lower));
  }
  if (*a.lower >= 0 && a.upper && (!result.upper || *a.upper < *result.upper)) result.upper = a.upper;
  return result;
}

Interval smaller(const Interval& a, const Interval& b) {
  Interval result;
  if (a.lower && b.lower) result.lower = std::min(*a.lower, *b.lower);
  if (a.upper || b.upper) result.upper = std::min(a.upper.value_or(INT64_MAX), b.upper.value_or(INT64_MAX));
  return result;
}

Interval larger(const Interval& a, const Interval& b) {
  Interval result;
  if (a.lower || b.lower) result.lower = std::max(a.lower.value_or(INT64_MIN), b.lower.value_or(INT64_MIN));
  if (a.upper && b.upper) result.upper = std::max(*a.upper, *b.upper);
  return result;
}

}  // namespace

std::string Interval::str() const {
  std::string from = lower ? "[" + std::to_string(*lower) : "(-inf";
  return from + ", " + (upper ? std::to_string(*upper) + "]" : "inf)");
}

Interval intersect(const Interval& a, const Interval& b) {
  Interval result;
  if (a.lower || b.lower) result.lower = std::max(a.lower.value_or(INT64_MIN), b.lower.value_or(INT64_MIN));
  if (a.upper || b.upper) result.upper = std::min(a.upper.value_or(INT64_MAX), b.upper.value_or(INT64_MAX));
  return result;
}

void Ranges::set(Symbol symbol, Interval interval) {
  facts_[symbol].interval = interval;
}

void Ranges::set_extent(Symbol symbol, Expr extent) {
  facts_[symbol].extent = extent;
}

std::optional<Expr> Ranges::extent(Symbol symbol) const {
  auto found = facts_.find(symbol);
  return found == facts_.end() ? std::nullopt : found->second.extent;
}

Interval Ranges::interval(Symbol symbol) const {
  auto found = facts_.find(symbol);
  if (found == facts_.end()) return {};
  const Fact& fact = found->second;
  if (!fact.extent) return fact.interval;
  Interval loop = Interval::at_least(0);
  loop.upper = add_bounds(interval(*fact.extent).upper, -1);
  return intersect(fact.interval, loop);
}

Interval Ranges::interval(Expr e) const {
  std::span<const Expr> args = e.args();
  switch (e.kind()) {
    case ExprKind::constant:
      return Interval::of(e.value(), e.value());
    case ExprKind::symbol:
      return interval(e.symbol());
    case ExprKind::floor_div:
      return divide(interval(args[0]), interval(args[1]));
    case ExprKind::mod:
      return modulo(interval(args[0]), interval(args[1]));
    case ExprKind::add:
    case ExprKind::mul:
    case ExprKind::min:
    case ExprKind::max:
      break;
  }
  auto combine = e.kind() == ExprKind::add   ? add
                 : e.kind() == ExprKind::mul ? multiply
                 : e.kind() == ExprKind::min ? smaller
                                             : larger;
  Interval result = interval(args[0]);
  for (Expr arg : args.subspan(1)) result = combine(result, interval(arg));
  return result;
}

}  // namespace stax

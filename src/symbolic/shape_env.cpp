#include "symbolic/shape_env.h"

#include <algorithm>

#include "support/check.h"
#include "symbolic/node.h"
#include "symbolic/prover.h"

namespace stax {

using namespace symbolic;

Symbol ShapeEnv::new_symbol(SymbolKind kind, std::optional<int64_t> hint, Interval interval) {
  Symbol symbol{kind, next_number_[static_cast<int>(kind)]++};
  hints_.emplace(symbol, hint);
  ranges_.set(symbol, interval);
  return symbol;
}

std::optional<int64_t> ShapeEnv::hint(Symbol symbol) const {
  auto found = hints_.find(symbol);
  return found == hints_.end() ? std::nullopt : found->second;
}

std::optional<int64_t> ShapeEnv::hint(Expr e) const {
  for (Symbol symbol : e.symbols()) {
    if (!hint(symbol)) return std::nullopt;
  }
  return evaluate(e, [&](Symbol symbol) { return *hint(symbol); });
}

Expr ShapeEnv::replace_equals(Expr e) const {
  if (equal_to_.empty()) return e;
  return substitute(e, [&](Symbol symbol) -> std::optional<Expr> {
    auto found = equal_to_.find(symbol);
    if (found == equal_to_.end()) return std::nullopt;
    return found->second;
  });
}

std::optional<bool> ShapeEnv::decide_without_hint(const Condition& condition) const {
  if (std::optional<bool> answer = stax::decide(condition, ranges_)) return answer;
  if (guards_.empty()) return std::nullopt;
  return decide_with_guards(condition);
}

namespace {

/// right - left, less 1 for <: the guard says that it is at least 0.
Expr slack_of(const Condition& c) {
  return c.relation == Relation::lt ? c.right - c.left - 1 : c.right - c.left;
}

/// e >= 0 follows from one guard: e - slack >= 0.
bool follows(Expr e, const std::vector<Condition>& facts, const Prover& prover) {
  return std::ranges::any_of(facts, [&](const Condition& fact) {
    if (fact.relation == Relation::ne) return false;
    Expr slack = slack_of(fact);
    return prover.nonnegative(e - slack) || (fact.relation == Relation::eq && prover.nonnegative(e + slack));
  });
}

bool differ_by_guard(Expr difference, const std::vector<Condition>& facts) {
  return std::ranges::any_of(facts, [&](const Condition& fact) {
    Expr other = fact.right - fact.left;
    return fact.relation == Relation::ne && (other == difference || other == -difference);
  });
}

}  // namespace

std::optional<bool> ShapeEnv::decide_with_guards(const Condition& condition) const {
  Ranges ranges = ranges_;
  for (const auto& [symbol, bounds] : bounds_)
    ranges.set(symbol, intersect(ranges_.interval(symbol), bounds));
  Condition asked{condition.relation, replace_equals(condition.left), replace_equals(condition.right)};
  if (std::optional<bool> answer = stax::decide(asked, ranges)) return answer;

  std::vector<Condition> facts;
  for (const Guard& guard : guards_) {
    const Condition& c = guard.condition;
    facts.push_back(
        {c.relation, simplify(replace_equals(c.left), ranges), simplify(replace_equals(c.right), ranges)});
  }
  Prover prover(ranges);
  Expr difference = simplify(asked.right, ranges) - simplify(asked.left, ranges);
  auto at_least = [&](int64_t bound) { return follows(difference - bound, facts, prover); };
  auto at_most = [&](int64_t bound) { return follows(bound - difference, facts, prover); };
  auto equal = [&]() -> std::optional<bool> {
    if (differ_by_guard(difference, facts) || at_least(1) || at_most(-1)) return false;
    return at_least(0) && at_most(0) ? std::optional(true) : std::nullopt;
  };
  switch (condition.relation) {
    case Relation::eq:
      return equal();
    case Relation::ne: {
      std::optional<bool> answer = equal();
      return answer ? std::optional(!*answer) : std::nullopt;
    }
    case Relation::lt:
      return at_least(1) ? std::optional(true) : at_most(0) ? std::optional(false) : std::nullopt;
    case Relation::le:
      return at_least(0) ? std::optional(true) : at_most(-1) ? std::optional(false) : std::nullopt;
  }
  return std::nullopt;
}

bool ShapeEnv::proves(const Condition& condition) const {
  return decide_without_hint(condition).value_or(false);
}

bool ShapeEnv::decide(const Condition& condition, const std::string& where) {
  if (std::optional<bool> answer = decide_without_hint(condition)) return *answer;
  std::optional<int64_t> left = hint(condition.left), right = hint(condition.right);
  STAX_CHECK(left && right,
             "{}{} is undetermined: it depends on a size that only data determines, and the known ranges do "
             "not decide "
             "it; state what holds with check(condition, message)",
             where.empty() ? "" : where + ": ", condition.str());
  bool answer = false;
  switch (condition.relation) {
    case Relation::eq:
      answer = *left == *right;
      break;
    case Relation::ne:
      answer = *left != *right;
      break;
    case Relation::lt:
      answer = *left < *right;
      break;
    case Relation::le:
      answer = *left <= *right;
      break;
  }
  record(answer ? condition : condition.negated(), where);
  return answer;
}

namespace {

/// For c*s + k with a symbol s and constants c, k.
struct LinearSymbol {
  Symbol symbol;
  int64_t coefficient, offset;
};

std::optional<LinearSymbol> linear_symbol(Expr e) {
  std::span<const Expr> terms = terms_of(e);
  if (terms.size() > 2 || (terms.size() == 2 && !terms[1].is_constant())) return std::nullopt;
  std::span<const Expr> factors = factors_of(terms[0]);
  if (factors.size() != 1 || factors[0].kind() != ExprKind::symbol) return std::nullopt;
  return LinearSymbol{factors[0].symbol(), coefficient_of(terms[0]), offset_of(e)};
}

/// The symbol that an equation left - right == 0 defines by the others: the last one with coefficient 1 or
/// -1.
std::optional<std::pair<Symbol, Expr>> solve(Expr difference) {
  std::optional<std::pair<Symbol, Expr>> solution;
  for (Expr term : terms_of(difference)) {
    std::span<const Expr> factors = factors_of(term);
    int64_t c = coefficient_of(term);
    if (factors.size() != 1 || factors[0].kind() != ExprKind::symbol || (c != 1 && c != -1)) continue;
    Expr rest = difference - term;
    Symbol symbol = factors[0].symbol();
    if (!rest.contains(symbol)) solution = {symbol, c == 1 ? -rest : rest};
  }
  return solution;
}

/// The values of e >= 0 for a linear e.
Interval bounds_of(const LinearSymbol& e) {
  // c*s + k >= 0: s >= ceil(-k/c) for c > 0, s <= floor(k/-c) for c < 0
  if (e.coefficient > 0) return Interval::at_least(-floor_div_int(e.offset, e.coefficient));
  return {std::nullopt, floor_div_int(e.offset, checked_mul(e.coefficient, -1))};
}

}  // namespace

void ShapeEnv::record(const Condition& condition, const std::string& where) {
  guards_.push_back({condition, where});
  Expr left = replace_equals(condition.left), right = replace_equals(condition.right);
  if (condition.relation == Relation::eq) {
    if (auto solution = solve(left - right)) {
      auto [symbol, value] = *solution;
      for (auto& [other, known] : equal_to_) known = substitute(known, symbol, value);
      // What was known about the symbol holds for its equal too.
      Interval known = intersect(ranges_.interval(symbol), bounds_[symbol]);
      equal_to_.emplace(symbol, value);
      if (value.kind() == ExprKind::symbol)
        bounds_[value.symbol()] = intersect(bounds_[value.symbol()], known);
    }
    return;
  }
  if (condition.relation == Relation::ne) {
    std::optional<LinearSymbol> linear = linear_symbol(left - right);
    if (!linear || linear->offset % linear->coefficient != 0) return;
    int64_t excluded = -(linear->offset / linear->coefficient);
    Interval known = intersect(ranges_.interval(linear->symbol), bounds_[linear->symbol]);
    if (known.lower == excluded) known.lower = excluded + 1;
    if (known.upper == excluded) known.upper = excluded - 1;
    bounds_[linear->symbol] = known;
    return;
  }
  if (std::optional<LinearSymbol> linear = linear_symbol(slack_of({condition.relation, left, right}))) {
    bounds_[linear->symbol] = intersect(bounds_[linear->symbol], bounds_of(*linear));
  }
}

}  // namespace stax

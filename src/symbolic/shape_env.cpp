#include "symbolic/shape_env.h"

#include <algorithm>

#include "support/check.h"
#include "support/hash_mix.h"
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

Interval ShapeEnv::interval(Symbol symbol) const {
  auto found = bounds_.find(symbol);
  Interval declared = ranges_.interval(symbol);
  return found == bounds_.end() ? declared : intersect(declared, found->second);
}

void ShapeEnv::bound(Symbol symbol, const Interval& interval) {
  auto [at, fresh] = bounds_.emplace(symbol, interval);
  if (!fresh) at->second = intersect(at->second, interval);
}

std::optional<bool> ShapeEnv::decide_without_hint(const Condition& condition) const {
  std::optional<bool> answer = stax::decide(condition, ranges_);
  if (!answer && (!guards_.empty() || learned_)) {
    try {
      answer = decide_with_guards(condition);
    } catch (const UserError&) {
      return std::nullopt;  // a constant left int64 on the way
    }
  }
  if (answer) record(condition, *answer);
  return answer;
}

void ShapeEnv::record(const Condition& condition, bool answer) const {
  if (!records_ || (condition.left.is_constant() && condition.right.is_constant())) return;
  const uint64_t relation = static_cast<uint64_t>(condition.relation) * 2 + (answer ? 1 : 0);
  const uint64_t hash = mix(mix(mix(0, condition.left.hash()), condition.right.hash()), relation);
  if (recorded_.insert(hash).second) decisions_.push_back({condition, answer});
}

namespace {

/// right - left, less 1 for <: the condition says that it is at least 0.
Expr slack_of(const Condition& c) {
  return c.relation == Relation::lt ? c.right - c.left - 1 : c.right - c.left;
}

/// e >= 0 follows from one fact: e - slack >= 0.
bool follows(Expr e, const std::vector<Condition>& facts, const Prover& prover) {
  return std::ranges::any_of(facts, [&](const Condition& fact) {
    if (fact.relation == Relation::ne) return false;
    Expr slack = slack_of(fact);
    if ((slack.node()->symbols & e.node()->symbols) == 0) return false;
    return prover.nonnegative(e - slack) || (fact.relation == Relation::eq && prover.nonnegative(e + slack));
  });
}

bool differ_by_fact(Expr difference, const std::vector<Condition>& facts) {
  return std::ranges::any_of(facts, [&](const Condition& fact) {
    Expr other = fact.right - fact.left;
    return fact.relation == Relation::ne && (other == difference || other == -difference);
  });
}

}  // namespace

std::optional<bool> ShapeEnv::decide_with_guards(const Condition& condition) const {
  Ranges ranges = ranges_;
  for (const auto& [symbol, bounds] : bounds_) ranges.set(symbol, interval(symbol));
  Condition asked{condition.relation, replace_equals(condition.left), replace_equals(condition.right)};
  if (std::optional<bool> answer = stax::decide(asked, ranges)) return answer;
  if (facts_.empty()) return std::nullopt;

  Prover prover(ranges);
  Expr difference = simplify(asked.right - asked.left, ranges);
  auto at_least = [&](int64_t bound) { return follows(difference - bound, facts_, prover); };
  auto at_most = [&](int64_t bound) { return follows(bound - difference, facts_, prover); };
  auto equal = [&]() -> std::optional<bool> {
    if (differ_by_fact(difference, facts_) || at_least(1) || at_most(-1)) return false;
    return at_least(0) && at_most(0) ? std::optional(true) : std::nullopt;
  };
  auto answer = [](bool yes, auto no) {
    return yes ? std::optional(true) : no() ? std::optional(false) : std::nullopt;
  };
  switch (condition.relation) {
    case Relation::eq:
      return equal();
    case Relation::ne: {
      std::optional<bool> same = equal();
      return same ? std::optional(!*same) : std::nullopt;
    }
    case Relation::lt:
      return answer(at_least(1), [&] { return at_most(0); });
    case Relation::le:
      return answer(at_least(0), [&] { return at_most(-1); });
  }
  return std::nullopt;
}

bool ShapeEnv::proves(const Condition& condition) const {
  return decide_without_hint(condition).value_or(false);
}

bool holds(Relation relation, int64_t left, int64_t right) {
  switch (relation) {
    case Relation::eq:
      return left == right;
    case Relation::ne:
      return left != right;
    case Relation::lt:
      return left < right;
    case Relation::le:
      return left <= right;
  }
  return false;
}

std::string Guard::str() const {
  const std::string place = where.user_place();
  return place.empty() ? condition.str() : condition.str() + ", at " + place;
}

std::optional<bool> ShapeEnv::decided(const Condition& condition) {
  if (std::optional<bool> answer = decide_without_hint(condition)) return answer;
  std::optional<int64_t> left = hint(condition.left), right = hint(condition.right);
  if (!left || !right) return std::nullopt;
  bool answer = holds(condition.relation, *left, *right);
  record(condition, answer);
  guards_.push_back({answer ? condition : condition.negated(), CallStack::take()});
  learn(guards_.back().condition);
  return answer;
}

bool ShapeEnv::decide(const Condition& condition) {
  if (std::optional<bool> answer = decided(condition)) return *answer;
  throw UndeterminedError(undetermined_text(condition));
}

bool ShapeEnv::expect(const Condition& condition) {
  if (std::optional<bool> answer = decided(condition)) return *answer;
  assertions_.push_back(
      {condition, asker_.empty() ? "" : asker_ + " needs it", {}, CallStack::take(), about(condition)});
  assume(condition);
  return true;
}

std::string ShapeEnv::about(const Condition& condition) const {
  std::string text;
  for (const Expr e : {condition.left, condition.right}) {
    for (const Symbol symbol : e.symbols()) {
      const auto found = descriptions_.find(symbol);
      if (found == descriptions_.end() || text.find(found->second) != std::string::npos) continue;
      text += (text.empty() ? "" : "; ") + symbol.str() + " is " + found->second;
    }
  }
  return text;
}

void ShapeEnv::assume(const Condition& condition) {
  record(condition, true);
  learned_ = true;
  learn(condition);
}

void ShapeEnv::check(const Condition& condition, std::string words, std::string where) {
  const std::optional<bool> known = decide_without_hint(condition);
  if (known == true) return;
  Assertion assertion{condition, std::move(words), std::move(where), {}, about(condition)};
  const std::optional<int64_t> left = hint(condition.left), right = hint(condition.right);
  if (left && right && !holds(condition.relation, *left, *right)) {
    throw_failure(assertion, [&](Symbol s) { return *hint(s); });
  }
  if (known == false) {
    throw UserError("check(" + condition.str() + ") can never hold: " + undetermined_text(condition));
  }
  assertions_.push_back(std::move(assertion));
  assume(condition);
}

std::string ShapeEnv::known_text(Symbol symbol) const {
  std::string text = symbol.str() + " in " + interval(symbol).str();
  if (const auto equal = equal_to_.find(symbol); equal != equal_to_.end()) {
    text += ", " + symbol.str() + " == " + equal->second.str();
  }
  for (const Condition& fact : facts_) {
    if (fact.left.contains(symbol) || fact.right.contains(symbol)) text += ", " + fact.str();
  }
  return text;
}

std::string ShapeEnv::undetermined_text(const Condition& condition) const {
  std::string known;
  for (const Expr e : {condition.left, condition.right}) {
    for (const Symbol symbol : e.symbols()) {
      if (symbol.kind != SymbolKind::unbacked) continue;
      const std::string text = known_text(symbol);
      if (known.find(text) == std::string::npos) known += (known.empty() ? "" : "; ") + text;
    }
  }
  return condition.str() + " is undetermined: only data determines its sizes, of which is known: " + known +
         ". stax::check(" + condition.str() + ") before it would settle it, or stax::check(" +
         condition.negated().str() + ")";
}

int64_t ShapeEnv::specialize(Expr e) {
  if (const auto constant = e.constant()) return *constant;
  if (const auto constant = replace_equals(e).constant()) return *constant;
  const std::optional<int64_t> value = hint(e);
  if (!value) {
    throw UndeterminedError(
        "the size " + e.str() +
        " is needed as a number, but only data determines it; keep it symbolic, or state its value "
        "with stax::check(" +
        e.str() + " == value)");
  }
  decide(eq(e, *value));
  return *value;
}

std::string failure_text(const Assertion& assertion, const std::function<int64_t(Symbol)>& value_of) {
  const Condition& condition = assertion.condition;
  std::string text = assertion.where.empty() ? "" : assertion.where + ": ";
  text += "check failed: " + condition.str();
  if (!assertion.words.empty()) text += " (" + assertion.words + ")";
  std::string values;
  for (const Expr e : {condition.left, condition.right}) {
    for (const Symbol symbol : e.symbols()) {
      const std::string value = symbol.str() + " = " + std::to_string(value_of(symbol));
      if (values.find(value) == std::string::npos) values += (values.empty() ? ", with " : ", ") + value;
    }
  }
  text += values;
  return assertion.about.empty() ? text : text + "; " + assertion.about;
}

void throw_failure(const Assertion& assertion, const std::function<int64_t(Symbol)>& value_of) {
  throw_user_error_at(assertion.stack, failure_text(assertion, value_of));
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

/// The symbol that an equation difference == 0 defines by the others: the last one with coefficient 1 or -1.
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

/// The values of s for which c*s + k >= 0.
Interval where_nonnegative(const LinearSymbol& e) {
  // s >= ceil(-k/c) for c > 0, s <= floor(k/-c) for c < 0
  if (e.coefficient > 0) return Interval::at_least(-floor_div_int(e.offset, e.coefficient));
  return {std::nullopt, floor_div_int(e.offset, checked_mul(e.coefficient, -1))};
}

}  // namespace

bool ShapeEnv::learn_equal(Expr difference) {
  std::optional<std::pair<Symbol, Expr>> solution = solve(difference);
  if (!solution) return false;
  auto [symbol, value] = *solution;
  for (auto& [other, known] : equal_to_) known = substitute(known, symbol, value);
  equal_to_.emplace(symbol, value);
  // What holds for the symbol holds for its equal too: lower <= value <= upper.
  Interval known = interval(symbol);
  if (known.lower) learn(le(*known.lower, value));
  if (known.upper) learn(le(value, *known.upper));
  std::vector<Condition> facts = std::move(facts_);
  facts_.clear();
  for (const Condition& fact : facts) learn(fact);
  return true;
}

void ShapeEnv::learn_different(Expr difference) {
  std::optional<LinearSymbol> linear = linear_symbol(difference);
  if (!linear || linear->offset % linear->coefficient != 0) return;
  int64_t excluded = -(linear->offset / linear->coefficient);
  Interval known = interval(linear->symbol);
  if (known.lower == excluded) bound(linear->symbol, Interval::at_least(excluded + 1));
  if (known.upper == excluded) bound(linear->symbol, {std::nullopt, excluded - 1});
}

void ShapeEnv::learn(const Condition& condition) {
  try {
    Condition fact{condition.relation, replace_equals(condition.left), replace_equals(condition.right)};
    Expr difference = fact.right - fact.left;
    if (difference.is_constant()) return;
    if (fact.relation == Relation::eq && learn_equal(difference)) return;
    if (fact.relation == Relation::ne) learn_different(difference);
    std::optional<LinearSymbol> linear = linear_symbol(slack_of(fact));
    if (linear && (fact.relation == Relation::lt || fact.relation == Relation::le)) {
      bound(linear->symbol, where_nonnegative(*linear));
    } else {
      facts_.push_back(fact);
    }
  } catch (const UserError&) {
    // A constant left int64 on the way: nothing is learned, and the guard stays recorded.
  }
}

}  // namespace stax

// Facts about symbols, and the one place where a decision about sizes is made.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "stax/error.h"
#include "support/call_stack.h"
#include "symbolic/assertion.h"
#include "symbolic/ranges.h"

namespace stax {

/// A decision that was made on a hint, with the place in the user's program that asked for it.
struct Guard {
  Condition condition;
  CallStack where;
  /// "s0 <= 4, at model.cpp:7".
  std::string str() const;
};

/// An answer to a question about sizes, whatever it rests on: ranges, facts, guards or a hint.
struct Decision {
  Condition condition;
  bool answer = true;
};

/// A decision about sizes that only data determines, which what is known of them does not settle.
class UndeterminedError : public UserError {
 public:
  using UserError::UserError;
};

/// Symbols with range and hint, and the guards recorded so far. Sizes of a fixed-shape program are constants,
/// so everything there is decided without a guard. Not thread safe: one environment belongs to one
/// compilation.
class ShapeEnv {
 public:
  /// A fresh symbol, numbered from 0 within its kind.
  Symbol new_symbol(SymbolKind kind, std::optional<int64_t> hint, Interval interval);
  /// What a symbol stands for, for the texts of errors.
  void describe(Symbol symbol, std::string text) { descriptions_.emplace(symbol, std::move(text)); }
  std::optional<int64_t> hint(Symbol symbol) const;
  /// The value that the hints give `e`; nothing when a symbol without hint is in it.
  std::optional<int64_t> hint(Expr e) const;
  const Ranges& ranges() const { return ranges_; }
  Ranges& ranges() { return ranges_; }

  /// Decides for the compiler or the user's program: from the ranges and the recorded guards where possible,
  /// otherwise by the hints, which records a guard. A condition that involves a symbol without hint and is
  /// undetermined raises UndeterminedError.
  bool decide(const Condition& condition);
  /// decide(), but nothing where it would raise.
  std::optional<bool> decided(const Condition& condition);
  /// Whether it is decided to hold. For choices where the answer "no" is right for every value.
  bool surely(const Condition& condition) { return decided(condition).value_or(false); }
  /// For what a call has to satisfy: as decide(), but an undetermined condition becomes a run-time assertion,
  /// and counts as true.
  bool expect(const Condition& condition);
  /// A fact that holds whatever the data are.
  void assume(const Condition& condition);
  /// A run-time assertion, from here on a fact. UserError where the hints or known facts violate it.
  void check(const Condition& condition, std::string words, std::string where);
  const std::vector<Assertion>& assertions() const { return assertions_; }
  /// Drops the assertions after the first `count`: what a call left that is made otherwise.
  void forget_assertions(size_t count) { assertions_.resize(count); }
  /// The operator whose rules ask now, for the words of its assertions.
  void set_asker(std::string op) { asker_ = std::move(op); }
  /// How many symbols of kind unbacked there are.
  size_t late_symbols() const {
    const auto found = next_number_.find(static_cast<int>(SymbolKind::unbacked));
    return found == next_number_.end() ? 0 : static_cast<size_t>(found->second);
  }
  /// The value of a symbol without hint, once it is known.
  void set_value(Symbol symbol, int64_t value) { hints_[symbol] = value; }
  /// Why `condition` is undetermined: what is known of its symbols, and which check() would settle it.
  std::string undetermined_text(const Condition& condition) const;
  /// The number that `e` has by the hints, with the guard that it has it. UserError where a symbol without
  /// hint is in it.
  int64_t specialize(Expr e);
  /// Like decide(), but takes no hint: true only where the ranges and the recorded guards prove it.
  bool proves(const Condition& condition) const;
  const std::vector<Guard>& guards() const { return guards_; }
  /// From here on all decisions are kept, for a run that asks again: STAX_CHECK=decisions.
  void record_decisions() { records_ = true; }
  const std::vector<Decision>& decisions() const { return decisions_; }

 private:
  void record(const Condition& condition, bool answer) const;
  std::string about(const Condition& condition) const;
  std::optional<bool> decide_without_hint(const Condition& condition) const;
  std::optional<bool> decide_with_guards(const Condition& condition) const;
  /// Keeps what a condition that holds implies.
  void learn(const Condition& condition);
  /// From difference == 0, difference != 0. True where nothing else remains to be known.
  bool learn_equal(Expr difference);
  void learn_different(Expr difference);
  void bound(Symbol symbol, const Interval& interval);
  Interval interval(Symbol symbol) const;
  Expr replace_equals(Expr e) const;
  std::string known_text(Symbol symbol) const;

  std::unordered_map<Symbol, std::optional<int64_t>> hints_;
  std::unordered_map<Symbol, std::string> descriptions_;
  std::unordered_map<int, int32_t> next_number_;
  Ranges ranges_;
  std::vector<Guard> guards_;
  // What the guards imply: s1 -> s0 for the guard s1 == s0, bounds of single symbols, and all others as they
  // are.
  std::unordered_map<Symbol, Expr> equal_to_;
  std::unordered_map<Symbol, Interval> bounds_;
  std::vector<Condition> facts_;
  std::vector<Assertion> assertions_;
  std::string asker_;
  bool learned_ = false;  // a fact that is no guard
  bool records_ = false;
  mutable std::vector<Decision> decisions_;
  mutable std::unordered_set<size_t> recorded_;  // hashes of conditions
};

}  // namespace stax

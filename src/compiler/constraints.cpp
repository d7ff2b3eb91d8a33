#include "compiler/constraints.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "support/check.h"

namespace stax::compiler {

Constraints::Constraints(const std::vector<ExportSymbol>& symbols) : symbols_(symbols) {
  for (const ExportSymbol& s : symbols) env_.new_symbol(SymbolKind::size, s.hint, s.declared);
}

bool Constraints::known(const Condition& condition) const {
  const auto ours = [&](Expr e) {
    return std::ranges::all_of(e.symbols(), [&](Symbol s) {
      return s.kind == SymbolKind::size && static_cast<size_t>(s.number) < symbols_.size();
    });
  };
  return ours(condition.left) && ours(condition.right);
}

void Constraints::take_over(const ShapeEnv& trace) {
  for (; taken_ < trace.guards().size(); ++taken_) {
    const Condition& condition = trace.guards()[taken_].condition;
    if (!known(condition)) continue;
    env_.decide(condition);
    by_program_.resize(env_.guards().size(), 0);
  }
}

bool Constraints::decide(ShapeEnv& trace, const Condition& condition) {
  if (!known(condition)) return trace.decide(condition);
  take_over(trace);
  const bool answer = env_.decide(condition);
  by_program_.resize(env_.guards().size(), 1);
  trace.decide(condition);  // what operators decide afterwards may follow from it
  taken_ = trace.guards().size();
  return answer;
}

void Constraints::require(const Condition& condition) {
  env_.decide(condition);
  by_program_.resize(env_.guards().size(), 0);
}

void Constraints::relax(const std::function<bool(const Condition&)>& dispensable) {
  relaxed_.resize(env_.guards().size(), 0);
  for (size_t k = 0; k < relaxed_.size(); ++k) {
    relaxed_[k] = by_program_[k] == 0 && dispensable(env_.guards()[k].condition);
  }
}

std::vector<Condition> Constraints::assertions() const {
  std::vector<Condition> out;
  for (size_t k = 0; k < env_.guards().size(); ++k) {
    if (k >= relaxed_.size() || relaxed_[k] == 0) out.push_back(ordered(env_.guards()[k].condition));
  }
  return out;
}

namespace {

std::vector<Symbol> symbols_of(const Condition& condition) {
  std::vector<Symbol> out = condition.left.symbols();
  for (const Symbol s : condition.right.symbols()) {
    if (std::ranges::find(out, s) == out.end()) out.push_back(s);
  }
  return out;
}

bool pins(const Condition& c) {
  return c.relation == Relation::eq && (c.left.is_constant() || c.right.is_constant());
}

/// Declarations under which all of some conditions hold.
class Fixes {
 public:
  Fixes(const ExportContract& contract, std::vector<Condition> conditions)
      : contract_(contract), conditions_(std::move(conditions)) {
    for (const Condition& c : conditions_) {
      for (const Symbol s : symbols_of(c)) {
        if (std::ranges::find(symbols_, s) == symbols_.end()) symbols_.push_back(s);
      }
    }
  }

  std::vector<std::string> lines() {
    take_equal();
    for (const Symbol s : symbols_) take_multiple(s);
    widen();
    std::vector<std::string> out;
    for (const Symbol s : symbols_) {
      if (!known_.contains(s)) declare(s, out);
    }
    // Each refers to symbols above, and to those that were replaced after it.
    out.insert(out.end(), derived_.rbegin(), derived_.rend());
    return out;
  }
  /// All conditions hold under the declarations of lines().
  bool complete() const { return proven(ranges_); }

 private:
  const ExportSymbol& facts(Symbol s) const { return contract_.symbols[static_cast<size_t>(s.number)]; }
  const std::string& name(Symbol s) const { return facts(s).name; }

  static std::string dim_text(const std::string& name, const Interval& range) {
    const std::string min = range.lower.value_or(0) > 0 ? fmt::format(".min = {}", *range.lower) : "";
    const std::string max = range.upper ? fmt::format(".max = {}", *range.upper) : "";
    const char* comma = min.empty() || max.empty() ? "" : ", ";
    return fmt::format("Dim(\"{}\", {{{}{}{}}})", name, min, comma, max);
  }

  bool proven(const Ranges& ranges) const {
    return std::ranges::all_of(conditions_,
                               [&](const Condition& c) { return stax::decide(c, ranges).value_or(false); });
  }

  void replace(Symbol symbol, Expr value) {
    for (Condition& c : conditions_) {
      c.left = substitute(c.left, symbol, value);
      c.right = substitute(c.right, symbol, value);
    }
  }

  void declare(Symbol s, std::vector<std::string>& out) const {
    const Interval range = ranges_.interval(s);
    const bool single = range.lower && range.lower == range.upper;
    const auto multiple = multiples_.find(s);
    if (multiple == multiples_.end()) {
      out.push_back(single ? fmt::format("auto {} = Dim({});", name(s), *range.lower)
                           : fmt::format("auto {} = {};", name(s), dim_text(name(s), range)));
      return;
    }
    const auto [step, rest] = multiple->second;
    if (single) {
      out.push_back(fmt::format("auto {} = Dim({});", name(s), step * *range.lower + rest));
      return;
    }
    const std::string root = "_" + name(s);
    out.push_back(fmt::format("auto {} = {};", root, dim_text(root, range)));
    out.push_back(fmt::format("auto {} = {} * {}{};", name(s), step, root,
                              rest == 0 ? "" : fmt::format(" + {}", rest)));
  }

  /// q == 2*p + 1 is a declaration of q, as long as that stays within q's range.
  void take_equal() {
    for (size_t k = 0; k < conditions_.size(); ++k) {
      const Condition c = conditions_[k];
      if (c.relation != Relation::eq || c.left == c.right) continue;
      for (const auto& [one, other] : {std::pair(c.right, c.left), std::pair(c.left, c.right)}) {
        if (one.kind() != ExprKind::symbol || other.is_constant() || !linear_size(other)) continue;
        derived_.push_back(fmt::format("auto {} = {};", name(one.symbol()),
                                       to_string(other, [&](Symbol s) { return name(s); })));
        known_.insert(one.symbol());
        const Interval declared = facts(one.symbol()).declared;
        if (declared.lower) conditions_.push_back(ge(one, *declared.lower));
        if (declared.upper) conditions_.push_back(le(one, *declared.upper));
        replace(one.symbol(), other);
        break;
      }
    }
  }

  /// n % 4 == 0 makes n a multiple: n = 4 * _n.
  void take_multiple(Symbol s) {
    if (known_.contains(s)) return;
    std::vector<Condition> periodic;
    for (const Condition& c : conditions_) {
      if (is_periodic(c, s)) periodic.push_back(c);
    }
    if (periodic.empty()) return;
    constexpr int64_t kLargest = 1024;
    for (int64_t step = 2; step <= kLargest; ++step) {
      const int64_t rest = facts(s).hint % step;
      Ranges ranges;
      ranges.set(s, root_range(facts(s).declared, step, rest));
      const Expr value = Expr(step) * s + rest;
      const bool holds = std::ranges::all_of(periodic, [&](const Condition& c) {
        return stax::decide({c.relation, substitute(c.left, s, value), substitute(c.right, s, value)}, ranges)
            .value_or(false);
      });
      if (!holds) continue;
      multiples_.emplace(s, std::pair(step, rest));
      replace(s, value);
      return;
    }
  }
  static Interval root_range(const Interval& declared, int64_t step, int64_t rest) {
    Interval root{(std::max(declared.lower.value_or(0) - rest, int64_t{0}) + step - 1) / step, std::nullopt};
    if (declared.upper) root.upper = (*declared.upper - rest) / step;
    return root;
  }
  /// An equation of `s` alone that holds for the example and for neither of its neighbours, and does not say
  /// what `s` is.
  bool is_periodic(const Condition& c, Symbol s) const {
    if (c.relation != Relation::eq || pins_symbol(c, s) || symbols_of(c) != std::vector{s}) return false;
    const int64_t hint = facts(s).hint;
    return std::ranges::none_of(std::array{Interval::of(hint - 1, hint), Interval::of(hint, hint + 1)},
                                [&](const Interval& range) {
                                  Ranges ranges;
                                  ranges.set(s, range);
                                  return stax::decide(c, ranges).value_or(false);
                                });
  }
  static bool pins_symbol(const Condition& c, Symbol s) {
    return (c.left == Expr(s) && c.right.is_constant()) || (c.right == Expr(s) && c.left.is_constant());
  }

  /// What widening starts at, and how far it may go: of the symbol, or of what it is a multiple of.
  int64_t hint(Symbol s) const {
    const auto multiple = multiples_.find(s);
    if (multiple == multiples_.end()) return facts(s).hint;
    return (facts(s).hint - multiple->second.second) / multiple->second.first;
  }
  Interval limits(Symbol s) const {
    const auto multiple = multiples_.find(s);
    if (multiple == multiples_.end()) return facts(s).declared;
    return root_range(facts(s).declared, multiple->second.first, multiple->second.second);
  }

  /// The widest ranges around the example under which everything is proved, one bound after the other.
  void widen() {
    for (const Symbol s : symbols_) {
      if (!known_.contains(s)) ranges_.set(s, Interval::of(hint(s), hint(s)));
    }
    for (const Symbol s : symbols_) {
      if (known_.contains(s)) continue;
      widen_up(s);
      widen_down(s);
    }
  }
  bool try_range(Symbol s, const Interval& range) {
    Ranges ranges = ranges_;
    ranges.set(s, range);
    if (!proven(ranges)) return false;
    ranges_ = ranges;
    return true;
  }
  void widen_up(Symbol s) {
    const Interval declared = limits(s);
    const int64_t lower = hint(s);
    if (try_range(s, {lower, declared.upper})) return;
    int64_t good = lower, bad = declared.upper.value_or(INT64_MAX / 2);
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (try_range(s, Interval::of(lower, middle)) ? good : bad) = middle;
    }
  }
  void widen_down(Symbol s) {
    const std::optional<int64_t> upper = ranges_.interval(s).upper;
    const int64_t least = limits(s).lower.value_or(0);
    if (try_range(s, {least, upper})) return;
    int64_t bad = least, good = hint(s);
    while (good - bad > 1) {
      const int64_t middle = bad + (good - bad) / 2;
      (try_range(s, {middle, upper}) ? good : bad) = middle;
    }
  }

  const ExportContract& contract_;
  std::vector<Condition> conditions_;
  std::vector<Symbol> symbols_;
  Ranges ranges_;
  std::set<Symbol> known_;            // those that are written by others, which stand for them since
  std::vector<std::string> derived_;  // how
  std::map<Symbol, std::pair<int64_t, int64_t>>
      multiples_;  // n = 4 * _n + 1: {4, 1}; the range is that of _n
};

}  // namespace

/// Whether a decision fails for a declared size and may not: automatic dimensions may be restricted.
bool Constraints::violates(size_t k, const ExportContract& contract) const {
  const Condition& condition = env_.guards()[k].condition;
  const std::vector<Symbol> symbols = symbols_of(condition);
  const bool declared = std::ranges::all_of(
      symbols, [&](Symbol s) { return !contract.symbols[static_cast<size_t>(s.number)].name.empty(); });
  return declared && (by_program_[k] != 0 || pins(condition));
}

void Constraints::check_declarations(const ExportContract& contract) const {
  const auto name = [&](Symbol s) { return contract.symbol_text(s); };
  std::vector<Condition> violated;
  std::vector<Symbol> dims;
  std::string bullets;
  for (size_t k = 0; k < env_.guards().size(); ++k) {
    if (!violates(k, contract)) continue;
    const Condition& condition = env_.guards()[k].condition;
    violated.push_back(condition);
    std::string values;
    for (const Symbol s : symbols_of(condition)) {
      if (std::ranges::find(dims, s) == dims.end()) dims.push_back(s);
      values += fmt::format("{}{} in {}", values.empty() ? "" : " and ", name(s),
                            contract.symbols[static_cast<size_t>(s.number)].declared.str());
    }
    bullets +=
        fmt::format("  - Not all values of {} satisfy the guard {}, which the program was captured under\n",
                    values, text_of(condition, name));
  }
  if (violated.empty()) return;
  std::string names;
  for (const Symbol s : dims) names += (names.empty() ? "" : ", ") + name(s);
  std::string message = fmt::format(
      "Constraints violated ({})! The captured program holds only for some of the declared sizes:\n{}", names,
      bullets);
  Fixes fixes(contract, std::move(violated));
  const std::vector<std::string> lines = fixes.lines();
  if (fixes.complete()) {
    message += "Suggested fixes:";
    for (const std::string& line : lines) message += "\n    " + line;
  } else {
    message +=
        "No ranges of these dimensions imply this; take the decision out of the function, or leave the "
        "dimension fixed";
  }
  throw_user_error(message);
}

}  // namespace stax::compiler

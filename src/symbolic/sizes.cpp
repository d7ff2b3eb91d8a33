#include "symbolic/sizes.h"

#include <fmt/core.h>

#include <algorithm>

#include "symbolic/shape_env.h"

namespace stax {

namespace {

constexpr int64_t kGuess = 256;
constexpr int64_t kMost = int64_t{1} << 52;  // sums of many of these stay within 64 bits

bool about_numbers(const Condition& c) {
  return c.left.is_constant() && c.right.is_constant();
}

}  // namespace

Ranges Sizes::ranges() const {
  return env_ ? env_->ranges() : Ranges();
}

bool Sizes::proves(const Condition& condition) const {
  return env_ ? env_->proves(condition) : decide(condition, Ranges()).value_or(false);
}

std::optional<int64_t> Sizes::hint(Expr e) const {
  if (e.is_constant()) return e.value();
  if (env_ == nullptr) return std::nullopt;
  try {
    return env_->hint(e);
  } catch (const UserError&) {
    return std::nullopt;  // leaves 64 bits
  }
}

int64_t Sizes::likely(Expr e) const {
  if (e.is_constant()) return e.value();
  try {
    const int64_t value =
        evaluate(e, [&](Symbol s) { return (env_ ? env_->hint(s) : std::nullopt).value_or(kGuess); });
    return std::clamp(value, -kMost, kMost);
  } catch (const UserError&) {
    return kMost;
  }
}

void Chooser::note(std::string what, std::string reason) {
  const bool known =
      std::ranges::any_of(choices_, [&](const Choice& c) { return c.what == what && c.reason == reason; });
  if (!known) choices_.push_back({{}, std::move(what), std::move(reason)});
}

std::string Chooser::by_hint(const Condition& c, bool answer) const {
  const auto value = [&](Expr e) { return e.is_constant() ? "" : fmt::format("{}", sizes_.likely(e)); };
  const std::string left = value(c.left), right = value(c.right);
  const bool known = sizes_.hint(c.left) && sizes_.hint(c.right);
  return fmt::format("{}, {} ({})", (answer ? c : c.negated()).str(), known ? "by the hint" : "as a guess",
                     left.empty()    ? right
                     : right.empty() ? left
                                     : left + " and " + right);
}

std::optional<bool> Chooser::settled(const Condition& c, std::string_view yes, std::string_view no) {
  if (about_numbers(c)) return holds(c.relation, c.left.value(), c.right.value());
  for (const bool answer : {true, false}) {
    const Condition holding = answer ? c : c.negated();
    if (!sizes_.proves(holding)) continue;
    note(std::string(answer ? yes : no), holding.str() + " for all sizes");
    return answer;
  }
  return std::nullopt;
}

bool Chooser::likely(const Condition& c, std::string_view yes, std::string_view no) {
  if (const auto answer = settled(c, yes, no)) return *answer;
  const bool answer = holds(c.relation, sizes_.likely(c.left), sizes_.likely(c.right));
  note(std::string(answer ? yes : no), by_hint(c, answer));
  return answer;
}

bool Chooser::at_launch(const Condition& c, std::string_view yes, std::string_view no) {
  if (const auto answer = settled(c, yes, no)) return *answer;
  if (!near(c)) return likely(c, yes, no);
  return ask(c, holds(c.relation, sizes_.likely(c.left), sizes_.likely(c.right)), yes, no);
}

bool Chooser::near(const Condition& c) const {
  if (!sizes_.hint(c.left) || !sizes_.hint(c.right)) return false;
  const int64_t left = std::max<int64_t>(1, sizes_.likely(c.left));
  const int64_t right = std::max<int64_t>(1, sizes_.likely(c.right));
  return left / kNear <= right && right / kNear <= left;
}

bool Chooser::required(const Condition& c, std::string_view yes, std::string_view no) {
  if (const auto answer = settled(c, yes, no)) return *answer;
  return ask(c, false, yes, no);
}

bool Chooser::ask(const Condition& c, bool usual, std::string_view yes, std::string_view no) {
  for (const Question& q : questions_) {
    if (q.condition == c) return q.answer;
  }
  const bool answer = questions_.size() < answers_.size() ? answers_[questions_.size()] : usual;
  questions_.push_back({c, answer});
  const bool hinted = sizes_.hint(c.left) && sizes_.hint(c.right) &&
                      answer == holds(c.relation, sizes_.likely(c.left), sizes_.likely(c.right));
  note(std::string(answer ? yes : no),
       (hinted ? by_hint(c, answer) : (answer ? c : c.negated()).str()) + "; a launch may ask");
  return answer;
}

}  // namespace stax

// Conditions that a run of a compiled program checks.
#pragma once

#include <functional>
#include <string>

#include "symbolic/ranges.h"

namespace stax {

/// Stated by the user's program (check()), or relied on by an operator where only data decides it.
struct Assertion {
  Condition condition;
  std::string words;  // why: the user's words, or the operator
  std::string where;  // file:line, or empty
};

/// What a failed assertion says: the condition, the words, the place, and the values of its symbols.
std::string failure_text(const Assertion& assertion, const std::function<int64_t(Symbol)>& value_of);

}  // namespace stax

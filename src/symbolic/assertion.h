// Conditions that a run of a compiled program checks.
#pragma once

#include <functional>
#include <string>

#include "support/call_stack.h"
#include "symbolic/ranges.h"

namespace stax {

/// Stated by the user's program (check()), or relied on by an operator where only data decides it.
struct Assertion {
  Condition condition;
  std::string words;  // why: the user's words, or the operator
  std::string where;  // file:line of the check, or empty
  CallStack stack;    // of the call that an operator relied on it for
  std::string about;  // what its symbols stand for: "s0 is size(0) of tensor 1 (n, declared within [2, 64])"
};

/// What a failed assertion says: the condition, the words, the place, and the values of its symbols.
std::string failure_text(const Assertion& assertion, const std::function<int64_t(Symbol)>& value_of);
/// Raises it as a user error, which names the user's line.
[[noreturn]] void throw_failure(const Assertion& assertion, const std::function<int64_t(Symbol)>& value_of);

}  // namespace stax

// What lowering, scheduling and code generation may know of sizes, and how they choose by it.
//
// A size is a number, or an expression that has a range, which holds for every call, and a hint, which is its
// value in the example. What has to be right for every call asks for proofs; what is right either way, and
// only faster, asks a Chooser, which keeps every answer with its reason. Neither knows what the answers are
// for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolic/ranges.h"

namespace stax {

class ShapeEnv;

/// Ranges and hints of the size symbols of a program.
class Sizes {
 public:
  /// Nothing is known of any symbol.
  Sizes() = default;
  /// `env` outlives this.
  explicit Sizes(const ShapeEnv& env) : env_(&env) {}

  /// Facts about the size symbols, to which the caller adds those about its loop variables.
  Ranges ranges() const;
  /// True only where the condition holds in every call.
  bool proves(const Condition& condition) const;
  /// The value in the example; nothing where a symbol has none, or where it leaves 64 bits.
  std::optional<int64_t> hint(Expr e) const;
  /// The same, with 256 for each symbol that has none, and at most 2^52.
  int64_t likely(Expr e) const;

 private:
  const ShapeEnv* env_ = nullptr;
};

/// A choice that depends on sizes, in words.
struct Choice {
  std::string subject;  // the kernel that it is about; empty: the one at hand
  std::string what;     // what was chosen
  std::string reason;   // "16*s0 > 65536 for all sizes", "... by the hint (1024)"
};

/// Answers questions about sizes of which, but for required(), either answer is right. Numbers decide for
/// themselves, and nothing is kept of that.
class Chooser {
 public:
  explicit Chooser(Sizes sizes) : sizes_(sizes) {}
  /// Questions for the launch get `answers`, in order, as long as there are any.
  Chooser(Sizes sizes, std::vector<bool> answers) : sizes_(sizes), answers_(std::move(answers)) {}

  const Sizes& sizes() const { return sizes_; }

  /// Whether the condition holds: for all sizes, or by the hint. `yes` and `no` say what becomes of it.
  bool likely(const Condition& condition, std::string_view yes, std::string_view no);
  /// The same for choices that matter much. Where calls with sizes up to kNear times the hint's, or so much
  /// smaller ones, want the other answer, the question may be asked at each launch, of kernels made for
  /// either answer.
  bool at_launch(const Condition& condition, std::string_view yes, std::string_view no);
  /// Whether both sides have hints, of which neither is more than kNear times the other.
  bool near(const Condition& condition) const;
  /// Whether the condition holds in every call that the kernel at hand is launched for: for all sizes, or
  /// because each launch asks. "No" is right for every size, "yes" is not.
  bool required(const Condition& condition, std::string_view yes, std::string_view no);
  /// A choice that somebody else's question led to.
  void note(std::string what, std::string reason);

  /// A question for the launch, and the answer that was given.
  struct Question {
    Condition condition;
    bool answer = false;
  };
  const std::vector<Question>& questions() const { return questions_; }
  const std::vector<Choice>& choices() const { return choices_; }

  static constexpr int64_t kNear = 16;

 private:
  bool ask(const Condition& condition, bool usual, std::string_view yes, std::string_view no);
  std::optional<bool> settled(const Condition& condition, std::string_view yes, std::string_view no);
  std::string by_hint(const Condition& condition, bool answer) const;

  Sizes sizes_;
  std::vector<bool> answers_;
  std::vector<Question> questions_;
  std::vector<Choice> choices_;
};

}  // namespace stax

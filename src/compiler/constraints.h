// Adjudication of the decisions that a trace took, against declared ranges.
#pragma once

#include <string>
#include <vector>

#include "compiler/export_state.h"

namespace stax::compiler {

/// What holds for all declared sizes, and what had to be decided. Beside the environment of the trace, which
/// assumes that sizes are 2 or more, it knows only the declared ranges and what was decided before.
class Constraints {
 public:
  explicit Constraints(const std::vector<ExportSymbol>& symbols);

  /// A decision of the traced program.
  bool decide(ShapeEnv& trace, const Condition& condition);
  /// Takes over what the operators decided since.
  void take_over(const ShapeEnv& trace);

  /// UserError that lists all decisions that some declared size violates: those of the program about declared
  /// dimensions, and those that leave a declared dimension one value.
  void check_declarations(const ExportContract& contract) const;
  /// The decisions that the declared ranges do not imply.
  std::vector<Condition> assertions() const;
  /// Adds one.
  void require(const Condition& condition);
  /// Gives up those of the operators that `dispensable` says so of.
  void relax(const std::function<bool(const Condition&)>& dispensable);

 private:
  bool known(const Condition& condition) const;
  bool violates(size_t k, const ExportContract& contract) const;

  const std::vector<ExportSymbol>& symbols_;
  ShapeEnv env_;                  // the declared ranges, and one guard for each decision
  std::vector<char> by_program_;  // parallel to the guards
  std::vector<char> relaxed_;     // by guard; may be shorter
  size_t taken_ = 0;              // guards of the trace
};

}  // namespace stax::compiler

// Expressions compiled to a flat list of steps, for code that evaluates the same ones in every call: guards,
// sizes of results, extents of launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbolic/expr.h"

namespace stax {

/// Every distinct subexpression has one register. A run fills all registers from those of the symbols:
///
///   ExprProgram program;
///   const int32_t area = program.add(height * width);
///   std::vector<int64_t> registers(program.initial().begin(), program.initial().end());
///   for (const auto& [symbol, at] : program.symbols()) registers[at] = value_of(symbol);
///   if (program.run(registers.data())) use(registers[area]);
class ExprProgram {
 public:
  /// `symbol` gets its value only before stage `stage` of a run (others: 0). Before the first add() that has
  /// it.
  void set_stage(Symbol symbol, int32_t stage) { symbol_stages_[symbol] = stage; }
  /// The register that holds the value of `e` after a run.
  int32_t add(Expr e);
  /// Registers before a run: constants have their values, all others 0.
  std::span<const int64_t> initial() const { return initial_; }
  size_t size() const { return initial_.size(); }
  /// The symbols in the expressions, in order of first use, and their registers, which the caller fills.
  std::span<const std::pair<Symbol, int32_t>> symbols() const { return symbols_; }
  bool empty() const {
    return std::ranges::all_of(steps_, [](const auto& s) { return s.empty(); });
  }

  /// Fills the registers whose symbols have their values by that stage, and not by an earlier one. False
  /// where a value leaves int64 or a divisor is 0; which registers are filled then is undefined.
  bool run(int64_t* registers, int32_t stage = 0) const;

 private:
  struct Step {
    ExprKind kind = ExprKind::add;
    int32_t to = 0, a = 0, b = 0;
  };

  std::vector<int64_t> initial_;
  std::vector<std::pair<Symbol, int32_t>> symbols_;
  std::vector<std::vector<Step>> steps_;  // by stage
  std::vector<int32_t> stages_;           // of registers
  std::unordered_map<Symbol, int32_t> symbol_stages_;
  std::unordered_map<Expr, int32_t> known_;
};

}  // namespace stax

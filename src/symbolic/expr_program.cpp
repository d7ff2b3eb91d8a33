#include "symbolic/expr_program.h"

#include <algorithm>

#include "symbolic/node.h"

namespace stax {

int32_t ExprProgram::add(Expr e) {
  if (const auto known = known_.find(e); known != known_.end()) return known->second;
  const auto fresh = [&](int64_t value, int32_t stage = 0) {
    initial_.push_back(value);
    stages_.push_back(stage);
    return static_cast<int32_t>(initial_.size()) - 1;
  };
  int32_t at = -1;
  switch (e.kind()) {
    case ExprKind::constant:
      at = fresh(e.value());
      break;
    case ExprKind::symbol:
      at = fresh(0, symbol_stages_.contains(e.symbol()) ? symbol_stages_.at(e.symbol()) : 0);
      symbols_.emplace_back(e.symbol(), at);
      break;
    case ExprKind::add:
    case ExprKind::mul:
    case ExprKind::floor_div:
    case ExprKind::mod:
    case ExprKind::min:
    case ExprKind::max: {
      std::vector<Expr> operands(e.args().begin(), e.args().end());
      if (e.kind() == ExprKind::mul && operands[0].is_constant()) {
        // Multiples of one product share it.
        operands = {product(e.args().subspan(1)), operands[0]};
      }
      at = add(operands[0]);
      for (size_t k = 1; k < operands.size(); ++k) {
        const int32_t other = add(operands[k]);
        const int32_t stage = std::max(stages_[at], stages_[other]), to = fresh(0, stage);
        if (static_cast<size_t>(stage) >= steps_.size()) steps_.resize(static_cast<size_t>(stage) + 1);
        steps_[static_cast<size_t>(stage)].push_back({e.kind(), to, at, other});
        at = to;
      }
      break;
    }
  }
  known_.emplace(e, at);
  return at;
}

bool ExprProgram::run(int64_t* registers, int32_t stage) const {
  bool fine = true;
  if (static_cast<size_t>(stage) >= steps_.size()) return fine;
  for (const Step& step : steps_[static_cast<size_t>(stage)]) {
    const int64_t a = registers[step.a], b = registers[step.b];
    int64_t& to = registers[step.to];
    switch (step.kind) {
      case ExprKind::add:
        fine &= !__builtin_add_overflow(a, b, &to);
        break;
      case ExprKind::mul:
        fine &= !__builtin_mul_overflow(a, b, &to);
        break;
      case ExprKind::floor_div:
      case ExprKind::mod:
        if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
        to = step.kind == ExprKind::mod ? symbolic::floor_mod_int(a, b) : symbolic::floor_div_int(a, b);
        break;
      case ExprKind::min:
        to = std::min(a, b);
        break;
      case ExprKind::max:
        to = std::max(a, b);
        break;
      case ExprKind::constant:
      case ExprKind::symbol:
        break;
    }
  }
  return fine;
}

}  // namespace stax

#include "symbolic/expr_program.h"

#include <algorithm>

#include "symbolic/node.h"

namespace stax {

int32_t ExprProgram::add(Expr e) {
  if (const auto known = known_.find(e); known != known_.end()) return known->second;
  const auto fresh = [&](int64_t value) {
    initial_.push_back(value);
    return static_cast<int32_t>(initial_.size()) - 1;
  };
  int32_t at = -1;
  switch (e.kind()) {
    case ExprKind::constant:
      at = fresh(e.value());
      break;
    case ExprKind::symbol:
      at = fresh(0);
      symbols_.emplace_back(e.symbol(), at);
      break;
    case ExprKind::add:
    case ExprKind::mul:
    case ExprKind::floor_div:
    case ExprKind::mod:
    case ExprKind::min:
    case ExprKind::max:
      at = add(e.args()[0]);
      for (const Expr operand : e.args().subspan(1)) {
        const int32_t other = add(operand), to = fresh(0);
        steps_.push_back({e.kind(), to, at, other});
        at = to;
      }
      break;
  }
  known_.emplace(e, at);
  return at;
}

bool ExprProgram::run(int64_t* registers) const {
  bool fine = true;
  for (const Step& step : steps_) {
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

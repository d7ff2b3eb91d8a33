// Minimum and maximum: rewrites that hold for all values of the symbols.
#include <algorithm>

#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace {

/// True where `a` makes `b` superfluous.
bool absorbs(ExprKind kind, Expr a, Expr b) {
  // max(x, min(x, y)) -> x, min(x, max(x, y)) -> x
  ExprKind opposite = kind == ExprKind::min ? ExprKind::max : ExprKind::min;
  if (b.kind() == opposite && std::ranges::find(b.args(), a) != b.args().end()) return true;
  // min(x, x + c) -> x for c >= 0, min(c, d) -> the smaller constant
  if (without_offset(a) != without_offset(b)) return false;
  return kind == ExprKind::min ? offset_of(a) <= offset_of(b) : offset_of(a) >= offset_of(b);
}

Expr combine(ExprKind kind, Expr a, Expr b) {
  std::vector<Expr> operands;
  auto add = [&](Expr e) {
    if (std::ranges::any_of(operands, [&](Expr operand) { return absorbs(kind, operand, e); })) return;
    std::erase_if(operands, [&](Expr operand) { return absorbs(kind, e, operand); });
    operands.push_back(e);
  };
  // min(min(x, y), z) -> min(x, y, z), min(x, x) -> x
  for (Expr side : {a, b}) {
    if (side.kind() != kind) {
      add(side);
    } else {
      for (Expr operand : side.args()) add(operand);
    }
  }
  if (operands.size() == 1) return operands[0];
  std::ranges::sort(operands, [](Expr x, Expr y) { return compare(x, y) < 0; });
  return intern(kind, 0, operands);
}

}  // namespace

Expr min(Expr a, Expr b) {
  return combine(ExprKind::min, a, b);
}
Expr max(Expr a, Expr b) {
  return combine(ExprKind::max, a, b);
}

}  // namespace stax

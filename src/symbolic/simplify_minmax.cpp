// Minimum and maximum: operands that another one always beats.
#include "symbolic/node.h"
#include "symbolic/simplify.h"

namespace stax::symbolic {

Expr simplify_extremum(ExprKind kind, std::span<const Expr> args, const Prover& prover) {
  std::vector<Expr> kept(args.begin(), args.end());
  auto beats = [&](Expr a, Expr b) {
    return kind == ExprKind::min ? prover.less_equal(a, b) : prover.less_equal(b, a);
  };
  // min(x, y) -> x for x <= y
  for (size_t i = 0; i < kept.size(); ++i) {
    for (size_t j = 0; j < kept.size(); ++j) {
      if (i == j || !beats(kept[i], kept[j])) continue;
      kept.erase(kept.begin() + static_cast<ptrdiff_t>(j));
      if (j < i) --i;
      --j;
    }
  }
  return kept.size() == 1 ? kept[0] : rebuild(kind, kept);
}

}  // namespace stax::symbolic

// Rewrites within ranges: one function a node kind, operands already simplified. Internal to src/symbolic.
#pragma once

#include <span>

#include "symbolic/prover.h"

namespace stax::symbolic {

Expr simplify_sum(std::span<const Expr> terms, const Prover& prover);
Expr simplify_floor_div(Expr a, Expr b, const Prover& prover);
Expr simplify_mod(Expr a, Expr b, const Prover& prover);
Expr simplify_extremum(ExprKind kind, std::span<const Expr> args, const Prover& prover);

/// x = quotient*g + rest, divisor = g*divided with 0 <= rest < g.
struct Split {
  Expr quotient, rest, g, divided;
};
std::optional<Split> split_by_common_factor(Expr x, Expr divisor, const Prover& prover);

/// The constant k with k*d <= x < (k + 1)*d, for a constant d.
std::optional<int64_t> constant_quotient(Expr x, Expr d, const Prover& prover);

}  // namespace stax::symbolic

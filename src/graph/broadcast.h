// Comparing and broadcasting symbolic sizes.
#pragma once

#include <vector>

#include "symbolic/shape_env.h"

namespace stax::graph {

/// Whether a dimension of `size` repeats its one element along a result's dimension of `result`, which it
/// broadcasts to. A size may be 1 without being written so: (s0//3) is where a guard says it.
inline bool repeats(ShapeEnv& env, Expr size, Expr result) {
  return size != result && !result.is(1) && env.surely(eq(size, 1));
}

/// Whether two shapes are equal. Sizes that are written otherwise are compared by their hints, with guards;
/// that those are equal which only data determines, a run asserts.
inline bool same_sizes(ShapeEnv& env, const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d) {
    if (!env.expect(eq(a[d], b[d]))) return false;
  }
  return true;
}

}  // namespace stax::graph

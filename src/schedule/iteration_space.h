// The loops of a group while it grows, and how the loops of two groups become one set.
//
// While groups grow, loops are axes: variable k is Symbol{block, k}, iteration and reduction axes alike, and
// nothing is merged, so that a partner that cuts the same elements differently can still be matched. An axis
// is cut where the partner's extent divides it: [64, 128] and [8192] meet as [64, 128].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/dependence.h"

namespace stax::schedule {

struct Axis {
  Expr extent;
  bool reduction = false;
};

/// Axes of a group. `reduces` may hold without a reduction axis: a sum over one element.
struct Space {
  std::vector<Axis> axes;  // iteration axes first
  bool reduces = false;
  bool ordered = false;  // a member depends on the order of the reduction axes (argmax, scans)
};

inline Symbol axis_symbol(size_t k) {
  return {SymbolKind::block, static_cast<int32_t>(k)};
}

/// `known`, and facts about the variables of `space`.
Ranges axis_ranges(const Space& space, Ranges known = {});
/// Product of the extents of the iteration axes, or of all axes.
Expr points(const Space& space, bool with_reduction);

/// Two spaces made one.
struct Unified {
  Space space;
  std::vector<Expr> first, second;  // the old axes of either side, over the new ones
  // A side without reduction whose axes cover the reduction axes of the other: it now runs over them.
  bool first_over_reduction = false, second_over_reduction = false;
};

/// A pair of accesses to one buffer, of the first and the second group.
struct AccessPair {
  Expr first, second;
  bool required = false;  // a dependence: they have to become the same expression
};

/// Finds a common space in which as many pairs become equal as possible, the required ones first (the caller
/// checks that they did), or says in `why` what stands against it. Never merges spaces whose iteration axes
/// differ, nor reductions over different axes.
std::optional<Unified> unify(const Space& first, const Space& second, const std::vector<AccessPair>& pairs,
                             std::string& why);

/// Replaces axis k by map[k].
Expr rename(Expr e, const std::vector<Expr>& map, const Ranges& ranges);

/// a / b where that is exact for every value of the symbols; nothing otherwise.
std::optional<Expr> exact_quotient(Expr a, Expr b);

}  // namespace stax::schedule

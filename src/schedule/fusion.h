// Which loop nodes become one kernel.
#pragma once

#include <vector>

#include "schedule/iteration_space.h"
#include "schedule/schedule.h"

namespace stax::schedule {

inline constexpr size_t kMaxNodesPerGroup = 64;

/// A node inside a growing group.
struct FusedNode {
  int32_t node = -1;
  std::vector<Expr> ranges, reduction_ranges;  // the node's loop variables, over the group's axes
  bool over_reduction = false;
};

/// A growing group: nodes in program order over one space. Groups of one external node have no axes.
struct FusionGroup {
  bool external = false;
  Space space;
  std::vector<FusedNode> nodes;
  std::vector<Access> accesses;  // indices over the axes
};

/// Groups nodes greedily, the largest saving of memory traffic first, while the groups stay acyclic. The
/// result is ordered by the first node of each group, not by dependence. Says in `decisions` what was fused,
/// and which groups that share data were kept apart.
std::vector<FusionGroup> fuse(const loops::Program& program, const Target& target, const Sizes& sizes,
                              const std::vector<std::vector<int32_t>>& dependences,
                              std::vector<Decision>& decisions);

/// Bytes of memory that the elements of `index` take, by the hints where sizes are symbolic. For a target
/// that is `batch_invariant` those of one row, so that no comparison depends on the number of rows.
int64_t footprint(Expr index, const Space& space, DType dtype, const Target& target, const Sizes& sizes);

}  // namespace stax::schedule

// Small groups that become later loop nests of the kernel whose results they read.
#pragma once

#include "schedule/schedule.h"

namespace stax::schedule {

/// Moves groups into Group::later of the group that they wait for, and so saves their launches: the second
/// stage of a split reduction, the mean of what a kernel left for each row. `groups` stand in execution
/// order, and stay in one; `before` holds the dependences of their nodes. Nothing where target.phases is 1.
std::vector<Group> join_phases(const loops::Program& program, const Target& target, const Sizes& sizes,
                               const std::vector<std::vector<int32_t>>& before, std::vector<Group> groups,
                               std::vector<Decision>& decisions);

}  // namespace stax::schedule

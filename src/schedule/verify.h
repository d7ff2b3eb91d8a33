// Checks a schedule against its program.
#pragma once

#include "schedule/schedule.h"

namespace stax::schedule {

/// Raises InternalError, naming the group and the rule, unless every node is in exactly one group, groups
/// and members come in dependence order, members only use variables of their group, and slots that are alive
/// together do not overlap (where their places are numbers).
void verify(const Schedule& schedule, const loops::Program& program);

}  // namespace stax::schedule

// From a set of fused nodes to the group that code generation reads.
#pragma once

#include "schedule/fusion.h"

namespace stax::schedule {

/// Rewrites the bodies over the group's variables: loops ordered by the memory strides of the accesses
/// (stores first), adjacent loops merged where every access allows it (Proposition 6.3). Name and local
/// buffers are left empty.
Group make_group(const loops::Program& program, const FusionGroup& fused, const Target& target,
                 Chooser& chooser);

}  // namespace stax::schedule

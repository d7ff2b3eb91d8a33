// Small questions about bodies that verification, scheduling and execution ask.
#pragma once

#include <span>
#include <vector>

#include "loops/body.h"

namespace stax::loops {

/// For each instruction: does its value differ along the reduction variables? Results of reduce instructions
/// do not; scans, and everything computed from a reduction variable, do. Stores: true where the store runs
/// once for each point of iteration x reduction space.
std::vector<bool> over_reduction(const Body& body);

/// The instructions that `roots` need, themselves included, ascending.
std::vector<ValueId> needed_by(const Body& body, std::span<const ValueId> roots);

/// The operand that is a bool mask of a load, store, atomic_add or check_index; -1 where there is none.
ValueId mask_of(const Inst& inst);

/// Loads, stores and atomic additions.
bool accesses_memory(const Inst& inst);

/// Those, and check_index: what may have a bool mask as its last operand.
bool takes_mask(const Inst& inst);

}  // namespace stax::loops

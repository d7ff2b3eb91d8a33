// Building the body of a group anew.
#pragma once

#include <functional>

#include "codegen/kernel/flat.h"

namespace stax::codegen {

/// What instruction `id` becomes: `inst` is it, with its operands among the new instructions, and `moved`
/// says what became of those before it. Appends to the builder, and returns the value in the instruction's
/// place.
using Rewrite = std::function<loops::ValueId(loops::BodyBuilder& builder, loops::ValueId id, loops::Inst inst,
                                             const std::vector<loops::ValueId>& moved)>;

/// Replaces the body, an instruction at a time, and FlatGroup::node with it. The old body stays until the
/// last.
void rewrite(FlatGroup& flat, const Rewrite& rewritten);

}  // namespace stax::codegen

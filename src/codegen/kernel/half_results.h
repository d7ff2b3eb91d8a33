// What is rounded to a half type before anyone sees it.
#pragma once

#include "codegen/kernel/flat.h"

namespace stax::codegen {

/// Fills in FlatGroup::relaxed: float32 values all of whose uses pass a small relative error on without
/// making it larger, down to a rounding to float16 or bfloat16 (24 to 27 bits would be computed of which 8 or
/// 11 are kept). Among them 1 + erf(z) becomes erfc(-z), and 1 + tanh(z) becomes 2 sigmoid(2 z): the sums
/// lose their relative precision where they cancel, and the functions do not.
void relax_half_results(FlatGroup& flat, const loops::Program& program);

}  // namespace stax::codegen

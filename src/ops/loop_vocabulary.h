// The vocabulary of rows that are written as loops.
#pragma once

#include "lowering/scalar.h"
#include "ops/vocabulary.h"

namespace stax::ops {

using graph::LazyArgs;
using loops::compute_dtype;
using loops::OpCode;
using lowering::Index;
using lowering::Lazy;
using lowering::Lowering;
using lowering::PointwiseArgs;
using lowering::V;
using Lazies = std::vector<Lazy>;

}  // namespace stax::ops

// Operators that are functions of the CPU wherever the rest of their program runs.
#pragma once

#include "device/target.h"
#include "graph/op.h"

namespace stax::lowering {

/// Whether calls of the row become calls of its function. External rows with a rule for GPUs do so on the CPU
/// only.
inline bool is_host_function(const graph::Op& op, Target::Kind kind) {
  if (op.op_class == graph::OpClass::external) return op.lower == nullptr || kind != Target::Kind::cuda;
  return op.op_class == graph::OpClass::dynamic;
}

}  // namespace stax::lowering

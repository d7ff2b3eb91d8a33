// Products of matrices in plans for GPUs: which calls cuBLASLt does, and the kernels that may follow them.
#pragma once

#include "codegen/plan/plan.h"
#include "compiler/pipeline.h"

namespace stax::compiler {

/// Leaves the products of a plan for `device` to cuBLASLt; where there is none they stay CPU functions, which
/// is warned of once.
void set_products(codegen::Plan& plan, Device device, const PipelineOptions& options);

}  // namespace stax::compiler

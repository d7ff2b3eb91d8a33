// What the pipeline makes of a function, for `stax show`.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/pipeline.h"
#include "stax/tensor.h"

namespace stax::compiler {

using TensorFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// Records `function` on tensors like `inputs` and runs every stage but the host compiler; nothing is
/// evaluated. UserError where the function reads a value. stage_text() prints a stage.
Stages stages_of(const TensorFunction& function, std::span<const Tensor> inputs,
                 const PipelineOptions& options = {.strict_native = true});

}  // namespace stax::compiler

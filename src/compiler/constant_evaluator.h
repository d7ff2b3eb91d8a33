// Evaluates what depends on no input, for the pass fold_constants.
#pragma once

#include "graph/pass_table.h"

namespace stax::compiler {

/// The outputs of a graph without inputs, row-major, as the reference executor computes them.
std::vector<std::shared_ptr<const std::vector<std::byte>>> evaluate_constants(
    const graph::PassContext& context, const graph::Graph& graph);

}  // namespace stax::compiler

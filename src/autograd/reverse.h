// Reverse-mode differentiation: from a graph to the graph of its gradients.
#pragma once

#include "graph/pass_table.h"

namespace stax::autograd {

/// The gradient graph of `forward`. Its inputs are the gradients of forward's outputs, in order, then
/// forward's inputs; its outputs are the gradients of forward's floating inputs, of the same dtypes and sizes
/// (zeros where an input does not matter), or of those inputs only that `wanted`, parallel to them where it
/// is not empty, names. What forward computes is computed again where a gradient needs it. UserError, naming
/// the operator and its place in the user's program, where a gradient would pass through an operator without
/// derivative; for functions that change their inputs; and for outputs that are not floating.
graph::Graph reverse(const graph::PassContext& context, const graph::Graph& forward,
                     std::vector<char> wanted = {});

}  // namespace stax::autograd

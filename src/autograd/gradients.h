// Gradients of a value of a graph under construction, appended to that graph.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace stax::autograd {

/// The gradients of `output`, a floating value of one element, with respect to `inputs`, floating values that
/// it may depend on: of the same dtypes and sizes, zeros where it does not. What they need of the values in
/// between is computed again; equal calls are merged by a later pass. Errors as reverse().
std::vector<graph::Var> gradients(graph::Builder& builder, const graph::Var& output,
                                  const std::vector<graph::Var>& inputs);

}  // namespace stax::autograd

// The passes that pass_table.cpp lists: each a function from graph to graph, in the file of its name.
#pragma once

#include "graph/pass_table.h"

namespace stax::graph {

/// Replaces every decomposed operator by its decomposition, until none is left.
///   softmax(x)  ->  m = amax(x); e = exp(x - m); e / sum(e)
Graph decompose(const PassContext& context, const Graph& graph);

/// A call of an operator that has a decomposition.
bool is_decomposed(const Node& node);
using NodePredicate = bool (*)(const Node& node);
/// The same only where `wanted`, which implies is_decomposed().
Graph decompose_where(const PassContext& context, const Graph& graph, NodePredicate wanted);

/// Computes what depends on no input, by the executor that would run it, so that the results are those of
/// running: NaN, signed zeros and roundings included. Views and plain factories stay as they are where
/// nothing is computed from them.
///   c = add(full([], 1), full([], 2)); x * c  ->  c = constant; x * c
Graph fold_constants(const PassContext& context, const Graph& graph);

/// Reads rows instead of multiplying one-hot rows by a matrix:
///   mm(to(eq(classes[:, None], arange(k)), float32), w)  ->  w[classes], 0 for classes outside [0, k)
/// Only for constant weights without NaN and infinities: 0 * inf is NaN. The results are bit for bit those of
/// the product, whatever the order of its sums: all terms but one are zeros.
Graph gather_one_hot(const PassContext& context, const Graph& graph);

/// Merges nodes with the same operator and arguments. Operators with effects (random numbers) are kept apart.
///   a = exp(x); b = exp(x); a + b  ->  a = exp(x); a + a
Graph merge_common(const PassContext& context, const Graph& graph);

/// Removes nodes that no output and no write-back needs. Inputs stay.
Graph remove_dead(const PassContext& context, const Graph& graph);

/// For devices with a library that computes it: a product of matrices, the bias that is added to its rows,
/// relu or the tanh form of gelu, and the rounding to a half type become one call.
///   gelu(add(mm(a, b), bias), 'tanh')  ->  product_epilogue(a, b, bias, 'gelu_tanh')
Graph fuse_products(const PassContext& context, const Graph& graph);

}  // namespace stax::graph

#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/rewriter.h"

namespace stax::graph {
namespace {

Graph decompose_once(const PassContext& context, const Graph& graph, NodePredicate wanted) {
  Rewriter rewriter(context, graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (!wanted(node)) {
      rewriter.keep(id);
      continue;
    }
    rewriter.builder().set_where(node.where);
    const std::vector<VarArg> args = rewriter.mapped_args(node);
    rewriter.replace(id, node.op->decompose(rewriter.builder(), VarArgs(node.op->schema, args)));
  }
  return rewriter.finish();
}

}  // namespace

bool is_decomposed(const Node& node) {
  return node.op != nullptr && node.op->op_class == OpClass::decomposed;
}

Graph decompose_where(const PassContext& context, const Graph& graph, NodePredicate wanted) {
  Graph out = graph;
  while (std::any_of(out.nodes.begin(), out.nodes.end(), wanted)) out = decompose_once(context, out, wanted);
  return out;
}

Graph decompose(const PassContext& context, const Graph& graph) {
  return decompose_where(context, graph, is_decomposed);
}

}  // namespace stax::graph

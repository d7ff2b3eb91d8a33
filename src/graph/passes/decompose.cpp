#include "graph/passes/passes.h"
#include "graph/rewriter.h"

namespace stax::graph {
namespace {

bool has_decomposed(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op && node.op->op_class == OpClass::decomposed) return true;
  }
  return false;
}

Graph decompose_once(const PassContext& context, const Graph& graph) {
  Rewriter rewriter(context, graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (!node.op || node.op->op_class != OpClass::decomposed) {
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

Graph decompose(const PassContext& context, const Graph& graph) {
  Graph out = graph;
  while (has_decomposed(out)) out = decompose_once(context, out);
  return out;
}

}  // namespace stax::graph

#include <string>
#include <unordered_map>

#include "graph/passes/passes.h"
#include "graph/rewriter.h"

namespace stax::graph {

Graph merge_common(const PassContext& context, const Graph& graph) {
  Rewriter rewriter(context, graph);
  std::unordered_map<std::string, NodeId> seen;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    rewriter.keep(id);
    if (node.kind != NodeKind::call || node.op->effects != kPure) continue;
    // The copy's text names merged operands alike; the copy itself, unused, falls to remove_dead.
    const Graph& to = rewriter.builder().graph();
    const auto [it, fresh] = seen.emplace(call_text(to, to.nodes.back()), id);
    if (!fresh) rewriter.replace(id, rewriter.mapped(it->second));
  }
  return rewriter.finish();
}

}  // namespace stax::graph

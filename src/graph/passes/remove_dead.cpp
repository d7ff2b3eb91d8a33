#include "graph/passes/passes.h"
#include "graph/rewriter.h"

namespace stax::graph {

Graph remove_dead(const PassContext& context, const Graph& graph) {
  std::vector<char> live(graph.nodes.size(), 0);
  for (const Output& o : graph.outputs) live[o.value.node] = 1;
  for (const WriteBack& w : graph.write_backs) live[w.value.node] = 1;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()) - 1; id >= 0; --id) {
    if (graph.has_effect(id, kData)) live[id] = 1;
    if (!live[id]) continue;
    for (const auto& a : graph.nodes[id].args) for_each_value(a, [&](const Value& v) { live[v.node] = 1; });
  }
  Rewriter rewriter(context, graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (live[id] || graph.nodes[id].kind == NodeKind::input) rewriter.keep(id);
  }
  return rewriter.finish();
}

}  // namespace stax::graph

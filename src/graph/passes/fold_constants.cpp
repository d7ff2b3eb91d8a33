#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/rewriter.h"

namespace stax::graph {
namespace {

// Larger results stay computed: they would only be loaded instead.
constexpr int64_t kLargestFolded = 1024;

bool is_small(const Node& node) {
  for (const TensorMeta& m : node.results) {
    const auto numel = m.numel().constant();
    if (!numel || *numel > kLargestFolded) return false;
  }
  return true;
}

struct Facts {
  std::vector<char> known;     // the value depends on no input
  std::vector<char> computed;  // ... and takes an operator on another value: worth folding
};

/// Whether a number among the arguments depends on the call.
bool depends_on_sizes(const Node& node) {
  return std::any_of(node.args.begin(), node.args.end(), [](const Argument<Value>& a) {
    if (a.is_number()) return !a.number().integer.is_constant();
    const auto* list = std::get_if<std::vector<Expr>>(&a.value);
    return list != nullptr &&
           std::any_of(list->begin(), list->end(), [](Expr e) { return !e.is_constant(); });
  });
}

Facts find_constants(const Graph& graph) {
  Facts facts{std::vector<char>(graph.nodes.size(), 0), std::vector<char>(graph.nodes.size(), 0)};
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (node.kind == NodeKind::constant) facts.known[id] = is_small(node);
    if (node.kind != NodeKind::call || node.op->effects != kPure || !is_small(node)) continue;
    if (depends_on_sizes(node)) continue;
    bool known = true, computed = false;
    for (const auto& a : node.args) {
      for_each_value(a, [&](const Value& v) {
        known &= facts.known[v.node] != 0;
        computed = true;
      });
    }
    facts.known[id] = known;
    facts.computed[id] = known && computed;
  }
  return facts;
}

// The part of `graph` that the results of `wanted` need, without inputs; its outputs are those results.
Graph constant_part(const PassContext& context, const Graph& graph, const std::vector<NodeId>& wanted) {
  std::vector<char> needed(graph.nodes.size(), 0);
  for (const NodeId id : wanted) needed[id] = 1;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()) - 1; id >= 0; --id) {
    if (!needed[id]) continue;
    for (const auto& a : graph.nodes[id].args) for_each_value(a, [&](const Value& v) { needed[v.node] = 1; });
  }
  Graph bare = graph;
  bare.outputs.clear();
  bare.write_backs.clear();
  Rewriter rewriter(context, bare);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (needed[id]) rewriter.keep(id);
  }
  std::vector<Output> outputs;
  for (const NodeId id : wanted) {
    for (const Var& v : rewriter.mapped(id)) outputs.push_back({v.value(), -1});
  }
  Graph part = rewriter.finish();
  part.outputs = std::move(outputs);
  return part;
}

}  // namespace

Graph fold_constants(const PassContext& context, const Graph& graph) {
  if (!context.evaluate) return graph;
  const Facts facts = find_constants(graph);
  // Only values that something else than a folded node reads have to be stored.
  std::vector<char> read(graph.nodes.size(), 0);
  const auto mark = [&](const Value& v) { read[v.node] = 1; };
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (facts.computed[id]) continue;
    for (const auto& a : graph.nodes[id].args) for_each_value(a, mark);
  }
  for (const Output& o : graph.outputs) mark(o.value);
  for (const WriteBack& w : graph.write_backs) mark(w.value);
  std::vector<NodeId> wanted;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (facts.computed[id] && read[id]) wanted.push_back(static_cast<NodeId>(id));
  }
  if (wanted.empty()) return graph;

  const auto data = context.evaluate(context, constant_part(context, graph, wanted));
  Rewriter rewriter(context, graph);
  size_t next_wanted = 0, next_data = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (next_wanted < wanted.size() && wanted[next_wanted] == id) {
      ++next_wanted;
      std::vector<Var> values;
      for (const TensorMeta& m : node.results) {
        values.push_back(rewriter.builder().constant(dense(m.dtype, m.sizes, m.device), data[next_data++]));
      }
      rewriter.replace(id, std::move(values));
    } else if (!facts.computed[id]) {
      rewriter.keep(id);
    }
  }
  return rewriter.finish();
}

}  // namespace stax::graph

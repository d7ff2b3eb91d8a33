// Copies a graph node by node into a new one, for passes that replace some nodes.
#pragma once

#include "graph/builder.h"
#include "graph/pass_table.h"

namespace stax::graph {

class Rewriter {
 public:
  Rewriter(const PassContext& context, const Graph& from)
      : from_(from), builder_(context.table, context.env, to_), map_(from.nodes.size()) {
    builder_.set_device(device_of(from));
  }

  Builder& builder() { return builder_; }
  /// The new values of a node's results.
  const std::vector<Var>& mapped(NodeId node) const { return map_[node]; }
  Var mapped(Value v) const { return map_[v.node][v.result]; }
  /// The node's arguments, over new values.
  std::vector<VarArg> mapped_args(const Node& node) const;
  /// Sets what a node's results become.
  void replace(NodeId node, std::vector<Var> values) { map_[node] = std::move(values); }
  /// Copies the node as it is, with its metas.
  void keep(NodeId node);
  /// The new graph, with the outputs and write-backs of the old one.
  Graph finish();
  /// The new graph as it stands.
  Graph take() { return std::move(to_); }

 private:
  const Graph& from_;
  Graph to_;
  Builder builder_;
  std::vector<std::vector<Var>> map_;
};

}  // namespace stax::graph

#include "graph/rewriter.h"

namespace stax::graph {

std::vector<VarArg> Rewriter::mapped_args(const Node& node) const {
  std::vector<VarArg> args;
  for (const auto& a : node.args)
    args.push_back(map_tensors<Var>(a, [&](const Value& v) { return mapped(v); }));
  return args;
}

void Rewriter::keep(NodeId id) {
  const Node& node = from_.nodes[id];
  switch (node.kind) {
    case NodeKind::input:
      map_[id] = {builder_.input(node.results[0], node.name)};
      return;
    case NodeKind::constant:
      map_[id] = {builder_.constant(node.results[0], node.data)};
      return;
    case NodeKind::call: {
      builder_.set_where(node.where);
      map_[id] = builder_.add_call(*node.op, mapped_args(node), node.results);
      return;
    }
  }
}

Graph Rewriter::finish() {
  for (const Output& o : from_.outputs) to_.outputs.push_back({mapped(o.value).value(), o.alias_of_input});
  for (const WriteBack& w : from_.write_backs)
    to_.write_backs.push_back({w.input, mapped(w.value).value(), w.region});
  return std::move(to_);
}

}  // namespace stax::graph

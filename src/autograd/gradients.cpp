#include "autograd/gradients.h"

#include <map>
#include <set>

#include "autograd/reverse.h"

namespace stax::autograd {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::Value;
using graph::Var;
using graph::VarArg;

namespace {

using Key = std::pair<NodeId, int32_t>;
Key key(const Value& v) {
  return {v.node, v.result};
}

/// The part of a graph between some values and one that is computed from them.
class Between {
 public:
  Between(Builder& builder, const Value& output, const std::vector<Var>& inputs)
      : from_(builder.graph()), copy_(builder.table(), builder.env(), part_) {
    for (const Var& v : inputs) take_in(v.value());
    find_dependent(output.node);
    for (const NodeId id : dependent_) copy_node(from_.nodes[static_cast<size_t>(id)], id);
    part_.outputs.push_back({take_in(output), -1});
  }

  const Graph& part() const { return part_; }
  /// What the part's inputs are in the whole, in order.
  const std::vector<Value>& inputs() const { return inputs_; }

 private:
  /// Nodes up to `last` that something of the inputs goes into.
  void find_dependent(NodeId last) {
    std::set<NodeId> sources;
    for (const auto& [value, unused] : mapped_) sources.insert(value.first);
    for (NodeId id = 0; id <= last; ++id) {
      bool depends = false;
      for (const auto& a : from_.nodes[static_cast<size_t>(id)].args)
        graph::for_each_value(a, [&](const Value& v) {
          depends = depends || mapped_.count(key(v)) > 0 || dependent_.count(v.node) > 0;
        });
      if (depends && sources.count(id) == 0) dependent_.insert(id);
    }
  }

  /// The value in the part: what nothing in it computes comes in.
  Value take_in(const Value& v) {
    const auto [at, added] = mapped_.try_emplace(key(v));
    if (added) {
      at->second = copy_.input(from_.meta(v)).value();
      inputs_.push_back(v);
    }
    return at->second;
  }

  void copy_node(const Node& node, NodeId id) {
    std::vector<VarArg> args;
    for (const auto& a : node.args)
      args.push_back(map_tensors<Var>(a, [&](const Value& v) { return Var(&copy_, take_in(v)); }));
    copy_.set_where(node.where);
    const std::vector<Var> results = copy_.add_call(*node.op, args, node.results);
    for (size_t k = 0; k < results.size(); ++k) mapped_[{id, static_cast<int32_t>(k)}] = results[k].value();
  }

  const Graph& from_;
  Graph part_;
  Builder copy_;
  std::set<NodeId> dependent_;
  std::map<Key, Value> mapped_;
  std::vector<Value> inputs_;
};

/// Appends the nodes of `part`, whose inputs are `values`; returns its outputs.
std::vector<Var> append(Builder& builder, const Graph& part, const std::vector<Var>& values) {
  std::vector<std::vector<Var>> mapped(part.nodes.size());
  size_t next = 0;
  for (size_t id = 0; id < part.nodes.size(); ++id) {
    const Node& node = part.nodes[id];
    switch (node.kind) {
      case NodeKind::input:
        mapped[id] = {values.at(next++)};
        break;
      case NodeKind::constant:
        mapped[id] = {builder.constant(node.results[0], node.data)};
        break;
      case NodeKind::call: {
        std::vector<VarArg> args;
        for (const auto& a : node.args)
          args.push_back(map_tensors<Var>(a, [&](const Value& v) { return mapped[v.node][v.result]; }));
        builder.set_where(node.where);
        mapped[id] = builder.add_call(*node.op, args, node.results);
      }
    }
  }
  std::vector<Var> outputs;
  for (const graph::Output& o : part.outputs) outputs.push_back(mapped[o.value.node][o.value.result]);
  return outputs;
}

}  // namespace

std::vector<Var> gradients(Builder& builder, const Var& output, const std::vector<Var>& inputs) {
  const Between between(builder, output.value(), inputs);
  std::vector<char> wanted(between.inputs().size(), 0);
  std::fill_n(wanted.begin(), inputs.size(), 1);
  const graph::PassContext context{builder.table(), builder.env()};
  const Graph backward = reverse(context, between.part(), wanted);
  std::vector<Var> values = {builder.call("ones_like", {output})};
  for (const Value& v : between.inputs()) values.emplace_back(&builder, v);
  return append(builder, backward, values);
}

}  // namespace stax::autograd

#include "autograd/reverse.h"

#include <map>

#include "graph/passes/passes.h"
#include "graph/rewriter.h"
#include "support/check.h"

namespace stax::autograd {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::Value;
using graph::Var;
using graph::VarArg;
using graph::VarArgs;

namespace {

/// Operators without a derivative of their own become what they are made of.
bool lacks_derivative(const Node& node) {
  return graph::is_decomposed(node) && node.op->derivative == nullptr;
}

/// Appends the adjoints of a graph's nodes, last one first.
class Reverse {
 public:
  Reverse(const graph::PassContext& context, const Graph& forward, std::vector<char> wanted)
      : forward_(forward), wanted_(std::move(wanted)), copy_(context, forward), builder_(copy_.builder()) {}

  Graph run() {
    STAX_CHECK(forward_.write_backs.empty(),
               "grad: the function changes input {} in place; give it a function that returns new tensors",
               forward_.write_backs.front().input);
    std::vector<Var> upstream;
    for (size_t k = 0; k < forward_.outputs.size(); ++k) {
      graph::TensorMeta meta = forward_.meta(forward_.outputs[k].value);
      STAX_CHECK(is_floating_point(meta.dtype), "grad: output {} is {}; only floating tensors have gradients",
                 k, name(meta.dtype));
      upstream.push_back(
          builder_.input(graph::dense(meta.dtype, meta.sizes, meta.device), fmt::format("grad_{}", k)));
    }
    copy_forward();
    for (size_t k = 0; k < upstream.size(); ++k) add(copy_.mapped(forward_.outputs[k].value), upstream[k]);
    for (size_t id = forward_.nodes.size(); id-- > 0;) differentiate(static_cast<NodeId>(id));
    finish();
    return copy_.take();
  }

 private:
  void copy_forward() {
    for (NodeId id = 0; id < static_cast<NodeId>(forward_.nodes.size()); ++id) {
      const Node& node = forward_.nodes[id];
      copy_.keep(id);
      differs_.push_back(node.kind == NodeKind::input ? is_wanted(node) : depends(node));
    }
  }

  bool is_wanted(const Node& input) const {
    return is_floating_point(input.results[0].dtype) &&
           (wanted_.empty() || wanted_[static_cast<size_t>(input.input)] != 0);
  }

  /// Does a gradient reach a floating input through this node?
  bool depends(const Node& node) const {
    bool any = false;
    for (const auto& a : node.args)
      graph::for_each_value(a, [&](const Value& v) {
        any = any || (differs_[v.node] && is_floating_point(forward_.meta(v).dtype));
      });
    return any;
  }

  void add(const Var& value, const Var& gradient) {
    const auto key = std::pair(value.value().node, value.value().result);
    const auto [it, fresh] = gradients_.emplace(key, gradient);
    if (!fresh) it->second = it->second + gradient;
  }

  const Var* gradient(const Var& value) const {
    const auto it = gradients_.find({value.value().node, value.value().result});
    return it == gradients_.end() ? nullptr : &it->second;
  }

  void differentiate(NodeId id) {
    const Node& node = forward_.nodes[id];
    if (node.kind != NodeKind::call || !differs_[id]) return;
    std::vector<Var> gradients;
    bool any = false;
    for (const Var& result : copy_.mapped(id)) {
      const Var* g = gradient(result);
      any = any || g != nullptr;
      gradients.push_back(g == nullptr ? Var() : *g);
    }
    if (!any) return;
    if (node.op->derivative == nullptr)
      throw_user_error_at(node.where, fmt::format("[grad] {} has no derivative; keep what depends on the "
                                                  "inputs that are differentiated out of it",
                                                  node.op->schema.full_name()));
    std::vector<Value> values;
    for (const auto& a : node.args) graph::for_each_value(a, [&](const Value& v) { values.push_back(v); });
    const std::vector<VarArg> args = copy_.mapped_args(node);
    builder_.set_where(node.where);
    const std::vector<Var> found =
        node.op->derivative(builder_, VarArgs(node.op->schema, args), copy_.mapped(id), gradients);
    STAX_ASSERT(found.size() == values.size(), "the derivative of {} gives {} gradients for {} tensors",
                node.op->schema.full_name(), found.size(), values.size());
    for (size_t k = 0; k < values.size(); ++k) {
      const bool wanted = differs_[values[k].node] && is_floating_point(forward_.meta(values[k]).dtype);
      if (wanted && found[k].is_set()) add(copy_.mapped(values[k]), found[k]);
    }
  }

  void finish() {
    for (NodeId id : forward_.inputs) {
      if (!is_wanted(forward_.nodes[id])) continue;
      const Var input = copy_.mapped(id)[0];
      const Var* g = gradient(input);
      builder_.graph().outputs.push_back(
          {(g != nullptr ? *g : builder_.call("zeros_like", {input})).value(), -1});
    }
  }

  const Graph& forward_;
  std::vector<char> wanted_;  // by input
  graph::Rewriter copy_;
  graph::Builder& builder_;
  std::vector<bool> differs_;  // by node of forward: depends on a floating input
  std::map<std::pair<NodeId, int32_t>, Var> gradients_;
};

}  // namespace

Graph reverse(const graph::PassContext& context, const Graph& forward, std::vector<char> wanted) {
  const Graph prepared = graph::decompose_where(context, forward, lacks_derivative);
  Graph out = Reverse(context, prepared, std::move(wanted)).run();
  graph::verify(out);
  return out;
}

}  // namespace stax::autograd

#include <algorithm>
#include <optional>

#include "graph/activation.h"
#include "graph/passes/passes.h"
#include "graph/rewriter.h"

namespace stax::graph {
namespace {

bool is_call(const Node& node, std::string_view op) {
  return node.kind == NodeKind::call && node.op->schema.full_name() == op;
}

bool is_product(const Node& node) {
  return node.kind == NodeKind::call && node.op->product == ProductKind::plain &&
         is_floating_point(node.results[0].dtype);
}

/// The activation that a node computes; none where it computes something else.
Activation activation_of(const Node& node) {
  const auto* const row = std::ranges::find_if(kActivations, [&](const ActivationRow& r) {
    return !r.op.empty() && is_call(node, r.op) && (r.mode.empty() || node.args[1].string() == r.mode);
  });
  return row != kActivations.end() ? row->activation : Activation::none;
}

/// A product, and what is computed of it alone.
struct Chain {
  NodeId product = -1, last = -1;
  std::optional<Value> bias;  // one element for each column, in any shape
  Activation activation = Activation::none;
  DType dtype = DType::float32;  // of the result
};

/// Follows a product to its readers.
class Follower {
 public:
  Follower(const PassContext& context, const Graph& graph)
      : env_(context.env), graph_(graph), readers_(graph.nodes.size()) {
    uses_ = count_uses(graph);
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
      for (const auto& argument : graph.nodes[id].args)
        for_each_value(argument, [&](Value v) { readers_[v.node].push_back(id); });
    }
  }

  /// Nothing where there is nothing to fuse.
  std::optional<Chain> follow(NodeId product) {
    const Node& node = graph_.nodes[product];
    const Value left = node.args[0].tensor();
    columns_ = node.results[0].sizes.back();
    operands_ = graph_.meta(left).dtype;
    // The empty sum is no call of the library.
    if (!env_.proves(gt(graph_.meta(left).sizes.back(), 0))) return std::nullopt;
    chain_ = {.product = product, .last = product, .dtype = node.results[0].dtype};
    NodeId at = product;
    while (uses_[at] == 1 && readers_[at].size() == 1) {
      const NodeId next = readers_[at][0];
      if (!take(graph_.nodes[next], at)) break;
      at = next;
      if (!is_call(graph_.nodes[at], "view")) chain_.last = at;
    }
    return fits() ? std::optional(chain_) : std::nullopt;
  }

 private:
  /// Whether `next`, which reads the value of node `at`, becomes a part of the chain.
  bool take(const Node& next, NodeId at) {
    if (is_call(next, "view")) {
      const auto& sizes = next.results[0].sizes;
      return next.results[0].dtype == chain_.dtype && !sizes.empty() &&
             env_.proves(eq(sizes.back(), columns_));
    }
    if (is_call(next, "to.dtype")) return take_rounding(next.results[0].dtype);
    if (chain_.activation != Activation::none) return false;
    if (is_call(next, "add.Tensor")) return take_bias(next, at);
    chain_.activation = activation_of(next);
    return chain_.activation != Activation::none;
  }

  /// A float32 result of half operands that becomes a half.
  bool take_rounding(DType dtype) {
    if (chain_.dtype != DType::float32 || dtype != operands_ || !is_half(dtype)) return false;
    chain_.dtype = dtype;
    return true;
  }

  bool take_bias(const Node& next, NodeId at) {
    const Number& alpha = next.args[2].number();
    const bool once = alpha.is_float() ? alpha.floating == 1 : alpha.integer.is(1);
    if (chain_.bias || !once || !next.args[0].is_tensor() || !next.args[1].is_tensor()) return false;
    const bool first = next.args[0].tensor().node == at;
    const Value added = next.args[first ? 1 : 0].tensor();
    const TensorMeta &before = graph_.nodes[at].results[0], &after = next.results[0];
    if (after.dtype != chain_.dtype || after.dim() != before.dim()) return false;
    for (size_t d = 0; d < before.sizes.size(); ++d)
      if (!env_.proves(eq(before.sizes[d], after.sizes[d]))) return false;
    chain_.bias = row_behind(added);
    return chain_.bias.has_value();
  }

  /// The row that `value` repeats: below expansions and conversions.
  std::optional<Value> row_behind(Value value) const {
    while (true) {
      const Node& node = graph_.nodes[value.node];
      const bool widens = is_call(node, "to.dtype") && node.results[0].dtype == DType::float32 &&
                          graph_.meta(node.args[0].tensor()).dtype == operands_;
      if (!widens && !is_call(node, "expand")) break;
      value = node.args[0].tensor();
    }
    const auto& sizes = graph_.meta(value).sizes;
    if (sizes.empty() || !env_.proves(eq(sizes.back(), columns_))) return std::nullopt;
    for (size_t d = 0; d + 1 < sizes.size(); ++d)
      if (!env_.proves(eq(sizes[d], 1))) return std::nullopt;
    return value;
  }

  /// Whether a library does it: a bias may be narrower than the result, not wider.
  bool fits() const {
    if (chain_.last == chain_.product) return false;
    const TensorMeta& result = graph_.nodes[chain_.last].results[0];
    if (result.dtype != chain_.dtype || result.strides != contiguous_strides(result.sizes)) return false;
    if (!chain_.bias) return true;
    const DType bias = graph_.meta(*chain_.bias).dtype;
    return bias == chain_.dtype || (is_half(bias) && chain_.dtype == DType::float32);
  }

  ShapeEnv& env_;
  const Graph& graph_;
  std::vector<int32_t> uses_;
  std::vector<std::vector<NodeId>> readers_;
  Expr columns_;
  DType operands_ = DType::float32;
  Chain chain_;
};

Var fused(Rewriter& rewriter, const Graph& graph, const Chain& chain) {
  Builder& b = rewriter.builder();
  const Node& product = graph.nodes[chain.product];
  VarArg bias;
  if (chain.bias) {
    Var row = rewriter.mapped(*chain.bias);
    if (row.dim() != 1) row = b.call("reshape", {row, std::vector<Expr>{row.sizes().back()}});
    if (row.dtype() != chain.dtype) row = b.call("to.dtype", {row, chain.dtype});
    bias = row;
  }
  const Var out = b.call("product_epilogue", {rewriter.mapped(product.args[0].tensor()),
                                              rewriter.mapped(product.args[1].tensor()), bias,
                                              std::string(name(chain.activation)), chain.dtype});
  const auto& sizes = graph.nodes[chain.last].results[0].sizes;
  return out.sizes() == sizes ? out : b.call("view", {out, sizes});
}

}  // namespace

Graph fuse_products(const PassContext& context, const Graph& graph) {
  Follower follower(context, graph);
  std::vector<std::optional<Chain>> ending(graph.nodes.size());  // by last node
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (!is_product(graph.nodes[id])) continue;
    if (auto chain = follower.follow(id)) ending[static_cast<size_t>(chain->last)] = std::move(chain);
  }
  Rewriter rewriter(context, graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (const auto& chain = ending[static_cast<size_t>(id)]) {
      rewriter.builder().set_where(graph.nodes[id].where);
      rewriter.replace(id, {fused(rewriter, graph, *chain)});
    } else {
      rewriter.keep(id);
    }
  }
  return remove_dead(context, rewriter.finish());
}

}  // namespace stax::graph

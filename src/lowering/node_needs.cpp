#include "lowering/node_needs.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "graph/op.h"

namespace stax::lowering {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::OpClass;
using graph::Value;
using loops::Inst;
using loops::OpCode;
using loops::ValueId;

namespace {

constexpr int kCheapInstructions = 6;
constexpr int kCheapLoads = 2;
constexpr int kCheapAfter = 10;  // more instructions, on results of reductions in two levels

void find_stored(const Graph& graph, NodeNeeds& needs) {
  std::vector<char>& stored = needs.stored;
  stored.assign(graph.nodes.size(), 0);
  for (const graph::Output& o : graph.outputs) stored[o.value.node] = o.alias_of_input < 0;
  for (const graph::WriteBack& w : graph.write_backs) stored[w.value.node] = 1;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (node.kind != NodeKind::call) continue;
    const bool passes_on = node.op->op_class == OpClass::external || node.op->op_class == OpClass::dynamic ||
                           (node.op->op_class == OpClass::view && (stored[id] || !node.op->index_map));
    if (!passes_on) continue;
    for (const auto& a : node.args) for_each_value(a, [&](const Value& v) { stored[v.node] = 1; });
  }
}

void find_layouts(const Graph& graph, NodeNeeds& needs) {
  std::vector<char>& pinned = needs.pinned;
  pinned.assign(graph.nodes.size(), 0);
  needs.wanted.resize(graph.nodes.size());
  for (const graph::Output& o : graph.outputs) pinned[o.value.node] = 1;
  for (const graph::WriteBack& w : graph.write_backs) pinned[w.value.node] = 1;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (node.kind != NodeKind::call) continue;
    if (node.op->op_class == OpClass::view && (pinned[id] || !node.op->index_map)) {
      pinned[node.args[0].tensor().node] = 1;
    }
    if (node.op->layout) {
      const Value first = node.args[0].tensor();
      needs.wanted[first.node] = node.op->layout(graph.meta(first));
    }
  }
}

void find_writes(const Graph& graph, NodeNeeds& needs) {
  constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();
  std::vector<int32_t>& last_use = needs.last_use;
  std::vector<char>& in_place = needs.in_place;
  last_use.assign(graph.nodes.size(), -1);
  in_place.assign(graph.nodes.size(), 0);
  for (const graph::Output& o : graph.outputs) last_use[o.value.node] = kEnd;
  for (const graph::WriteBack& w : graph.write_backs) last_use[w.value.node] = kEnd;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (node.kind != NodeKind::call) continue;
    in_place[id] = is_write(node) && (in_place[id] || needs.stored[id] || needs.uses[id] > 1);
    for (const auto& a : node.args) {
      for_each_value(a, [&](const Value& v) {
        last_use[v.node] = std::max(last_use[v.node], static_cast<int32_t>(id));
      });
    }
    if (in_place[id] || (is_clone(node) && needs.stored[id])) in_place[node.args[0].tensor().node] = 1;
  }
}

/// What a formula is made of.
struct Cost {
  int instructions = 0, loads = 0, results = 0;  // results: loads of the buffers asked for, none of `loads`
  bool simple = true;                            // of cheap instructions
};

/// Counts up to more than `most` instructions. Where the formula reads `results`, exponentials are cheap.
Cost cost_of(const loops::Body& body, ValueId formula, int most, const std::set<loops::BufferId>& results) {
  std::vector<ValueId> stack = {formula};
  std::vector<char> seen(static_cast<size_t>(formula) + 1, 0);
  Cost cost;
  bool exponentials = false;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (seen[v]) continue;
    seen[v] = 1;
    const Inst& inst = body[v];
    const bool exponential = inst.op == OpCode::exp || inst.op == OpCode::isinf;
    exponentials = exponentials || exponential;
    cost.simple = cost.simple && (exponential || loops::info(inst.op).cost == loops::OpCost::cheap);
    if (++cost.instructions > most) break;
    if (inst.op == OpCode::load) ++(results.contains(inst.buffer) ? cost.results : cost.loads);
    stack.insert(stack.end(), inst.args.begin(), inst.args.end());
    stack.insert(stack.end(), inst.indirect.begin(), inst.indirect.end());
  }
  cost.simple = cost.simple && (!exponentials || cost.results > 0);
  return cost;
}

}  // namespace

NodeNeeds find_needs(const Graph& graph) {
  NodeNeeds needs;
  needs.uses = count_uses(graph);
  find_stored(graph, needs);
  find_layouts(graph, needs);
  find_writes(graph, needs);
  return needs;
}

bool is_write(const Node& node) {
  if (node.kind != NodeKind::call || node.op->op_class != OpClass::lowered) return false;
  for (const std::string_view name :
       {"slice_scatter", "select_scatter", "as_strided_scatter", "index_put", "scatter", "scatter_add"}) {
    if (node.op->schema.name == name) return node.args[0].is_tensor();
  }
  return false;
}

bool is_clone(const Node& node) {
  return node.kind == NodeKind::call && node.op->schema.name == "clone" && node.args[0].is_tensor();
}

bool is_cheap(const loops::Body& body, ValueId formula) {
  const Cost cost = cost_of(body, formula, kCheapInstructions, {});
  return cost.simple && cost.instructions <= kCheapInstructions && cost.loads <= kCheapLoads;
}

bool is_cheap_after(const std::set<loops::BufferId>& results, const loops::Body& body, ValueId formula) {
  const Cost cost = cost_of(body, formula, kCheapInstructions + kCheapAfter, results);
  return cost.results > 0 && cost.simple && cost.instructions <= kCheapInstructions + kCheapAfter &&
         cost.loads <= kCheapLoads;
}

}  // namespace stax::lowering

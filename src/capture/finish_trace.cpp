// The end of a trace: what is returned, what is written back, which inputs are needed.
#include <map>

#include "capture/functional_trace.h"
#include "support/check.h"

namespace stax::capture {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::TensorMeta;
using graph::Value;

/// How `result` comes from a run. Tensors over one fresh storage share a graph output, the storage's base.
CapturedOutput FunctionalTrace::output_of(const Tensor& result,
                                          std::map<const TracedStorage*, int32_t>& shared,
                                          const std::map<const TracedStorage*, int32_t>& uses,
                                          Captured& out) {
  Tensor holder;
  TracedImpl& impl = traced(result, holder);
  const TracedStorage& storage = *impl.storage;
  const graph::Var now = value(impl);
  CapturedOutput output;
  output.meta = now.meta();
  if (storage.exists()) {
    for (size_t k = 0; k < arguments_.size() && output.argument < 0; ++k) {
      const auto known = lifted_.find(arguments_[k].impl());
      if (known != lifted_.end() && known->second.impl() == &impl) {
        output.argument = static_cast<int32_t>(k);
      }
    }
    for (const auto& [concrete, traced] : lifted_) {
      if (output.argument < 0 && traced.impl() == &impl) {
        output.tensor = Tensor(detail::ImplPtr(const_cast<TensorImpl*>(concrete)));
      }
    }
    output.input = storage.input;
    out.graph.outputs.push_back({now.value(), storage.input});
    return output;
  }
  if (uses.at(&storage) == 1 && !impl.is_number) {
    output.whole = true;
    output.output = static_cast<int32_t>(out.graph.outputs.size());
    out.graph.outputs.push_back({now.value(), -1});
    return output;
  }
  const auto [known, added] = shared.emplace(&storage, static_cast<int32_t>(out.graph.outputs.size()));
  if (added) out.graph.outputs.push_back({storage.base.value(), -1});
  output.output = known->second;
  return output;
}

Captured FunctionalTrace::finish(std::span<const Tensor> results) {
  check_running();
  Captured out;
  std::vector<Tensor> holders(results.size());
  std::map<const TracedStorage*, int32_t> uses, shared;
  std::map<const TensorImpl*, int32_t> seen;
  for (size_t k = 0; k < results.size(); ++k) {
    TracedImpl& impl = traced(results[k], holders[k]);
    if (seen.emplace(&impl, 0).second) ++uses[impl.storage.get()];
  }
  // Replaying views appends nodes, so the graph moves last.
  seen.clear();
  for (size_t k = 0; k < results.size(); ++k) {
    const auto [known, added] = seen.emplace(holders[k].impl(), static_cast<int32_t>(k));
    if (added) {
      out.outputs.push_back(output_of(holders[k], shared, uses, out));
    } else {
      out.outputs.emplace_back().same_as = known->second;
    }
  }
  for (const StoragePtr& root : roots_) {
    if (root->written_whole) out.graph.write_backs.push_back({root->input, root->base.value(), {}});
    for (const TracedStorage::Part& part : root->written) {
      out.graph.write_backs.push_back({root->input, part.value.value(), part.region});
    }
  }
  out.graph.nodes = std::move(graph_.nodes);
  out.graph.inputs = std::move(graph_.inputs);
  out.env = env_;
  out.inputs = std::move(inputs_);
  out.random_count = random_count_;
  out.offset_matters = offset_matters_;
  out.number_matters = number_matters_;
  state_ = State::finished;
  drop_unused(out);
  find_used(out);
  return out;
}

void FunctionalTrace::find_used(Captured& out) const {
  const auto same_memory = [](const Tensor& a, const Tensor& b) {
    return a.impl()->storage_id() == b.impl()->storage_id();
  };
  out.used = used_;
  for (size_t k = 0; k < arguments_.size(); ++k) {
    for (const CapturedInput& input : out.inputs) {
      if (input.number >= 0) continue;
      const Tensor& source =
          input.argument >= 0 ? arguments_[static_cast<size_t>(input.argument)] : input.tensor;
      if (same_memory(arguments_[k], source)) out.used[k] = 1;
    }
  }
}

std::shared_ptr<FunctionalTrace> FunctionalTrace::start(TraceOptions options) {
  auto trace = std::make_shared<FunctionalTrace>(std::move(options));
  FunctionalTrace* raw = trace.get();
  return {raw, [trace = std::move(trace)](FunctionalTrace*) { trace->close(); }};
}

void FunctionalTrace::close() {
  if (state_ == State::running) state_ = State::finished;
  lifted_.clear();
  arguments_.clear();
  constants_.clear();
}

/// Removes nodes that nothing needs: views that were replayed since, inputs that became part of a larger
/// stretch of memory.
void FunctionalTrace::drop_unused(Captured& out) const {
  Graph& graph = out.graph;
  std::vector<char> live(graph.nodes.size(), 0);
  for (const graph::Output& o : graph.outputs) live[o.value.node] = 1;
  for (const graph::WriteBack& w : graph.write_backs) {
    live[w.value.node] = 1;
    live[graph.inputs[w.input]] = 1;
  }
  for (const graph::Output& o : graph.outputs) {
    if (o.alias_of_input >= 0) live[graph.inputs[o.alias_of_input]] = 1;
  }
  for (auto id = static_cast<NodeId>(graph.nodes.size()) - 1; id >= 0; --id) {
    if (graph.has_effect(id, graph::kData)) live[id] = 1;
    if (!live[id]) continue;
    for (const auto& a : graph.nodes[id].args) {
      graph::for_each_value(a, [&](const Value& v) { live[v.node] = 1; });
    }
  }
  std::vector<NodeId> moved(graph.nodes.size(), -1);
  std::vector<int32_t> input_moved(graph.inputs.size(), -1);
  std::vector<Node> nodes;
  std::vector<NodeId> inputs;
  std::vector<CapturedInput> sources;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    Node& node = graph.nodes[id];
    if (!live[id]) continue;
    moved[id] = static_cast<NodeId>(nodes.size());
    if (node.kind == NodeKind::input) {
      input_moved[node.input] = static_cast<int32_t>(inputs.size());
      sources.push_back(std::move(out.inputs[node.input]));
      node.input = static_cast<int32_t>(inputs.size());
      inputs.push_back(moved[id]);
    }
    for (auto& a : node.args) {
      a = map_tensors<Value>(a, [&](const Value& v) { return Value{moved[v.node], v.result}; });
    }
    nodes.push_back(std::move(node));
  }
  for (graph::Output& o : graph.outputs) {
    o.value.node = moved[o.value.node];
    if (o.alias_of_input >= 0) o.alias_of_input = input_moved[o.alias_of_input];
  }
  for (graph::WriteBack& w : graph.write_backs) {
    w.input = input_moved[w.input];
    w.value.node = moved[w.value.node];
  }
  for (CapturedOutput& o : out.outputs) {
    if (o.input >= 0) o.input = input_moved[o.input];
  }
  graph.nodes = std::move(nodes);
  graph.inputs = std::move(inputs);
  out.inputs = std::move(sources);
}

}  // namespace stax::capture

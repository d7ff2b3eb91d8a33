// The operator graph: what capture records, passes rewrite and lowering consumes. Functional: in-place
// operations and writes through views are new values, plus a list of what is written back to which input.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/meta.h"
#include "graph/op.h"
#include "support/call_stack.h"
#include "symbolic/shape_env.h"

namespace stax::graph {

using NodeId = int32_t;

/// Result `result` of node `node`.
struct Value {
  NodeId node = -1;
  int32_t result = 0;
  friend bool operator==(const Value&, const Value&) = default;
};

enum class NodeKind : uint8_t { input, constant, call };

struct Node {
  NodeKind kind = NodeKind::call;
  const Op* op = nullptr;             // call
  std::vector<Argument<Value>> args;  // call, in schema order
  std::vector<TensorMeta> results;
  std::string name;                                    // "x", "add", "add_1": unique
  CallStack where;                                     // call: where in the user's program it was made
  int32_t input = -1;                                  // input: its position
  std::shared_ptr<const std::vector<std::byte>> data;  // constant: row-major
};

/// A result of the graph. It is a fresh tensor (whose meta may be a view of another value) or a view of an
/// input's storage.
struct Output {
  Value value;
  int32_t alias_of_input =
      -1;  // >= 0: returned as a view of that input with the meta's sizes, strides and offset
};

/// After the graph ran, `value` is written to input `input`: to the whole of it, or to the part that `region`
/// is (sizes, strides, offset from element 0). Write-backs happen in order; all values are those of before.
struct WriteBack {
  int32_t input = -1;
  Value value;
  std::optional<TensorMeta> region;
};

struct Graph {
  std::vector<Node> nodes;  // in dependence order
  std::vector<NodeId> inputs;
  std::vector<Output> outputs;
  std::vector<WriteBack> write_backs;

  const TensorMeta& meta(Value value) const { return nodes[value.node].results[value.result]; }
  bool has_effect(NodeId id, Effects effect) const {
    return nodes[id].op != nullptr && (nodes[id].op->effects & effect) != 0;
  }
  /// Text form with all meta, one node a line.
  std::string str() const;
};

/// The device that the graph's values lie on: the GPU where there is one among them. UserError where there
/// are several.
Device device_of(const Graph& graph);

/// Calls f for every value that an argument holds.
template <class F>
void for_each_value(const Argument<Value>& argument, F&& f) {
  if (argument.is_tensor()) f(argument.tensor());
  if (const auto* list = std::get_if<Argument<Value>::Tensors>(&argument.value)) {
    for (const auto& v : *list) {
      if (v) f(*v);
    }
  }
}

/// A call's operator and arguments as text: equal texts within one graph mean equal calls.
std::string call_text(const Graph& graph, const Node& node);

/// How often each node's results are used by nodes, outputs and write-backs; parallel to nodes.
std::vector<int32_t> count_uses(const Graph& graph);

/// Raises InternalError, naming node and rule, unless the graph is well formed.
void verify(const Graph& graph);

}  // namespace stax::graph

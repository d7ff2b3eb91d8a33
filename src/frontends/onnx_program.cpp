#include "frontends/onnx_program.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "frontends/onnx_ops.h"
#include "support/check.h"
#include "support/plural.h"
#include "tensor/tensor_impl.h"

namespace stax::onnx {
namespace {

using Array = stax::Tensor;

using ops::Value;
using Scope = std::unordered_map<std::string, Value>;

/// A tensor of the model's own, which nobody writes.
Array to_tensor(const files::ArrayView& view) {
  const auto* data = static_cast<const std::byte*>(view.data);
  auto bytes = std::make_shared<const std::vector<std::byte>>(data, data + view.nbytes);
  return Array(detail::ImplPtr(new StridedImpl(view.dtype, dense_extents(view.sizes), 0,
                                               StoragePtr(Storage::constant(std::move(bytes))))));
}

bool is_standard(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

bool is_if(const Node& node) {
  return is_standard(node.domain) && node.op_type == "If";
}

/// The graphs that a node has for attributes.
std::vector<const Graph*> graphs_of(const Node& node) {
  std::vector<const Graph*> graphs;
  for (const Attribute& attribute : node.attributes) {
    if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&attribute.value))
      graphs.push_back(graph->get());
  }
  return graphs;
}

/// Every name that a node reads or makes, in its graphs as well.
void names_of(const Node& node, std::vector<std::string>& names) {
  names.insert(names.end(), node.inputs.begin(), node.inputs.end());
  names.insert(names.end(), node.outputs.begin(), node.outputs.end());
  for (const Graph* graph : graphs_of(node)) {
    for (const Node& inner : graph->nodes) names_of(inner, names);
    for (const ValueInfo& output : graph->outputs) names.push_back(output.name);
  }
}

int64_t opset_of(const std::map<std::string, int64_t>& opsets, const std::string& domain) {
  for (const auto& [name, version] : opsets) {
    if (name == domain || (is_standard(name) && is_standard(domain))) return version;
  }
  return 1;
}

}  // namespace

struct OnnxProgram::State {
  Model model;
  std::vector<ValueInfo> inputs;
  Scope constants;
  std::unordered_map<const Node*, std::vector<std::string>> last_uses;  // names that are free after a node

  const Function* find_function(const Node& node) const {
    for (const Function& function : model.functions) {
      if (function.name == node.op_type && function.domain == node.domain) return &function;
    }
    return nullptr;
  }

  void collect_missing(const std::vector<Node>& nodes, const std::map<std::string, int64_t>& opsets,
                       std::set<std::string>& missing) const;
  void find_last_uses();
  void run_nodes(const std::vector<Node>& nodes, const std::map<std::string, int64_t>& opsets,
                 Scope& scope) const;
  std::vector<Value> run_node(const Node& node, const std::map<std::string, int64_t>& opsets,
                              const Scope& scope) const;
  std::vector<Value> run_branch(const Node& node, const std::map<std::string, int64_t>& opsets,
                                const Scope& scope) const;
  std::vector<Value> run_function(const Function& function, const Node& node, const Scope& scope) const;
  void check_inputs(const std::vector<Array>& given) const;
};

void OnnxProgram::State::collect_missing(const std::vector<Node>& nodes,
                                         const std::map<std::string, int64_t>& opsets,
                                         std::set<std::string>& missing) const {
  for (const Node& node : nodes) {
    const int64_t opset = opset_of(opsets, node.domain);
    if (is_standard(node.domain) && ops::find_row(node.op_type, opset)) continue;
    if (is_if(node)) {
      for (const Graph* graph : graphs_of(node)) collect_missing(graph->nodes, opsets, missing);
      continue;
    }
    if (const Function* function = find_function(node)) {
      collect_missing(function->nodes, function->opsets, missing);
      continue;
    }
    missing.insert(is_standard(node.domain) ? fmt::format("{} (version {})", node.op_type, opset)
                                            : fmt::format("{}.{}", node.domain, node.op_type));
  }
}

void OnnxProgram::State::find_last_uses() {
  std::set<std::string> needed;
  for (const ValueInfo& output : model.graph.outputs) needed.insert(output.name);
  for (auto node = model.graph.nodes.rbegin(); node != model.graph.nodes.rend(); ++node) {
    std::vector<std::string> names;
    names_of(*node, names);
    for (const std::string& name : names) {
      if (!name.empty() && needed.insert(name).second) last_uses[&*node].push_back(name);
    }
  }
}

std::vector<Value> OnnxProgram::State::run_function(const Function& function, const Node& node,
                                                    const Scope& scope) const {
  Scope inner;
  for (size_t i = 0; i < function.inputs.size() && i < node.inputs.size(); ++i) {
    if (!node.inputs[i].empty()) inner[function.inputs[i]] = scope.at(node.inputs[i]);
  }
  std::vector<Node> nodes = function.nodes;
  for (Node& body : nodes) {
    for (Attribute& attribute : body.attributes) {
      if (attribute.reference.empty()) continue;
      const Attribute* given = node.find(attribute.reference);
      for (const Attribute& otherwise : function.default_attributes) {
        if (given == nullptr && otherwise.name == attribute.reference) given = &otherwise;
      }
      if (given != nullptr) attribute.value = given->value;
    }
    std::erase_if(body.attributes, [&](const Attribute& attribute) {
      if (attribute.reference.empty()) return false;
      return node.find(attribute.reference) == nullptr &&
             std::none_of(function.default_attributes.begin(), function.default_attributes.end(),
                          [&](const Attribute& other) { return other.name == attribute.reference; });
    });
  }
  run_nodes(nodes, function.opsets, inner);
  std::vector<Value> results;
  for (const std::string& name : function.outputs) results.push_back(inner.at(name));
  return results;
}

/// If: the branch that the condition asks for, which sees what the graph around it has made.
std::vector<Value> OnnxProgram::State::run_branch(const Node& node,
                                                  const std::map<std::string, int64_t>& opsets,
                                                  const Scope& scope) const {
  STAX_CHECK(node.inputs.size() == 1, "it needs one condition, got {}", node.inputs.size());
  const bool holds = ops::decide(ops::NodeCall(node, 1, {scope.at(node.inputs[0])}), 0);
  const Attribute* attribute = node.find(holds ? "then_branch" : "else_branch");
  const auto* branch =
      attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<const Graph>>(&attribute->value);
  STAX_CHECK(branch != nullptr, "it needs a graph for each branch");
  Scope inner = scope;
  for (const onnx::Tensor& constant : (*branch)->initializers)
    inner[constant.name] = {to_tensor(constant.view()), true, nullptr};
  run_nodes((*branch)->nodes, opsets, inner);
  std::vector<Value> results;
  for (const ValueInfo& output : (*branch)->outputs) results.push_back(inner.at(output.name));
  return results;
}

std::vector<Value> OnnxProgram::State::run_node(const Node& node,
                                                const std::map<std::string, int64_t>& opsets,
                                                const Scope& scope) const {
  const int64_t opset = opset_of(opsets, node.domain);
  const ops::OpRow* row = is_standard(node.domain) ? ops::find_row(node.op_type, opset) : nullptr;
  if (row == nullptr) {
    return is_if(node) ? run_branch(node, opsets, scope) : run_function(*find_function(node), node, scope);
  }
  std::vector<Value> inputs;
  bool known = !row->random;
  for (const std::string& name : node.inputs) {
    inputs.push_back(name.empty() ? Value() : scope.at(name));
    known = known && (name.empty() || inputs.back().known);
  }
  const ops::NodeCall call(node, opset, std::move(inputs));
  std::vector<Value> results;
  if (std::optional<std::vector<ops::SizeTensor>> sizes = ops::run_on_sizes(*row, call)) {
    for (ops::SizeTensor& tensor : *sizes) results.push_back(ops::value_of(std::move(tensor)));
    return results;
  }
  // What is known is computed now, outside the trace, and is a constant of the compiled program.
  const bool tracing = capture::current_trace() != nullptr;
  std::optional<capture::TraceScope> suspended;
  if (known) suspended.emplace(nullptr);
  for (Array& tensor : row->run(call)) {
    if (known && tracing) tensor = constant_copy(tensor);
    results.push_back({std::move(tensor), known, nullptr});
  }
  return results;
}

void OnnxProgram::State::run_nodes(const std::vector<Node>& nodes,
                                   const std::map<std::string, int64_t>& opsets, Scope& scope) const {
  for (const Node& node : nodes) {
    std::vector<Value> results;
    try {
      results = run_node(node, opsets, scope);
    } catch (const std::out_of_range&) {
      throw_user_error(fmt::format("{}: it needs more inputs, or more elements in one", node.describe()));
    } catch (const std::bad_alloc&) {
      throw_runtime_error(fmt::format("{}: out of memory; check its attributes", node.describe()));
    } catch (const std::length_error&) {
      throw_runtime_error(fmt::format("{}: out of memory; check its attributes", node.describe()));
    } catch (const UserError& error) {
      const std::string text = error.what(), where = node.describe();
      throw_user_error(text.starts_with(where) ? text : fmt::format("{}: {}", where, text));
    }
    for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
      if (!node.outputs[i].empty()) scope[node.outputs[i]] = std::move(results[i]);
    }
    if (const auto unused = last_uses.find(&node); unused != last_uses.end()) {
      for (const std::string& name : unused->second) scope.erase(name);
    }
  }
}

void OnnxProgram::State::check_inputs(const std::vector<Array>& given) const {
  std::vector<std::string> names;
  for (const ValueInfo& input : inputs) names.push_back(input.name);
  STAX_CHECK(given.size() == inputs.size(), "the model has {} ({}), and {} were given",
             counted(inputs.size(), "input"), fmt::join(names, ", "), given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const ValueInfo& input = inputs[i];
    if (input.dtype) {
      STAX_CHECK(given[i].dtype() == *input.dtype, "input '{}' is to have dtype {}, not {}", input.name,
                 stax::name(*input.dtype), stax::name(given[i].dtype()));
    }
    if (!input.dims) continue;
    const auto rank = static_cast<int64_t>(input.dims->size());
    STAX_CHECK(given[i].dim() == rank, "input '{}' is to have {}, not {}", input.name,
               counted(rank, "dimension"), given[i].dim());
    for (int64_t d = 0; d < rank; ++d) {
      const std::optional<int64_t>& size = (*input.dims)[static_cast<size_t>(d)].size;
      if (!size) continue;
      const int64_t got = given[i].size(d);
      STAX_CHECK(got == *size, "dimension {} of input '{}' is to be {}, not {}", d, input.name, *size, got);
    }
  }
}

OnnxProgram OnnxProgram::load(const std::string& path) {
  try {
    return OnnxProgram(load_model(path));
  } catch (const UserError& error) {
    const std::string text = error.what();
    throw_user_error(text.find(path) != std::string::npos ? text : fmt::format("{}: {}", path, text));
  }
}

OnnxProgram::OnnxProgram(Model model) : state_(std::make_unique<State>()) {
  state_->model = std::move(model);
  const Model& m = state_->model;
  std::set<std::string> missing;
  state_->collect_missing(m.graph.nodes, m.opsets, missing);
  STAX_CHECK(missing.empty(), "the model uses operators that are not mapped: {}", fmt::join(missing, ", "));
  state_->find_last_uses();
  for (const onnx::Tensor& constant : m.graph.initializers)
    state_->constants[constant.name] = {to_tensor(constant.view()), true, nullptr};
  for (const ValueInfo& input : m.graph.inputs) {
    if (!state_->constants.count(input.name)) state_->inputs.push_back(input);
  }
}

OnnxProgram::~OnnxProgram() = default;
OnnxProgram::OnnxProgram(OnnxProgram&&) noexcept = default;

const Model& OnnxProgram::model() const {
  return state_->model;
}
const std::vector<ValueInfo>& OnnxProgram::inputs() const {
  return state_->inputs;
}
const std::vector<ValueInfo>& OnnxProgram::outputs() const {
  return state_->model.graph.outputs;
}

std::vector<Array> OnnxProgram::operator()(const std::vector<Array>& inputs) const {
  state_->check_inputs(inputs);
  Scope scope = state_->constants;
  for (size_t i = 0; i < inputs.size(); ++i) scope[state_->inputs[i].name] = {inputs[i], false, nullptr};
  state_->run_nodes(state_->model.graph.nodes, state_->model.opsets, scope);
  std::vector<Array> results;
  for (const ValueInfo& output : outputs()) {
    const auto found = scope.find(output.name);
    STAX_CHECK(found != scope.end(), "the model's output '{}' is never made", output.name);
    const Value& value = found->second;
    // The model's own tensors stay its own.
    results.push_back(value.sizes   ? ops::materialize(*value.sizes)
                      : value.known ? value.tensor.clone()
                                    : value.tensor);
  }
  return results;
}

}  // namespace stax::onnx

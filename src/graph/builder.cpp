#include "graph/builder.h"

#include <fmt/core.h>

#include "support/check.h"

namespace stax::graph {

const TensorMeta& Var::meta() const {
  return builder_->graph().meta(value_);
}

Expr Var::size(int64_t dim) const {
  STAX_CHECK(this->dim() > 0, "dimension {} is asked of a zero-dim tensor; expected one with dimensions",
             dim);
  return meta().sizes[wrap_dim(dim, this->dim(), "size")];
}

std::string Builder::unique_name(std::string_view base) {
  const int32_t count = name_counts_[std::string(base)]++;
  return count == 0 ? std::string(base) : fmt::format("{}_{}", base, count);
}

Var Builder::input(TensorMeta meta, std::string name) {
  Node node;
  node.kind = NodeKind::input;
  node.input = static_cast<int32_t>(graph_.inputs.size());
  node.name = unique_name(name.empty() ? "arg" : name);
  node.results = {std::move(meta)};
  const auto id = static_cast<NodeId>(graph_.nodes.size());
  graph_.inputs.push_back(id);
  graph_.nodes.push_back(std::move(node));
  return Var(this, Value{id, 0});
}

Var Builder::constant(TensorMeta meta, std::shared_ptr<const std::vector<std::byte>> data) {
  Node node;
  node.kind = NodeKind::constant;
  node.name = unique_name("constant");
  node.results = {std::move(meta)};
  node.data = std::move(data);
  const auto id = static_cast<NodeId>(graph_.nodes.size());
  graph_.nodes.push_back(std::move(node));
  return Var(this, Value{id, 0});
}

Var Builder::call(std::string_view op, std::initializer_list<VarArg> args) {
  std::vector<Var> results = call_all(op, std::vector<VarArg>(args));
  STAX_ASSERT(results.size() == 1, "graph: {} has {} results where one was expected", op, results.size());
  return results[0];
}

std::vector<Var> Builder::call_all(std::string_view op_name, std::vector<VarArg> args) {
  const Op& op = table_.at(op_name);
  const auto& params = op.schema.params;
  STAX_ASSERT(args.size() <= params.size(), "graph: {} takes {} arguments, got {}", op_name, params.size(),
              args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    auto converted = convert<Var>(params[i], std::move(args[i]));
    STAX_ASSERT(converted, "graph: {} expects {} for '{}'", op_name, describe(params[i].type),
                params[i].name);
    args[i] = std::move(*converted);
  }
  for (size_t i = args.size(); i < params.size(); ++i) {
    STAX_ASSERT(params[i].has_default, "graph: {} misses '{}'", op_name, params[i].name);
    args.push_back(default_value<Var>(params[i]));
  }
  return call_bound(op, std::move(args));
}

namespace {

/// While an operator is taken apart, what it makes of numbers lies where its tensors do.
class DeviceScope {
 public:
  DeviceScope(Builder& builder, const Op& op, const std::vector<VarArg>& args)
      : builder_(builder), before_(builder.device()) {
    std::vector<Argument<TensorMeta>> metas;
    for (const VarArg& a : args)
      metas.push_back(map_tensors<TensorMeta>(a, [](const Var& v) {
        return TensorMeta{v.meta().dtype, v.meta().device, v.meta().sizes, {}, {}};
      }));
    if (const auto device = common_device(op.schema.name, metas)) builder.set_device(*device);
  }
  ~DeviceScope() { builder_.set_device(before_); }
  DeviceScope(const DeviceScope&) = delete;

 private:
  Builder& builder_;
  Device before_;
};

}  // namespace

std::vector<Var> Builder::call_bound(const Op& op, std::vector<VarArg> args) {
  if (op.op_class == OpClass::composite) {
    const DeviceScope scope(*this, op, args);
    return op.decompose(*this, VarArgs(op.schema, args));
  }
  if (op.effects & kData) {
    if (std::vector<Var> known = same_call(op, args); !known.empty()) return known;
  }
  std::vector<Argument<TensorMeta>> metas;
  metas.reserve(args.size());
  for (const VarArg& a : args)
    metas.push_back(map_tensors<TensorMeta>(a, [](const Var& v) { return v.meta(); }));
  std::vector<TensorMeta> results = infer_meta(table_, op, env_, metas);
  if (!common_device(op.schema.name, metas))
    for (TensorMeta& meta : results) meta.device = device_;
  return add_call(op, args, std::move(results));
}

std::vector<Var> Builder::same_call(const Op& op, const std::vector<VarArg>& args) {
  Node asked;
  asked.op = &op;
  for (const VarArg& a : args)
    asked.args.push_back(map_tensors<Value>(a, [](const Var& v) { return v.value(); }));
  std::string text;
  for (size_t id = 0; id < graph_.nodes.size(); ++id) {
    const Node& node = graph_.nodes[id];
    if (node.op != &op) continue;
    if (text.empty()) text = call_text(graph_, asked);
    if (call_text(graph_, node) != text) continue;
    std::vector<Var> out;
    for (size_t k = 0; k < node.results.size(); ++k) {
      out.emplace_back(this, Value{static_cast<NodeId>(id), static_cast<int32_t>(k)});
    }
    return out;
  }
  return {};
}

std::vector<Var> Builder::add_call(const Op& op, const std::vector<VarArg>& args,
                                   std::vector<TensorMeta> results) {
  Node node;
  node.op = &op;
  node.results = std::move(results);
  node.name = unique_name(op.schema.name);
  node.where = where_;
  for (const VarArg& a : args)
    node.args.push_back(map_tensors<Value>(a, [](const Var& v) { return v.value(); }));
  const auto id = static_cast<NodeId>(graph_.nodes.size());
  const auto count = static_cast<int32_t>(node.results.size());
  graph_.nodes.push_back(std::move(node));
  std::vector<Var> out;
  for (int32_t k = 0; k < count; ++k) out.emplace_back(this, Value{id, k});
  return out;
}

Var operator+(const Var& a, const Var& b) {
  return a.builder().call("add.Tensor", {a, b});
}
Var operator-(const Var& a, const Var& b) {
  return a.builder().call("sub.Tensor", {a, b});
}
Var operator*(const Var& a, const Var& b) {
  return a.builder().call("mul.Tensor", {a, b});
}
Var operator/(const Var& a, const Var& b) {
  return a.builder().call("div.Tensor", {a, b});
}
Var operator-(const Var& a) {
  return a.builder().call("neg", {a});
}
Var operator+(const Var& a, Number b) {
  return a.builder().call("add.Tensor", {a, b});
}
Var operator-(const Var& a, Number b) {
  return a.builder().call("sub.Tensor", {a, b});
}
Var operator*(const Var& a, Number b) {
  return a.builder().call("mul.Tensor", {a, b});
}
Var operator/(const Var& a, Number b) {
  return a.builder().call("div.Tensor", {a, b});
}
Var operator-(Number a, const Var& b) {
  return b.builder().call("rsub.Tensor", {b, a});
}
Var operator/(Number a, const Var& b) {
  return b.builder().call("div.Tensor", {a, b});
}

}  // namespace stax::graph

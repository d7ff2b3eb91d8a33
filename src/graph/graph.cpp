#include "graph/graph.h"

#include <fmt/core.h>

#include <set>

#include "support/check.h"

namespace stax::graph {
namespace {

template <class Items, class F>
std::string join(const Items& items, F&& text) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + text(item);
  return out;
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string value(const Value& v) const {
    const Node& node = graph_.nodes[v.node];
    return node.results.size() == 1 ? "%" + node.name : fmt::format("%{}#{}", node.name, v.result);
  }

  std::string argument(const Argument<Value>& a) const {
    return std::visit([this](const auto& v) { return text(v); }, a.value);
  }

  std::string node(const Node& n) const {
    const std::string metas = join(n.results, [](const TensorMeta& m) { return m.str(); });
    std::string line = fmt::format("%{}: {} = ", n.name, metas);
    switch (n.kind) {
      case NodeKind::input:
        line += fmt::format("input {}", n.input);
        break;
      case NodeKind::constant:
        line += "constant";
        break;
      case NodeKind::call:
        line += fmt::format("{}({})", n.op->schema.full_name(),
                            join(n.args, [this](const auto& a) { return argument(a); }));
        break;
    }
    return line;
  }

 private:
  std::string text(NoneType) const { return "None"; }
  std::string text(const Value& v) const { return value(v); }
  std::string text(const Argument<Value>::Tensors& list) const {
    return "[" + join(list, [this](const auto& t) { return t ? value(*t) : std::string("None"); }) + "]";
  }
  std::string text(const Number& n) const {
    if (n.is_float()) {
      const std::string digits =
          fmt::format("{}", n.floating);  // shortest text that reads back as the same number
      return digits.find_first_of(".einf") == std::string::npos ? digits + ".0" : digits;
    }
    if (n.kind == Number::Kind::boolean) return n.integer.is(0) ? "False" : "True";
    return n.integer.str();
  }
  std::string text(const std::vector<Expr>& list) const {
    return "[" + join(list, [](Expr e) { return e.str(); }) + "]";
  }
  std::string text(const std::vector<double>& list) const {
    return "[" + join(list, [](double d) { return fmt::format("{}", d); }) + "]";
  }
  std::string text(DType dtype) const { return std::string(name(dtype)); }
  std::string text(const std::string& s) const { return "'" + s + "'"; }

  const Graph& graph_;
};

}  // namespace

std::string Graph::str() const {
  const Printer printer(*this);
  std::string out;
  for (const Node& node : nodes) out += printer.node(node) + "\n";
  for (const WriteBack& w : write_backs)
    out += fmt::format("write_back {}{} <- {}\n", w.input,
                       w.region ? fmt::format(" (region {})", w.region->str()) : std::string(),
                       printer.value(w.value));
  out += "return ";
  out += join(outputs, [&](const Output& o) {
    return o.alias_of_input < 0
               ? printer.value(o.value)
               : fmt::format("{} (view of input {})", printer.value(o.value), o.alias_of_input);
  });
  return out + "\n";
}

void verify(const Graph& graph) {
  std::set<std::string> names;
  const auto check_value = [&](const Value& v, size_t before, const std::string& user) {
    STAX_ASSERT(v.node >= 0 && static_cast<size_t>(v.node) < before,
                "graph: {} uses node {} before it is defined", user, v.node);
    STAX_ASSERT(v.result >= 0 && static_cast<size_t>(v.result) < graph.nodes[v.node].results.size(),
                "graph: {} uses result {} of {}, which has {}", user, v.result, graph.nodes[v.node].name,
                graph.nodes[v.node].results.size());
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    STAX_ASSERT(names.insert(node.name).second, "graph: two nodes are named '{}'", node.name);
    STAX_ASSERT((node.kind == NodeKind::call) == (node.op != nullptr), "graph: node {} has no operator",
                node.name);
    for (const TensorMeta& m : node.results) {
      STAX_ASSERT(m.sizes.size() == m.strides.size(), "graph: {} has {} sizes and {} strides", node.name,
                  m.sizes.size(), m.strides.size());
    }
    if (node.kind != NodeKind::call) continue;
    STAX_ASSERT(node.args.size() == node.op->schema.params.size(),
                "graph: {} has {} arguments, its schema {}", node.name, node.args.size(),
                node.op->schema.params.size());
    for (const auto& a : node.args) for_each_value(a, [&](const Value& v) { check_value(v, i, node.name); });
  }
  for (const Output& o : graph.outputs) check_value(o.value, graph.nodes.size(), "an output");
  for (const WriteBack& w : graph.write_backs) check_value(w.value, graph.nodes.size(), "a write-back");
}

std::string call_text(const Graph& graph, const Node& node) {
  const Printer printer(graph);
  return fmt::format("{}({})", node.op->schema.full_name(),
                     join(node.args, [&](const auto& a) { return printer.argument(a); }));
}

std::vector<int32_t> count_uses(const Graph& graph) {
  std::vector<int32_t> uses(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const auto& a : node.args) for_each_value(a, [&](const Value& v) { ++uses[v.node]; });
  }
  for (const Output& o : graph.outputs) ++uses[o.value.node];
  for (const WriteBack& w : graph.write_backs) ++uses[w.value.node];
  return uses;
}

Device device_of(const Graph& graph) {
  Device device;
  for (const Node& node : graph.nodes) {
    for (const TensorMeta& meta : node.results) {
      if (meta.device == kCPU || meta.device == device) continue;
      STAX_CHECK(device == kCPU, "one function computes on {} and on {}; it can use one GPU at a time",
                 device.str(), meta.device.str());
      device = meta.device;
    }
  }
  return device;
}

}  // namespace stax::graph

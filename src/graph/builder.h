// Appends nodes to a graph. Decompositions and passes are written with it; Var makes them read as formulas.
#pragma once

#include <initializer_list>
#include <string_view>

#include "graph/graph.h"

namespace stax::graph {

/// A value of the graph under construction.
class Var {
 public:
  Var() = default;
  Var(Builder* builder, Value value) : builder_(builder), value_(value) {}
  bool is_set() const { return builder_ != nullptr; }
  Value value() const { return value_; }
  Builder& builder() const { return *builder_; }
  const TensorMeta& meta() const;
  DType dtype() const { return meta().dtype; }
  int64_t dim() const { return meta().dim(); }
  Expr numel() const { return meta().numel(); }
  Expr size(int64_t dim) const;  // negative dims count from the end
  const std::vector<Expr>& sizes() const { return meta().sizes; }
  friend bool operator==(const Var& a, const Var& b) { return a.value_ == b.value_; }

 private:
  Builder* builder_ = nullptr;
  Value value_;
};

using VarArg = Argument<Var>;

class Builder {
 public:
  Builder(const OpTable& table, ShapeEnv& env, Graph& graph) : table_(table), env_(env), graph_(graph) {}

  const OpTable& table() const { return table_; }
  ShapeEnv& env() { return env_; }
  Graph& graph() { return graph_; }

  Var input(TensorMeta meta, std::string name = {});
  Var constant(TensorMeta meta, std::shared_ptr<const std::vector<std::byte>> data);

  /// Calls an operator by full name ("sum.dim_IntList"); missing trailing arguments take their defaults.
  /// Composite operators are replaced by their decomposition at once. One result; call_all() for several.
  Var call(std::string_view op, std::initializer_list<VarArg> args);
  std::vector<Var> call_all(std::string_view op, std::vector<VarArg> args);
  std::vector<Var> call_bound(const Op& op, std::vector<VarArg> args);
  /// A node of `op` with known metas.
  std::vector<Var> add_call(const Op& op, const std::vector<VarArg>& args, std::vector<TensorMeta> results);

  /// Where results of operators without tensors among their arguments lie.
  void set_device(Device device) { device_ = device; }
  Device device() const { return device_; }

  /// Place in the user's program that new nodes are credited to.
  void set_where(CallStack where) { where_ = std::move(where); }

 private:
  std::string unique_name(std::string_view base);
  /// The results of an equal call in the graph, so that what data determines has one symbol; else empty.
  std::vector<Var> same_call(const Op& op, const std::vector<VarArg>& args);

  const OpTable& table_;
  ShapeEnv& env_;
  Graph& graph_;
  Device device_;
  CallStack where_;
  std::unordered_map<std::string, int32_t> name_counts_;
};

// Formulas. Numbers promote as Python numbers do.
Var operator+(const Var& a, const Var& b);
Var operator-(const Var& a, const Var& b);
Var operator*(const Var& a, const Var& b);
Var operator/(const Var& a, const Var& b);
Var operator-(const Var& a);
Var operator+(const Var& a, Number b);
Var operator-(const Var& a, Number b);
Var operator*(const Var& a, Number b);
Var operator/(const Var& a, Number b);
Var operator-(Number a, const Var& b);
Var operator/(Number a, const Var& b);
inline Number num(double v) {
  return Number::of(v);
}
inline Number num(int64_t v) {
  return Number::of(v);
}
inline Number num(int v) {
  return Number::of(int64_t{v});
}
inline Number num(bool v) {
  return Number::of(v);
}
inline Number num(Expr v) {
  return {Number::Kind::integer, v, 0};
}

}  // namespace stax::graph

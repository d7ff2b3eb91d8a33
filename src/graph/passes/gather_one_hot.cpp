#include <cmath>
#include <cstring>

#include "graph/passes/passes.h"
#include "graph/rewriter.h"
#include "tensor/element.h"

namespace stax::graph {
namespace {

/// Calls f(value) for each element of a constant, until it returns false. False when one did.
template <class F>
bool all_elements(const Node& node, F&& f) {
  return visit_element(node.results[0].dtype, [&](auto element) {
    using E = decltype(element);
    typename E::Stored stored;
    for (size_t at = 0; at + sizeof stored <= node.data->size(); at += sizeof stored) {
      std::memcpy(&stored, node.data->data() + at, sizeof stored);
      if (!f(E::load(stored))) return false;
    }
    return true;
  });
}

bool is_integer(DType dtype) {
  return !is_floating_point(dtype) && dtype != DType::boolean;
}

bool calls(const Node& node, std::string_view op) {
  return node.kind == NodeKind::call && node.op->schema.full_name() == op;
}

/// The element of a value that an element of the left factor is computed from.
struct Point {
  Value value;
  std::vector<Expr> index;
};

/// What the rows of a product's left factor are: 1 where the column is `classes[row] - first`, 0 elsewhere.
struct OneHot {
  Value classes;         // as many elements as there are rows, in their order
  int64_t first = 0;     // class of column 0
  bool checked = false;  // classes outside are errors; else their rows are 0
};

/// Looks at one product of an m x k matrix.
class Matcher {
 public:
  Matcher(ShapeEnv& env, const Graph& graph, const Node& product)
      : env_(env), graph_(graph), product_(product) {
    const TensorMeta& left = graph.meta(product.args[0].tensor());
    rows_ = left.sizes[0];
    columns_ = left.sizes[1];
    ranges_.set_extent(kRow, rows_);
    ranges_.set_extent(kColumn, columns_);
    row_ = simplify(Expr(kRow), ranges_);  // 0 where there is one
    column_ = simplify(Expr(kColumn), ranges_);
  }

  std::optional<OneHot> match() const {
    if (!columns_.is_constant()) return std::nullopt;
    Point e = source({product_.args[0].tensor(), {row_, column_}});
    const Node* node = &node_of(e);
    if (calls(*node, "where.self")) {
      if (!is_number(*node, 1, 1) || !is_number(*node, 2, 0)) return std::nullopt;
      e = source(operand(e, 0));
    }
    // 0 and 1 are exact in every dtype.
    while (calls(node_of(e), "to.dtype")) e = source(operand(e, 0));
    node = &node_of(e);
    if (calls(*node, "one_hot_formula")) return of_classes(e);
    if (!calls(*node, "eq.Tensor") || !node->args[0].is_tensor() || !node->args[1].is_tensor()) {
      return std::nullopt;
    }
    for (const int side : {0, 1}) {
      if (auto found = of_comparison(operand(e, side), operand(e, 1 - side))) return found;
    }
    return std::nullopt;
  }

 private:
  static constexpr Symbol kRow{SymbolKind::index, 0}, kColumn{SymbolKind::index, 1};

  const Node& node_of(const Point& e) const { return graph_.nodes[e.value.node]; }

  Point viewed(const Point& e) const {
    const Node& node = node_of(e);
    std::vector<Argument<TensorMeta>> metas;
    for (const auto& a : node.args) {
      metas.push_back(map_tensors<TensorMeta>(a, [&](const Value& v) { return graph_.meta(v); }));
    }
    return {node.args[0].tensor(),
            simplified(node.op->index_map(env_, MetaArgs(node.op->schema, metas), node.results[0], e.index))};
  }

  bool is_view(const Node& node) const {
    return node.kind == NodeKind::call && node.op->op_class == OpClass::view && node.op->index_map;
  }

  /// Back through views, to what computes the element.
  Point source(Point e) const {
    while (is_view(node_of(e))) e = viewed(e);
    return e;
  }

  /// The element of a pointwise node's operand, with broadcasting undone.
  Point operand(const Point& e, int position) const {
    const Value value = node_of(e).args[static_cast<size_t>(position)].tensor();
    const std::vector<Expr>& sizes = graph_.meta(value).sizes;
    std::vector<Expr> index(e.index.end() - static_cast<std::ptrdiff_t>(sizes.size()), e.index.end());
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].is(1)) index[d] = 0;
    }
    return {value, std::move(index)};
  }

  std::vector<Expr> simplified(std::vector<Expr> index) const {
    for (Expr& e : index) e = simplify(e, ranges_);
    return index;
  }

  /// Position among the elements of its value, row by row.
  Expr position(const Point& e) const {
    const std::vector<Expr> strides = contiguous_strides(graph_.meta(e.value).sizes);
    Expr sum = 0;
    for (size_t d = 0; d < strides.size(); ++d) sum = sum + e.index[d] * strides[d];
    return simplify(sum, ranges_);
  }

  /// Whether argument `which` of the node is the number `value`, given as a number or a constant.
  bool is_number(const Node& node, size_t which, double value) const {
    if (node.args[which].is_number()) return node.args[which].number().as_double() == value;
    if (!node.args[which].is_tensor()) return false;
    Value v = node.args[which].tensor();
    while (is_view(graph_.nodes[v.node])) v = graph_.nodes[v.node].args[0].tensor();
    const Node& constant = graph_.nodes[v.node];
    return constant.kind == NodeKind::constant &&
           all_elements(constant, [&](auto x) { return static_cast<double>(x) == value; });
  }

  /// `e`, or what it views, where its elements are the rows' in order.
  std::optional<Value> by_rows(Point e) const {
    while (true) {
      if (is_integer(graph_.meta(e.value).dtype) && graph_.meta(e.value).numel() == rows_ &&
          position(e) == row_) {
        return e.value;
      }
      if (!is_view(node_of(e))) return std::nullopt;
      e = viewed(e);
    }
  }

  /// The class of column 0 where `e` counts the columns.
  std::optional<int64_t> first_class(const Point& from) const {
    const Point e = source(from);
    if (!is_integer(graph_.meta(e.value).dtype) || !(position(e) == column_)) return std::nullopt;
    const Node& node = node_of(e);
    if (calls(node, "arange.start_step")) {
      const Number &start = node.args[0].number(), &step = node.args[2].number();
      if (start.is_float() || step.is_float() || !start.integer.is_constant() || !step.integer.is(1)) {
        return std::nullopt;
      }
      return start.integer.value();
    }
    if (node.kind != NodeKind::constant || node.results[0].numel() != columns_) return std::nullopt;
    std::optional<int64_t> first;
    int64_t count = 0;
    const bool counts = all_elements(node, [&](auto x) {
      const auto value = static_cast<int64_t>(x);
      if (!first) first = value;
      return value - *first == count++;
    });
    return counts ? first : std::nullopt;
  }

  std::optional<OneHot> of_comparison(const Point& column, const Point& row) const {
    const std::optional<int64_t> first = first_class(column);
    const std::optional<Value> classes = by_rows(row);
    if (!first || !classes) return std::nullopt;
    return OneHot{*classes, *first};
  }

  std::optional<OneHot> of_classes(const Point& e) const {
    if (!(e.index.back() == column_)) return std::nullopt;
    const Value self = node_of(e).args[0].tensor();
    const auto classes = by_rows({self, {e.index.begin(), e.index.end() - 1}});
    if (!classes) return std::nullopt;
    return OneHot{*classes, 0, true};
  }

  ShapeEnv& env_;
  const Graph& graph_;
  const Node& product_;
  Expr rows_, columns_;  // how many
  Expr row_, column_;    // of the element that is looked at
  Ranges ranges_;
};

struct Weights {
  bool finite = false, has_negative_zero = false;
};

/// What is known about the right factor: nothing unless it is a constant, or a view of one.
Weights weights_of(const Graph& graph, Value value) {
  const Node* node = &graph.nodes[value.node];
  while (node->kind == NodeKind::call && node->op->op_class == OpClass::view &&
         node->results[0].dtype == graph.meta(node->args[0].tensor()).dtype) {
    node = &graph.nodes[node->args[0].tensor().node];
  }
  Weights out;
  if (node->kind != NodeKind::constant || !is_floating_point(node->results[0].dtype)) return out;
  out.finite = all_elements(*node, [&](auto x) {
    const auto wide = static_cast<double>(x);
    out.has_negative_zero |= wide == 0 && std::signbit(wide);
    return std::isfinite(wide);
  });
  return out;
}

Var rows_of(Builder& b, const Var& weights, const Var& classes, const OneHot& hot, Weights facts) {
  const Expr count = weights.size(0);
  Var at = b.call("reshape", {b.call("to.dtype", {classes, DType::int64}), std::vector<Expr>{Expr(-1)}});
  if (hot.first != 0) at = at - num(hot.first);
  Var rows;
  if (hot.checked) {
    rows = b.call("index_select", {weights, 0, at});
  } else {
    const Var inside =
        b.call("logical_and", {b.call("ge.Tensor", {at, num(0)}), b.call("lt.Tensor", {at, num(count)})});
    rows = b.call("index_select", {weights, 0, b.call("where.self", {inside, at, num(0)})});
    rows = b.call("where.self", {b.call("unsqueeze", {inside, 1}), rows, num(0.0)});
  }
  // A sum that holds a product of 0 is never -0.
  return facts.has_negative_zero ? rows + num(0.0) : rows;
}

}  // namespace

Graph gather_one_hot(const PassContext& context, const Graph& graph) {
  Rewriter rewriter(context, graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    std::optional<OneHot> hot;
    if (calls(node, "mm")) hot = Matcher(context.env, graph, node).match();
    const Weights facts = hot ? weights_of(graph, node.args[1].tensor()) : Weights{};
    if (!facts.finite) {
      rewriter.keep(id);
      continue;
    }
    rewriter.builder().set_where(node.where);
    const Var rows = rows_of(rewriter.builder(), rewriter.mapped(node.args[1].tensor()),
                             rewriter.mapped(hot->classes), *hot, facts);
    rewriter.replace(id, {rows});
  }
  return rewriter.finish();
}

}  // namespace stax::graph

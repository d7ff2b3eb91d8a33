// Operators of ONNX that pick elements or put them.
#include <fmt/core.h>

#include "frontends/onnx_ops.h"
#include "stax/factories.h"
#include "stax/indexing.h"

namespace stax::onnx::ops {
namespace {

using Result = std::vector<Tensor>;

Result gather(const NodeCall& call) {
  const Tensor &x = call.in(0), &indices = call.in(1);
  const int64_t axis = axis_of(call, call.integer("axis", 0), x.dim());
  const Tensor positions = op("reshape", {wrap_indices(indices, size(x, axis)), list(Ints{-1})});
  const Tensor picked = op("index_select", {x, axis, positions});
  Exprs shape = shape_of(x);
  const Exprs middle = shape_of(indices);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, middle.begin(), middle.end());
  return {op("reshape", {picked, list(shape)})};
}

Result gather_elements(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const int64_t axis = axis_of(call, call.integer("axis", 0), x.dim());
  return {op("gather", {x, axis, wrap_indices(call.in(1), size(x, axis))})};
}

/// A reduction of ONNX as scatter_reduce names it; UserError for another one.
std::string reduction_name(const NodeCall& call) {
  const std::string reduction = call.text("reduction", "none");
  struct Row {
    std::string_view onnx, stax;
  };
  constexpr Row rows[] = {{"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}};
  for (const Row& row : rows) {
    if (row.onnx == reduction) return std::string(row.stax);
  }
  call.refuse(fmt::format("there is no reduction '{}'", reduction));
}

Result scatter_elements(const NodeCall& call) {
  const Tensor &x = call.in(0), &source = call.in(2);
  const int64_t axis = axis_of(call, call.integer("axis", 0), x.dim());
  const Tensor indices = wrap_indices(call.in(1), size(x, axis));
  if (call.text("reduction", "none") == "none") return {op("scatter", {x, axis, indices, source})};
  return {op("scatter_reduce", {x, axis, indices, source, reduction_name(call)})};
}

/// The last axis of `indices` as one index tensor an axis of x, after `batch` axes that go along.
std::vector<TensorIndex> index_list(const Tensor& x, const Tensor& indices, int64_t batch) {
  const int64_t last = indices.dim() - 1, count = indices.size(last);
  std::vector<TensorIndex> result;
  for (int64_t d = 0; d < batch; ++d) {
    Exprs shape(static_cast<size_t>(last), 1);
    shape[static_cast<size_t>(d)] = size(x, d);
    result.emplace_back(op("reshape", {op("arange", {size(x, d)}), list(shape)}));
  }
  for (int64_t k = 0; k < count; ++k)
    result.emplace_back(wrap_indices(op("select", {indices, last, k}), size(x, batch + k)));
  return result;
}

Result gather_nd(const NodeCall& call) {
  const Tensor& x = call.in(0);
  return {x.index(index_list(x, call.in(1), call.integer("batch_dims", 0)))};
}

/// With the indexed axes taken as one, and the others as another.
Tensor scatter_rows(const NodeCall& call, const std::string& reduction) {
  const Tensor &x = call.in(0), &indices = call.in(1);
  const int64_t last = indices.dim() - 1, count = indices.size(last);
  Expr rows = 1;
  Tensor position;
  for (int64_t k = 0; k < count; ++k) {
    const Tensor index = wrap_indices(op("select", {indices, last, k}), size(x, k));
    position = position.defined() ? op("add", {op("mul", {position, size(x, k)}), index}) : index;
    rows *= size(x, k);
  }
  const Tensor flat = op("reshape", {x, list(Exprs{rows, -1})});
  const Tensor source = op("reshape", {call.in(2), list(Exprs{-1, size(flat, 1)})});
  const Tensor where = op("expand", {op("reshape", {position, list(Ints{-1, 1})}), list(shape_of(source))});
  const Tensor result = op("scatter_reduce", {flat, 0, where, source, reduction});
  return op("reshape", {result, list(shape_of(x))});
}

Result scatter_nd(const NodeCall& call) {
  const Tensor& x = call.in(0);
  if (call.text("reduction", "none") != "none") return {scatter_rows(call, reduction_name(call))};
  Argument<Tensor>::Tensors indices;
  for (const TensorIndex& index : index_list(x, call.in(1), 0)) indices.emplace_back(index.tensor());
  return {op("index_put", {x, indices, call.in(2)})};
}

/// How many classes OneHot has: a number of any dtype.
Expr depth_of(const NodeCall& call) {
  if (const auto& sizes = call.values().at(1).sizes; sizes && !is_floating_point(sizes->dtype))
    return call.exprs(1).at(0);
  const double wanted = call.numbers(1).at(0);
  if (!(wanted >= 0 && wanted <= static_cast<double>(kLargestCount)))
    call.refuse(fmt::format("a depth of {}", wanted));
  return static_cast<int64_t>(wanted);
}

Result one_hot(const NodeCall& call) {
  const Tensor &indices = call.in(0), &values = call.in(2);
  const Expr depth = depth_of(call);
  const int64_t rank = indices.dim() + 1, axis = axis_of(call, call.integer("axis", -1), rank);
  Exprs shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = depth;
  const Tensor positions = op("reshape", {op("arange", {depth}), list(shape)});
  const Tensor hit = op("eq", {op("unsqueeze", {wrap_indices(indices, depth), axis}), positions});
  return {op("where", {hit, op("select", {values, 0, 1}), op("select", {values, 0, 0})})};
}

Result nonzero(const NodeCall& call) {
  return {op("t", {op("nonzero", {call.in(0)})})};
}

Result top_k(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const Expr k = call.opset() < 10 ? Expr(call.integer("k", 1)) : call.exprs(1).at(0);
  const int64_t axis = axis_of(call, call.integer("axis", -1), x.dim());
  return op_all("topk", {x, k, axis, call.integer("largest", 1) != 0, true});
}

Result compress(const NodeCall& call) {
  Tensor x = call.in(0);
  int64_t axis = 0;
  if (call.node().find("axis") != nullptr) {
    axis = axis_of(call, call.integer("axis", 0), x.dim());
  } else {
    x = op("reshape", {x, list(Ints{-1})});
  }
  const Tensor positions = op("reshape", {op("nonzero", {call.in(1)}), list(Ints{-1})});
  return {op("index_select", {x, axis, positions})};
}

constexpr OpRow kIndexRows[] = {
    {"Gather", 1, gather},
    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},
    {"Scatter", 9, scatter_elements},
    {"ScatterElements", 11, scatter_elements},
    {"ScatterND", 11, scatter_nd},
    {"OneHot", 9, one_hot},
    {"NonZero", 9, nonzero},
    {"TopK", 1, top_k},
    {"Compress", 9, compress},
};

}  // namespace

std::span<const OpRow> index_rows() {
  return kIndexRows;
}

}  // namespace stax::onnx::ops

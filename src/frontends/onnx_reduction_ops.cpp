// Reductions of ONNX.
#include <algorithm>
#include <limits>

#include "frontends/onnx_ops.h"

namespace stax::onnx::ops {
namespace {

using Result = std::vector<Tensor>;

/// What a reduction goes over. `all_kept` says that it goes over nothing: an empty list of axes that asks for
/// that.
struct Axes {
  Ints axes;
  bool keep = true;
  bool all_kept = false;
};

Axes axes_of(const NodeCall& call) {
  const int64_t rank = call.in(0).dim();
  Axes result;
  result.keep = call.integer("keepdims", 1) != 0;
  const std::optional<Ints> given = call.ints("axes", 1);
  if (given && !given->empty()) {
    for (const int64_t axis : *given) result.axes.push_back(axis_of(call, axis, rank));
  } else if (call.integer("noop_with_empty_axes", 0) != 0) {
    result.all_kept = true;
  } else {
    result.axes = range(0, rank);
  }
  return result;
}

Tensor sum(const Tensor& x, const Axes& over) {
  if (over.all_kept) return x;
  return op("sum", {x, list(over.axes), over.keep}, {{"dtype", x.dtype()}});
}

Result reduce_sum(const NodeCall& call) {
  return {sum(call.in(0), axes_of(call))};
}
Result reduce_mean(const NodeCall& call) {
  const Axes over = axes_of(call);
  const Tensor& x = call.in(0);
  if (over.all_kept) return {x};
  if (x.is_floating_point()) return {op("mean", {x, list(over.axes), over.keep})};
  const Tensor wide = op("mean", {op("to", {x, DType::float64}), list(over.axes), over.keep});
  return {op("to", {wide, x.dtype()})};
}
Result reduce_prod(const NodeCall& call) {
  const Axes over = axes_of(call);
  Tensor result = call.in(0);
  Ints axes = over.axes;
  std::sort(axes.rbegin(), axes.rend());  // from the last, so that the others keep their numbers
  for (const int64_t axis : axes) result = op("prod", {result, axis, over.keep}, {{"dtype", result.dtype()}});
  return {result};
}
/// Over no elements at all, the extremum is the dtype's own other end.
Tensor empty_extremum(const Tensor& x, const Axes& over, bool largest) {
  const Tensor sums = sum(op("to", {x, DType::int64}), over);
  Scalar value;
  if (is_floating_point(x.dtype())) {
    value = largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  } else if (x.dtype() == DType::boolean || x.dtype() == DType::uint8) {
    value = largest ? 0 : x.dtype() == DType::uint8 ? 255 : 1;
  } else {
    const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - 8 * itemsize(x.dtype()));
    value = largest ? -high - 1 : high;
  }
  return filled(shape_of(sums), value, x.dtype());
}
template <bool largest>
Result reduce_extremum(const NodeCall& call) {
  const Axes over = axes_of(call);
  const Tensor& x = call.in(0);
  if (over.all_kept || x.dim() == 0) return {x};
  for (const int64_t axis : over.axes) {
    if (x.size(axis) == 0) return {empty_extremum(x, over, largest)};
  }
  return {op(largest ? "amax" : "amin", {x, list(over.axes), over.keep})};
}
Result reduce_l1(const NodeCall& call) {
  return {sum(op("abs", {call.in(0)}), axes_of(call))};
}
Result reduce_sum_square(const NodeCall& call) {
  return {sum(op("mul", {call.in(0), call.in(0)}), axes_of(call))};
}
Tensor as_float(const Tensor& x) {
  return x.is_floating_point() ? x : op("to", {x, DType::float64});
}
Result reduce_l2(const NodeCall& call) {
  const Tensor x = as_float(call.in(0));
  return {op("to", {op("sqrt", {sum(op("mul", {x, x}), axes_of(call))}), call.in(0).dtype()})};
}
Result reduce_log_sum(const NodeCall& call) {
  return {op("to", {op("log", {sum(as_float(call.in(0)), axes_of(call))}), call.in(0).dtype()})};
}
Result reduce_log_sum_exp(const NodeCall& call) {
  const Axes over = axes_of(call);
  const Tensor x = as_float(call.in(0));
  if (over.all_kept) return {call.in(0)};
  return {op("to", {op("logsumexp", {x, list(over.axes), over.keep}), call.in(0).dtype()})};
}

template <bool largest>
Result arg_extremum(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const int64_t axis = axis_of(call, call.integer("axis", 0), x.dim());
  const bool keep = call.integer("keepdims", 1) != 0;
  const std::string_view name = largest ? "argmax" : "argmin";
  if (call.integer("select_last_index", 0) == 0) return {op(name, {x, axis, keep})};
  const Tensor from_end = op(name, {op("flip", {x, list(Ints{axis})}), axis, keep});
  return {op("sub", {op("full_like", {from_end, size(x, axis) - 1}), from_end})};
}

template <bool product>
Result cumulate(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const int64_t axis = axis_of(call, call.ints(1).at(0), x.dim());
  const bool reverse = call.integer("reverse", 0) != 0;
  const auto flip = [&](const Tensor& t) { return reverse ? op("flip", {t, list(Ints{axis})}) : t; };
  Tensor values = flip(x);
  if (call.integer("exclusive", 0) != 0) {  // shifted by one, the neutral element first
    const Expr length = size(values, axis);
    Exprs shape = shape_of(values);
    shape[static_cast<size_t>(axis)] = 1;
    const Tensor first = filled(shape, product ? 1 : 0, x.dtype());
    values = op("cat", {list({first, op("slice", {values, axis, 0, length - 1})}), axis});
  }
  return {flip(op(product ? "cumprod" : "cumsum", {values, axis}, {{"dtype", x.dtype()}}))};
}

constexpr OpRow kRows[] = {
    {"ReduceSum", 1, reduce_sum},
    {"ReduceMean", 1, reduce_mean},
    {"ReduceProd", 1, reduce_prod},
    {"ReduceMax", 1, reduce_extremum<true>},
    {"ReduceMin", 1, reduce_extremum<false>},
    {"ReduceL1", 1, reduce_l1},
    {"ReduceL2", 1, reduce_l2},
    {"ReduceSumSquare", 1, reduce_sum_square},
    {"ReduceLogSum", 1, reduce_log_sum},
    {"ReduceLogSumExp", 1, reduce_log_sum_exp},
    {"ArgMax", 1, arg_extremum<true>},
    {"ArgMin", 1, arg_extremum<false>},
    {"CumSum", 1, cumulate<false>},
    {"CumProd", 1, cumulate<true>},
};

}  // namespace

std::span<const OpRow> reduction_rows() {
  return kRows;
}

}  // namespace stax::onnx::ops

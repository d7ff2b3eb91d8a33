// Operators of ONNX that give, take apart or rearrange shapes, and those that make tensors.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "frontends/onnx_ops.h"
#include "stax/factories.h"
#include "stax/io.h"
#include "support/plural.h"
#include "tensor/tensor_impl.h"

namespace stax::onnx::ops {
namespace {

using Result = std::vector<Tensor>;

/// Always the first of both: a shape is looked at, not computed with.
Result shape_alone(const NodeCall& call) {
  call.refuse("its input has no shape");
}

Result reshape(const NodeCall& call) {
  const Tensor& x = call.in(0);
  Exprs target = *call.exprs("shape", 1);
  if (call.integer("allowzero", 0) == 0) {
    for (size_t i = 0; i < target.size(); ++i) {
      if (!target[i].is(0)) continue;
      if (static_cast<int64_t>(i) >= x.dim()) call.refuse("a 0 in the shape has no dimension to copy");
      target[i] = size(x, static_cast<int64_t>(i));
    }
  }
  return {op("reshape", {x, list(target)})};
}

Result flatten(const NodeCall& call) {
  const Tensor& x = call.in(0);
  int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += x.dim();
  Expr before = 1, after = 1;
  for (int64_t d = 0; d < x.dim(); ++d) (d < axis ? before : after) *= size(x, d);
  return {op("reshape", {x, list(Exprs{before, after})})};
}

Result squeeze(const NodeCall& call) {
  const Tensor& x = call.in(0);
  std::optional<Ints> axes = call.ints("axes", 1);
  if (!axes) return {op("squeeze", {x})};
  for (int64_t& axis : *axes) {
    axis = axis_of(call, axis, x.dim());
    if (x.size(axis) != 1) call.refuse(fmt::format("axis {} has length {}, not 1", axis, x.size(axis).str()));
  }
  return {op("squeeze", {x, list(*axes)})};
}

Result unsqueeze(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const std::optional<Ints> axes = call.ints("axes", 1);
  if (!axes) call.refuse("'axes' is missing");
  const int64_t rank = x.dim() + static_cast<int64_t>(axes->size());
  Ints positions;
  for (const int64_t axis : *axes) positions.push_back(axis_of(call, axis, rank));
  std::sort(positions.begin(), positions.end());
  Tensor result = x;
  for (const int64_t axis : positions) result = op("unsqueeze", {result, axis});
  return {result};
}

Result transpose(const NodeCall& call) {
  Ints order = range(0, call.in(0).dim());
  std::reverse(order.begin(), order.end());
  return {op("permute", {call.in(0), list(call.node().get_ints("perm", order))})};
}

Result concat(const NodeCall& call) {
  const std::vector<Tensor> parts = call.all();
  const int64_t axis = call.integer("axis", 1);
  return {op("cat", {list(parts), axis_of(call, axis, parts.at(0).dim())})};
}

Result split(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const int64_t axis = axis_of(call, call.integer("axis", 0), x.dim());
  if (const std::optional<Exprs> sizes = call.exprs("split", 1))
    return op_all("split_with_sizes", {x, list(*sizes), axis});
  const auto parts = call.integer("num_outputs", static_cast<int64_t>(call.output_count()));
  if (parts <= 0 || parts > static_cast<int64_t>(call.output_count()))
    call.refuse(fmt::format("'num_outputs' is {}, with {}", parts, counted(call.output_count(), "output")));
  const Expr length = size(x, axis), each = ceil_div(length, parts);
  Exprs sizes(static_cast<size_t>(parts), each);
  sizes.back() = length - each * Expr(parts - 1);
  return op_all("split_with_sizes", {x, list(sizes), axis});
}

/// One axis of a slice with numbers for bounds and length. A negative step walks the axis turned round.
Tensor slice_known(const NodeCall& call, const Tensor& x, int64_t axis, int64_t start, int64_t end,
                   int64_t step) {
  if (step == 0) call.refuse("a step of 0");
  const int64_t length = x.size(axis);  // is a number
  if (start < 0) start = start < -length ? -1 : start + length;
  if (end < 0) end = end < -length ? -1 : end + length;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, length);
    end = std::clamp<int64_t>(end, start, length);
    return op("slice", {x, axis, start, end, std::min(step, std::max<int64_t>(1, length))});
  }
  start = std::clamp<int64_t>(start, -1, length - 1);
  end = std::clamp<int64_t>(end, -1, start);
  const Tensor turned = op("flip", {x, list(Ints{axis})});
  const int64_t stride = step < -length ? std::max<int64_t>(1, length) : -step;
  return op("slice", {turned, axis, length - 1 - start, length - 1 - end, stride});
}

/// The same where they may be symbolic: the operator clamps, and counts from the end what is negative.
Tensor slice_axis(const NodeCall& call, const Tensor& x, int64_t axis, Expr start, Expr end, int64_t step) {
  const Expr length = size(x, axis);
  if (length.is_constant() && start.is_constant() && end.is_constant())
    return slice_known(call, x, axis, start.value(), end.value(), step);
  if (step > 0) return op("slice", {x, axis, start, end, step});
  if (step == 0 || step < -kLargestCount) call.refuse(fmt::format("a step of {}", step));
  const Tensor turned = op("flip", {x, list(Ints{axis})});
  const auto turn = [&](Expr at) {  // where a position, or the end, lies in the turned axis
    const bool from_end = at.is_constant() ? at.value() < 0 : bool(to_sym_int(at) < 0);
    return from_end ? Expr(-1) - at : max(length - 1 - at, 0);
  };
  return op("slice", {turned, axis, turn(start), turn(end), -step});
}

Result slice(const NodeCall& call) {
  Tensor x = call.in(0);
  const std::optional<Exprs> starts = call.exprs("starts", 1), ends = call.exprs("ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) call.refuse("'starts' and 'ends' do not fit");
  const Ints axes = call.ints("axes", 3).value_or(range(0, static_cast<int64_t>(starts->size())));
  const Ints steps = call.has(4) ? call.ints(4) : Ints(starts->size(), 1);
  if (axes.size() != starts->size() || steps.size() != starts->size())
    call.refuse("'axes' or 'steps' do not fit 'starts'");
  for (size_t i = 0; i < axes.size(); ++i)
    x = slice_axis(call, x, axis_of(call, axes[i], x.dim()), (*starts)[i], (*ends)[i], steps[i]);
  return {x};
}

/// Both ways: a 1 of the target keeps the tensor's own length.
Result expand(const NodeCall& call) {
  const Tensor& x = call.in(0);
  Exprs target = call.exprs(1);
  const Exprs sizes = shape_of(x);
  if (target.size() < sizes.size()) target.insert(target.begin(), sizes.size() - target.size(), 1);
  const size_t skip = target.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    Expr& wanted = target[skip + d];
    if (wanted != sizes[d] && to_sym_int(wanted) == 1) wanted = sizes[d];
  }
  return {op("expand", {x, list(target)})};
}

Result tile(const NodeCall& call) {
  return {op("repeat", {call.in(0), list(call.exprs(1))})};
}

/// Amounts to add before and after each axis, as they stand for all axes.
struct Padding {
  Exprs before, after;
};

Padding padding_of(const NodeCall& call) {
  const int64_t rank = call.in(0).dim();
  const std::optional<Exprs> given = call.exprs(call.opset() < 2 ? "paddings" : "pads", 1);
  const Ints axes = call.has(3) ? call.ints(3) : range(0, rank);
  if (!given || given->size() != 2 * axes.size()) call.refuse("'pads' does not fit the axes");
  Padding result{Exprs(static_cast<size_t>(rank)), Exprs(static_cast<size_t>(rank))};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axis_of(call, axes[i], rank));
    result.before[axis] = (*given)[i];
    result.after[axis] = (*given)[axes.size() + i];
  }
  return result;
}

/// Positions around an axis as positions in it.
Tensor edge(const Tensor& at, Expr length) {
  return op("clamp", {at, 0, length - 1});
}
Tensor wrap(const Tensor& at, Expr length) {
  return op("remainder", {at, length});
}
Tensor reflect(const Tensor& at, Expr length) {
  if (to_sym_int(length) == 1) return op("zeros_like", {at});
  const Expr period = Expr(2) * (length - 1);
  const Tensor within = op("remainder", {at, period});
  return op("where", {op("lt", {within, length}), within, op("rsub", {within, period})});
}

/// One axis by picking: `where` maps positions around it to positions in it.
Tensor pick(const NodeCall& call, const Tensor& x, int64_t axis, Expr before, Expr after,
            Tensor (*where)(const Tensor&, Expr)) {
  constexpr int64_t kMost = 1 << 28;  // positions are a list
  const Expr length = size(x, axis);
  if (x.size(axis) == 0) call.refuse(fmt::format("axis {} has no elements to repeat", axis));
  for (const Expr pad : {before, after}) {
    if (pad.is_constant() && (pad.value() > kMost || pad.value() < -kMost))
      call.refuse(fmt::format("pads of {} and {}", before.str(), after.str()));
  }
  return op("index_select", {x, axis, where(op("arange", {-before, length + after}), length)});
}

Result pad(const NodeCall& call) {
  Tensor x = call.in(0);
  const Padding padding = padding_of(call);
  const std::string mode = call.text("mode", "constant");
  if (mode == "constant") {
    Exprs pads;  // from the last axis
    for (auto d = static_cast<size_t>(x.dim()); d-- > 0;) {
      pads.push_back(padding.before[d]);
      pads.push_back(padding.after[d]);
    }
    const double value = call.opset() < 11 ? call.real("value", 0) : call.number(2, 0);
    Argument<Tensor> number = value;
    if (!x.is_floating_point()) number = static_cast<int64_t>(value);
    return {op("constant_pad_nd", {x, list(pads), number})};
  }
  const auto where = mode == "edge" ? edge : mode == "wrap" ? wrap : mode == "reflect" ? reflect : nullptr;
  if (where == nullptr) call.refuse(fmt::format("there is no mode '{}'", mode));
  for (int64_t d = 0; d < x.dim(); ++d) {
    const Expr before = padding.before[static_cast<size_t>(d)], after = padding.after[static_cast<size_t>(d)];
    if (!before.is(0) || !after.is(0)) x = pick(call, x, d, before, after, where);
  }
  return {x};
}

Tensor from_view(const files::ArrayView& view) {
  Tensor tensor = new_tensor(view.dtype, view.sizes);
  if (view.nbytes > 0) std::memcpy(strided(tensor).data(), view.data, static_cast<size_t>(view.nbytes));
  return tensor;
}

Tensor floats(const std::vector<float>& values, const Ints& shape) {
  return op("reshape", {stax::tensor(values), list(shape)});
}

Result constant_node(const NodeCall& call) {
  capture::TraceScope suspend(nullptr);
  for (const Attribute& attribute : call.node().attributes) {
    if (attribute.name == "value") {
      if (const auto* tensor = std::get_if<onnx::Tensor>(&attribute.value))
        return {from_view(tensor->view())};
    } else if (attribute.name == "value_int") {
      return {constant({call.integer("value_int", 0)}, {})};
    } else if (attribute.name == "value_ints") {
      const Ints values = call.node().get_ints("value_ints", {});
      return {constant(values, {static_cast<int64_t>(values.size())})};
    } else if (attribute.name == "value_float") {
      return {floats({call.node().get_float("value_float", 0)}, {})};
    } else if (const auto* list = std::get_if<std::vector<float>>(&attribute.value)) {
      return {floats(*list, {static_cast<int64_t>(list->size())})};
    }
  }
  call.refuse("its value is of a kind that Stax does not have");
}

Result constant_of_shape(const NodeCall& call) {
  const Exprs shape = call.exprs(0);
  const Attribute* value = call.node().find("value");
  if (value == nullptr) return {filled(shape, 0.0, DType::float32)};
  const auto* tensor = std::get_if<onnx::Tensor>(&value->value);
  if (tensor == nullptr) call.refuse("'value' is no tensor");
  const auto [number, dtype] = [&] {
    capture::TraceScope suspend(nullptr);
    const Tensor one = from_view(tensor->view());
    return std::pair(op("reshape", {one, list(Ints{})}).item(), one.dtype());
  }();
  return {filled(shape, number, dtype)};
}

Result range_node(const NodeCall& call) {
  const DType dtype = call.dtype(0);
  if (is_floating_point(dtype)) {
    return {op("arange", {call.numbers(0).at(0), call.numbers(1).at(0), call.numbers(2).at(0)},
               {{"dtype", dtype}})};
  }
  return {op("arange", {call.exprs(0).at(0), call.exprs(1).at(0), call.exprs(2).at(0)}, {{"dtype", dtype}})};
}

Result eye_like(const NodeCall& call) {
  const Tensor& x = call.in(0);
  if (x.dim() != 2) call.refuse("the input is to be a matrix");
  const Expr rows = size(x, 0), columns = size(x, 1), k = call.integer("k", 0);
  const DType dtype =
      call.node().find("dtype") != nullptr ? element_type(call, call.integer("dtype", 1)) : x.dtype();
  const Tensor row = op("unsqueeze", {op("arange", {rows}), 1}), column = op("arange", {columns});
  return {op("to", {op("eq", {op("add", {row, k}), column}), dtype})};
}

Result trilu(const NodeCall& call) {
  const Expr k = call.has(1) ? call.exprs(1).at(0) : Expr(0);
  return {op(call.integer("upper", 1) != 0 ? "triu" : "tril", {call.in(0), k})};
}

Result depth_to_space(const NodeCall& call) {
  const Tensor& x = call.in(0);
  if (x.dim() != 4) call.refuse("the input is to have 4 dimensions");
  const Expr block = call.positive("blocksize", 1), n = size(x, 0), c = size(x, 1), h = size(x, 2),
             w = size(x, 3);
  const bool columns_first = call.text("mode", "DCR") == "CRD";
  const Expr depth = floor_div(c, block * block);
  const Exprs parts =
      columns_first ? Exprs{n, depth, block, block, h, w} : Exprs{n, block, block, depth, h, w};
  const Ints order = columns_first ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2};
  const Tensor apart = op("permute", {op("reshape", {x, list(parts)}), list(order)});
  return {op("reshape", {apart, list(Exprs{n, depth, h * block, w * block})})};
}

Result space_to_depth(const NodeCall& call) {
  const Tensor& x = call.in(0);
  if (x.dim() != 4) call.refuse("the input is to have 4 dimensions");
  const Expr block = call.positive("blocksize", 1), n = size(x, 0), c = size(x, 1), h = size(x, 2),
             w = size(x, 3);
  const bool columns_first = call.text("mode", "DCR") == "CRD";
  const Expr rows = floor_div(h, block), columns = floor_div(w, block);
  const Tensor parts = op("reshape", {x, list(Exprs{n, c, rows, block, columns, block})});
  const Tensor apart =
      op("permute", {parts, list(columns_first ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4})});
  return {op("reshape", {apart, list(Exprs{n, c * block * block, rows, columns})})};
}

constexpr OpRow kShapeRows[] = {
    {"Shape", 1, shape_alone},
    {"Size", 1, shape_alone},
    {"Reshape", 1, reshape},
    {"Flatten", 1, flatten},
    {"Squeeze", 1, squeeze},
    {"Unsqueeze", 1, unsqueeze},
    {"Transpose", 1, transpose},
    {"Concat", 1, concat},
    {"Split", 1, split},
    {"Slice", 1, slice},
    {"Expand", 8, expand},
    {"Tile", 6, tile},
    {"Pad", 1, pad},
    {"Constant", 1, constant_node},
    {"ConstantOfShape", 9, constant_of_shape},
    {"Range", 11, range_node},
    {"EyeLike", 9, eye_like},
    {"Trilu", 14, trilu},
    {"DepthToSpace", 1, depth_to_space},
    {"SpaceToDepth", 1, space_to_depth},
};

}  // namespace

std::span<const OpRow> shape_rows() {
  return kShapeRows;
}

}  // namespace stax::onnx::ops

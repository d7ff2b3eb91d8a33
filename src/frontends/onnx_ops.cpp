#include "frontends/onnx_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "stax/factories.h"
#include "support/check.h"
#include "tensor/tensor_impl.h"

namespace stax::onnx::ops {
namespace {

template <class T>
std::vector<T> read(const Tensor& tensor, DType dtype) {
  // Where data decides it, this is a read: the trace ends here.
  const StridedImpl& source = tensor.impl()->concrete(std::source_location::current());
  const capture::TraceScope suspend(nullptr);
  const Tensor dense = new_tensor(dtype, source.sizes().values());
  copy_elements(source.view(), strided(dense).view());
  const T* data = reinterpret_cast<const T*>(strided(dense).data());
  return {data, data + static_cast<int64_t>(dense.numel())};
}

}  // namespace

const Tensor& NodeCall::in(size_t input) const {
  if (!has(input)) refuse(fmt::format("input {} is left out", input));
  Value& value = inputs_[input];
  if (!value.tensor.defined()) value.tensor = materialize(*value.sizes);
  return value.tensor;
}

DType NodeCall::dtype(size_t input) const {
  return has(input) && inputs_[input].sizes ? inputs_[input].sizes->dtype : in(input).dtype();
}

std::vector<Tensor> NodeCall::all() const {
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs_.size(); ++i) result.push_back(in(i));
  return result;
}

Exprs NodeCall::exprs(size_t input) const {
  if (!has(input) || !inputs_[input].sizes) {
    const Ints numbers = ints(input);
    return {numbers.begin(), numbers.end()};
  }
  const SizeTensor& sizes = *inputs_[input].sizes;
  if (is_floating_point(sizes.dtype)) refuse(fmt::format("input {} is to be of integers", input));
  Exprs result;
  for (const SizeNumber& number : sizes.elements) result.push_back(number.over);
  return result;
}

Ints NodeCall::ints(size_t input) const {
  if (has(input) && inputs_[input].sizes) {
    Ints result;
    for (const Expr e : exprs(input)) result.push_back(fixed(e));
    return result;
  }
  const Tensor& tensor = in(input);
  if (tensor.is_floating_point()) refuse(fmt::format("input {} is to be of integers", input));
  return read<int64_t>(tensor, DType::int64);
}

std::vector<double> NodeCall::numbers(size_t input) const {
  if (has(input) && inputs_[input].sizes) {
    std::vector<double> result;
    for (const SizeNumber& number : inputs_[input].sizes->elements)
      result.push_back(static_cast<double>(fixed(number.over)) / static_cast<double>(number.under));
    return result;
  }
  return read<double>(in(input), DType::float64);
}

double NodeCall::number(size_t input, double otherwise) const {
  if (!has(input)) return otherwise;
  const std::vector<double> values = numbers(input);
  if (values.size() != 1) refuse(fmt::format("input {} is to be one number, not {}", input, values.size()));
  return values[0];
}

std::optional<Ints> NodeCall::ints(std::string_view attribute, size_t input) const {
  if (node_.find(attribute) != nullptr) return node_.get_ints(attribute, {});
  if (has(input)) return ints(input);
  return std::nullopt;
}

std::optional<Exprs> NodeCall::exprs(std::string_view attribute, size_t input) const {
  if (node_.find(attribute) == nullptr && has(input)) return exprs(input);
  const std::optional<Ints> numbers = ints(attribute, input);
  if (!numbers) return std::nullopt;
  return Exprs(numbers->begin(), numbers->end());
}

int64_t NodeCall::positive(std::string_view attribute, int64_t otherwise) const {
  const int64_t value = integer(attribute, otherwise);
  if (value < 1 || value > kLargestCount)
    refuse(fmt::format("'{}' is to be positive, got {}", attribute, value));
  return value;
}

void NodeCall::refuse(const std::string& why) const {
  throw_user_error(fmt::format("{}: {}", node_.describe(), why));
}

const OpRow* find_row(std::string_view op_type, int64_t opset) {
  const OpRow* best = nullptr;
  for (const auto& family :
       {math_rows(), shape_rows(), index_rows(), reduction_rows(), network_rows(), resize_rows()}) {
    for (const OpRow& row : family) {
      if (row.name == op_type && row.since <= opset && (best == nullptr || row.since > best->since))
        best = &row;
    }
  }
  return best;
}

std::vector<Tensor> op_all(std::string_view name, capture::Arguments arguments, Named named) {
  return capture::call(name, std::move(arguments), std::move(named));
}

Tensor op(std::string_view name, capture::Arguments arguments, Named named) {
  std::vector<Tensor> results = op_all(name, std::move(arguments), std::move(named));
  STAX_ASSERT(!results.empty(), "{} has no result", name);
  return std::move(results[0]);
}

Argument<Tensor> list(const Ints& values) {
  return std::vector<Expr>(values.begin(), values.end());
}
Argument<Tensor> list(const std::vector<Tensor>& values) {
  return Argument<Tensor>::Tensors(values.begin(), values.end());
}

int64_t axis_of(const NodeCall& call, int64_t axis, int64_t rank) {
  const int64_t wrapped = axis < 0 ? axis + rank : axis;
  if (wrapped < 0 || wrapped >= rank)
    call.refuse(fmt::format("axis {} is not one of a tensor of rank {}", axis, rank));
  return wrapped;
}

Ints range(int64_t first, int64_t last) {
  Ints result(static_cast<size_t>(std::max<int64_t>(0, last - first)));
  std::iota(result.begin(), result.end(), first);
  return result;
}

DType element_type(const NodeCall& call, int64_t number) {
  struct Row {
    int64_t number;
    DType dtype;
  };
  constexpr Row rows[] = {{1, DType::float32},  {2, DType::uint8},    {3, DType::int8},
                          {5, DType::int16},    {6, DType::int32},    {7, DType::int64},
                          {9, DType::boolean},  {10, DType::float16}, {11, DType::float64},
                          {16, DType::bfloat16}};
  for (const Row& row : rows) {
    if (row.number == number) return row.dtype;
  }
  call.refuse(fmt::format("element type {} is one that Stax does not have", number));
}

Tensor constant(const Ints& values, const Ints& shape, DType dtype) {
  capture::TraceScope suspend(nullptr);
  Tensor result = stax::tensor(values, TensorOptions(dtype));
  return op("reshape", {result, list(shape)});
}

Exprs shape_of(const Tensor& tensor) {
  Exprs sizes;
  for (const SymInt& value : tensor.sizes()) sizes.push_back(to_expr(value));
  return sizes;
}

Tensor filled(const Exprs& shape, const Scalar& value, DType dtype) {
  Argument<Tensor> number;
  if (value.is_floating_point()) {
    number = value.toDouble();
  } else if (value.is_boolean()) {
    number = value.toBool();
  } else {
    number = value.toLong();
  }
  return op("full", {list(shape), number}, {{"dtype", dtype}});
}

Tensor wrap_indices(const Tensor& indices, Expr length) {
  const Tensor wide = op("to", {indices, DType::int64});
  return op("where", {op("lt", {wide, 0}), op("add", {wide, length}), wide});
}

}  // namespace stax::onnx::ops

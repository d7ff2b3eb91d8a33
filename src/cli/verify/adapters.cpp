#include "cli/verify/adapters.h"

#include <algorithm>
#include <utility>

#include "support/check.h"
#include "tensor/tensor_impl.h"

namespace stax::cli {
namespace {

// What adapters are written with.

Argument<Tensor> take(Request& call, std::string_view name) {
  const auto found = std::find_if(call.named.begin(), call.named.end(),
                                  [&](const auto& item) { return item.first == name; });
  if (found == call.named.end()) return {};
  Argument<Tensor> value = std::move(found->second);
  call.named.erase(found);
  return value;
}

/// The argument that Python finds at a position or by a name; none when it is left out. It is taken away when
/// it was named.
Argument<Tensor> take(Request& call, size_t position, std::string_view name) {
  return position < call.positional.size() ? call.positional[position] : take(call, name);
}

std::vector<Expr> integers_of(const Tensor& tensor) {
  const Tensor wide = new_tensor(DType::int64, tensor.sizes().values());
  copy_elements(strided(tensor).view(), strided(wide).view());
  const auto* data = reinterpret_cast<const int64_t*>(strided(wide).data());
  return {data, data + static_cast<int64_t>(wide.numel())};
}

Argument<Tensor> number_of(const Tensor& tensor) {
  const Scalar value = tensor.item();
  if (value.is_boolean()) return value.toBool();
  if (value.is_integral()) return value.toLong();
  return value.toDouble();
}

template <bool NumberFirst>
void reversed(Request& call) {
  STAX_CHECK(call.positional.size() == 2 && (NumberFirst || call.positional[0].is_tensor()),
             "{}: the first argument is no tensor", call.name);
  std::swap(call.positional[0], call.positional[1]);
}

template <DType dtype>
void cast(Request& call) {
  call.positional = {call.positional.at(0), dtype};
  call.named.clear();
}

/// to(device, dtype, ...), to(dtype, ...), to(other, ...).
void to(Request& call) {
  const Tensor self = call.positional.at(0).tensor();
  DType dtype = self.dtype();
  for (size_t i = 1; i < call.positional.size(); ++i) {
    const auto& value = call.positional[i];
    if (value.is_tensor()) dtype = value.tensor().dtype();
    if (std::holds_alternative<DType>(value.value)) dtype = value.dtype();
  }
  call.positional = {self, dtype};
  call.named.clear();
}

/// x.where(condition, y).
void where_method(Request& call) {
  if (call.positional.size() == 3) std::swap(call.positional[0], call.positional[1]);
}

/// f(a, b, c) for f([a, b, c]).
void variadic(Request& call) {
  Argument<Tensor>::Tensors list;
  for (const auto& value : call.positional) {
    if (!value.is_tensor()) return;
    list.push_back(value.tensor());
  }
  call.positional = {std::move(list)};
}

/// einsum(operands, equation): the recorded order is that of the samples.
void einsum(Request& call) {
  if (call.positional.size() == 2 && !std::holds_alternative<std::string>(call.positional[0].value))
    std::swap(call.positional[0], call.positional[1]);
}

/// Splits that are given as a tensor.
void split_tensor(Request& call) {
  if (call.positional.size() < 2 || !call.positional[1].is_tensor()) return;
  const Tensor split = call.positional[1].tensor();
  if (split.dim() == 0) {
    call.positional[1] = number_of(split);
  } else {
    call.positional[1] = integers_of(split);
  }
}

/// Zero-dim tensors as numbers.
void scalar_tensors(Request& call) {
  for (auto& value : call.positional) {
    if (value.is_tensor() && value.tensor().dim() == 0) value = number_of(value.tensor());
  }
}

/// as_tuple=True gives one tensor a dimension.
void nonzero(Request& call) {
  if (is_true(take(call, "as_tuple"))) call.name = "nonzero_numpy";
}

/// Integers stand for lists, as the rows of convolutions and pools take them; None for the default.
void drop_none(Request& call) {
  std::erase_if(call.named, [](const auto& item) { return item.second.is_none(); });
}

/// A pool returns its indices when asked to.
template <size_t position>
void max_pool(Request& call) {
  const Argument<Tensor> wanted = take(call, position, "return_indices");
  if (call.positional.size() > position) call.positional.resize(position);
  drop_none(call);
  call.name += "_with_indices";
  call.keep = is_true(wanted) ? 2 : 1;
}

/// None in an output size keeps the input's length.
void adaptive_pool(Request& call) {
  const Tensor input = call.positional.at(0).tensor();
  for (auto& value : call.positional) {
    auto* sizes = std::get_if<std::vector<Expr>>(&value.value);
    if (sizes == nullptr) continue;
    for (size_t i = 0; i < sizes->size(); ++i) {
      const int64_t dim = input.dim() - static_cast<int64_t>(sizes->size() - i);
      if ((*sizes)[i].is(RecordedFile::kNoneInList))
        (*sizes)[i] = Expr(static_cast<int64_t>(input.size(dim)));
    }
  }
}

template <size_t position>
void adaptive_max_pool(Request& call) {
  const Argument<Tensor> wanted = take(call, position, "return_indices");
  if (call.positional.size() > position) call.positional.resize(position);
  adaptive_pool(call);
  call.keep = is_true(wanted) ? 2 : 1;
}

/// narrow(dim, start, length) where start is a zero-dim tensor.
void narrow(Request& call) {
  if (call.positional.size() > 2 && call.positional[2].is_tensor())
    call.positional[2] = number_of(call.positional[2].tensor());
}

/// dims: n last dimensions with n first ones, or two lists.
void tensordot(Request& call) {
  const Argument<Tensor> dims = take(call, 2, "dims");
  call.positional.resize(2);
  std::vector<Expr> left, right;
  if (dims.is_number()) {
    const int64_t rank = call.positional.at(0).tensor().dim(), count = dims.integer().value();
    for (int64_t i = 0; i < count; ++i) {
      left.emplace_back(rank - count + i);
      right.emplace_back(i);
    }
  } else {  // both lists in one, as argument() hands them over
    const std::vector<Expr>& both = dims.integers();
    left.assign(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2));
    right.assign(both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2), both.end());
  }
  call.positional.emplace_back(std::move(left));
  call.positional.emplace_back(std::move(right));
}

/// num_classes=-1 stands for as many as the indices name.
void one_hot(Request& call) {
  std::erase_if(call.named, [](const auto& item) {
    return item.first == "num_classes" && integer_or(item.second, 0) == -1;
  });
}

/// max_pool2d_with_indices_backward: the gradient of a pool whose results all have the gradient 1.
std::vector<Tensor> pool_gradient(const Request& call) {
  const auto pool = [&](std::string_view name, capture::Arguments positional) {
    return capture::call(name, std::move(positional), call.named);
  };
  const Tensor input = call.positional.at(0).tensor();
  const std::vector<Tensor> pooled = pool("max_pool2d_with_indices", {input});
  const Tensor ones = capture::call("ones_like", {pooled.at(0)})[0];
  auto named = call.named;
  named.emplace_back("indices", pooled.at(1));
  for (auto& [name, value] : named) {
    if (name != "stride" || !value.is_none()) continue;
    for (const auto& [other, kernel] : call.named) {
      if (other == "kernel_size") value = kernel;
    }
  }
  return capture::call("max_pool2d_with_indices_backward", {ones, input}, std::move(named));
}
void pool_backward(Request& call) {
  take(call, "return_indices");
  call.formula = pool_gradient;
}

struct Row {
  std::string_view recorded;  // without "nn.functional." and what else is stripped
  std::string_view name;      // of the op table; "" for the same
  void (*adapt)(Request&) = nullptr;
};

constexpr Row kRows[] = {
    {"__radd__", "add", reversed<false>},
    {"__rmul__", "mul", reversed<false>},
    {"__rsub__", "sub", reversed<false>},
    {"__rdiv__", "div", reversed<false>},
    {"__rpow__", "pow", reversed<true>},
    {"__rmod__", "remainder", reversed<true>},
    {"bool", "to", cast<DType::boolean>},
    {"byte", "to", cast<DType::uint8>},
    {"char", "to", cast<DType::int8>},
    {"short", "to", cast<DType::int16>},
    {"int", "to", cast<DType::int32>},
    {"long", "to", cast<DType::int64>},
    {"half", "to", cast<DType::float16>},
    {"bfloat16", "to", cast<DType::bfloat16>},
    {"float", "to", cast<DType::float32>},
    {"double", "to", cast<DType::float64>},
    {"to", "to", to},
    {"where", "", where_method},
    {"block_diag", "", variadic},
    {"broadcast_tensors", "", variadic},
    {"cartesian_prod", "", variadic},
    {"meshgrid", "", variadic},
    {"einsum", "", einsum},
    {"tensor_split", "", split_tensor},
    {"linspace", "", scalar_tensors},
    {"logspace", "", scalar_tensors},
    {"nonzero", "", nonzero},
    {"narrow", "", narrow},
    {"narrow_copy", "", narrow},
    {"tensordot", "", tensordot},
    {"max_pool2d_with_indices_backward", "", pool_backward},
    {"one_hot", "", one_hot},
    {"linalg.norm", "linalg_norm"},
    {"linalg.vector_norm", "linalg_vector_norm"},
    {"nn.functional.unfold", "im2col"},
    {"max_pool1d", "", max_pool<6>},
    {"max_pool2d", "", max_pool<6>},
    {"max_pool3d", "", max_pool<6>},
    {"adaptive_avg_pool1d", "", adaptive_pool},
    {"adaptive_avg_pool2d", "", adaptive_pool},
    {"adaptive_avg_pool3d", "", adaptive_pool},
    {"adaptive_max_pool1d", "", adaptive_max_pool<2>},
    {"adaptive_max_pool2d", "", adaptive_max_pool<2>},
    {"adaptive_max_pool3d", "", adaptive_max_pool<2>},
};

}  // namespace

void adapt(Request& call, std::string_view recorded, std::string_view stripped) {
  for (const Row& row : kRows) {
    if (row.recorded != stripped && row.recorded != recorded) continue;
    if (!row.name.empty()) call.name = row.name;
    if (row.adapt != nullptr) row.adapt(call);
  }
}

}  // namespace stax::cli

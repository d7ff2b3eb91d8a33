// The product of matrices with what follows it, as a library of a GPU fuses them: for programs whose kernels
// for that GPU cannot be made.
#include <cmath>
#include <numbers>

#include "graph/activation.h"
#include "kernels/element.h"
#include "kernels/onednn_problem.h"
#include "kernels/registry.h"

namespace stax::kernels {
namespace {

template <class T>
T activated(graph::Activation activation, T v) {
  switch (activation) {
    case graph::Activation::none:
      return v;
    case graph::Activation::relu:
      return v < 0 ? T(0) : v;
    case graph::Activation::gelu_tanh: {
      const T inner = std::sqrt(T(2) / std::numbers::pi_v<T>) * (v + T(0.044715) * v * v * v);
      return T(0.5) * v * (T(1) + std::tanh(inner));
    }
  }
  return v;
}

/// Numbers of `view`, one dimension.
template <class T>
std::vector<T> row_of(const TensorView& view) {
  std::vector<T> out;
  with_element_type(view.dtype, [&](auto type) {
    const auto* data = static_cast<const typename decltype(type)::Stored*>(view.data);
    for (int64_t k = 0; k < view.sizes[0]; ++k)
      out.push_back(static_cast<T>(widen(data[k * view.strides[0]])));
  });
  return out;
}

template <class T>
void run(Arguments arguments, const TensorView& result, DType computed) {
  std::vector<T> products(static_cast<size_t>(result.numel()));
  const TensorView dense{products.data(), computed, result.sizes, onednn::dense_strides(result.sizes)};
  multiply_matrices(arguments.first(2), {&dense, 1});
  const int64_t columns = result.sizes.back();
  const std::vector<T> bias = arguments[2].is_tensor() ? row_of<T>(arguments[2].tensor())
                                                       : std::vector<T>(static_cast<size_t>(columns));
  const graph::Activation activation = graph::activation_named(arguments[3].string());
  with_element_type(result.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    size_t k = 0;
    for_each_offset(result, [&](int64_t at) {
      const T sum = products[k] + bias[k % static_cast<size_t>(columns)];
      static_cast<Stored*>(result.data)[at] = narrow<Stored>(activated(activation, sum));
      ++k;
    });
  });
}

}  // namespace

void multiply_with_epilogue(Arguments arguments, Results results) {
  if (arguments[0].tensor().dtype == DType::float64)
    return run<double>(arguments, results[0], DType::float64);
  run<float>(arguments, results[0], DType::float32);
}

}  // namespace stax::kernels

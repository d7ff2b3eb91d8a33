// Gradients of functions.
//
//   auto loss = [](const stax::Tensor& w, const stax::Tensor& x, const stax::Tensor& y) {
//     return stax::mse_loss(x.matmul(w), y);
//   };
//   stax::Tensor dw = stax::grad(loss)(w, x, y);             // with respect to the first argument
//   auto both = stax::compile(stax::grad(loss, {0, 1}));     // forward and backward, compiled together
//
// The gradient function is an ordinary function over tensors: it can be compiled, called inside a function
// that is compiled, and differentiated again.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "stax/api.h"
#include "stax/compile.h"
#include "stax/error.h"

namespace stax {

namespace detail {

/// The tensor as a value that gradients can be taken for. UserError unless it is floating.
STAX_API Tensor differentiable(const Tensor& argument, int64_t position);
/// While tracing. UserError unless `output` is floating, with one element.
STAX_API std::vector<Tensor> gradients(const Tensor& output, const std::vector<Tensor>& inputs);
[[noreturn]] STAX_API void refuse_position(int64_t position, size_t arguments);

}  // namespace detail

/// What grad() returns.
template <class F>
class GradientFunction {
 public:
  GradientFunction(F function, std::vector<int64_t> positions)
      : function_(std::move(function)), positions_(std::move(positions)) {}

  /// One gradient for each position, of the dtype and shape of that argument. Outside of compiled functions
  /// the operators run one by one. UserError where the function's result is not floating or has more than one
  /// element, a position is no floating tensor, or an operator on the way has no derivative.
  template <class... A>
  std::vector<Tensor> operator()(const A&... arguments) const {
    if (detail::is_tracing()) return traced(arguments...);
    auto run = compile([self = *this](const A&... a) { return self.traced(a...); }, {.backend = "debug"});
    return run(arguments...);
  }

 private:
  template <class... A>
  std::vector<Tensor> traced(const A&... arguments) const {
    std::tuple<A...> copies(arguments...);
    std::vector<Tensor> inputs;
    for (const int64_t position : positions_) {
      if (position < 0 || position >= static_cast<int64_t>(sizeof...(A)))
        detail::refuse_position(position, sizeof...(A));
      int64_t k = 0;
      std::apply([&](auto&... copy) { ((k++ == position ? replace(copy, position, inputs) : void()), ...); },
                 copies);
    }
    const Tensor output = std::apply(function_, std::move(copies));
    return detail::gradients(output, inputs);
  }

  template <class T>
  static void replace(T& copy, int64_t position, std::vector<Tensor>& inputs) {
    if constexpr (std::is_same_v<T, Tensor>) {
      copy = detail::differentiable(copy, position);
      inputs.push_back(copy);
    } else {
      detail::refuse_position(position, 0);
    }
  }

  F function_;
  std::vector<int64_t> positions_;
};

/// The first gradient of several, as what one-argument grad() returns.
template <class F>
class FirstGradient {
 public:
  explicit FirstGradient(GradientFunction<F> all) : all_(std::move(all)) {}
  template <class... A>
  Tensor operator()(const A&... arguments) const {
    return all_(arguments...)[0];
  }

 private:
  GradientFunction<F> all_;
};

namespace detail {

template <class F>
struct Signature<GradientFunction<F>> : Signature<F> {};
template <class F>
struct Signature<FirstGradient<F>> : Signature<F> {};

}  // namespace detail

/// Gradients of `function`, which returns a floating tensor of one element, with respect to the arguments at
/// `positions` (from 0).
template <class F>
auto grad(F&& function, std::vector<int64_t> positions) {
  return GradientFunction<std::decay_t<F>>(std::forward<F>(function), std::move(positions));
}

/// The gradient with respect to the first argument: a tensor.
template <class F>
auto grad(F&& function) {
  return FirstGradient(grad(std::forward<F>(function), {0}));
}

}  // namespace stax

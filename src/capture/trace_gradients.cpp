// Gradients inside a trace, and the functions behind stax::grad.
#include "autograd/gradients.h"
#include "capture/functional_trace.h"
#include "stax/grad.h"
#include "support/check.h"

namespace stax {
namespace capture {

std::vector<Tensor> FunctionalTrace::gradients(const Tensor& output, const std::vector<Tensor>& inputs) {
  check_running();
  std::vector<Tensor> keep(inputs.size() + 1);
  const auto value_of = [&](const Tensor& tensor, Tensor& holder) { return value(traced(tensor, holder)); };
  const graph::Var from = value_of(output, keep.back());
  std::vector<graph::Var> to;
  for (size_t k = 0; k < inputs.size(); ++k) to.push_back(value_of(inputs[k], keep[k]));
  std::vector<Tensor> out;
  for (const graph::Var& g : autograd::gradients(builder_, from, to))
    out.push_back(make(new_storage(g), {}, g));
  return out;
}

}  // namespace capture

namespace detail {

Tensor differentiable(const Tensor& argument, int64_t position) {
  STAX_CHECK(is_floating_point(argument.dtype()),
             "grad: argument {} is {}; only floating tensors have gradients: pass other positions", position,
             name(argument.dtype()));
  return argument.clone();  // a value of its own, so that what shares memory with it is no part of it
}

std::vector<Tensor> gradients(const Tensor& output, const std::vector<Tensor>& inputs) {
  STAX_CHECK(
      is_floating_point(output.dtype()) && output.numel() == 1,
      "grad: the function returns {} of shape {}; expected a floating tensor of one element, such as a "
      "loss: reduce it with sum() or mean()",
      name(output.dtype()), output.sizes());
  return capture::current_trace()->gradients(output, inputs);
}

void refuse_position(int64_t position, size_t arguments) {
  STAX_CHECK(arguments == 0, "grad: there is no argument {}; the call has {}", position, arguments);
  STAX_CHECK(false, "grad: argument {} is no tensor; gradients are taken with respect to tensors", position);
}

}  // namespace detail
}  // namespace stax

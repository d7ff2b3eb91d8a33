#include "cli/examples.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "stax/stax.h"

namespace stax::cli {
namespace {

using Tensors = std::vector<Tensor>;

Tensors relu_sum(const Tensors& in) {
  return {(relu(in[0] + in[1]) * 2).sum(-1)};
}
Tensors gelu_sum(const Tensors& in) {
  return {gelu(in[0]).sum()};
}
Tensors transposed_sum(const Tensors& in) {
  return {in[0].t() + in[1]};
}
Tensors sum_of_squares(const Tensors& in) {
  return {(in[0] * in[0]).sum(-1)};
}
Tensors softmax_rows(const Tensors& in) {
  return {softmax(in[0], -1)};
}

}  // namespace

std::span<const Example> examples() {
  static const std::vector<Example> all = {
      {"ex-1.1", "(relu(x + w) * 2).sum(-1)", {{"x", {64, 128}}, {"w", {64, 128}}}, relu_sum},
      {"ex-5.1", "gradient of gelu(h).sum()", {{"h", {32, 64}}}, gelu_sum, true},
      {"ex-6.1", "x.t() + y", {{"x", {512, 256}}, {"y", {256, 512}}}, transposed_sum},
      {"ex-6.2", "(x * x).sum(-1)", {{"x", {64, 16384}}}, sum_of_squares},
      {"softmax", "softmax(x, -1)", {{"x", {256, 1000}}}, softmax_rows},
  };
  return all;
}

const Example* find_example(std::string_view name) {
  for (const Example& example : examples()) {
    if (example.name == name) return &example;
  }
  return nullptr;
}

int list_examples() {
  for (const Example& example : examples()) {
    std::string inputs;
    for (const ExampleInput& input : example.inputs)
      inputs +=
          fmt::format("{}{} [{}]", inputs.empty() ? "" : ", ", input.name, fmt::join(input.sizes, ", "));
    fmt::print("{:<10} {:<28} {}\n", example.name, example.program, inputs);
  }
  return 0;
}

}  // namespace stax::cli

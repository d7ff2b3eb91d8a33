// The built-in examples: small programs that `stax show` prints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stax/tensor.h"

namespace stax::cli {

struct ExampleInput {
  std::string_view name;
  std::vector<int64_t> sizes;  ///< float32, row-major
};

struct Example {
  std::string_view name;
  std::string_view program;  ///< as it would be written
  std::vector<ExampleInput> inputs;
  std::vector<Tensor> (*run)(const std::vector<Tensor>& inputs);
  bool gradient =
      false;  ///< what is shown is the function from the result's gradient and the inputs to theirs
};

std::span<const Example> examples();
/// The example of that name, or null.
const Example* find_example(std::string_view name);

}  // namespace stax::cli

#include "cli/model_inputs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>

#include "stax/functions.h"
#include "stax/io.h"
#include "support/check.h"

namespace stax::cli {

std::vector<Tensor> read_inputs(const onnx::OnnxProgram& program, const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const auto& input : program.inputs()) names.push_back(input.name);
  std::map<std::string, std::string> files;
  for (const std::string& text : given) {
    // A name may hold '=' itself: the longest one that the model has is meant.
    const std::string* found = nullptr;
    for (const std::string& name : names) {
      if (text.starts_with(name + "=") && (found == nullptr || name.size() > found->size())) found = &name;
    }
    STAX_CHECK(text.find('=') < text.size() - 1, "--input takes NAME=FILE.npy, not '{}'", text);
    STAX_CHECK(found != nullptr, "the model has no input for '{}'; its inputs are: {}", text,
               fmt::join(names, ", "));
    STAX_CHECK(files.emplace(*found, text.substr(found->size() + 1)).second, "input '{}' is given twice",
               *found);
  }
  std::vector<Tensor> inputs;
  for (const std::string& name : names) {
    const auto file = files.find(name);
    STAX_CHECK(file != files.end(), "input '{}' of the model is missing; give it as --input {}=FILE.npy",
               name, name);
    inputs.push_back(load_npy(file->second));
  }
  return inputs;
}

std::vector<Tensor> empty_inputs(const onnx::OnnxProgram& program, const std::optional<int64_t>& batch) {
  const int64_t length = batch.value_or(1);
  STAX_CHECK(length >= 0, "--batch is to be at least 0, not {}", length);
  bool used = false;
  std::vector<Tensor> inputs;
  for (const onnx::ValueInfo& input : program.inputs()) {
    STAX_CHECK(input.dtype && input.dims, "input '{}' has no declared dtype and shape; give it as a file",
               input.name);
    std::vector<int64_t> sizes;
    for (const onnx::Dim& dim : *input.dims) {
      used = used || !dim.size;
      sizes.push_back(dim.size.value_or(length));
    }
    inputs.push_back(zeros(sizes, *input.dtype));
  }
  STAX_CHECK(
      !batch || used,
      "--batch is the length of dimensions that have no fixed one, and those of the model's inputs all have; "
      "leave it out");
  return inputs;
}

}  // namespace stax::cli

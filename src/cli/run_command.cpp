// stax run: runs a model on arrays from files.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "cli/model_inputs.h"
#include "stax/compile.h"
#include "stax/io.h"
#include "stax/onnx.h"
#include "support/check.h"

namespace stax::cli {
namespace {

namespace fs = std::filesystem;

/// A name as a file's name: what a path cannot hold becomes "_".
std::string file_name(const std::string& name) {
  std::string text = name;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '/' || c == ':' || c == '\0'; }, '_');
  return text + ".npy";
}

}  // namespace

int run(const RunOptions& options) {
  STAX_CHECK(options.device == "cpu", "run: there is no device '{}'; there is: cpu", options.device);
  const OnnxModel model = OnnxModel::load(options.model);
  const std::vector<Tensor> inputs = read_inputs(model.program(), options.inputs);
  STAX_CHECK(!(options.eager && options.dynamic),
             "run: --eager compiles nothing, so --dynamic has no meaning");
  CompileOptions how{.dynamic = options.dynamic};
  if (options.dynamic) how.dynamic_shapes = model.dynamic_shapes();
  const std::vector<Tensor> outputs = options.eager ? model(inputs) : compile(model, how)(inputs);
  const std::vector<std::string> names = model.output_names();
  std::error_code error;
  fs::create_directories(options.output_dir, error);
  STAX_RUNTIME_CHECK(!error, "run: cannot make the folder '{}': {}", options.output_dir, error.message());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = names[i];
    const std::string path = (fs::path(options.output_dir) / file_name(name)).string();
    save_npy(path, outputs[i].contiguous());
    fmt::print("{}: {} [{}] in {}\n", name, stax::name(outputs[i].dtype()),
               fmt::join(outputs[i].sizes().values(), ", "), path);
  }
  return 0;
}

}  // namespace stax::cli

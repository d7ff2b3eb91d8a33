// stax show: a program at any stage of its compilation.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "autograd/reverse.h"
#include "cli/commands.h"
#include "cli/examples.h"
#include "cli/model_inputs.h"
#include "compiler/batch.h"
#include "compiler/constant_evaluator.h"
#include "frontends/onnx_program.h"
#include "ops/table.h"
#include "support/check.h"
#include "tensor/tensor_impl.h"

namespace stax::cli {
namespace {

capture::Captured capture_example(const Example& example, bool dynamic) {
  std::vector<Tensor> inputs;
  for (const ExampleInput& input : example.inputs) inputs.push_back(new_tensor(DType::float32, input.sizes));
  capture::Captured captured = compiler::trace_function(example.run, inputs, {.dynamic = dynamic});
  if (example.gradient)
    captured.graph =
        autograd::reverse({ops::table(), *captured.env, compiler::evaluate_constants}, captured.graph);
  return captured;
}

capture::Captured capture_model(const ShowOptions& options) {
  const onnx::OnnxProgram program = onnx::OnnxProgram::load(options.program);
  capture::SymbolOptions symbols{.dynamic = options.dynamic};
  if (options.dynamic) symbols.shapes = onnx::dynamic_shapes(program.inputs());
  return compiler::trace_function([&](const std::vector<Tensor>& in) { return program(in); },
                                  empty_inputs(program, options.batch), symbols);
}

capture::Captured capture_program(const ShowOptions& options) {
  if (const Example* example = find_example(options.program))
    return capture_example(*example, options.dynamic);
  const bool is_file = std::filesystem::exists(options.program);
  STAX_CHECK(is_file || options.program.ends_with(".onnx"),
             "show: '{}' is neither a built-in example (stax examples lists them) nor an .onnx file",
             options.program);
  return capture_model(options);
}

}  // namespace

int show(const ShowOptions& options) {
  const capture::Captured captured = capture_program(options);
  const compiler::Stages stages =
      compiler::run_stages(captured.graph, *captured.env, {.strict_native = true, .target = options.target});
  std::fputs(compiler::stage_text(stages, options.stage).c_str(), stdout);
  return 0;
}

}  // namespace stax::cli

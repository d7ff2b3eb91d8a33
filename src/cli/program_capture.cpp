#include "cli/program_capture.h"

#include <filesystem>

#include "autograd/reverse.h"
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

capture::Captured capture_model(const ProgramChoice& choice) {
  const onnx::OnnxProgram program = onnx::OnnxProgram::load(choice.program);
  capture::SymbolOptions symbols{.dynamic = choice.dynamic};
  if (choice.dynamic) symbols.shapes = onnx::dynamic_shapes(program.inputs());
  return compiler::trace_function([&](const std::vector<Tensor>& in) { return program(in); },
                                  empty_inputs(program, choice.batch), symbols);
}

}  // namespace

capture::Captured capture_program(const std::string& command, const ProgramChoice& choice) {
  if (const Example* example = find_example(choice.program)) {
    STAX_CHECK(
        !choice.batch,
        "{}: --batch is for models, whose dimensions may have no fixed length; the sizes of the built-in "
        "example '{}' are fixed (stax examples lists them)",
        command, choice.program);
    return capture_example(*example, choice.dynamic);
  }
  const bool is_file = std::filesystem::exists(choice.program);
  STAX_CHECK(is_file || choice.program.ends_with(".onnx"),
             "{}: '{}' is neither a built-in example (stax examples lists them) nor an .onnx file", command,
             choice.program);
  return capture_model(choice);
}

}  // namespace stax::cli

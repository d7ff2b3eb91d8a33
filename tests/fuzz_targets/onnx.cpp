#include "frontends/onnx_model.h"
#include "tests/fuzz_targets/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return stax::fuzzing::expect_user_error_at_most([&] {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    const stax::onnx::Model model = stax::onnx::parse_model(bytes, "the model", "/nonexistent");
    for (const stax::onnx::Tensor& tensor : model.graph.initializers) stax::fuzzing::touch(tensor.data);
  });
}

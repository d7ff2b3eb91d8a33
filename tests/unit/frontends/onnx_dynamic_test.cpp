// Models whose shapes are symbolic: what computes shapes stays symbolic, and one artifact serves all sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/onnx_program.h"
#include "stax/compile.h"
#include "stax/error.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "stax/operators.h"
#include "stax/io.h"
#include "stax/onnx.h"

namespace stax::onnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Array = stax::Tensor;
using Ints = std::vector<int64_t>;

const std::string kFolder = STAX_TEST_DATA "/onnx/";

/// What make_encoder.py gave ONNX Runtime.
std::vector<Array> encoder_inputs(int64_t rows, int64_t columns) {
  const Array r = arange(rows, kInt64).unsqueeze(1), c = arange(columns, kInt64);
  return {(r * 3 + c * 5).remainder(12), (c < (columns - r.remainder(3)).clamp_min(1)).to(kInt64)};
}

void expect_close(const Array& got, const Array& expected) {
  ASSERT_EQ(got.sizes().values(), expected.sizes().values());
  EXPECT_LT((got - expected).abs().max().item().toDouble(), 1e-5);
}

auto compiled_encoder() {
  const OnnxModel model = OnnxModel::load(kFolder + "encoder.onnx");
  return compile(model, {.dynamic = true, .fullgraph = true, .dynamic_shapes = model.dynamic_shapes()});
}

TEST(OnnxDynamic, OneArtifactServesAnEncoderAtAllSizes) {
  const auto expected = load_npz(kFolder + "encoder_results.npz");
  const auto compiled = compiled_encoder();
  int pairs = 0;
  for (const auto& [name, pooled] : expected) {
    const int64_t rows = std::stoll(name), columns = std::stoll(name.substr(name.find('x') + 1));
    if (rows == 1 || columns == 1) continue;
    SCOPED_TRACE(name);
    const std::vector<Array> out = compiled(encoder_inputs(rows, columns));
    expect_close(out[0], pooled);
    EXPECT_EQ(out[1].item().toLong(), rows * columns);
    ++pairs;
  }
  EXPECT_EQ(pairs, 6);
  EXPECT_EQ(compiled.artifacts().size(), 1u);
}

TEST(OnnxDynamic, BatchesAndLengthsOfOneHaveArtifactsOfTheirOwn) {
  const auto expected = load_npz(kFolder + "encoder_results.npz");
  const auto compiled = compiled_encoder();
  for (const auto& [rows, columns] : {std::pair{1, 6}, {6, 1}}) {
    const std::vector<Array> out = compiled(encoder_inputs(rows, columns));
    expect_close(out[0], expected.at(std::to_string(rows) + "x" + std::to_string(columns)));
  }
  EXPECT_EQ(compiled.artifacts().size(), 2u);
}

TEST(OnnxDynamic, NamesTheModelsDimensions) {
  const auto compiled = compiled_encoder();
  std::vector<Array> inputs = encoder_inputs(3, 5);
  inputs[1] = encoder_inputs(3, 6)[1];
  try {
    compiled(inputs);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("sequence is 6 in dimension 1 of tensor 1"), HasSubstr("5")));
  }
}

}  // namespace
}  // namespace stax::onnx

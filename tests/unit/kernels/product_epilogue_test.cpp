// The product with what follows it, against values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/external.h"

namespace stax::kernels {
namespace {

/// A product of a 2x3 with a 3x2 matrix, whose values are [[1, -2], [4, 10]].
std::vector<float> with_epilogue(const std::vector<float>& bias, const std::string& activation) {
  std::vector<float> a = {1, 0, 2, 0, 2, 1}, b = {1, -4, 2, 4.5, 0, 1}, result(4), row = bias;
  const std::vector<TensorView> operands = {{a.data(), DType::float32, {2, 3}, {3, 1}},
                                            {b.data(), DType::float32, {3, 2}, {2, 1}}};
  std::vector<Argument<TensorView>> arguments = {operands[0], operands[1], {}, activation, DType::float32};
  if (!bias.empty()) arguments[2] = TensorView{row.data(), DType::float32, {2}, {1}};
  const TensorView out{result.data(), DType::float32, {2, 2}, {2, 1}};
  find_external("product_epilogue")(arguments, {&out, 1});
  return result;
}

TEST(ProductEpilogue, BiasAndActivation) {
  using Values = std::vector<float>;
  EXPECT_EQ(with_epilogue({}, "none"), (Values{1, -2, 4, 10}));
  EXPECT_EQ(with_epilogue({10, 1}, "none"), (Values{11, -1, 14, 11}));
  EXPECT_EQ(with_epilogue({-3, 1}, "relu"), (Values{0, 0, 1, 11}));
  EXPECT_TRUE(std::isnan(with_epilogue({NAN, 0}, "relu")[0]));
  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) at 1, -2, 4 and 10.
  const Values gelu = with_epilogue({}, "gelu_tanh");
  const Values expected = {0.8411920f, -0.0454023f, 3.9999297f, 10};
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(gelu[k], expected[k], 1e-5) << k;
}

}  // namespace
}  // namespace stax::kernels

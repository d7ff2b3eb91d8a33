// Scatter-adds whose value and place are one for a whole reduction: each is added once, whatever the vector
// width.
#include <gtest/gtest.h>

#include "stax/stax.h"

namespace stax {
namespace {

TEST(ScatterKernels, OneValueOfAReductionIsAddedOnce) {
  // Row maxima of a 3 x 40 matrix sit in columns 7, 7 and 39; each adds 1 to its column.
  Tensor x = zeros({3, 40});
  x.index_put_({0, 7}, 5.0);
  x.index_put_({1, 7}, 2.0);
  x.index_put_({2, 39}, 1.0);
  const auto count = [](const Tensor& x) {
    const Tensor at = x.argmax(1, true);
    return zeros({1, 40}).scatter_add(1, at.reshape({1, 3}), ones({1, 3}));
  };
  const Tensor y = compile(count, {.strict_native = true})(x);
  EXPECT_EQ(y.sum().item<float>(), 3.0f);
  EXPECT_EQ(y.index({0, 7}).item<float>(), 2.0f);
  EXPECT_EQ(y.index({0, 39}).item<float>(), 1.0f);
}

}  // namespace
}  // namespace stax

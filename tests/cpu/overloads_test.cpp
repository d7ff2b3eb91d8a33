// Calls that C++ must resolve to the overload that libtorch's users mean.
#include <gtest/gtest.h>

#include "stax/stax.h"

namespace stax {
namespace {

TEST(Overloads, VarianceTakesABoolOrACorrection) {
  const Tensor x = tensor({1.0f, 2.0f, 3.0f, 4.0f});
  // Squared deviations from 2.5 sum to 5.
  EXPECT_FLOAT_EQ(x.var(-1, true).item<float>(), 5.0f / 3);
  EXPECT_FLOAT_EQ(x.var(-1, false).item<float>(), 1.25f);
  EXPECT_FLOAT_EQ(x.var(-1, 2).item<float>(), 2.5f);
  EXPECT_FLOAT_EQ(stax::var(x, {0}, 0.0).item<float>(), 1.25f);
}

// true is no dimension, and an integer behind it is no wish for descending order.
TEST(Overloads, SortsTakeABoolBeforeADimension) {
  const Tensor x = tensor({{3.0f, 1.0f, 2.0f}, {1.0f, 3.0f, 2.0f}});
  const Tensor ascending = tensor({{1, 2, 0}, {0, 2, 1}});
  EXPECT_TRUE(x.argsort(true, 1).equal(ascending));
  EXPECT_TRUE(argsort(x, true, 1).equal(ascending));
  EXPECT_TRUE(x.argsort(1).equal(ascending));
  EXPECT_TRUE(x.argsort(1, true).equal(tensor({{0, 2, 1}, {1, 2, 0}})));
}

// An integer is the row of the padding, a fraction the bound of the norms.
TEST(Overloads, EmbeddingTakesAPaddingOrANorm) {
  const Tensor rows = tensor({{3.0f, 4.0f}, {30.0f, 40.0f}}), index = tensor({1, 0});
  EXPECT_TRUE(embedding(rows, index, 0).equal(tensor({{30.0f, 40.0f}, {3.0f, 4.0f}})));
  EXPECT_TRUE(embedding(rows, index, int64_t{1}).equal(tensor({{30.0f, 40.0f}, {3.0f, 4.0f}})));
  EXPECT_TRUE(embedding(rows, index, 5.0).allclose(tensor({{3.0f, 4.0f}, {3.0f, 4.0f}}), 1e-5));
}

}  // namespace
}  // namespace stax

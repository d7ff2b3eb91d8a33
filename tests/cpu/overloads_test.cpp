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

// 0 is a number, although it might be a null pointer to a string.
TEST(Overloads, ZeroIsANumberWhereAStringIsTaken) {
  const Tensor v = tensor({3.0f, 0.0f, -4.0f}), m = tensor({{3.0f, 0.0f}, {0.0f, 4.0f}});
  const Tensor two = tensor(2.0f), one = tensor({1.0f, 1.0f});
  EXPECT_TRUE(v.norm(0).equal(two));
  EXPECT_TRUE(norm(v, 0).equal(two));
  EXPECT_TRUE(v.norm(0, 0).equal(two));
  EXPECT_TRUE(m.norm(0, 0).equal(one));
  EXPECT_TRUE(m.norm(0, {0}, true).equal(one.view({1, 2})));
  EXPECT_TRUE(linalg_norm(v, 0).equal(two));
  EXPECT_TRUE(v.linalg_norm(0, 0).equal(two));
  EXPECT_THROW(linalg_matrix_norm(m, 0), UserError);  // which has no order of 0
  const std::string frobenius = "fro";
  for (const Tensor& fro : {m.norm("fro"), m.norm(frobenius), m.norm(std::string_view(frobenius)),
                            linalg_norm(m, "fro"), linalg_matrix_norm(m), linalg_matrix_norm(m, "fro")})
    EXPECT_FLOAT_EQ(fro.item<float>(), 5);
}

// The sums of neighbours, times a weight of 1, and what padding adds.
TEST(Overloads, ZeroIsAPaddingOfConvolutions) {
  const Tensor x = tensor({1.0f, 2.0f, 4.0f}).view({1, 1, 3}), w = ones({1, 1, 2}), b = tensor({10.0f});
  const Tensor sums = tensor({13.0f, 16.0f}).view({1, 1, 2});
  EXPECT_TRUE(conv1d(x, w, b, 1, 0).equal(sums));
  EXPECT_TRUE(conv1d(x, w, b, 1, 0, 1, 1).equal(sums));
  EXPECT_TRUE(conv1d(x, w, b, {1}, {0}).equal(sums));
  EXPECT_TRUE(conv1d(x, w, b, 1, "valid").equal(sums));
  EXPECT_TRUE(conv1d(x, w, b, 1, "same").equal(tensor({13.0f, 16.0f, 14.0f}).view({1, 1, 3})));
  EXPECT_TRUE(conv1d(x, w, b, 1, 1).equal(tensor({11.0f, 13.0f, 16.0f, 14.0f}).view({1, 1, 4})));
  EXPECT_TRUE(conv2d(x.unsqueeze(2), w.unsqueeze(2), b, 1, 0).equal(sums.unsqueeze(2)));
  EXPECT_TRUE(
      conv3d(x.view({1, 1, 1, 1, 3}), w.view({1, 1, 1, 1, 2}), b, 1, 0).equal(sums.view({1, 1, 1, 1, 2})));
}

// A number beside lists, and beside nothing.
TEST(Overloads, ANumberIsACountOrASize) {
  const Tensor x = tensor({1.0f, 2.0f}), image = x.view({1, 1, 2});
  EXPECT_TRUE(repeat_interleave(x, 2).equal(tensor({1.0f, 1.0f, 2.0f, 2.0f})));
  EXPECT_EQ(repeat_interleave(x, 0).numel(), 0);
  EXPECT_TRUE(x.repeat_interleave(2, 0).equal(tensor({1.0f, 1.0f, 2.0f, 2.0f})));
  EXPECT_TRUE(repeat_interleave(tensor({1, 2})).equal(tensor({0, 1, 1})));
  const Tensor twice = tensor({1.0f, 1.0f, 2.0f, 2.0f}).view({1, 1, 4});
  EXPECT_TRUE(interpolate(image, 4).equal(twice));
  EXPECT_TRUE(interpolate(image, image.size(2) * 2).equal(twice));
  EXPECT_TRUE(upsample_nearest(image, 4).equal(twice));
  EXPECT_TRUE(upsample_bilinear(image.view({1, 1, 1, 2}), 2)
                  .equal(tensor({1.0f, 2.0f, 1.0f, 2.0f}).view({1, 1, 2, 2})));
  EXPECT_THROW(interpolate(image, 0), UserError);
  // Squared deviations from 1.5 sum to 1/2.
  EXPECT_FLOAT_EQ(x.var(0, x.size(0) - 2).item<float>(), 0.25f);
}

}  // namespace
}  // namespace stax

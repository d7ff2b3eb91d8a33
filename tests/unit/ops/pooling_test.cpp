// Pools and their inverses: values by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "stax/error.h"
#include "support/run_ops.h"

namespace stax {
namespace {

using stax::testing::Args;
using stax::testing::array;
using stax::testing::Array;
using stax::testing::run;
using stax::testing::run_one;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using Exprs = std::vector<Expr>;
using Values = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Array row(const Values& values, DType dtype = DType::float32) {
  return array(dtype, {1, 1, static_cast<int64_t>(values.size())}, values);
}
// 0, 1, 2, ...
Array counted(const std::vector<int64_t>& sizes, DType dtype = DType::float32) {
  Values values(
      static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies())));
  std::iota(values.begin(), values.end(), 0);
  return array(dtype, sizes, values);
}

TEST(MaxPool, TakesTheLargestOfEachWindow) {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::int64, DType::uint8}) {
    const Array x = row({3, 1, 4, 1, 5, 9, 2}, dtype);
    EXPECT_THAT(run_one("max_pool1d", {x, 2}).values(), ElementsAre(3, 4, 9)) << name(dtype);
    EXPECT_THAT(run_one("max_pool1d", {x, 3, 1}).values(), ElementsAre(4, 4, 5, 9, 9)) << name(dtype);
    EXPECT_THAT(run_one("max_pool1d", {x, 3, 2, 1}).values(), ElementsAre(3, 4, 9, 9)) << name(dtype);
    EXPECT_THAT(run_one("max_pool1d", {x, 2, 1, 0, 3}).values(), ElementsAre(3, 5, 9, 2)) << name(dtype);
  }
  EXPECT_THAT(run_one("max_pool1d", {row({-3, -1, -4}, DType::int8), 3, 1, 1}).values(),
              ElementsAre(-1, -1, -1));
}

TEST(MaxPool, CeilModeKeepsAPartialWindowThatStartsInside) {
  const Array x = row({3, 1, 4, 1, 5, 9});
  EXPECT_THAT(run_one("max_pool1d", {x, 3, 2, 0, 1, true}).values(), ElementsAre(4, 5, 9));
  // The window at 7 would start in the padding behind.
  EXPECT_THAT(run_one("max_pool1d", {x, 2, 4, 1, 1, true}).values(), ElementsAre(3, 5));
}

TEST(MaxPool, IndicesAreOfTheFirstMaximumInThePlane) {
  const Array x =
      array(DType::float32, {1, 2, 2, 3}, {1, 7, 7, 0, 7, 2, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf});
  const auto r = run("max_pool2d_with_indices", {x, 2, 1, 1});
  EXPECT_THAT(r[0].sizes, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(r[1].dtype, DType::int64);
  EXPECT_THAT(r[0].values(), ElementsAreArray({1.,    7.,    7.,    7.,    1.,    7.,    7.,    7.,
                                               0.,    7.,    7.,    2.,    -kInf, -kInf, -kInf, -kInf,
                                               -kInf, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf}));
  EXPECT_THAT(r[1].integers(), ElementsAre(0, 1, 1, 2, 0, 1, 1, 2, 3, 4, 4, 5,  //
                                           0, 0, 1, 2, 0, 0, 1, 2, 3, 3, 4, 5));
}

TEST(MaxPool, DilatedIndicesSkipPadding) {
  // Windows of positions {-1, 1, 3}, {0, 2, 4}, {1, 3, 5}.
  const auto r = run("max_pool1d_with_indices", {row({9, 1, 2, 0, 8}), 3, 1, 1, 2});
  EXPECT_THAT(r[0].values(), ElementsAre(1, 9, 1));
  EXPECT_THAT(r[1].integers(), ElementsAre(1, 0, 1));
}

TEST(MaxPool, PropagatesNan) {
  const Array x = row({1, kNan, 2, 3});
  const Values y = run_one("max_pool1d", {x, 2}).values();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 3);
  EXPECT_EQ(run("max_pool1d_with_indices", {x, 2})[1].integers()[0], 1);
}

TEST(MaxPool, HasThreeSpatialDimensions) {
  const auto r = run("max_pool3d_with_indices", {counted({1, 2, 2, 4}), Exprs{2, 2, 3}, Exprs{1, 1, 1}});
  EXPECT_THAT(r[0].values(), ElementsAre(14, 15));
  EXPECT_THAT(r[1].integers(), ElementsAre(14, 15));
}

TEST(MaxPool, BackwardAddsGradientsAtIndices) {
  const Array x = array(DType::float32, {1, 1, 1, 4}, {1, 5, 2, 3});
  const Array grad = array(DType::float32, {1, 1, 1, 3}, {10, 20, 30});
  const Array indices = array(DType::int64, {1, 1, 1, 3}, {1, 1, 3});
  const Array g =
      run_one("max_pool2d_with_indices_backward", {grad, x, Exprs{1, 2}, Exprs{1, 1}, 0, 1, false, indices});
  EXPECT_THAT(g.values(), ElementsAre(0, 30, 0, 30));
}

TEST(MaxPool, RefusesWhatDoesNotFit) {
  const Array x = counted({1, 1, 4});
  EXPECT_THROW(run("max_pool1d", {x, 2, 1, 2}), UserError);             // padding beyond half a window
  EXPECT_THROW(run("max_pool1d", {x, 2, 1, -1}), UserError);            // padding
  EXPECT_THROW(run("max_pool1d", {x, 0}), UserError);                   // window
  EXPECT_THROW(run("max_pool1d", {x, 2, 0}), UserError);                // stride
  EXPECT_THROW(run("max_pool1d", {x, 5}), UserError);                   // empty result
  EXPECT_THROW(run("max_pool1d", {counted({4}), 2}), UserError);        // rank
  EXPECT_THROW(run("max_pool1d", {counted({1, 0, 4}), 2}), UserError);  // no channels
  EXPECT_THROW(run("max_pool2d", {counted({1, 1, 4, 4}), Exprs{2, 2, 2}}), UserError);
  EXPECT_THAT(run_one("max_pool1d", {counted({0, 1, 4}), 2}).sizes, ElementsAre(0, 1, 2));
}

TEST(MaxUnpool, PutsValuesAtIndices) {
  const Array x = array(DType::float32, {1, 2, 2}, {5, 6, 7, 8});
  const Array at = array(DType::int64, {1, 2, 2}, {1, 2, 0, 3});
  EXPECT_THAT(run_one("max_unpool1d", {x, at, 2}).values(), ElementsAre(0, 5, 6, 0, 7, 0, 0, 8));
  const Array longer = run_one("max_unpool1d", {x, at, 2}, {{"output_size", Exprs{1, 2, 5}}});
  EXPECT_THAT(longer.values(), ElementsAre(0, 5, 6, 0, 0, 7, 0, 0, 8, 0));
  EXPECT_THROW(run("max_unpool1d", {x, at, 2}, {{"output_size", Exprs{6}}}), UserError);
  EXPECT_THROW(run("max_unpool1d", {x, array(DType::int64, {1, 2, 1}, {0, 0}), 2}), UserError);
  EXPECT_THROW(run("max_unpool1d", {x, array(DType::int64, {1, 2, 2}, {0, 4, 0, 1}), 2}), UserError);
}

TEST(AvgPool, DividesByTheWindowAsAsked) {
  const Array x = row({2, 4, 6, 8, 10});
  EXPECT_THAT(run_one("avg_pool1d", {x, 2}).values(), ElementsAre(3, 7));
  EXPECT_THAT(run_one("avg_pool1d", {x, 2, 2, 1}).values(), ElementsAre(1, 5, 9));
  EXPECT_THAT(run_one("avg_pool1d", {x, 2, 2, 1, false, false}).values(), ElementsAre(2, 5, 9));
  // The last window holds one element, and no padding: rounding up adds none.
  EXPECT_THAT(run_one("avg_pool1d", {x, 2, 2, 0, true}).values(), ElementsAre(3, 7, 10));
  EXPECT_THAT(run_one("avg_pool2d", {counted({1, 2, 2}), 2, {}, 0, false, true, -2}).values(),
              ElementsAre(-3));
  EXPECT_THAT(run_one("avg_pool3d", {counted({1, 2, 2, 2}), 2}).values(), ElementsAre(3.5));
}

TEST(AvgPool, IntegersTruncate) {
  EXPECT_THAT(run_one("avg_pool1d", {row({2, 5, -2, -5}, DType::int64), 2}).values(), ElementsAre(3, -3));
}

TEST(AvgPool, HalfTypesSumInFloat32) {
  // 2048 + 1 is no float16.
  const Array x = row({2048, 1, 1, 2}, DType::float16);
  EXPECT_THAT(run_one("avg_pool1d", {x, 4}).values(), ElementsAre(513));
}

TEST(AvgPool, RefusesWhatDoesNotFit) {
  EXPECT_THROW(run("avg_pool2d", {counted({1, 1, 4, 4}), 2, {}, 0, false, true, 0}), UserError);
  EXPECT_THROW(run("avg_pool1d", {counted({1, 1, 4}), 2, 1, 2}), UserError);
  EXPECT_THROW(run("avg_pool3d", {counted({1, 1, 4}), 2}), UserError);
}

TEST(AdaptivePool, WindowsFollowTheOutputSize) {
  // Five elements in three windows: [0, 2), [1, 4), [3, 5).
  const Array x = row({1, 3, 2, 7, 5});
  EXPECT_THAT(run_one("adaptive_avg_pool1d", {x, 3}).values(), ElementsAre(2, 4, 6));
  const auto r = run("adaptive_max_pool1d", {x, 3});
  EXPECT_THAT(r[0].values(), ElementsAre(3, 7, 7));
  EXPECT_THAT(r[1].integers(), ElementsAre(1, 3, 3));
  EXPECT_THAT(run_one("adaptive_avg_pool1d", {x, 0}).sizes, ElementsAre(1, 1, 0));
  EXPECT_THAT(run_one("adaptive_avg_pool2d", {counted({1, 4, 4}), Exprs{2, 1}}).values(),
              ElementsAre(3.5, 11.5));
  EXPECT_THAT(run("adaptive_max_pool2d", {counted({1, 4, 4}), 2})[1].integers(), ElementsAre(5, 7, 13, 15));
  EXPECT_THAT(run_one("adaptive_avg_pool3d", {counted({1, 2, 2, 2}), 1}).values(), ElementsAre(3.5));
  EXPECT_THAT(run("adaptive_max_pool3d", {counted({1, 2, 2, 2}), 1})[1].integers(), ElementsAre(7));
  EXPECT_THROW(run("adaptive_avg_pool1d", {x, -1}), UserError);
  EXPECT_THROW(run("adaptive_avg_pool2d", {counted({2, 2}), 1}), UserError);
  EXPECT_THROW(run("adaptive_avg_pool2d", {counted({1, 2, 2}), Exprs{}}), UserError);
}

TEST(LpPool, TakesTheNormOfEachWindow) {
  EXPECT_THAT(run_one("lp_pool1d", {row({3, 4, 6, 8}), 2.0, 2}).values(),
              ElementsAre(::testing::DoubleNear(5, 1e-5), ::testing::DoubleNear(10, 1e-5)));
}

TEST(Im2Col, GivesWindowsAsColumns) {
  const Array x = counted({1, 2, 3});
  EXPECT_THAT(run_one("im2col", {x, 2}).values(), ElementsAre(0, 1, 1, 2, 3, 4, 4, 5));
  // kernel, dilation, padding, stride
  const Array y = run_one("im2col", {x, Exprs{1, 2}, Exprs{1, 2}, Exprs{0, 1}, Exprs{1, 2}});
  EXPECT_THAT(y.sizes, ElementsAre(2, 4));
  EXPECT_THAT(y.values(), ElementsAre(0, 1, 0, 4, 1, 0, 4, 0));
  EXPECT_THROW(run("im2col", {x, 4}), UserError);
}

}  // namespace
}  // namespace stax

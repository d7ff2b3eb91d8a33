// Resampling: values by hand and from the formulas in float64 NumPy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stax/error.h"
#include "support/run_ops.h"

namespace stax {
namespace {

using stax::testing::array;
using stax::testing::Array;
using stax::testing::NamedArgs;
using stax::testing::run;
using stax::testing::run_one;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Exprs = std::vector<Expr>;
using Values = std::vector<double>;

Array values_row(const Values& values, DType dtype = DType::float32) {
  return array(dtype, {1, 1, static_cast<int64_t>(values.size())}, values);
}
Values resize(const Array& x, const Exprs& size, const char* mode, NamedArgs more = {}) {
  more.emplace_back("mode", mode);
  return run_one("interpolate", {x, size}, more).values();
}
auto near(const Values& values) {
  return Pointwise(::testing::DoubleNear(1e-5), values);
}

TEST(Interpolate, NearestTakesTheSampleBelow) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::uint8}) {
    const Array x = values_row({1, 2, 3, 4}, dtype);
    EXPECT_THAT(resize(x, {8}, "nearest"), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4)) << name(dtype);
    EXPECT_THAT(resize(x, {3}, "nearest"), ElementsAre(1, 2, 3)) << name(dtype);
    EXPECT_THAT(resize(x, {3}, "nearest-exact"), ElementsAre(1, 3, 4)) << name(dtype);
  }
}

TEST(Interpolate, NearestRoundsCoordinatesInFloat32) {
  // 41 * float32(2 / 82) is just below 1, so PyTorch reads sample 0 there.
  const Values y = resize(values_row({0, 1}), {82}, "nearest");
  EXPECT_EQ(y[41], 0);
  EXPECT_EQ(y[42], 1);
}

TEST(Interpolate, LinearWeighsTwoNeighbours) {
  const Array x = values_row({0, 10});
  EXPECT_THAT(resize(x, {4}, "linear"), near({0, 2.5, 7.5, 10}));
  EXPECT_THAT(resize(x, {4}, "linear", {{"align_corners", true}}), near({0, 10.0 / 3, 20.0 / 3, 10}));
  EXPECT_THAT(resize(x, {1}, "linear", {{"align_corners", true}}), near({0}));
  EXPECT_THAT(resize(values_row({0, 10}, DType::float64), {4}, "linear"), near({0, 2.5, 7.5, 10}));
}

// From the rule in NumPy: columns, then rows; weights of 16 bits with a sign; each pass rounds.
TEST(Interpolate, BytesAreResampledInFixedPoint) {
  const Array x = array(DType::uint8, {1, 1, 3, 3}, {0, 100, 200, 255, 13, 77, 191, 64, 128});
  EXPECT_THAT(resize(x, {2, 5}, "bilinear"), ElementsAre(64, 70, 78, 133, 169, 207, 145, 51, 89, 115));
  EXPECT_THAT(resize(x, {4, 4}, "bicubic"),
              ElementsAre(0, 50, 157, 216, 169, 77, 52, 121, 255, 101, 17, 87, 196, 104, 78, 137));
  EXPECT_EQ(resize(x, {3, 3}, "bicubic"), x.values());
}

TEST(Interpolate, BilinearAndTrilinearWeighEachDimension) {
  const Array x = array(DType::float32, {1, 1, 2, 2}, {0, 4, 8, 12});
  EXPECT_THAT(resize(x, {3, 3}, "bilinear", {{"align_corners", true}}), near({0, 2, 4, 4, 6, 8, 8, 10, 12}));
  const Array y = array(DType::float32, {1, 1, 2, 1, 2}, {0, 4, 8, 12});
  EXPECT_THAT(resize(y, {1, 1, 1}, "trilinear"), near({6}));
}

TEST(Interpolate, BicubicWeighsFourNeighbours) {
  const Array x = array(DType::float32, {1, 1, 1, 4}, {1, 5, 2, 8});
  EXPECT_THAT(resize(x, {1, 6}, "bicubic"), near({0.6527777777777817, 3.28125, 4.812499999999989,
                                                  1.9791666666666652, 4.71875, 8.520833333333336}));
  EXPECT_THAT(resize(x, {1, 6}, "bicubic", {{"align_corners", true}}),
              near({1, 3.772, 4.712, 2.048, 4.004, 8}));
}

TEST(Interpolate, AreaAverages) {
  EXPECT_THAT(resize(values_row({1, 3, 5, 7}), {2}, "area"), near({2, 6}));
}

TEST(Interpolate, ScaleFactorsGiveSizesAndSteps) {
  const Array x = values_row({0, 1, 2, 3});
  // floor(4 * 1.7) = 6 samples, a step of 1 / 1.7; recomputed, a step of 4 / 6.
  const auto scaled = [&](NamedArgs more) {
    more.emplace_back("scale_factor", 1.7);
    more.emplace_back("mode", "linear");
    return run_one("interpolate", {x}, more).values();
  };
  const auto expected = [](double step) {
    Values out;
    for (int i = 0; i < 6; ++i) out.push_back(std::min(std::max((i + 0.5) * step - 0.5, 0.0), 3.0));
    return out;
  };
  EXPECT_THAT(scaled({}), near(expected(1 / 1.7)));
  EXPECT_THAT(scaled({{"recompute_scale_factor", true}}), near(expected(4.0 / 6)));
  EXPECT_THAT(run_one("interpolate", {x, 8}).sizes, ElementsAre(1, 1, 8));
  EXPECT_THAT(run_one("upsample_nearest", {x, {}, 2.0}).values(), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  const Array plane = array(DType::float32, {1, 1, 1, 2}, {0, 4});
  EXPECT_THAT(run_one("upsample_bilinear", {plane, Exprs{1, 3}}).values(), near({0, 2, 4}));
}

TEST(Interpolate, RefusesWhatDoesNotFit) {
  const Array x = values_row({0, 1, 2, 3});
  EXPECT_THROW(resize(x, {8}, "bilinear"), UserError);
  EXPECT_THROW(resize(x, {8}, "smooth"), UserError);
  EXPECT_THROW(resize(x, {8, 8}, "nearest"), UserError);
  EXPECT_THROW(resize(x, {0}, "nearest"), UserError);
  EXPECT_THROW(resize(x, {8}, "nearest", {{"align_corners", true}}), UserError);
  EXPECT_THROW(run("interpolate", {x, 8, 2.0}), UserError);
  EXPECT_THROW(run("interpolate", {x}), UserError);
}

TEST(PixelShuffle, MovesChannelsIntoSpaceAndBack) {
  const Array x = array(DType::int32, {1, 4, 1, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  const Array y = run_one("pixel_shuffle", {x, 2});
  EXPECT_THAT(y.sizes, ElementsAre(1, 1, 2, 4));
  EXPECT_THAT(y.values(), ElementsAre(0, 10, 1, 11, 20, 30, 21, 31));
  const Array back = run_one("pixel_unshuffle", {y, 2});
  EXPECT_THAT(back.sizes, ElementsAre(1, 4, 1, 2));
  EXPECT_EQ(back.values(), x.values());
  EXPECT_THROW(run("pixel_shuffle", {x, 3}), UserError);
  EXPECT_THROW(run("pixel_unshuffle", {y, 3}), UserError);
}

}  // namespace
}  // namespace stax

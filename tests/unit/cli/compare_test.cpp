// When a result counts as the recorded one.
#include "cli/verify/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stax/factories.h"

namespace stax::cli {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Tensor floats(std::initializer_list<double> values, DType dtype = DType::float32) {
  return tensor(values, TensorOptions(dtype));
}

TEST(Difference, AcceptsWhatIsWithinTheToleranceOfItsDtype) {
  EXPECT_EQ(difference(floats({1000.001}), {floats({1000}), {}}), "");
  EXPECT_NE(difference(floats({1000.01}), {floats({1000}), {}}), "");
  EXPECT_EQ(difference(floats({1.015}, DType::bfloat16), {floats({1}, DType::bfloat16), {}}), "");
  EXPECT_NE(difference(floats({1.05}, DType::bfloat16), {floats({1}, DType::bfloat16), {}}), "");
  EXPECT_NE(difference(floats({1 + 1e-5}, DType::float64), {floats({1}, DType::float64), {}}), "");
}

TEST(Difference, AcceptsTheExactResultToo) {
  EXPECT_EQ(difference(floats({2}), {floats({3}), floats({2}, DType::float64)}), "");
  EXPECT_NE(difference(floats({2.5}), {floats({3}), floats({2}, DType::float64)}), "");
}

TEST(Difference, AllowsSumsOfLargeTermsTheirRounding) {
  // 2^-22 of 1000 is 2.4e-4.
  EXPECT_NE(difference(floats({2.0002}), {floats({2}), {}}), "");
  EXPECT_EQ(difference(floats({2.0002}), {floats({2}), {}, floats({1000})}), "");
  EXPECT_NE(difference(floats({2.0004}), {floats({2}), {}, floats({1000})}), "");
}

TEST(Difference, RoundsTheExactResultToTheDtype) {
  // 1e6 is out of float16's range: there it is infinite.
  EXPECT_EQ(difference(floats({kInfinity}, DType::float16),
                       {floats({65504}, DType::float16), floats({1e6}, DType::float64)}),
            "");
}

TEST(Difference, MatchesNanAndInfinitiesOnly) {
  EXPECT_EQ(difference(floats({kNan, kInfinity}), {floats({kNan, kInfinity}), {}}), "");
  EXPECT_NE(difference(floats({kNan}), {floats({0}), {}}), "");
  EXPECT_NE(difference(floats({0}), {floats({kNan}), {}}), "");
  EXPECT_NE(difference(floats({-kInfinity}), {floats({kInfinity}), {}}), "");
  EXPECT_NE(difference(floats({3e38}), {floats({kInfinity}), {}}), "");
}

TEST(Difference, WantsIntegersExactlyAlsoLargeOnes) {
  const int64_t large = (int64_t{1} << 62) + 1;
  EXPECT_EQ(difference(tensor({large}), {tensor({large}), {}}), "");
  EXPECT_NE(difference(tensor({large}), {tensor({large - 1}), {}}), "");
}

TEST(Difference, NamesDtypeAndShape) {
  EXPECT_THAT(difference(tensor({1}), {floats({1}), {}}), HasSubstr("dtype int64, expected float32"));
  EXPECT_THAT(difference(floats({1, 2}), {floats({1}), {}}), HasSubstr("shape [2], expected [1]"));
}

TEST(IndexDifference, AcceptsOtherPositionsOfEqualValues) {
  const Tensor input = floats({5, 7, 5, 1});
  EXPECT_EQ(index_difference(input, 0, tensor({3, 2, 0, 1}), tensor({3, 0, 2, 1})), "");
  EXPECT_THAT(index_difference(input, 0, tensor({3, 0, 0, 1}), tensor({3, 0, 2, 1})), HasSubstr("twice"));
  EXPECT_THAT(index_difference(input, 0, tensor({3, 1, 2, 0}), tensor({3, 0, 2, 1})),
              HasSubstr("another value"));
  EXPECT_THAT(index_difference(input, 0, tensor({4, 0, 2, 1}), tensor({3, 0, 2, 1})),
              HasSubstr("out of range"));
}

TEST(IndexDifference, ReadsReducedDimensions) {
  const Tensor input = tensor({{1, 1}, {2, 3}});
  EXPECT_EQ(index_difference(input, 1, tensor({1, 0}), tensor({0, 0})), "");
  EXPECT_NE(index_difference(input, 1, tensor({0, 1}), tensor({0, 0})), "");
}

}  // namespace
}  // namespace stax::cli

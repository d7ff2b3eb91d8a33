// Convolutions: values from SciPy's correlate and a scatter loop in NumPy, over whole numbers, which every
// dtype computes exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stax/error.h"
#include "support/run_ops.h"

namespace stax {
namespace {

using stax::testing::array;
using stax::testing::Array;
using stax::testing::dense_strides;
using stax::testing::run;
using stax::testing::run_one;
using stax::testing::strided_array;
using ::testing::ElementsAreArray;
using Exprs = std::vector<Expr>;
using Values = std::vector<double>;

// (factor * k) % modulus - shift for k = 0, 1, ...
Values pattern(const std::vector<int64_t>& sizes, int64_t factor, int64_t modulus, int64_t shift) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  Values out;
  for (int64_t k = 0; k < count; ++k) out.push_back(static_cast<double>(factor * k % modulus - shift));
  return out;
}
Array input(DType dtype, const std::vector<int64_t>& sizes) {
  return array(dtype, sizes, pattern(sizes, 7, 11, 5));
}
Array weight(DType dtype, const std::vector<int64_t>& sizes) {
  return array(dtype, sizes, pattern(sizes, 5, 7, 3));
}

const Values kConv2d = {6,   22,  -9, -18, 11,  16,  -28, 27,  5,   17, 14,  9,  18,  -6,  8,
                        -23, 19,  6,  15,  -25, -29, 17,  -12, -8,  -3, -26, 3,  -26, -11, 1,
                        19,  -18, 8,  -21, 17,  25,  -7,  34,  -13, 6,  19,  12, 22,  -1,  9};

TEST(Convolution, ComputesEachDType) {
  for (const DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int64, DType::int8}) {
    const Array y = run_one("conv2d", {input(dtype, {1, 2, 5, 4}), weight(dtype, {3, 2, 3, 2}),
                                       array(dtype, {3}, {1, -2, 3}), Exprs{2, 1}, Exprs{1, 1}});
    EXPECT_EQ(y.dtype, dtype);
    EXPECT_THAT(y.sizes, ElementsAreArray({1, 3, 3, 5}));
    EXPECT_THAT(y.values(), ElementsAreArray(kConv2d)) << name(dtype);
  }
}

TEST(Convolution, ReadsAnyStrides) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Array x = strided_array(dtype, {1, 2, 5, 4}, {40, 1, 8, 2}, pattern({1, 2, 5, 4}, 7, 11, 5));
    const Array w = strided_array(dtype, {3, 2, 3, 2}, {1, 18, 3, 9}, pattern({3, 2, 3, 2}, 5, 7, 3));
    const Array y = run_one("conv2d", {x, w, array(dtype, {3}, {1, -2, 3}), Exprs{2, 1}, 1});
    EXPECT_THAT(y.values(), ElementsAreArray(kConv2d)) << name(dtype);
  }
}

TEST(Convolution, DividesChannelsIntoGroupsAndDilates) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Array x = array(dtype, {4, 8}, pattern({4, 8}, 3, 10, 4));
    const Array y = run_one("conv1d", {x, weight(dtype, {2, 2, 3}), {}, 2, 1, 2, 2});
    EXPECT_THAT(y.sizes, ElementsAreArray({2, 3}));
    EXPECT_THAT(y.values(), ElementsAreArray({6, 9, 5, 4, 7, 1})) << name(dtype);
  }
}

TEST(Convolution, HasThreeSpatialDimensions) {
  for (const DType dtype : {DType::float32, DType::int32}) {
    const Array y = run_one("conv3d", {input(dtype, {1, 1, 2, 3, 3}), weight(dtype, {2, 1, 2, 2, 2})});
    EXPECT_THAT(y.sizes, ElementsAreArray({1, 2, 1, 2, 2}));
    EXPECT_THAT(y.values(), ElementsAreArray({29, -25, -1, -11, -23, 13, -3, 0}));
  }
}

TEST(Convolution, PadsTheOddElementOfSameBehind) {
  const Array x = input(DType::float32, {1, 1, 3, 4}), w = weight(DType::float32, {1, 1, 2, 2});
  const Array y = run_one("conv2d", {x, w}, {{"padding", "same"}});
  EXPECT_THAT(y.sizes, ElementsAreArray({1, 1, 3, 4}));
  EXPECT_THAT(y.values(), ElementsAreArray({25, -18, 16, -15, -15, 19, -2, 0, 18, -11, -7, 15}));
  EXPECT_THAT(run_one("conv2d", {x, w}, {{"padding", "valid"}}).values(),
              ElementsAreArray({25, -18, 16, -15, 19, -2}));
}

TEST(Convolution, ComputesTransposed) {
  const Values two = {8,  0,  2,   -4, 4, -41, 4,   24, 7, -5,  6,  -2, -20, -2, 6, 9,  5,   15, -2, -18,
                      -6, 10, -14, 8,  1, -2,  -26, 10, 2, -12, -2, 14, -9,  9,  2, -2, -10, 2,  6,  -8};
  const Values one = {10, -25, 0, -7, 1, 0, 9, 5, 10, 10, 0, 2, -4, 0, -6, 4, -25, 10, 0, 4, 5, 0, 0, -11};
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::int64}) {
    Array y = run_one("conv_transpose2d", {input(dtype, {1, 4, 2, 3}),
                                           weight(dtype, {4, 1, 3, 2}),
                                           {},
                                           Exprs{2, 1},
                                           Exprs{1, 0},
                                           Exprs{1, 0},
                                           2,
                                           Exprs{1, 2}});
    EXPECT_THAT(y.sizes, ElementsAreArray({1, 2, 4, 5}));
    EXPECT_THAT(y.values(), ElementsAreArray(two)) << name(dtype);
    y = run_one("conv_transpose1d", {input(dtype, {2, 3}), weight(dtype, {2, 3, 2}), {}, 3});
    EXPECT_THAT(y.sizes, ElementsAreArray({3, 8}));
    EXPECT_THAT(y.values(), ElementsAreArray(one)) << name(dtype);
  }
}

// The library against plain loops, in sizes at which it rearranges its operands.
TEST(Convolution, LibraryAndLoopsAgree) {
  for (const char* op : {"conv2d", "conv_transpose2d"}) {
    for (const int64_t groups : {1, 2}) {
      const std::vector<int64_t> x = {2, 32, 17, 19}, w = {32, 32 / groups, 3, 5};
      const auto call = [&](DType dtype) {
        stax::testing::NamedArgs named = {{"stride", Exprs{2, 1}}, {"padding", 1}, {"groups", groups}};
        return run_one(op, {input(dtype, x), weight(dtype, w), array(dtype, {32}, pattern({32}, 3, 5, 2))},
                       named)
            .values();
      };
      EXPECT_EQ(call(DType::float32), call(DType::float64)) << op << ", groups " << groups;
    }
  }
}

TEST(Convolution, EmptyBatchGivesEmptyResult) {
  const Array y =
      run_one("conv2d", {input(DType::float32, {0, 2, 5, 4}), weight(DType::float32, {3, 2, 3, 2})});
  EXPECT_THAT(y.sizes, ElementsAreArray({0, 3, 3, 3}));
}

TEST(Convolution, RefusesWhatDoesNotFit) {
  const auto x = [](std::vector<int64_t> sizes) { return input(DType::float32, sizes); };
  const auto w = [](std::vector<int64_t> sizes) { return weight(DType::float32, sizes); };
  const Array bias = array(DType::float64, {1}, {1});
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 1, 2}), bias}), UserError);            // dtype
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 2, 2})}), UserError);                  // channels
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 1, 2}), {}, -1}), UserError);          // stride
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 1, 2}), {}, 1, -1}), UserError);       // padding
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 1, 2}), {}, 1, 0, 0}), UserError);     // dilation
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 1, 5})}), UserError);                  // window
  EXPECT_THROW(run("conv1d", {x({1, 2, 4}), w({2, 2, 2}), {}, 1, 0, 1, 3}), UserError);  // groups
  EXPECT_THROW(run("conv1d", {x({1, 2, 4}), w({2, 2, 2}), {}, 1, 0, 1, 0}), UserError);  // groups
  EXPECT_THROW(run("conv2d", {x({1, 1, 4}), w({1, 1, 2})}), UserError);                  // rank
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 1, 2}), {}, 2, "same"}), UserError);   // stride of same
  EXPECT_THROW(run("conv1d", {x({1, 1, 4}), w({1, 1, 2}), {}, 1, "equal"}), UserError);  // name
  EXPECT_THROW(run("conv_transpose1d", {x({1, 1, 4}), w({1, 1, 2}), {}, 2, 0, 2}), UserError);
}

}  // namespace
}  // namespace stax

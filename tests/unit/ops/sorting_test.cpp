// Operators that order and select; expected values worked by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stax/error.h"
#include "support/run_ops.h"

namespace stax::testing {
namespace {

using Values = std::vector<double>;
using Sizes = std::vector<int64_t>;

TEST(Sort, StableWithNaNLast) {
  const Array x = array(kFloat32, {5}, {3, kNaN, 1, 3, 2});
  const auto up = run("sort", {x});
  EXPECT_EQ(up[1].integers(), (Sizes{2, 4, 0, 3, 1}));
  EXPECT_TRUE(std::isnan(up[0].values()[4]));
  EXPECT_EQ(run("sort", {x, 0, true})[1].integers(), (Sizes{1, 0, 3, 4, 2}));
}

TEST(Sort, AlongAnyDimensionOfAnyLayout) {
  const Values values = {4, 1, 3, 2, 6, 5};
  for (const Sizes& strides : {Sizes{3, 1}, Sizes{1, 2}, Sizes{9, 2}}) {
    const Array x = strided_array(kInt16, {2, 3}, strides, values);
    EXPECT_EQ(run("sort", {x, 0})[0].values(), (Values{2, 1, 3, 4, 6, 5}));
    EXPECT_EQ(run("sort", {x, 1})[0].values(), (Values{1, 3, 4, 2, 5, 6}));
    EXPECT_EQ(run_one("argsort", {x, 1, true}).integers(), (Sizes{0, 2, 1, 1, 2, 0}));
  }
}

TEST(Sort, TopkKthvalueMedianMode) {
  const Array x = array(kBFloat16, {5}, {5, 1, 4, 1, 3});
  EXPECT_EQ(run("topk", {x, 2})[0].values(), (Values{5, 4}));
  EXPECT_EQ(run("topk", {x, 2, 0, false})[0].values(), (Values{1, 1}));
  EXPECT_THROW(run("topk", {x, 6}), UserError);
  for (const int64_t k : {0, 1}) EXPECT_EQ(run("topk", {array(kInt32, {}, {8}), k})[0].values(), Values{8});
  EXPECT_EQ(run("kthvalue", {x, 3})[0].values(), Values{3});
  EXPECT_THROW(run("kthvalue", {x, 0}), UserError);
  EXPECT_EQ(run_one("median", {x}).values(), Values{3});
  EXPECT_EQ(run("median", {x, 0})[1].integers(), Sizes{4});
  EXPECT_EQ(run("mode", {x})[0].values(), Values{1});
  const Array with_nan = array(kFloat32, {4}, {2, kNaN, 1, 7});
  EXPECT_TRUE(std::isnan(run_one("median", {with_nan}).values()[0]));
  EXPECT_EQ(run_one("nanmedian", {with_nan}).values(), Values{2});
}

TEST(Sort, Quantiles) {
  const Array x = array(kFloat64, {2, 4}, {0, 1, 2, 3, 10, 30, 20, 40});
  EXPECT_EQ(run_one("quantile", {x, 0.25, 1}).values(), (Values{0.75, 17.5}));
  EXPECT_EQ(run_one("quantile", {x, array(kFloat64, {2}, {0, 1}), 1}).values(), (Values{0, 10, 3, 40}));
  EXPECT_EQ(run_one("quantile", {x, 0.5, 1}, {{"interpolation", "lower"}}).values(), (Values{1, 20}));
  EXPECT_THROW(run("quantile", {x, 1.5}), UserError);
}

TEST(Sort, HistcAndCombinations) {
  const Array x = array(kFloat32, {5}, {0, 1, 1, 4, kNaN});
  EXPECT_EQ(run_one("histc", {x, 4, 0, 4}).values(), (Values{1, 2, 0, 1}));
  const Array v = array(kInt64, {3}, {1, 2, 3});
  EXPECT_EQ(run_one("combinations", {v}).integers(), (Sizes{1, 2, 1, 3, 2, 3}));
  EXPECT_EQ(run_one("combinations", {v, 2, true}).sizes, (Sizes{6, 2}));
  EXPECT_EQ(run_one("cartesian_prod", {Arg(Arg::Tensors{v, v})}).sizes, (Sizes{9, 2}));
}

TEST(Dynamic, NonzeroAndMaskedSelect) {
  const Array x = array(kFloat32, {2, 2}, {0, 3, kNaN, 0});
  const Array found = run_one("nonzero", {x});
  EXPECT_EQ(found.sizes, (Sizes{2, 2}));
  EXPECT_EQ(found.integers(), (Sizes{0, 1, 1, 0}));
  EXPECT_EQ(run_one("nonzero", {array(kFloat32, {}, {2})}).sizes, (Sizes{1, 0}));
  const Array mask = array(kBool, {2}, {1, 0}), y = array(kInt8, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run_one("masked_select", {y, mask}).integers(), (Sizes{1, 3}));
}

TEST(Dynamic, Unique) {
  const Array x = array(kInt64, {5}, {3, 1, 3, 3, 2});
  const auto all = run("unique", {x, true, true, true});
  EXPECT_EQ(all[0].integers(), (Sizes{1, 2, 3}));
  EXPECT_EQ(all[1].integers(), (Sizes{2, 0, 2, 2, 1}));
  EXPECT_EQ(all[2].integers(), (Sizes{1, 1, 3}));
  EXPECT_EQ(run("unique_consecutive", {x})[0].integers(), (Sizes{3, 1, 3, 2}));
  const Array rows = array(kInt64, {3, 2}, {1, 2, 0, 5, 1, 2});
  EXPECT_EQ(run("unique", {rows}, {{"dim", 0}})[0].integers(), (Sizes{0, 5, 1, 2}));
}

TEST(Dynamic, CountsAndRepeats) {
  const Array x = array(kInt32, {4}, {1, 0, 1, 3});
  EXPECT_EQ(run_one("bincount", {x}).integers(), (Sizes{1, 2, 0, 1}));
  EXPECT_EQ(run_one("bincount", {x, array(kFloat32, {4}, {0.5, 1, 1, 2})}).values(), (Values{1, 1.5, 0, 2}));
  EXPECT_THROW(run("bincount", {array(kInt32, {1}, {-1})}), UserError);
  const Array repeats = array(kInt64, {2}, {2, 1}), y = array(kFloat32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run_one("repeat_interleave", {y, repeats, 1}).values(), (Values{1, 1, 2, 3, 3, 4}));
  EXPECT_EQ(run_one("repeat_interleave", {repeats}).integers(), (Sizes{0, 0, 1}));
}

}  // namespace
}  // namespace stax::testing

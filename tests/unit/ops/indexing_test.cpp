// Indexing and scattering; expected values worked by hand.
#include <gtest/gtest.h>

#include "stax/error.h"
#include "support/run_ops.h"

namespace stax::testing {
namespace {

using Values = std::vector<double>;
using Sizes = std::vector<int64_t>;

Array ints(Sizes sizes, const Values& values) {
  return array(kInt64, std::move(sizes), values);
}

const Array kX = array(kFloat32, {2, 3}, {10, 11, 12, 20, 21, 22});

TEST(Gather, TakesPositionsAlongADimension) {
  EXPECT_EQ(run_one("gather", {kX, 1, ints({2, 2}, {2, 0, 1, 1})}).values(), (Values{12, 10, 21, 21}));
  EXPECT_EQ(run_one("gather", {kX, 0, ints({1, 3}, {1, 0, 1})}).values(), (Values{20, 11, 22}));
  const Array transposed = strided_array(kFloat32, {2, 3}, {1, 2}, kX.values());
  EXPECT_EQ(run_one("gather", {transposed, -1, ints({2, 1}, {2, 1})}).values(), (Values{12, 21}));
}

TEST(Gather, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(run("gather", {kX, 1, ints({2, 1}, {3, 0})}), UserError);
  EXPECT_THROW(run("gather", {kX, 1, ints({2, 1}, {-1, 0})}), UserError);
  EXPECT_THROW(run("gather", {kX, 1, ints({3, 1}, {0, 0, 0})}), UserError);
  EXPECT_THROW(run("gather", {kX, 1, array(kFloat32, {2, 1}, {0, 0})}), UserError);
  EXPECT_THROW(run("index_select", {kX, 1, ints({1}, {-1})}), UserError);
}

TEST(Indexing, WrapsNegativePositionsAndBroadcasts) {
  const auto index = [](const Array& x, Arg::Tensors indices) {
    return run_one("index.Tensor", {x, Arg(std::move(indices))});
  };
  EXPECT_EQ(index(kX, {ints({2}, {-1, 0})}).values(), (Values{20, 21, 22, 10, 11, 12}));
  EXPECT_EQ(index(kX, {std::nullopt, ints({2}, {-1, 0})}).values(), (Values{12, 10, 22, 20}));
  const Array pairs = index(kX, {ints({2, 1}, {0, 1}), ints({3}, {2, 1, 0})});
  EXPECT_EQ(pairs.sizes, (Sizes{2, 3}));
  EXPECT_EQ(pairs.values(), (Values{12, 11, 10, 22, 21, 20}));
  EXPECT_THROW(index(kX, {ints({1}, {2})}), UserError);
  EXPECT_THROW(index(kX, {ints({1}, {-3})}), UserError);
}

// Tensors with a dimension between them put theirs first.
TEST(Indexing, SeparatedTensorsComeFirst) {
  Values values(24);
  for (int k = 0; k < 24; ++k) values[k] = k;
  const Array x = array(kInt64, {2, 3, 4}, values);
  const Array out =
      run_one("index.Tensor", {x, Arg(Arg::Tensors{ints({2}, {1, 0}), std::nullopt, ints({2}, {3, 0})})});
  EXPECT_EQ(out.sizes, (Sizes{2, 3}));
  EXPECT_EQ(out.integers(), (Sizes{15, 19, 23, 0, 4, 8}));
}

// A[b - 1] with b zero is A[-1].
TEST(Indexing, ComputedNegativeIndex) {
  Values values(12);
  for (int k = 0; k < 12; ++k) values[k] = k;
  const Array index = run_one("sub.Tensor", {ints({3}, {0, 0, 0}), 1});
  EXPECT_EQ(run_one("index.Tensor", {array(kFloat32, {12}, values), Arg(Arg::Tensors{index})}).values(),
            (Values{11, 11, 11}));
}

TEST(Scatter, WritesAddsAndCombines) {
  const Array index = ints({2, 2}, {2, 0, 1, 1}), src = array(kFloat32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run_one("scatter", {kX, 1, index, src}).values(), (Values{2, 11, 1, 20, 4, 22}));
  EXPECT_EQ(run_one("scatter", {kX, 1, index, 0.5}).values(), (Values{0.5, 11, 0.5, 20, 0.5, 22}));
  EXPECT_EQ(run_one("scatter_add", {kX, 1, index, src}).values(), (Values{12, 11, 13, 20, 28, 22}));
  EXPECT_EQ(run_one("scatter", {kX, 1, index, src}, {{"reduce", "multiply"}}).values(),
            (Values{20, 11, 12, 20, 252, 22}));
  EXPECT_THROW(run("scatter", {kX, 1, index, array(kFloat64, {2, 2}, {1, 2, 3, 4})}), UserError);
}

TEST(Scatter, ReduceRefusesNegativeIndices) {
  const Array t = array(kFloat32, {3}, {10, 20, 30}), src = array(kFloat32, {4}, {1, 2, 3, 4});
  EXPECT_EQ(run_one("scatter_reduce", {t, 0, ints({4}, {0, 2, 0, 1}), src, "sum"}).values(),
            (Values{14, 24, 32}));
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"})
    EXPECT_THROW(run("scatter_reduce", {t, 0, ints({4}, {0, 2, 0, -1}), src, reduce}), UserError) << reduce;
}

TEST(Scatter, ReduceWithAndWithoutSelf) {
  const Array t = array(kFloat32, {3}, {10, 20, 30}), src = array(kFloat32, {4}, {1, 2, 3, 4});
  const Array index = ints({4}, {0, 0, 2, 2});
  const auto reduce = [&](const char* how, bool self) {
    return run_one("scatter_reduce", {t, 0, index, src, how}, {{"include_self", self}}).values();
  };
  EXPECT_EQ(reduce("prod", true), (Values{20, 20, 360}));
  EXPECT_EQ(reduce("prod", false), (Values{2, 20, 12}));
  EXPECT_EQ(reduce("mean", false), (Values{1.5, 20, 3.5}));
  EXPECT_EQ(reduce("amax", true), (Values{10, 20, 30}));
  EXPECT_EQ(reduce("amin", true), (Values{1, 20, 3}));
  EXPECT_EQ(reduce("sum", false), (Values{3, 20, 7}));
}

TEST(Scatter, IndexOperators) {
  const Array rows = ints({2}, {1, 1}), source = array(kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_one("index_add", {kX, 0, rows, source}, {{"alpha", 2}}).values(),
            (Values{10, 11, 12, 30, 35, 40}));
  EXPECT_EQ(run_one("index_copy", {kX, 0, rows, source}).values(), (Values{10, 11, 12, 4, 5, 6}));
  EXPECT_EQ(run_one("index_fill", {kX, 1, ints({2}, {0, -1}), -1}).values(),
            (Values{-1, 11, -1, -1, 21, -1}));
  EXPECT_EQ(run_one("index_reduce", {kX, 0, rows, source, "amax"}).values(),
            (Values{10, 11, 12, 20, 21, 22}));
  EXPECT_THROW(run("index_copy", {kX, 0, ints({2}, {0, 2}), source}), UserError);
}

TEST(IndexPut, PositionsAndMasks) {
  const Array at = ints({3}, {0, -1, 0}), values = array(kFloat32, {3, 1}, {1, 2, 3});
  EXPECT_EQ(run_one("index_put", {kX, Arg(Arg::Tensors{at}), values}).values(), (Values{3, 3, 3, 2, 2, 2}));
  EXPECT_EQ(run_one("index_put", {kX, Arg(Arg::Tensors{at}), values, true}).values(),
            (Values{14, 15, 16, 22, 23, 24}));
  const Array mask = array(kBool, {2, 3}, {0, 1, 0, 1, 0, 1});
  // Values go to the true elements in order.
  const Array three = array(kFloat32, {3}, {1, 2, 3});
  EXPECT_EQ(run_one("index_put", {kX, Arg(Arg::Tensors{mask}), three}).values(),
            (Values{10, 1, 12, 2, 21, 3}));
  EXPECT_THROW(run("index_put", {kX, Arg(Arg::Tensors{mask}), array(kFloat32, {2}, {1, 2})}), UserError);
}

TEST(IndexPut, MaskOfRows) {
  const Array mask = array(kBool, {2}, {0, 1}), values = array(kFloat32, {1, 3}, {1, 2, 3});
  EXPECT_EQ(run_one("index_put", {kX, Arg(Arg::Tensors{mask}), values}).values(),
            (Values{10, 11, 12, 1, 2, 3}));
}

TEST(Indexing, TakePutMaskedScatter) {
  EXPECT_EQ(run_one("take", {kX, ints({2}, {-1, 1})}).values(), (Values{22, 11}));
  EXPECT_EQ(run_one("put", {kX, ints({2}, {0, -1}), array(kFloat32, {2}, {1, 2})}).values(),
            (Values{1, 11, 12, 20, 21, 2}));
  const Array mask = array(kBool, {3}, {1, 0, 1});
  EXPECT_EQ(run_one("masked_scatter", {kX, mask, array(kFloat32, {4}, {1, 2, 3, 4})}).values(),
            (Values{1, 11, 2, 3, 21, 4}));
  EXPECT_THROW(run("masked_scatter", {kX, mask, array(kFloat32, {3}, {1, 2, 3})}), UserError);
  EXPECT_EQ(run_one("take_along_dim", {kX, ints({2, 1}, {-1, 0}), 1}).values(), (Values{12, 20}));
}

TEST(Indexing, EmbeddingAndOneHot) {
  const Array out = run_one("embedding", {kX, ints({1, 2}, {1, 0})});
  EXPECT_EQ(out.sizes, (Sizes{1, 2, 3}));
  EXPECT_EQ(out.values(), (Values{20, 21, 22, 10, 11, 12}));
  EXPECT_THROW(run("embedding", {kX, ints({1}, {-1})}), UserError);
  EXPECT_EQ(run_one("one_hot", {ints({2}, {2, 0}), 3}).integers(), (Sizes{0, 0, 1, 1, 0, 0}));
  EXPECT_THROW(run("one_hot", {ints({1}, {3}), 3}), UserError);
}

TEST(Indexing, Searches) {
  const Array sorted = array(kFloat32, {3}, {1, 3, 3}), values = array(kFloat32, {3}, {3, 0, 9});
  EXPECT_EQ(run_one("searchsorted", {sorted, values}).integers(), (Sizes{1, 0, 3}));
  EXPECT_EQ(run_one("searchsorted", {sorted, values}, {{"right", true}}).integers(), (Sizes{3, 0, 3}));
  EXPECT_EQ(run_one("bucketize", {values, sorted}, {{"out_int32", true}}).dtype, kInt32);
  EXPECT_EQ(run_one("isin", {ints({3}, {1, 2, 3}), ints({2}, {3, 1})}).integers(), (Sizes{1, 0, 1}));
  EXPECT_EQ(run_one("tril_indices", {2, 3}).integers(), (Sizes{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(run_one("triu_indices", {2, 3, 1}).integers(), (Sizes{0, 0, 1, 1, 2, 2}));
  const auto unraveled = run("unravel_index", {ints({2}, {5, 3}), std::vector<Expr>{2, 3}});
  EXPECT_EQ(unraveled[0].integers(), (Sizes{1, 1}));
  EXPECT_EQ(unraveled[1].integers(), (Sizes{2, 0}));
}

}  // namespace
}  // namespace stax::testing

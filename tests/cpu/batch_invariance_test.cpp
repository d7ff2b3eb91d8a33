// CompileOptions::batch_invariant: what is computed of a row does not depend on how many rows there are. Bits
// of the same rows are compared between batches of different sizes; that they are right is checked against
// eager evaluation.
#include "support/batch_invariance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stax {
namespace {

const std::vector<std::string> kNone;
const std::vector<int64_t> kBatches = {1, 2, 7, 64};

CompileOptions invariant(bool dynamic = false) {
  return {.dynamic = dynamic, .strict_native = true, .batch_invariant = true};
}

// Without the option few long sums are split: the comparison can tell.
TEST(BatchInvariance, IsNotThereUnlessAskedFor) {
  EXPECT_NE(batches_that_differ(row_reductions(50257), kFloat32, 64, {1, 2}, {.strict_native = true}), kNone);
}

TEST(BatchInvariance, OfReductionsAlongRows) {
  for (const int64_t width : {127, 1000}) {
    SCOPED_TRACE(width);
    for (const DType dtype : {kFloat32, kBFloat16})
      EXPECT_EQ(batches_that_differ(row_reductions(width), dtype, 100, kBatches, invariant()), kNone);
  }
  EXPECT_EQ(batches_that_differ(row_reductions(50257), kFloat16, 64, {1, 3}, invariant()), kNone);
}

TEST(BatchInvariance, OfProductsAndConvolutions) {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16})
    EXPECT_EQ(batches_that_differ(networks(dtype, kCPU), dtype, 100, kBatches, invariant()), kNone);
}

TEST(BatchInvariance, OfOtherNetworks) {
  EXPECT_EQ(batches_that_differ(other_networks(kFloat32, kCPU), kFloat32, 128, {1, 7}, invariant()), kNone);
  EXPECT_EQ(batches_that_differ(other_networks(kBFloat16, kCPU), kBFloat16, 128, {1, 7}, invariant(true)),
            kNone);
}

TEST(BatchInvariance, OfProgramsForAllSizes) {
  for (const DType dtype : {kFloat32, kBFloat16}) {
    EXPECT_EQ(batches_that_differ(networks(dtype, kCPU), dtype, 100, kBatches, invariant(true)), kNone);
    EXPECT_EQ(batches_that_differ(row_reductions(129), dtype, 100, kBatches, invariant(true)), kNone);
  }
}

TEST(BatchInvariance, OfALargeBatch) {
  EXPECT_EQ(batches_that_differ(networks(kFloat32, kCPU), kFloat32, 1000, {1, 16}, invariant()), kNone);
  EXPECT_EQ(batches_that_differ(row_reductions(1000), kFloat32, 1000, {1, 16}, invariant()), kNone);
}

/// Whether all elements of x @ w^T are sums in the order of k, with one rounding an addition or with two.
bool is_added_up_in_order(const Tensor& x, const Tensor& w, const Tensor& got) {
  const int64_t rows = x.size(0), columns = w.size(0), length = x.size(1);
  const float *a = x.data_ptr<float>(), *b = w.data_ptr<float>(), *c = got.data_ptr<float>();
  bool once = true, twice = true;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float fused = 0, plain = 0;
      for (int64_t k = 0; k < length; ++k) {
        fused = std::fma(a[i * length + k], b[j * length + k], fused);
        const volatile float product = a[i * length + k] * b[j * length + k];
        plain += product;
      }
      once = once && fused == c[i * columns + j];
      twice = twice && plain == c[i * columns + j];
    }
  }
  return once || twice;
}

TEST(BatchInvariance, ProductsAreAddedUpInOrder) {
  const auto f = [](const Tensor& x, const Tensor& w) { return linear(x, w); };
  const Tensor w = noise({37, 3000}, kFloat32, 1), x = noise({70, 3000}, kFloat32, 2);
  auto compiled = compile(f, invariant());
  for (const int64_t rows : {1, 2, 3, 5, 64, 70}) {
    const Tensor some = x.slice(0, 0, rows);
    EXPECT_TRUE(is_added_up_in_order(some, w, compiled(some, w))) << rows;
  }
  EXPECT_FALSE(is_added_up_in_order(x.flip({1}), w.flip({1}), compiled(x, w))) << "no difference to be seen";
}

TEST(BatchInvariance, ChangesResultsByRoundingOnly) {
  for (const auto& nets : {networks(kFloat32, kCPU), row_reductions(1000)}) {
    for (const RowNet& net : nets) {
      std::vector<int64_t> sizes = {5};
      sizes.insert(sizes.end(), net.row.begin(), net.row.end());
      const Tensor x = noise(sizes, kFloat32, 42);
      const Tensor got = compile(net.run, invariant())(x), want = net.run(x);
      EXPECT_TRUE(got.allclose(want, 1e-4, 1e-4)) << net.name;
    }
  }
}

}  // namespace
}  // namespace stax

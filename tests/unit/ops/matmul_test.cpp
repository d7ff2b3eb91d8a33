// Matrix products, einsum and attention; expected values worked by hand or by NumPy.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stax/error.h"
#include "support/run_ops.h"

namespace stax::testing {
namespace {

using Values = std::vector<double>;
using Sizes = std::vector<int64_t>;

const Array kA = array(kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
const Array kB = array(kFloat32, {3, 2}, {1, 0, 0, 1, 2, 2});

TEST(Matmul, MatricesVectorsAndBatches) {
  EXPECT_EQ(run_one("mm", {kA, kB}).values(), (Values{7, 8, 16, 17}));
  const Array v = array(kFloat32, {3}, {1, -1, 2});
  EXPECT_EQ(run_one("mv", {kA, v}).values(), (Values{5, 11}));
  EXPECT_EQ(run_one("dot", {v, v}).values(), Values{6});
  const Array batch = array(kFloat32, {2, 1, 3}, {1, 1, 1, 1, 0, -1});
  const Array out = run_one("matmul", {batch, kB});
  EXPECT_EQ(out.sizes, (Sizes{2, 1, 2}));
  EXPECT_EQ(out.values(), (Values{3, 3, -1, -2}));
  EXPECT_EQ(run_one("matmul", {v, kB}).values(), (Values{5, 3}));
}

TEST(Matmul, BatchesBroadcast) {
  const Array x = array(kFloat64, {2, 1, 1, 2}, {1, 2, 3, 4});
  const Array y = array(kFloat64, {3, 2, 1}, {1, 0, 0, 1, 1, 1});
  const Array out = run_one("matmul", {x, y});
  EXPECT_EQ(out.sizes, (Sizes{2, 3, 1, 1}));
  EXPECT_EQ(out.values(), (Values{1, 2, 3, 3, 4, 7}));
}

TEST(Matmul, WrongShapesAndDtypesAreRefused) {
  EXPECT_THROW(run("mm", {kA, kA}), UserError);
  EXPECT_THROW(run("mm", {kA, array(kFloat64, {3, 1}, {1, 2, 3})}), UserError);
  EXPECT_THROW(run("matmul", {kA, array(kFloat32, {}, {1})}), UserError);
  EXPECT_THROW(run("mm", {array(kBool, {1, 1}, {1}), array(kBool, {1, 1}, {1})}), UserError);
}

TEST(SingularValues, OfWideTallAndEmptyMatricesAndBatches) {
  const std::vector<double> wide =
      run_one("linalg_svdvals", {array(kFloat64, {2, 3}, {1, 2, 3, 4, 5, 6})}).values();
  EXPECT_NEAR(wide[0], 9.508032000695723, 1e-12);
  EXPECT_NEAR(wide[1], 0.7728696356734838, 1e-12);
  // A rotation scaled by 1e200, whose squares overflow, and a matrix of rank 1.
  const Array batch = run_one("linalg_svdvals", {array(kFloat64, {2, 3, 2},
                                                       {0, -1e200, 1e200, 0, 0, 0,  //
                                                        1, 2, 2, 4, 0, 0})});
  EXPECT_EQ(batch.sizes, (Sizes{2, 2}));
  EXPECT_NEAR(batch.values()[0], 1e200, 1e186);
  EXPECT_NEAR(batch.values()[1], 1e200, 1e186);
  EXPECT_NEAR(batch.values()[2], 5, 1e-14);
  EXPECT_NEAR(batch.values()[3], 0, 1e-14);
  EXPECT_EQ(run_one("linalg_svdvals", {array(kFloat32, {0, 3}, {})}).sizes, Sizes{0});
  EXPECT_TRUE(std::isnan(run_one("linalg_svdvals", {array(kFloat32, {1, 1}, {kNaN})}).values()[0]));
  EXPECT_THROW(run("linalg_svdvals", {array(kFloat16, {1, 1}, {1})}), UserError);
  EXPECT_THROW(run("linalg_svdvals", {array(kFloat32, {3}, {1, 2, 3})}), UserError);
}

TEST(Matmul, EmptySumsAreZero) {
  const Array out = run_one("mm", {array(kFloat32, {2, 0}, {}), array(kFloat32, {0, 3}, {})});
  EXPECT_EQ(out.sizes, (Sizes{2, 3}));
  EXPECT_EQ(out.values(), Values(6, 0.0));
}

TEST(Matmul, IntegersWrapAtTheirWidth) {
  const Array x = array(kInt8, {1, 2}, {100, 100});
  EXPECT_EQ(run_one("mm", {x, array(kInt8, {2, 1}, {1, 1})}).values(), Values{-56});
}

// 8192 ones: an accumulator of half precision would stop at 2048 (float16) or 256 (bfloat16).
TEST(Matmul, HalfTypesAccumulateInFloat) {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    for (const int64_t k : {8191, 8192}) {
      const Array ones_row = array(dtype, {1, k}, Values(k, 1.0)),
                  ones_column = array(dtype, {k, 1}, Values(k, 1.0));
      EXPECT_EQ(run_one("mm", {ones_row, ones_column}).values(), Values{8192}) << name(dtype) << " " << k;
    }
  }
}

TEST(Matmul, BetaOfZeroIgnoresTheAddedMatrix) {
  const Array bias = array(kFloat32, {2, 2}, Values(4, kNaN));
  const Array eye = array(kFloat32, {2, 2}, {1, 0, 0, 1}), b = array(kFloat32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run_one("addmm", {bias, eye, b}, {{"beta", 0}}).values(), (Values{1, 2, 3, 4}));
  const Array bias_row = array(kFloat32, {2}, {10, 20});
  EXPECT_EQ(run_one("addmm", {bias_row, eye, b}, {{"alpha", 2}, {"beta", 0.5}}).values(),
            (Values{7, 14, 11, 18}));
}

// Rows of 7 stored 8 apart, the padding NaN.
TEST(Matmul, PaddedRowsAreReadAsTheirStridesSay) {
  Values dense(98), transposed(98);
  Array p = strided_array(kFloat32, {2, 7, 8}, {56, 8, 1}, Values(112, kNaN));
  auto* data = reinterpret_cast<float*>(p.data.data());
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 7; ++i) {
      for (int j = 0; j < 7; ++j) data[b * 56 + i * 8 + j] = static_cast<float>(i * j % 5);
    }
  }
  p.sizes = {2, 7, 7};
  Array pt = p;
  pt.strides = {56, 1, 8};
  Values expected;
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 7; ++i) {
      for (int j = 0; j < 7; ++j) {
        double sum = 0;
        for (int k = 0; k < 7; ++k) sum += (k * i % 5) * (k * j % 5);
        expected.push_back(sum);
      }
    }
  }
  EXPECT_EQ(run_one("bmm", {pt, p}).values(), expected);
}

// Sizes around the vector width and above the limit where oneDNN takes over; small integers are exact.
TEST(Matmul, EverySizeAndLayoutGivesTheDefinition) {
  for (const DType dtype : {kFloat32, kFloat64, kInt32, kInt64, kBFloat16}) {
    for (const int64_t n : {1, 5, 16, 17, 33, 40}) {
      const int64_t m = n + 2, k = 7 + n;
      Values x, y;
      for (int64_t i = 0; i < m * k; ++i) x.push_back(static_cast<double>(i * 7 % 5 - 2));
      for (int64_t i = 0; i < k * n; ++i) y.push_back(static_cast<double>(i * 3 % 4 - 1));
      Values expected;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t r = 0; r < k; ++r) sum += x[i * k + r] * y[r * n + j];
          expected.push_back(sum);
        }
      }
      const Array by_rows = array(dtype, {k, n}, y), by_columns = strided_array(dtype, {k, n}, {1, k}, y);
      const Array spread = strided_array(dtype, {m, k}, {3 * k, 3}, x);
      EXPECT_EQ(run_one("mm", {array(dtype, {m, k}, x), by_rows}).values(), expected)
          << name(dtype) << " " << n;
      EXPECT_EQ(run_one("mm", {spread, by_columns}).values(), expected) << name(dtype) << " " << n;
    }
  }
}

TEST(Matmul, LinearOuterCrossChain) {
  const Array bias = array(kFloat32, {2}, {1, -1});
  const Array weight = array(kFloat32, {2, 3}, {1, 0, 2, 0, 1, 2});
  EXPECT_EQ(run_one("linear", {kA, weight, bias}).values(), (Values{8, 7, 17, 16}));
  const Array v = array(kFloat32, {2}, {2, 3});
  EXPECT_EQ(run_one("outer", {v, bias}).values(), (Values{2, -2, 3, -3}));
  const Array x = array(kInt64, {3}, {1, 2, 3}), y = array(kInt64, {3}, {4, 5, 6});
  EXPECT_EQ(run_one("cross", {x, y}).integers(), (Sizes{-3, 6, -3}));
  EXPECT_THROW(run("cross", {v, v}), UserError);
  EXPECT_EQ(run_one("linalg_multi_dot", {Arg(Arg::Tensors{kA, kB, v})}).values(), (Values{38, 83}));
}

TEST(Einsum, Equations) {
  const auto einsum = [](const std::string& equation, Arg::Tensors tensors) {
    return run_one("einsum", {equation, Arg(std::move(tensors))});
  };
  EXPECT_EQ(einsum("ij,jk->ik", {kA, kB}).values(), (Values{7, 8, 16, 17}));
  EXPECT_EQ(einsum("ij,jk", {kA, kB}).values(), (Values{7, 8, 16, 17}));
  const Array square = array(kFloat32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(einsum("ii->i", {square}).values(), (Values{1, 4}));
  EXPECT_EQ(einsum("ii", {square}).values(), Values{5});
  EXPECT_EQ(einsum("ba", {square}).values(), (Values{1, 3, 2, 4}));
  EXPECT_EQ(einsum("ij->", {kA}).values(), Values{21});
  const Array batch = array(kFloat32, {2, 1, 2}, {1, 1, 2, 0});
  EXPECT_EQ(einsum("...ij,jk->...ik", {batch, square}).values(), (Values{4, 6, 2, 4}));
  EXPECT_EQ(einsum("ij,ij,ij->j", {square, square, square}).values(), (Values{28, 72}));
  EXPECT_THROW(einsum("ij,jk->iz", {kA, kB}), UserError);
  EXPECT_THROW(einsum("ijk", {kA}), UserError);
  EXPECT_THROW(einsum("ij,ij->ij", {kA, kB}), UserError);
}

TEST(Einsum, TensordotInnerBilinear) {
  EXPECT_EQ(run_one("tensordot", {kA, kB, std::vector<Expr>{1}, std::vector<Expr>{0}}).values(),
            (Values{7, 8, 16, 17}));
  EXPECT_EQ(run_one("tensordot", {kA, kA, 2}).values(), Values{91});
  EXPECT_EQ(run_one("inner", {kA, kA}).values(), (Values{14, 32, 32, 77}));
  const Array x = array(kFloat32, {1, 2}, {1, 2}), y = array(kFloat32, {1, 2}, {3, 4});
  const Array weight = array(kFloat32, {2, 2, 2}, {1, 0, 0, 1, 0, 1, 1, 0});
  EXPECT_EQ(run_one("bilinear", {x, y, weight}).values(), (Values{11, 10}));
}

TEST(Attention, MasksAndScale) {
  const Array q = array(kFloat32, {1, 2, 1}, {0, 0}), v = array(kFloat32, {1, 2, 1}, {2, 6});
  // Scores of 0 weigh all keys alike.
  EXPECT_EQ(run_one("scaled_dot_product_attention", {q, q, v}).values(), (Values{4, 4}));
  EXPECT_EQ(run_one("scaled_dot_product_attention", {q, q, v}, {{"is_causal", true}}).values(),
            (Values{2, 4}));
  const Array mask = array(kBool, {2, 2}, {0, 1, 0, 0});
  EXPECT_EQ(run_one("scaled_dot_product_attention", {q, q, v, mask}).values(), (Values{6, 0}));
  const Array bias = array(kFloat32, {2, 2}, {0, std::log(3.0), 0, 0});
  const Values weighed = run_one("scaled_dot_product_attention", {q, q, v, bias}).values();
  EXPECT_NEAR(weighed[0], 5, 1e-6);
  EXPECT_THROW(run("scaled_dot_product_attention", {q, q, v, mask}, {{"is_causal", true}}), UserError);
}

TEST(Attention, HeadsOfKeysAreShared) {
  const Array q = array(kFloat32, {4, 1, 1}, {0, 0, 0, 0}), kv = array(kFloat32, {2, 1, 1}, {3, 5});
  EXPECT_EQ(run_one("scaled_dot_product_attention", {q, kv, kv}, {{"enable_gqa", true}}).values(),
            (Values{3, 3, 5, 5}));
}

}  // namespace
}  // namespace stax::testing

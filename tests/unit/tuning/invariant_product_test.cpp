// Products whose elements do not depend on how many there are, over a stand-in for cuBLASLt.
#include "tuning/invariant_product.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/fake_cuda/fake_cublas_lt.h"
#include "tensor/storage.h"

namespace stax::tuning {
namespace {

[[maybe_unused]] const bool driver = (fake_cuda::use(), true);

class InvariantProductTest : public testing::Test {
 protected:
  void SetUp() override {
    // Without a compiler of kernels elements are copied by way of the host.
    setenv("STAX_PYTHON", "/no/such/python", 1);
    fake_cuda::reset();
    fake_cublas_lt::reset();
  }
  void TearDown() override { unsetenv("STAX_PYTHON"); }

  /// Rows of `width` elements, `line` apart, from an address on that is `start` elements off a multiple of 16
  /// bytes: 1, 2, 3, ... modulo 7.
  TensorView matrix(int64_t rows, int64_t width, int64_t line = 0, int64_t start = 0) {
    line = std::max(line, width);
    const auto& memory = memory_.emplace_back(Storage::allocate((rows * line + start + 1) * 4, kCUDA));
    auto* const data = reinterpret_cast<float*>(memory->data()) + start;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < width; ++j) data[i * line + j] = static_cast<float>((i * width + j) % 7);
    return {data, DType::float32, {rows, width}, {line, 1}};
  }
  static TensorView transposed(TensorView t) {
    std::swap(t.sizes[0], t.sizes[1]);
    std::swap(t.strides[0], t.strides[1]);
    return t;
  }
  static float at(const TensorView& t, int64_t i, int64_t j) {
    return static_cast<const float*>(t.data)[i * t.strides[0] + j * t.strides[1]];
  }

  /// Multiplies, and compares all elements with sums of their own.
  void multiply(const InvariantProduct& product, const TensorView& a, const TensorView& b,
                const TensorView& result) {
    product.run(a, b, result);
    for (int64_t i = 0; i < a.sizes[0]; ++i) {
      for (int64_t j = 0; j < b.sizes[1]; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < a.sizes[1]; ++k) sum += at(a, i, k) * at(b, k, j);
        ASSERT_EQ(at(result, i, j), sum) << i << ", " << j;
      }
    }
  }

  std::vector<StoragePtr> memory_;
};

TEST_F(InvariantProductTest, HasOneAlgorithmForALengthWithoutWorkspace) {
  fake_cublas_lt::answers({{4096, 1}, {0, 9}, {0, 1}});
  const InvariantProduct product(0, {});
  for (const int64_t rows : {1, 3, 64, 100})
    multiply(product, matrix(rows, 8), matrix(8, 5), matrix(rows, 5));
  EXPECT_EQ(fake_cublas_lt::questions(), 1);
  ASSERT_EQ(fake_cublas_lt::products().size(), 4u);
  for (const auto& p : fake_cublas_lt::products()) {
    EXPECT_EQ(p.algorithm, 1);
    EXPECT_EQ(p.workspace_bytes, 0u);
  }
  multiply(product, matrix(3, 12), matrix(12, 5), matrix(3, 5));
  EXPECT_EQ(fake_cublas_lt::questions(), 2);
}

TEST_F(InvariantProductTest, LooksTheSameFromAnyAddress) {
  const InvariantProduct product(0, {});
  multiply(product, matrix(5, 7), matrix(7, 3), matrix(5, 3));
  multiply(product, matrix(1, 7, 7, 1), matrix(7, 3, 5, 3), matrix(1, 3, 3, 2));
  multiply(product, matrix(4, 7, 9, 2), matrix(7, 3), matrix(4, 3, 8));
  EXPECT_EQ(fake_cublas_lt::questions(), 1);
  EXPECT_EQ(fake_cublas_lt::alignments(), (std::vector<uint32_t>{16, 16, 16}));
}

TEST_F(InvariantProductTest, OneColumnLiesAsSeveralDo) {
  const InvariantProduct product(0, {});
  for (const int64_t columns : {1, 6})  // x.t() of rows
    multiply(product, matrix(4, 8), transposed(matrix(columns, 8)), matrix(4, columns));
  for (const int64_t rows : {1, 6})
    multiply(product, matrix(rows, 8), transposed(matrix(4, 8)), matrix(rows, 4));
  EXPECT_EQ(fake_cublas_lt::questions(), 1);
  for (const auto& p : fake_cublas_lt::products()) {
    EXPECT_TRUE(p.first_transposed);
    EXPECT_FALSE(p.second_transposed);
  }
}

TEST_F(InvariantProductTest, WhatTheLibraryRefusesIsDoneForMore) {
  const InvariantProduct product(0, {});
  fake_cublas_lt::fail("cublasLtMatmulAlgoCheck", kernels::CublasStatus::not_supported);
  multiply(product, matrix(3, 8), transposed(matrix(30, 8)), matrix(3, 30));
  multiply(product, matrix(5, 8), matrix(8, 7), matrix(5, 7));
  const auto products = fake_cublas_lt::products();
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0].rows, 32u);
  EXPECT_EQ(products[0].columns, 16u);
  EXPECT_EQ(products[0].inner, 8u);
  EXPECT_EQ(products[1].rows, 7u);
}

TEST_F(InvariantProductTest, WhatTheLibraryRefusesAgainIsDoneInSquares) {
  const InvariantProduct product(0, {});
  fake_cublas_lt::fail("cublasLtMatmulAlgoCheck", kernels::CublasStatus::not_supported, 2);
  multiply(product, matrix(3, 8), transposed(matrix(1030, 8)), matrix(3, 1030));
  const auto products = fake_cublas_lt::products();
  ASSERT_EQ(products.size(), 2u);
  for (const auto& p : products) {
    EXPECT_EQ(p.rows, 1024u);
    EXPECT_EQ(p.columns, 1024u);
    EXPECT_EQ(p.inner, 8u);
  }
}

TEST_F(InvariantProductTest, ABatchThatTheLibraryRefusesIsDoneMatrixByMatrix) {
  const InvariantProduct product(0, {});
  fake_cublas_lt::fail("cublasLtMatmulAlgoCheck", kernels::CublasStatus::not_supported);
  const TensorView a = matrix(6, 8), b = matrix(16, 4), c = matrix(6, 4);
  product.run({a.data, DType::float32, {2, 3, 8}, {24, 8, 1}},
              {b.data, DType::float32, {2, 8, 4}, {32, 4, 1}},
              {c.data, DType::float32, {2, 3, 4}, {12, 4, 1}});
  ASSERT_EQ(fake_cublas_lt::products().size(), 2u);
  EXPECT_EQ(fake_cublas_lt::products()[1].batch, 1);
  EXPECT_EQ(fake_cublas_lt::products()[1].columns, 3u);
  for (const int64_t i : {1, 4}) {
    float sum = 0;
    for (int64_t k = 0; k < 8; ++k) sum += at(a, i, k) * at(b, i / 3 * 8 + k, 2);
    EXPECT_EQ(at(c, i, 2), sum);
  }
}

TEST_F(InvariantProductTest, BatchesAreOneCall) {
  const InvariantProduct product(0, {});
  const TensorView a = matrix(6, 8), b = matrix(16, 4), c = matrix(6, 4);
  product.run({a.data, DType::float32, {2, 3, 8}, {24, 8, 1}},
              {b.data, DType::float32, {2, 8, 4}, {32, 4, 1}},
              {c.data, DType::float32, {2, 3, 4}, {12, 4, 1}});
  ASSERT_EQ(fake_cublas_lt::products().size(), 1u);
  EXPECT_EQ(fake_cublas_lt::products()[0].batch, 2);
  float sum = 0;
  for (int64_t k = 0; k < 8; ++k) sum += at(a, 4, k) * at(b, 8 + k, 2);
  EXPECT_EQ(at(c, 4, 2), sum);
}

}  // namespace
}  // namespace stax::tuning

// The choice of algorithms for products, over a stand-in for cuBLASLt.
#include "tuning/tuned_product.h"

#include <gtest/gtest.h>

#include "support/check.h"
#include "support/fake_cuda/fake_cublas_lt.h"
#include "support/file.h"
#include "support/heap_counter.h"
#include "tensor/storage.h"

namespace stax::tuning {
namespace {

const bool used = (fake_cuda::use(), true);

class TunedProductTest : public testing::Test {
 protected:
  TunedProductTest() : folder_(temporary_root(), "stax-product-"), cache_(folder_.path() + "/cache") {}
  void SetUp() override {
    fake_cuda::reset();
    fake_cublas_lt::reset();
  }

  TensorView matrix(int64_t rows, int64_t columns, float value) {
    const int64_t bytes = rows * columns * 4;
    const auto& memory = memory_.emplace_back(Storage::allocate(std::max<int64_t>(bytes, 4), kCUDA));
    auto* const data = reinterpret_cast<float*>(memory->data());
    std::fill_n(data, rows * columns, value);
    return {data, DType::float32, {rows, columns}, {columns, 1}};
  }

  /// A product of matrices of ones; its first element.
  float run(const TunedProduct& product, int64_t m = 2, int64_t n = 3, int64_t k = 4) {
    const std::vector<Argument<TensorView>> arguments = {matrix(m, k, 1), matrix(k, n, 1)};
    const std::vector<TensorView> results = {matrix(m, n, -1)};
    product.run(arguments, results);
    return *static_cast<const float*>(results[0].data);
  }

  TemporaryFolder folder_;
  runtime::CodeCache cache_;
  std::vector<StoragePtr> memory_;
};

TEST_F(TunedProductTest, TakesTheFirstAnswerWithoutMeasuring) {
  const TunedProduct product(cache_, 0, {.strategy = "none"});
  EXPECT_EQ(run(product), 4);
  EXPECT_EQ(run(product), 4);
  EXPECT_EQ(fake_cublas_lt::questions(), 1);
  ASSERT_EQ(fake_cublas_lt::products().size(), 2u);
  EXPECT_EQ(fake_cublas_lt::products()[1].algorithm, 0);
}

TEST_F(TunedProductTest, TakesTheFastestAndRemembersIt) {
  fake_cublas_lt::answers({{0, 20}, {0, 14}, {4096, 10}, {0, 12}});
  {
    const TunedProduct product(cache_, 0, {.strategy = "candidates"});
    EXPECT_EQ(run(product), 4);
    EXPECT_GT(fake_cublas_lt::products().size(), 12u);
    EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 2);
  }
  const size_t before = fake_cublas_lt::products().size();
  const TunedProduct next(cache_, 0, {.strategy = "candidates"});
  EXPECT_EQ(run(next), 4);
  EXPECT_EQ(fake_cublas_lt::questions(), 1);
  ASSERT_EQ(fake_cublas_lt::products().size(), before + 1);
  EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 2);
  EXPECT_EQ(fake_cublas_lt::products().back().workspace_bytes, 4096u);
  // Another problem is measured by itself, and one that is known is found again.
  EXPECT_EQ(run(next, 5, 6, 7), 7);
  EXPECT_EQ(fake_cublas_lt::questions(), 2);
  EXPECT_EQ(run(next), 4);
  EXPECT_EQ(fake_cublas_lt::questions(), 2);
}

TEST_F(TunedProductTest, ProductsThatAreKnownAllocateNothing) {
  const TunedProduct product(cache_, 0, {.strategy = "none"});
  std::vector<std::pair<std::vector<Argument<TensorView>>, std::vector<TensorView>>> calls;
  for (const int64_t m : {2, 3}) calls.push_back({{matrix(m, 4, 1), matrix(4, 3, 1)}, {matrix(m, 3, -1)}});
  calls.push_back({{matrix(2, 4, 1), matrix(4, 3, 1), matrix(1, 3, 5)}, {matrix(2, 3, -1)}});
  calls.back().first[2] = TensorView{calls.back().first[2].tensor().data, DType::float32, {3}, {1}};
  const auto all = [&] {
    for (const auto& [arguments, results] : calls) product.run(arguments, results);
  };
  for (int k = 0; k < 4; ++k) all();
  fake_cublas_lt::reset();  // forgets products, and keeps the memory for them
  const int64_t before = heap_allocations();
  for (int k = 0; k < 3; ++k) all();
  EXPECT_EQ(heap_allocations() - before, 0);
  EXPECT_EQ(fake_cublas_lt::products().size(), 9u);
  EXPECT_EQ(fake_cublas_lt::questions(), 0);
}

TEST_F(TunedProductTest, WhereSizesChangeTheFirstIsMeasured) {
  fake_cublas_lt::answers({{0, 20}, {0, 10}});
  const TunedProduct product(cache_, 0, {.strategy = "candidates", .changes = true});
  EXPECT_EQ(run(product), 4);
  EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 1);
  const size_t before = fake_cublas_lt::products().size();
  EXPECT_EQ(run(product, 5, 6, 7), 7);
  EXPECT_EQ(fake_cublas_lt::products().size(), before + 1);
  EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 0);
}

TEST_F(TunedProductTest, ARecordThatTheLibraryRefusesCountsAsMissing) {
  fake_cublas_lt::answers({{0, 20}, {0, 10}});
  EXPECT_EQ(run(TunedProduct(cache_, 0, {.strategy = "candidates"})), 4);
  EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 1);
  fake_cublas_lt::answers({{0, 0.5f}});
  EXPECT_EQ(run(TunedProduct(cache_, 0, {.strategy = "candidates"})), 4);
  EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 0);
}

TEST_F(TunedProductTest, AnAnswerThatFailsIsLeftOut) {
  fake_cublas_lt::answers({{0, 10}, {0, 20}});
  fake_cublas_lt::fail("cublasLtMatmul", kernels::CublasStatus::not_supported);
  EXPECT_EQ(run(TunedProduct(cache_, 0, {.strategy = "candidates"})), 4);
  EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 1);
}

/// Adds the bias to a row, in no time or in some.
class PlainEpilogue final : public ProductEpilogue {
 public:
  PlainEpilogue(EpilogueShape shape, float milliseconds) : shape_(shape), milliseconds_(milliseconds) {}
  void run(void* result, const void* bias) const override {
    fake_cuda::advance(milliseconds_);
    auto* const to = static_cast<float*>(result);
    for (int64_t k = 0; k < shape_.rows * shape_.columns; ++k)
      to[k] += static_cast<const float*>(bias)[k % shape_.columns];
  }

 private:
  EpilogueShape shape_;
  float milliseconds_;
};

TEST_F(TunedProductTest, AKernelAfterTheProductIsACandidate) {
  for (const float milliseconds : {4.0f, 12.0f}) {
    fake_cublas_lt::reset();
    fake_cublas_lt::answers({{0, 20}, {0, 10}});
    fake_cublas_lt::with_epilogue(8);
    const runtime::CodeCache cache(folder_.path() + (milliseconds < 8 ? "/fast" : "/slow"));
    int32_t made = 0;
    TunedProductOptions options{.strategy = "candidates"};
    options.make_epilogue = [&](const EpilogueShape& shape) {
      ++made;
      EXPECT_EQ(shape.rows, 2);
      EXPECT_EQ(shape.columns, 3);
      EXPECT_TRUE(shape.bias);
      return std::make_shared<PlainEpilogue>(shape, milliseconds);
    };
    for (const bool again : {false, true}) {
      const TunedProduct product(cache, 0, options);
      std::vector<Argument<TensorView>> arguments = {matrix(2, 4, 1), matrix(4, 3, 1), matrix(1, 3, 5)};
      arguments[2] = TensorView{arguments[2].tensor().data, DType::float32, {3}, {1}};
      const std::vector<TensorView> results = {matrix(2, 3, -1)};
      product.run(arguments, results);
      EXPECT_EQ(*static_cast<const float*>(results[0].data), 9);
      // Behind the best of the plain products, or 8 ms more in the library.
      EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 1);
      EXPECT_EQ(fake_cublas_lt::products().back().epilogue,
                milliseconds < 8 ? kernels::CublasEpilogue::none : kernels::CublasEpilogue::bias);
      EXPECT_EQ(made, again && milliseconds < 8 ? 2 : 1);
    }
  }
}

/// The relu of the elements.
class ReluEpilogue final : public ProductEpilogue {
 public:
  explicit ReluEpilogue(int64_t count) : count_(count) {}
  void run(void* result, const void*) const override {
    fake_cuda::advance(4);
    auto* const to = static_cast<float*>(result);
    for (int64_t k = 0; k < count_; ++k) to[k] = to[k] <= 0 ? 0 : to[k];
  }

 private:
  int64_t count_;
};

TunedProductOptions with_relu(const std::string& strategy) {
  TunedProductOptions options{.strategy = strategy};
  options.product.activation = graph::Activation::relu;
  options.make_epilogue = [](const EpilogueShape& shape) {
    return std::make_shared<ReluEpilogue>(shape.rows * shape.columns);
  };
  return options;
}

// The first answer makes 0 of NaN, the second, which takes longer, does not.
TEST_F(TunedProductTest, AReluThatMakesZeroOfNaNIsNotTaken) {
  constexpr auto kRelu = kernels::CublasEpilogue::relu, kNone = kernels::CublasEpilogue::none;
  const struct {
    const char* strategy;
    float second;  // milliseconds
    int32_t algorithm;
    kernels::CublasEpilogue epilogue;
  } cases[] = {{"none", 12, 0, kNone}, {"candidates", 12, 1, kRelu}, {"candidates", 16, 0, kNone}};
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.strategy, c.second));
    fake_cublas_lt::reset();
    fake_cublas_lt::answers({{0, 10}, {0, c.second, true}});
    const runtime::CodeCache cache(fmt::format("{}/{}", folder_.path(), c.second));
    for (const bool again : {false, true}) {
      const TunedProduct product(cache, 0, with_relu(c.strategy));
      EXPECT_EQ(run(product), 4);
      ASSERT_FALSE(fake_cublas_lt::products().empty()) << again;
      EXPECT_EQ(fake_cublas_lt::products().back().algorithm, c.algorithm) << again;
      EXPECT_EQ(fake_cublas_lt::products().back().epilogue, c.epilogue) << again;
    }
  }
}

TEST_F(TunedProductTest, WithoutAKernelAnotherAnswerKeepsNaN) {
  fake_cublas_lt::answers({{0, 10}, {0, 12, true}});
  TunedProductOptions options = with_relu("none");
  options.make_epilogue = nullptr;
  EXPECT_EQ(run(TunedProduct(cache_, 0, options)), 4);
  EXPECT_EQ(fake_cublas_lt::products().back().algorithm, 1);
  fake_cublas_lt::answers({{0, 10}});
  EXPECT_THROW(run(TunedProduct(cache_, 0, options)), RuntimeError);
}

TEST_F(TunedProductTest, AKernelDoesWhatTheLibraryDoesNotHave) {
  fake_cublas_lt::fail("cublasLtMatmulAlgoGetHeuristic", kernels::CublasStatus::not_supported);
  TunedProductOptions options;
  options.make_epilogue = [](const EpilogueShape& shape) {
    return std::make_shared<PlainEpilogue>(shape, 0.0f);
  };
  std::vector<Argument<TensorView>> arguments = {matrix(2, 4, 1), matrix(4, 3, 1), matrix(1, 3, 5)};
  arguments[2] = TensorView{arguments[2].tensor().data, DType::float32, {3}, {1}};
  const std::vector<TensorView> results = {matrix(2, 3, -1)};
  TunedProduct(cache_, 0, options).run(arguments, results);
  EXPECT_EQ(*static_cast<const float*>(results[0].data), 9);
  ASSERT_EQ(fake_cublas_lt::products().size(), 1u);
  EXPECT_EQ(fake_cublas_lt::products()[0].epilogue, kernels::CublasEpilogue::none);
}

// 2^31 elements are more than the library's numbers; here three are.
TEST_F(TunedProductTest, LongDimensionsGoInParts) {
  TunedProductOptions options{.strategy = "candidates", .longest = 3};
  options.make_epilogue = [](const EpilogueShape&) -> std::shared_ptr<const ProductEpilogue> {
    throw_internal_error(__FILE__, __LINE__, "dense", "a kernel for a result with gaps");
  };
  fake_cublas_lt::answers({{0, 20}});
  const TunedProduct product(cache_, 0, options);
  const auto numbers = [&](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    TensorView out = matrix(sizes[0], sizes[1] * (sizes.size() > 2 ? sizes[2] : 1), 0);
    auto* const data = static_cast<float*>(out.data);
    for (int64_t k = 0; k < out.numel(); ++k) data[k] = static_cast<float>(k * 5 % 7 - 3);
    out.sizes = std::move(sizes);
    out.strides = std::move(strides);
    return out;
  };
  const TensorView a = numbers({4, 5, 2}, {10, 2, 1}), b = numbers({4, 2, 7}, {14, 1, 2});
  const TensorView bias = numbers({1, 7}, {7, 1}), result = numbers({4, 5, 7}, {35, 7, 1});
  const std::vector<Argument<TensorView>> arguments = {a, b, TensorView{bias.data, DType::float32, {7}, {1}}};
  const std::vector<TensorView> results = {result};
  product.run(arguments, results);
  const auto at = [](const TensorView& t, int64_t n, int64_t i, int64_t j) {
    return static_cast<const float*>(t.data)[n * t.strides[0] + i * t.strides[1] + j * t.strides[2]];
  };
  for (int64_t n = 0; n < 4; ++n) {
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 7; ++j) {
        const float sum = at(a, n, i, 0) * at(b, n, 0, j) + at(a, n, i, 1) * at(b, n, 1, j);
        ASSERT_EQ(at(result, n, i, j), sum + static_cast<const float*>(bias.data)[j])
            << n << " " << i << " " << j;
      }
    }
  }
  EXPECT_EQ(fake_cublas_lt::products().size(), 2u * 2u * 3u);
}

TEST_F(TunedProductTest, EmptySumsAreZeroAndEmptyResultsNothing) {
  const TunedProduct product(cache_, 0, {.strategy = "none"});
  EXPECT_EQ(run(product, 2, 3, 0), 0);
  (void)run(product, 0, 3, 4);
  EXPECT_TRUE(fake_cublas_lt::products().empty());
}

}  // namespace
}  // namespace stax::tuning

// How products are put to cuBLASLt, over a stand-in for it that honours what it is given.
#include "kernels/library_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "device/cuda_allocator.h"
#include "stax/error.h"
#include "support/fake_cuda/fake_cublas_lt.h"
#include "support/file.h"
#include "tensor/storage.h"

namespace stax::kernels {
namespace {

using ::testing::HasSubstr;

const bool uses_stand_in = (fake_cuda::use(), true);

class LibraryProductTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_cuda::reset();
    fake_cublas_lt::reset();
  }
};

/// Memory that a test reads and writes itself: that of the stand-in is host memory.
struct Memory {
  StoragePtr memory;
  TensorView view;
  float* data() const { return static_cast<float*>(view.data); }
  float& at(int64_t batch, int64_t row, int64_t column) const {
    const size_t lead = view.sizes.size() - 2;
    return data()[(lead ? batch * view.strides[0] : 0) + row * view.strides[lead] +
                  column * view.strides[lead + 1]];
  }
};

/// float32, with small integers all over the memory, so that sums are exact.
Memory values(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset = 0) {
  int64_t count = offset + 1;
  for (size_t d = 0; d < sizes.size(); ++d) count += (sizes[d] - 1) * strides[d];
  Memory out{StoragePtr(Storage::allocate(count * 4, kCUDA)), {nullptr, DType::float32, sizes, strides}};
  auto* const data = reinterpret_cast<float*>(out.memory->data());
  for (int64_t k = 0; k < count; ++k) data[k] = static_cast<float>(k * 7 % 11 - 5);
  out.view.data = data + offset;
  return out;
}

void run(const Memory& a, const Memory& b, const Memory& c, const TensorView* bias = nullptr,
         ProductOptions options = {}) {
  const auto problem = problem_of(a.view, b.view, c.view, bias, options);
  ASSERT_TRUE(problem.has_value());
  const LibraryProduct product(*problem, 0);
  product.run({a.view.data, b.view.data, bias != nullptr ? bias->data : nullptr, c.view.data},
              product.answers(1)[0]);
}

float sum_of_products(const Memory& a, const Memory& b, int64_t batch, int64_t i, int64_t j) {
  float sum = 0;
  for (int64_t k = 0; k < a.view.sizes.back(); ++k) sum += a.at(batch, i, k) * b.at(batch, k, j);
  return sum;
}

void expect_product(const Memory& a, const Memory& b, const Memory& c) {
  const int64_t batches = c.view.sizes.size() == 3 ? c.view.sizes[0] : 1;
  for (int64_t n = 0; n < batches; ++n) {
    for (int64_t i = 0; i < a.view.sizes[a.view.sizes.size() - 2]; ++i) {
      for (int64_t j = 0; j < b.view.sizes.back(); ++j)
        ASSERT_EQ(c.at(n, i, j), sum_of_products(a, b, n, i, j)) << n << " " << i << " " << j;
    }
  }
}

TEST_F(LibraryProductTest, ReadsMatricesAsTheyLie) {
  // Rows dense, columns dense, and lines that lie further apart.
  const std::vector<std::vector<int64_t>> left = {{5, 1}, {1, 3}, {9, 1}, {1, 8}};
  const std::vector<std::vector<int64_t>> right = {{4, 1}, {1, 5}, {6, 1}, {1, 7}};
  const std::vector<std::vector<int64_t>> result = {{4, 1}, {1, 3}, {10, 1}, {1, 6}};
  for (const auto& a_strides : left) {
    for (const auto& b_strides : right) {
      for (const auto& c_strides : result) {
        const Memory a = values({3, 5}, a_strides), b = values({5, 4}, b_strides),
                     c = values({3, 4}, c_strides);
        const float between = c.data()[c.view.sizes[1] * c_strides[1]];  // the end of the first row
        run(a, b, c);
        expect_product(a, b, c);
        if (c_strides[0] == 10) {
          EXPECT_EQ(c.data()[4], between);
        }
      }
    }
  }
  EXPECT_EQ(fake_cublas_lt::products().size(), 64u);
}

TEST_F(LibraryProductTest, MultipliesVectorsAndSingleElements) {
  // Strides of dimensions of one element say nothing.
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> shapes = {
      {{1, 5}, {5, 4}}, {{3, 5}, {5, 1}}, {{3, 1}, {1, 4}}, {{1, 1}, {1, 1}}};
  for (const auto& [x, y] : shapes) {
    const Memory a = values(x, {x[0] == 1 ? 77 : x[1], x[1] == 1 ? 33 : 1});
    const Memory b = values(y, {y[0] == 1 ? 99 : y[1], y[1] == 1 ? 55 : 1}),
                 c = values({x[0], y[1]}, {y[1], 1});
    run(a, b, c);
    expect_product(a, b, c);
  }
  const Memory a = values({1, 5}, {1, 3}), b = values({5, 4}, {4, 1}), c = values({1, 4}, {4, 1});
  run(a, b, c);  // a row of a matrix whose columns are dense
  expect_product(a, b, c);
}

TEST_F(LibraryProductTest, BatchesMayRepeatAndLieApart) {
  for (const int64_t a_batch : {0, 15, 40}) {
    for (const int64_t b_batch : {0, 20}) {
      const Memory a = values({3, 3, 5}, {a_batch, 5, 1}), b = values({3, 5, 4}, {b_batch, 1, 5}),
                   c = values({3, 3, 4}, {16, 4, 1});
      run(a, b, c);
      expect_product(a, b, c);
    }
  }
  EXPECT_EQ(fake_cublas_lt::products()[0].batch, 3);
}

TEST_F(LibraryProductTest, RefusesWhatTheLibraryCannotRead) {
  const Memory a = values({3, 5}, {5, 1}), b = values({5, 4}, {4, 1}), c = values({3, 4}, {4, 1});
  const auto fits = [&](const Memory& left) { return problem_of(left.view, b.view, c.view, nullptr, {}); };
  EXPECT_TRUE(fits(a));
  EXPECT_FALSE(fits(values({3, 5}, {10, 2})));  // neither rows nor columns are dense
  EXPECT_FALSE(fits(values({3, 5}, {1, 1})));   // rows overlap
  EXPECT_FALSE(fits(values({3, 5}, {0, 1})));   // one row, repeated
  // A bias goes along the rows of the result as the library has it: dense rows here.
  const Memory bias = values({4}, {1}), turned = values({3, 4}, {1, 3});
  EXPECT_TRUE(problem_of(a.view, b.view, c.view, &bias.view, {}));
  EXPECT_FALSE(problem_of(a.view, b.view, turned.view, &bias.view, {}));
}

TEST_F(LibraryProductTest, AddsABiasAndAppliesFunctions) {
  const Memory a = values({2, 3}, {3, 1}), b = values({3, 4}, {4, 1}), c = values({2, 4}, {4, 1}),
               bias = values({4}, {1}, 2);
  run(a, b, c, &bias.view, {.activation = graph::Activation::relu});
  bool some = false;
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const float sum = sum_of_products(a, b, 0, i, j) + bias.data()[j];
      some |= sum < 0;
      EXPECT_EQ(c.at(0, i, j), sum > 0 ? sum : 0);
    }
  }
  EXPECT_TRUE(some);
  run(a, b, c, nullptr, {.activation = graph::Activation::relu});
  EXPECT_EQ(c.at(0, 0, 0), std::max(0.0f, sum_of_products(a, b, 0, 0, 0)));
  run(a, b, c, &bias.view);
  EXPECT_EQ(c.at(0, 1, 2), sum_of_products(a, b, 0, 1, 2) + bias.data()[2]);
  // gelu(1) and gelu(-2) of the tanh form.
  const Memory one = values({1, 1}, {1, 1}), factor = values({1, 2}, {2, 1}), out = values({1, 2}, {2, 1});
  one.data()[0] = 1, factor.data()[0] = 1, factor.data()[1] = -2;
  run(one, factor, out, nullptr, {.activation = graph::Activation::gelu_tanh});
  EXPECT_NEAR(out.data()[0], 0.841192, 1e-6);
  EXPECT_NEAR(out.data()[1], -0.045402, 1e-6);
  EXPECT_EQ(fake_cublas_lt::products().back().epilogue, CublasEpilogue::gelu);
}

TEST_F(LibraryProductTest, EachCallHasItsOwnBias) {
  const Memory a = values({2, 3}, {3, 1}), b = values({3, 4}, {4, 1}), c = values({2, 4}, {4, 1}),
               first = values({4}, {1}), second = values({4}, {1}, 4);
  const LibraryProduct product(*problem_of(a.view, b.view, c.view, &first.view, {}), 0);
  const CublasLtAnswer answer = product.answers(1)[0];
  for (const Memory* bias : {&first, &second, &second, &first}) {
    product.run({a.view.data, b.view.data, bias->view.data, c.view.data}, answer);
    EXPECT_EQ(c.at(0, 1, 2), sum_of_products(a, b, 0, 1, 2) + bias->data()[2]);
  }
}

TEST_F(LibraryProductTest, HalfTypesAreRoundedOnceOrNotAtAll) {
  Memory a = values({1, 2}, {2, 1}), b = values({2, 1}, {1, 1}), c = values({1, 1}, {1, 1});
  const auto set = [](const Memory& v, std::vector<uint16_t> bits) {
    std::copy(bits.begin(), bits.end(), static_cast<uint16_t*>(v.view.data));
  };
  a.view.dtype = b.view.dtype = c.view.dtype = DType::bfloat16;
  set(a, {0x3f80, 0x3b80});  // 1, 2^-8
  set(b, {0x3f80, 0x3f00});  // 1, 1/2: the sum is 1 + 2^-9, beside bfloat16's numbers
  run(a, b, c);
  EXPECT_EQ(*static_cast<uint16_t*>(c.view.data), 0x3f80);
  c.view.dtype = DType::float32;
  run(a, b, c);
  EXPECT_EQ(c.data()[0], 1.001953125f);
  EXPECT_EQ(fake_cublas_lt::products()[0].compute_type, CublasCompute::float32);
  a.view.dtype = b.view.dtype = c.view.dtype = DType::float16;
  set(a, {0x3c00, 0x2800});  // 1, 2^-5
  set(b, {0xc000, 0x3c00});  // -2, 1
  run(a, b, c);
  EXPECT_EQ(*static_cast<uint16_t*>(c.view.data), 0xbfe0);  // -1.96875
}

TEST_F(LibraryProductTest, Float32IsExactUnlessTf32IsAllowed) {
  const Memory a = values({2, 2}, {2, 1}), b = values({2, 2}, {2, 1}), c = values({2, 2}, {2, 1});
  run(a, b, c);
  run(a, b, c, nullptr, {.tf32 = true});
  EXPECT_EQ(fake_cublas_lt::products()[0].compute_type, CublasCompute::float32);
  EXPECT_EQ(fake_cublas_lt::products()[1].compute_type, CublasCompute::tf32);
}

TEST_F(LibraryProductTest, TellsTheRealAlignments) {
  const Memory a = values({2, 4}, {4, 1}, 1), b = values({4, 2}, {2, 1}, 2), c = values({2, 2}, {2, 1});
  run(a, b, c);
  EXPECT_EQ(fake_cublas_lt::alignments(), (std::vector<uint32_t>{8, 4, 16}));  // b^T * a^T
}

TEST_F(LibraryProductTest, WorkspaceComesFromTheAllocator) {
  const Memory a = values({2, 2}, {2, 1}), b = values({2, 2}, {2, 1}), c = values({2, 2}, {2, 1});
  fake_cublas_lt::answers({{64 << 20}, {3000}});  // the first asks for more than there is
  const int64_t before = device::CudaAllocator::of(0).stats().in_use_bytes;
  run(a, b, c);
  EXPECT_EQ(fake_cublas_lt::products()[0].algorithm, 1);
  EXPECT_EQ(fake_cublas_lt::products()[0].workspace_bytes, 3000u);
  EXPECT_EQ(device::CudaAllocator::of(0).stats().in_use_bytes, before);
}

TEST_F(LibraryProductTest, UsesTheCurrentStream) {
  const Memory a = values({2, 2}, {2, 1}), b = values({2, 2}, {2, 1}), c = values({2, 2}, {2, 1});
  const device::CudaStream other = device::pooled_cuda_stream(0), was = device::current_cuda_stream(0);
  device::set_current_cuda_stream(other);
  run(a, b, c);
  device::set_current_cuda_stream(was);
  EXPECT_EQ(fake_cublas_lt::products()[0].stream, static_cast<void*>(other.handle));
}

TEST_F(LibraryProductTest, FailuresNameTheCallAndTheProblem) {
  const Memory a = values({2, 3}, {3, 1}), b = values({3, 4}, {4, 1}), c = values({2, 4}, {4, 1});
  const auto message = [&] {
    try {
      run(a, b, c);
    } catch (const RuntimeError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  fake_cublas_lt::fail("cublasLtMatmul", CublasStatus::execution_failed);
  EXPECT_THAT(message(), HasSubstr("cublasLtMatmul fails: a failure that a test asked for (error 13)"));
  fake_cublas_lt::answers({});
  EXPECT_THAT(message(), HasSubstr("cuBLASLt 13.1.0 has no algorithm for the product float32 float32: 1 of"));
}

TEST(CublasLt, IsFoundInThePackagesOfAPython) {
  TemporaryFolder folder(temporary_root(), "stax-blas-");
  const std::string root = folder.path();
  for (const char* file : {"bin/python3", "lib/python3.9/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
                           "lib/python3.11/site-packages/torch/lib/libcublasLt.so.12",
                           "lib/python3.11/site-packages/nvidia/cu13/lib/libcublasLt.so.13"}) {
    const std::filesystem::path path = root + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "";
  }
  EXPECT_EQ(
      cublas_lt_of_python(root + "/bin/python3"),
      (std::vector<std::string>{root + "/lib/python3.11/site-packages/nvidia/cu13/lib/libcublasLt.so.13",
                                root + "/lib/python3.11/site-packages/torch/lib/libcublasLt.so.12",
                                root + "/lib/python3.9/site-packages/nvidia/cublas/lib/libcublasLt.so.12"}));
  EXPECT_EQ(cublas_lt_version_text(130100), "13.1.0");
}

}  // namespace
}  // namespace stax::kernels

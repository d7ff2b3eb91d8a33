// Products and convolutions over tensors of a GPU: the library's, and kernels around them.
#include <algorithm>
#include <functional>

#include "gpu/gpu_testing.h"
#include "kernels/cublas_lt.h"
#include "support/fake_cuda/fake_cublas_lt.h"
#include "support/fake_cuda/fake_cuda.h"

namespace stax {
namespace {

TEST_F(GpuTest, LibraryFunctionsWorkBetweenKernels) {
  const auto f = [](const Tensor& x, const Tensor& w) { return relu(matmul(x, w) - 1).sum(0); };
  auto compiled = compile(f, {.strict_native = true});
  const Tensor x = ramp({6, 8}), w = ramp({8, 5}, 0.125);
  expect_close(compiled(x.cuda(), w.cuda()), f(x, w), 1e-4);
}

// Products by the library, of integers by a kernel: nothing is copied to the host in between.
TEST_F(GpuTest, ProductsStayOnTheGpu) {
  const auto f = [](const Tensor& x, const Tensor& w, const Tensor& n) {
    const Tensor rows = matmul(x, w);                                      // one matrix for a batch
    const Tensor batch = matmul(x.transpose(1, 2), x);                     // columns dense
    const Tensor strided = matmul(x.slice(2, 0, 8, 2), w.slice(0, 0, 4));  // neither: copied by a kernel
    const Tensor vector = matmul(x, w.select(1, 0));
    return rows.sum() + batch.sum() + strided.sum() + vector.sum() + matmul(n, n.t()).sum();
  };
  const Tensor x = ramp({3, 6, 8}), w = ramp({8, 5}, 0.125), n = arange(12).reshape({4, 3});
  const Tensor there = x.cuda(), w_there = w.cuda(), n_there = n.cuda();
  for (const bool dynamic : {false, true}) {
    auto compiled = compile(f, {.dynamic = dynamic, .strict_native = true});
    fake_cuda::reset();
    fake_cublas_lt::reset();
    const Tensor got = compiled(there, w_there, n_there);
    if (!on_real_gpu()) {
      EXPECT_EQ(fake_cublas_lt::products().size(), 3u);
      EXPECT_EQ(std::ranges::count(fake_cuda::calls(), "cuMemcpyDtoHAsync_v2"), 0);
    }
    expect_close(got, f(x, w, n), 1e-4);
  }
  fake_cublas_lt::reset();
  const Tensor eager = matmul(there, w_there);
  EXPECT_EQ(fake_cublas_lt::products().size(), on_real_gpu() ? 0u : 1u);
  expect_close(eager, matmul(x, w), 1e-4);
  fake_cublas_lt::reset();
  fake_cuda::reset();
  const Tensor batches = bmm(there.transpose(1, 2), there), one = mm(n_there, n_there.t());
  if (!on_real_gpu()) {
    EXPECT_EQ(fake_cublas_lt::products().size(), 1u);
    EXPECT_EQ(std::ranges::count(fake_cuda::calls(), "cuMemcpyDtoHAsync_v2"), 0);
  }
  expect_close(batches, bmm(x.transpose(1, 2), x), 1e-4);
  expect_close(one, mm(n, n.t()));
  expect_close(matmul(there.to(kInt32), w_there.to(kInt32)), matmul(x.to(kInt32), w.to(kInt32)));
}

// What the library joins to its products: the results are those of the operators one by one.
TEST_F(GpuTest, ProductsTakeWhatFollowsThem) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& bias)> function;
    size_t kernels;  // besides the product
  };
  const std::vector<Case> cases = {
      {"bias", [](auto& x, auto& w, auto& b) { return matmul(x, w.t()) + b; }, 0},
      {"relu", [](auto& x, auto& w, auto&) { return relu(matmul(x, w.t())); }, 0},
      {"linear, relu", [](auto& x, auto& w, auto& b) { return relu(linear(x, w, b)); }, 0},
      {"linear, gelu", [](auto& x, auto& w, auto& b) { return gelu(linear(x, w, b), "tanh"); }, 0},
      {"gelu", [](auto& x, auto& w, auto&) { return gelu(matmul(x, w.t()), "tanh"); }, 0},
      {"addmm", [](auto& x, auto& w, auto& b) { return relu(addmm(b, x.select(0, 0), w.t())); }, 0},
      {"of erf", [](auto& x, auto& w, auto& b) { return gelu(linear(x, w, b)); }, 1},
      {"a column",
       [](auto& x, auto& w, auto& b) { return matmul(x, w.t()) + b.sum() + b.slice(0, 0, 4).unsqueeze(1); },
       2},
      {"twice",
       [](auto& x, auto& w, auto& b) {
         const Tensor y = matmul(x, w.t());
         return relu(y + b) * y;
       },
       1},
      {"half a bias", [](auto& x, auto& w, auto& b) { return add(matmul(x, w.t()), b, 0.5); }, 1},
  };
  for (const DType dtype : {kFloat32, kBFloat16}) {
    const Tensor x = (ramp({2, 4, 8}, 0.125) - 1).to(dtype), w = (ramp({6, 8}, 0.125)).to(dtype),
                 bias = ramp({6}, 2).to(dtype);
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      auto compiled = compile(c.function, {.strict_native = true});
      expect_close(compiled(x.cuda(), w.cuda(), bias.cuda()), c.function(x, w, bias),
                   dtype == kFloat32 ? 1e-4 : 2e-2);
      EXPECT_EQ(compiled.artifacts()[0].kernels.size(), c.kernels) << compiled.artifacts()[0].graph;
    }
  }
}

// Windows are gathered by a kernel, and the weights multiply them: nothing is copied to the host.
TEST_F(GpuTest, ConvolutionsStayOnTheGpu) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& bias)> function;
    size_t products;
  };
  const std::vector<Case> cases = {
      {"padded",
       [](auto& x, auto& w, auto& b) {
         return conv2d(x, w, b, {2, 1}, {1, 1});
       },
       1},
      {"dilated, no bias",
       [](auto& x, auto& w, auto&) {
         return conv2d(x, w, Tensor(), {1, 1}, {1, 0}, {2, 1});
       },
       1},
      {"one by one", [](auto& x, auto& w, auto& b) { return conv2d(x, w.slice(2, 0, 1).slice(3, 0, 1), b); },
       1},
      {"no batch", [](auto& x, auto& w, auto& b) { return conv2d(x.select(0, 1), w, b); }, 1},
      {"groups",
       [](auto& x, auto& w, auto& b) {
         return conv2d(x, w.slice(1, 0, 1), b, {1, 1}, {1, 1}, {1, 1}, 2);
       },
       0},
      {"transposed",
       [](auto& x, auto& w, auto&) {
         return conv_transpose2d(x, w.transpose(0, 1), Tensor(), {2, 2}, {1, 1}, {1, 1});
       },
       1},
      {"transposed groups",
       [](auto& x, auto& w, auto& b) {
         return conv_transpose2d(x, w.slice(0, 0, 2), b.slice(0, 0, 4), {2, 1}, {1, 0}, {0, 0}, 2);
       },
       0},
      {"a line",
       [](auto& x, auto& w, auto& b) { return conv1d(x.select(2, 0), w.select(2, 0), b, {1}, {2}); }, 1},
  };
  const Tensor x = ramp({2, 2, 5, 6}, 0.125), w = ramp({4, 2, 3, 2}, 0.25), bias = ramp({4}, 2);
  for (const Case& c : cases) {
    for (const bool dynamic : {false, true}) {
      SCOPED_TRACE(std::string(c.name) + (dynamic ? ", any sizes" : ""));
      const Tensor there = x.cuda(), w_there = w.cuda(), b_there = bias.cuda();
      auto compiled = compile(c.function, {.dynamic = dynamic, .strict_native = true});
      fake_cuda::reset();
      fake_cublas_lt::reset();
      const Tensor got = compiled(there, w_there, b_there);
      if (!on_real_gpu()) {
        EXPECT_EQ(fake_cublas_lt::products().size(), c.products);
        EXPECT_EQ(std::ranges::count(fake_cuda::calls(), "cuMemcpyDtoHAsync_v2"), 0);
      }
      expect_close(got, c.function(x, w, bias), 1e-4);
    }
  }
}

TEST_F(GpuTest, Tf32IsUsedWhereItIsAskedFor) {
  const auto f = [](const Tensor& x, const Tensor& w) { return matmul(x, w); };
  const Tensor x = ramp({4, 8}), w = ramp({8, 4}, 0.5);  // of few bits: exact either way
  for (const char* precision : {"highest", "high"}) {
    fake_cublas_lt::reset();
    expect_close(compile(f, {.matmul_precision = precision})(x.cuda(), w.cuda()), f(x, w), 1e-5);
    if (on_real_gpu()) continue;
    ASSERT_EQ(fake_cublas_lt::products().size(), 1u);
    EXPECT_EQ(fake_cublas_lt::products()[0].compute_type == kernels::CublasCompute::tf32,
              std::string(precision) == "high");
  }
  EXPECT_THROW((void)compile(f, {.matmul_precision = "low"}), UserError);
}

// The library's relu makes 0 of NaN in some of its algorithms.
TEST_F(GpuTest, AReluOfAProductKeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    const Tensor x = tensor({{1.0f, nan}, {-2.0f, 1.0f}}).to(dtype), w = eye(2).to(dtype) * 3;
    for (const char* tuning : {"none", "candidates"}) {
      auto compiled = compile([](const Tensor& a, const Tensor& b) { return relu(matmul(a, b)); },
                              {.strict_native = true, .tuning = tuning});
      const Tensor got = compiled(x.cuda(), w.cuda()).cpu().to(kFloat32);
      EXPECT_TRUE(all(isnan(got.select(0, 0))).item<bool>()) << got.str();
      EXPECT_TRUE(got.select(0, 1).equal(tensor({0.0f, 3.0f}))) << got.str();
    }
  }
}

}  // namespace
}  // namespace stax

// Functions over tensors of a GPU, compiled and eagerly, against the same on the CPU.
#include <algorithm>
#include <functional>

#include "gpu/gpu_testing.h"
#include "kernels/cublas_lt.h"
#include "support/fake_cuda/fake_cublas_lt.h"
#include "support/fake_cuda/fake_cuda.h"

namespace stax {
namespace {

TEST_F(GpuTest, TensorsMoveAndComeBack) {
  const Tensor x = ramp({3, 5});
  const Tensor there = x.to(kCUDA);
  EXPECT_EQ(there.device(), kCUDA);
  EXPECT_TRUE(there.is_cuda());
  expect_close(there, x);
  expect_close(there.transpose(0, 1).cpu(), x.transpose(0, 1).contiguous());
  EXPECT_EQ(there.index({1, 2}).item<float>(), -1.25f);
  EXPECT_NE(there.str().find("on cuda:0"), std::string::npos);
  expect_close(ones({2, 2}, TensorOptions(kFloat32).device(kCUDA)), ones({2, 2}));
  expect_close(zeros_like(there), zeros({3, 5}));
  expect_close(tensor({1.0, 2.0}, TensorOptions(kCUDA)), tensor({1.0, 2.0}));
}

TEST_F(GpuTest, ACompiledFunctionRunsInGeneratedKernels) {
  const auto f = [](const Tensor& x, const Tensor& w) { return (relu(x + w) * 2).sum(-1); };
  auto compiled = compile(f, {.strict_native = true});
  const Tensor x = ramp({8, 24}), w = ramp({24}, 0.5);
  expect_close(compiled(x.cuda(), w.cuda()), f(x, w), 1e-5);
  expect_close(compiled(x.cuda() + 1, w.cuda()), f(x + 1, w), 1e-5);
  ASSERT_EQ(compiled.artifacts().size(), 1u);
  EXPECT_EQ(compiled.artifacts()[0].target.substr(0, 8), "cuda:sm_");
  EXPECT_EQ(compiled.artifacts()[0].kernels.size(), 1u);
}

// Measuring launches a kernel many times: what it changes has to be as after one.
TEST_F(GpuTest, TunedKernelsComputeOnce) {
  const auto f = [](Tensor x, const Tensor& y) {
    x.add_(y);
    return (x * y).sum();
  };
  for (const char* strategy : {"candidates", "coordinate_descent"}) {
    auto compiled = compile(f, {.strict_native = true, .tuning = strategy});
    Tensor x = ramp({8, 32}), there = x.cuda();
    const Tensor y = ramp({8, 32}, 0.5);
    expect_close(compiled(there, y.cuda()), f(x, y), 1e-4);
    expect_close(there, x);
    expect_close(compiled(there, y.cuda()), f(x, y), 1e-4);
    expect_close(there, x);
  }
  const auto add_rows = [](const Tensor& x, const Tensor& rows, const Tensor& y) {
    return x.index_add(0, rows, y);  // atomic additions
  };
  auto compiled = compile(add_rows, {.strict_native = true, .tuning = "candidates"});
  const Tensor x = ramp({8, 32}), y = ramp({4, 32}, 0.5), rows = tensor({1, 3, 1, 7});
  expect_close(compiled(x.cuda(), rows.cuda(), y.cuda()), add_rows(x, rows, y), 1e-4);
  // The same into an argument, which the kernel does not read otherwise.
  auto into = compile([](Tensor a, const Tensor& i, const Tensor& b) { a.index_put_({i}, b, true); },
                      {.strict_native = true, .tuning = "candidates"});
  const Tensor sums = zeros({4}).cuda();
  into(sums, tensor({0, 0, 3, 0}).cuda(), tensor({1.0f, 2.0f, 5.0f, 4.0f}).cuda());
  expect_close(sums, tensor({7.0f, 0.0f, 0.0f, 5.0f}));
  EXPECT_THROW((void)compile(f, {.tuning = "guess"}), UserError);
}

TEST_F(GpuTest, OneProgramServesAllSizes) {
  const auto f = [](const Tensor& x) { return softmax(x * 3, -1); };
  auto compiled = compile(f, {.dynamic = true, .strict_native = true});
  for (int64_t n : {16, 17, 3, 8, 48, 100}) {
    const Tensor x = ramp({5, n});
    expect_close(compiled(x.cuda()), f(x), 1e-5);
  }
  const std::vector<Artifact> artifacts = compiled.artifacts();
  ASSERT_EQ(artifacts.size(), 1u);
  // A loop over rows, a block for rows like the example's and for shorter ones; wide indices for huge
  // tensors.
  std::vector<std::string> names;
  for (const Artifact::Kernel& kernel : artifacts[0].kernels) {
    names.push_back(kernel.name);
    const bool wide = kernel.source.find("program_id(0).to(tl.int64)") != std::string::npos;
    EXPECT_EQ(wide, kernel.name == "triton_red_fused_0") << kernel.source;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"triton_red_fused_0_form1", "triton_per_fused_0_form2",
                                             "triton_per_fused_0_form3", "triton_per_fused_0_form4",
                                             "triton_red_fused_0"}));
}

TEST_F(GpuTest, ManyBlocksAlongAnyDimension) {
  // More than the driver takes along y, and along z: the one that the tests put in its place takes 8.
  const int64_t rows = on_real_gpu() ? 70000 * 32 : 300;
  const auto transposed = [](const Tensor& x, const Tensor& y) { return x.t() + y; };
  const Tensor x = ramp({33, rows}), y = ramp({rows, 33}, 0.25);
  expect_close(compile(transposed)(x.cuda(), y.cuda()), transposed(x, y), 1e-6);
  const auto turned = [](const Tensor& a, const Tensor& b) { return a.permute({2, 1, 0}) * b; };
  const int64_t planes = on_real_gpu() ? 70000 * 16 : 150;
  const Tensor a = ramp({3, 5, planes}), b = ramp({planes, 5, 3}, 0.5);
  expect_close(compile(turned)(a.cuda(), b.cuda()), turned(a, b), 1e-6);
  expect_close(compile(turned, {.dynamic = true})(a.cuda(), b.cuda()), turned(a, b), 1e-6);
}

// Each class of sizes has a configuration of its own, which is measured once.
TEST_F(GpuTest, EachClassOfSizesIsMeasuredOnce) {
  const auto f = [](const Tensor& x) { return x * 2 + 1; };
  auto compiled = compile(f, {.dynamic = true, .strict_native = true, .tuning = "candidates"});
  for (const auto& [n, measures] :
       {std::pair{512, true}, {500, false}, {8192, true}, {512, false}, {8000, false}}) {
    const Tensor x = ramp({n}), there = x.cuda();
    fake_cuda::reset();
    expect_close(compiled(there), f(x), 1e-6);
    if (!on_real_gpu()) EXPECT_EQ(fake_cuda::launches().size() > 1, measures) << n;
  }
  EXPECT_EQ(compiled.artifacts().size(), 1u);
}

TEST_F(GpuTest, TunedKernelsServeSizesFarFromTheHint) {
  const auto f = [](const Tensor& x) { return (x * 2).sum(-1); };
  auto compiled = compile(f, {.dynamic = true, .strict_native = true, .tuning = "candidates"});
  for (const auto& [rows, columns] : {std::pair{4, 24}, {2, 100}, {20, 3}, {4, 25}, {1, 0}, {0, 5}}) {
    const Tensor x = ramp({rows, columns});
    expect_close(compiled(x.cuda()), f(x), 1e-3);
  }
}

TEST_F(GpuTest, UnalignedPointersGetTheGeneralKernel) {
  const auto f = [](const Tensor& x) { return x * 2 + 1; };
  auto compiled = compile(f, {.strict_native = true});
  const Tensor x = ramp({65});
  const Tensor there = x.cuda();
  for (int64_t start : {0, 1, 3}) {
    const Tensor part = x.slice(0, start, start + 60);
    expect_close(compiled(there.slice(0, start, start + 60)), f(part.clone()), 1e-6);
  }
}

TEST_F(GpuTest, NumbersAreRunTimeArguments) {
  auto compiled = compile([](const Tensor& x, Scalar a) { return x * a; }, {.strict_native = true});
  const Tensor x = ramp({10});
  for (double a : {0.5, 2.0, -1.0}) expect_close(compiled(x.cuda(), Scalar(a)), x * a, 1e-6);
  EXPECT_EQ(compiled.artifacts().size(), 1u);
}

// tensor({...}) lies on the CPU, as in eager code: moving it is no read, and index tensors need not be moved.
TEST_F(GpuTest, TensorsMadeOfNumbersMoveInsideACompiledFunction) {
  const Tensor x = ramp({4, 3}).cuda();
  auto compiled = compile(
      [](const Tensor& a) {
        Tensor weights = tensor({1.0f, 2.0f, 4.0f}).cuda();
        return (a * weights).index({tensor({2, 0, 2})});
      },
      {.fullgraph = true});
  const Tensor here = x.cpu() * tensor({1.0f, 2.0f, 4.0f});
  expect_close(compiled(x), here.index({tensor({2, 0, 2})}));
  expect_close(x.index({tensor({-1})}), x.cpu().slice(0, 3));
}

// Sums of narrow types are formulas over wide ones, also where there is one element only.
TEST_F(GpuTest, NarrowSumsWithoutDimensions) {
  auto compiled =
      compile([](const Tensor& a, const Tensor& i, const Tensor& b) { return index_add(a, 0, i, b); },
              {.strict_native = true});
  for (const DType dtype : {kBFloat16, kInt8}) {
    const Tensor sum =
        compiled(tensor(3.0f).to(dtype).cuda(), tensor(0).cuda(), tensor(4.0f).to(dtype).cuda());
    EXPECT_EQ(sum.dim(), 0);
    EXPECT_EQ(sum.cpu().to(kFloat32).item<float>(), 7.0f);
  }
}

TEST_F(GpuTest, UpdatesOfArgumentsAreSeen) {
  auto compiled = compile([](Tensor x, const Tensor& y) {
    x.add_(y);
    x.index({0}).fill_(7);
    return x.sum();
  });
  const Tensor x = ramp({4, 4}), y = ramp({4}, 1);
  const Tensor there = x.cuda();
  const Tensor sum = compiled(there, y.cuda());
  Tensor want = x + y;
  want.index({0}).fill_(7);
  expect_close(there, want, 1e-6);
  expect_close(sum, want.sum(), 1e-5);
}

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

TEST_F(GpuTest, DataDetermineSizes) {
  const auto f = [](const Tensor& x) { return nonzero(x > 0) * 2; };
  const Tensor x = ramp({4, 5});
  expect_close(compile(f)(x.cuda()), f(x));
  expect_close(f(x.cuda()), f(x));
}

TEST_F(GpuTest, OperatorsRunEagerly) {
  const Tensor x = ramp({4, 6}), y = ramp({6}, 2);
  const Tensor a = x.cuda(), b = y.cuda();
  expect_close(a + b, x + y, 1e-6);
  expect_close(a * 0.5, x * 0.5, 1e-6);
  expect_close(a.sum(1), x.sum(1), 1e-5);
  expect_close(matmul(a, a.transpose(0, 1)), matmul(x, x.transpose(0, 1)), 1e-4);
  expect_close(std::get<1>(a.max(1)), std::get<1>(x.max(1)));
  Tensor c = a.clone();
  c.mul_(b);
  c.index_put_({Slice(1, 3), 2}, Scalar(9));
  Tensor z = x.clone();
  z.mul_(y);
  z.index_put_({Slice(1, 3), 2}, Scalar(9));
  expect_close(c, z, 1e-6);
  EXPECT_TRUE(a.equal(x.cuda()));
}

TEST_F(GpuTest, RandomNumbersAreThoseOfTheCpu) {
  const auto f = [](const Tensor& x) { return x + rand_like(x); };
  const Tensor x = ramp({33});
  manual_seed(3);
  const Tensor want = f(x);
  manual_seed(3);
  expect_close(compile(f)(x.cuda()), want, 1e-6);
}

/// Host memory that crosses to the device and back while f runs: in calls.
template <class F>
int64_t transfers(const F& f) {
  if (on_real_gpu()) return f(), 0;
  const size_t before = fake_cuda::calls().size();
  f();
  const std::vector<std::string> calls = fake_cuda::calls();
  return std::count_if(calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end(),
                       [](const std::string& call) { return call.find("toH") + 1 || call.find("HtoD") + 1; });
}

TEST_F(GpuTest, NumbersOfACallCrossTogether) {
  const auto f = [](const Tensor& x, Scalar a, Scalar b, const Tensor& c) { return (x * a + b) * c; };
  auto compiled = compile(f, {.strict_native = true});
  const Tensor x = ramp({7}), there = x.cuda();
  for (const double a : {0.5, -2.0}) {
    Tensor got;
    const int64_t crossed = transfers([&] { got = compiled(there, Scalar(a), Scalar(3), tensor(1.25)); });
    EXPECT_EQ(crossed, on_real_gpu() ? 0 : 1);
    expect_close(got, f(x, Scalar(a), Scalar(3), tensor(1.25)), 1e-6);
  }
}

TEST_F(GpuTest, CopiesThatMoveOrConvertElementsStayOnTheGpu) {
  const Tensor x = ramp({6, 8}), wide = ramp({3, 4, 5});
  const Tensor a = x.cuda(), b = wide.cuda();
  Tensor turned, converted, part, repeated, into = a.clone(), block = b.clone();
  EXPECT_EQ(transfers([&] {
              turned = a.t().contiguous();
              converted = a.t().to(kFloat64).to(kInt32);
              part = b.slice(1, 1, 3).transpose(0, 2).contiguous();
              repeated = a.slice(0, 2, 3).expand({4, 8}).contiguous();
              into.slice(1, 0, 8, 2).copy_(a.slice(1, 4, 8).to(kFloat16));
              block.transpose(0, 1).copy_(b.slice(0, 0, 1).transpose(0, 1));
              part.slice(0, 1, 3).copy_(part.slice(0, 0, 2));  // parts of one storage
            }),
            0);
  expect_close(turned, x.t().contiguous());
  expect_close(converted, x.t().to(kInt32));
  Tensor want = wide.slice(1, 1, 3).transpose(0, 2).contiguous();
  want.slice(0, 1, 3).copy_(want.slice(0, 0, 2));
  expect_close(part, want);
  expect_close(repeated, x.slice(0, 2, 3).expand({4, 8}).contiguous());
  Tensor columns = x.clone();
  columns.slice(1, 0, 8, 2).copy_(x.slice(1, 4, 8));
  expect_close(into, columns);
  expect_close(block, wide.slice(0, 0, 1).expand({3, 4, 5}).contiguous());
  expect_close(b.slice(2, 1, 2).cpu(), wide.slice(2, 1, 2).contiguous());
}

TEST_F(GpuTest, TensorsAreMadeOnTheGpu) {
  const auto on = [](DType dtype) { return TensorOptions(dtype).device(kCUDA); };
  std::vector<Tensor> made;
  EXPECT_EQ(transfers([&] {
              made = {
                  zeros({3, 5}, on(kFloat32)),    ones({7}, on(kBFloat16)),   full({2, 3}, 2.5, on(kFloat32)),
                  full({9}, -1, on(kInt64)),      full({5}, true, on(kBool)), arange(100, on(kInt64)),
                  arange(2, 50, 3, on(kFloat32)), eye(4, 4, on(kFloat32)),    arange(37, on(kInt64))};
            }),
            0);
  const std::vector<Tensor> want = {
      zeros({3, 5}),          ones({7}, kBFloat16), full({2, 3}, 2.5, kFloat32), full({9}, -1, kInt64),
      full({5}, true, kBool), arange(100, kInt64),  arange(2, 50, 3, kFloat32),  eye(4, 4, kFloat32),
      arange(37, kInt64)};
  for (size_t k = 0; k < want.size(); ++k) expect_close(made[k], want[k]);
  // Eight bytes whose halves differ, and places that are not all of a storage.
  expect_close(full({3}, 1.5, on(kFloat64)), full({3}, 1.5, kFloat64));
  Tensor x = zeros({4, 6}, on(kFloat32)), y = zeros({4, 6});
  x.slice(1, 1, 3).fill_(7);
  y.slice(1, 1, 3).fill_(7);
  expect_close(x, y);
  EXPECT_THROW(zeros({-1}, on(kFloat32)), UserError);
}

TEST_F(GpuTest, RandomTensorsAreThoseOfTheCpu) {
  const TensorOptions on = TensorOptions(kFloat32).device(kCUDA);
  for (const int64_t n : {6, 10}) {
    manual_seed(11);
    const Tensor a = rand({n, 5}), b = randn({n}), c = randint(3, 90, {n, n});
    manual_seed(11);
    expect_close(rand({n, 5}, on), a, 1e-6);
    expect_close(randn({n}, on), b, 1e-5);
    expect_close(randint(3, 90, {n, n}, TensorOptions(kInt64).device(kCUDA)), c);
  }
}

TEST_F(GpuTest, AnIndexOutOfRangeIsRaisedWhereTheProgramWaits) {
  auto compiled = compile([](const Tensor& x, const Tensor& i) { return x.index({i}) * 2; });
  const Tensor x = ramp({5}).cuda(), good = tensor({0, 4}).cuda(), bad = tensor({1, 7}).cuda();
  compiled(x, bad);
  try {
    cuda::synchronize();
    FAIL() << "nothing was raised";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("index 7 is out of range for a dimension of size 5"),
              std::string::npos)
        << error.what();
  }
  expect_close(compiled(x, good), (ramp({5}) * 2).index({tensor({0, 4})}), 1e-6);
}

// An index error belongs to the stream that found it, and outlives the function.
TEST_F(GpuTest, IndexErrorsOutliveTheirFunctionAndStayWithTheirStream) {
  const Tensor x = ramp({4, 3}).cuda(), bad = tensor({9}).cuda();
  const cuda::Stream first = cuda::getStreamFromPool(0), second = cuda::getStreamFromPool(0);
  cuda::synchronize();
  {
    const cuda::StreamGuard guard(first);
    const auto f = [](const Tensor& a, const Tensor& i) { return a.index({i}) * 2; };
    compile(f, {.strict_native = true})(x, bad);
  }
  {
    const cuda::StreamGuard guard(second);
    EXPECT_NO_THROW((x + 1).cpu());
  }
  try {
    first.synchronize();
    ADD_FAILURE() << "expected an error of the index 9";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("index 9 is out of range"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(cuda::synchronize());
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

TEST_F(GpuTest, TensorsOnTwoDevicesAreRefused) {
  const Tensor x = ramp({4});
  for (const bool compiles : {false, true}) {
    try {
      const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
      compiles ? compile(add)(x.cuda(), x) : add(x.cuda(), x);
      FAIL() << "nothing was raised";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("got cuda:0 and cpu"), std::string::npos) << error.what();
    }
  }
  // A zero-dim tensor goes with any device.
  expect_close(x.cuda() + tensor(2.0), x + 2, 1e-6);
  expect_close(compile([](const Tensor& a, const Tensor& b) { return a * b; })(x.cuda(), tensor(2.0)), x * 2,
               1e-6);
}

TEST_F(GpuTest, OtherStreamsAreUsed) {
  const cuda::Stream stream = cuda::getStreamFromPool();
  const Tensor x = ramp({1000});
  Tensor y;
  {
    const cuda::StreamGuard guard(stream);
    y = compile([](const Tensor& a) { return a.exp(); })(x.cuda());
    stream.synchronize();
  }
  expect_close(y, x.exp(), 1e-4 * 1e3);
}

}  // namespace
}  // namespace stax

// Compiled functions over tensors of a GPU, against the same on the CPU.
#include "gpu/gpu_testing.h"
#include "support/fake_cuda/fake_cuda.h"

namespace stax {
namespace {

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
    if (!on_real_gpu()) {
      EXPECT_EQ(fake_cuda::launches().size() > 1, measures) << n;
    }
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

// What a function computes of numbers alone can be computed on the device from the start, random numbers too:
// moving it is no read.
TEST_F(GpuTest, WhatIsComputedOfNumbersMovesInsideACompiledFunction) {
  const auto f = [](const Tensor& a) {
    const Tensor causal = ones({4, 4}, kBool).tril().logical_not().to(a.device());
    const Tensor rows = tensor({0, 2}).view({2, 1}), noise = rand({3});
    const Tensor weights = (arange(4) + 1).unsqueeze(0).expand({4, 4}).to(a.device());
    return std::vector<Tensor>{a.masked_fill(causal, -1), a.index({rows, tensor({1, 3})}), a * weights,
                               noise.to(a.device()) * 2, noise};
  };
  const Tensor x = ramp({4, 4});
  manual_seed(3);
  const std::vector<Tensor> expected = f(x);
  for (const bool dynamic : {false, true}) {
    auto compiled = compile(f, {.dynamic = dynamic, .strict_native = true});
    manual_seed(3);
    const std::vector<Tensor> got = compiled(x.cuda());
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k) expect_close(got[k], expected[k]);
    EXPECT_TRUE(got[3].is_cuda());
    EXPECT_TRUE(got[4].is_cpu());
    EXPECT_EQ(compiled.artifacts().at(0).target.substr(0, 5), "cuda:");
  }
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

TEST_F(GpuTest, DataDetermineSizes) {
  const auto f = [](const Tensor& x) { return nonzero(x > 0) * 2; };
  const Tensor x = ramp({4, 5});
  expect_close(compile(f)(x.cuda()), f(x));
  expect_close(f(x.cuda()), f(x));
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

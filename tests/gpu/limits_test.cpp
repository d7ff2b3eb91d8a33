// What a GPU does not have, and what functions refuse: clear errors, and nothing left behind.
#include <functional>

#include "device/cuda_driver.h"
#include "gpu/gpu_testing.h"
#include "support/fake_cuda/fake_cuda.h"

namespace stax {
namespace {

template <class E>
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another kind of error: ") + error.what();
  }
  return "no error";
}

template <class E>
void expect_error(const std::function<void()>& f, const std::string& words) {
  const std::string error = error_of<E>(f);
  EXPECT_NE(error.find(words), std::string::npos) << error;
  EXPECT_EQ(error.find("another kind"), std::string::npos) << error;
}

// Memory runs out at every allocation of a plan in turn: arena, results, and what the CPU's part copies back.
TEST_F(GpuTest, ShortMemoryInAPlanIsAnErrorThatLeavesNothing) {
  if (on_real_gpu()) GTEST_SKIP() << "needs the driver that works on host memory";
  const auto f = [](const Tensor& x) {
    const Tensor centred = x - x.mean(0);
    return std::get<0>(centred.sort(1)) * centred.sum(1, true);
  };
  auto compiled = compile(f, {.strict_native = true});
  const Tensor x = ramp({12, 40}), there = x.cuda();
  const Tensor want = f(x);
  compiled(there).cpu();
  const int64_t before = cuda::memory_allocated();
  int failures = 0;
  for (size_t room = 0;; room += 512) {
    cuda::empty_cache();
    fake_cuda::memory_limit(fake_cuda::memory_in_use() + room);
    const std::string error = error_of<RuntimeError>([&] { compiled(there); });
    fake_cuda::reset();
    EXPECT_EQ(cuda::memory_allocated(), before);
    if (error == "no error") break;
    EXPECT_NE(error.find("out of memory on cuda:0: cannot allocate"), std::string::npos) << error;
    ++failures;
  }
  EXPECT_GT(failures, 3);
  expect_close(compiled(there), want, 1e-3);
}

// Measuring wants memory that the call itself does not: without it the likeliest configuration is taken.
TEST_F(GpuTest, ShortMemoryForMeasuringIsNoError) {
  if (on_real_gpu()) GTEST_SKIP() << "needs the driver that works on host memory";
  const Tensor x = ramp({40, 40}), there = x.cuda(), updated = x.cuda();
  auto update = compile([](Tensor a) { a.add_(1); }, {.strict_native = true, .tuning = "candidates"});
  auto product =
      compile([](const Tensor& a) { return matmul(a, a); }, {.strict_native = true, .tuning = "candidates"});
  cuda::empty_cache();
  fake_cuda::memory_limit(fake_cuda::memory_in_use() + (1 << 20));
  update(updated);
  const Tensor squared = product(there);
  fake_cuda::reset();
  expect_close(updated, x + 1);
  expect_close(squared, matmul(x, x), 1e-4);
}

// A function whose first call finds no memory has its kernels later.
TEST_F(GpuTest, AFirstCallShortOfMemoryLeavesNothingBehind) {
  if (on_real_gpu()) GTEST_SKIP() << "needs the driver that works on host memory";
  const Tensor weights = ramp({64});
  auto compiled = compile([](const Tensor& a, const Tensor& i) { return a.index({i}) * 2; });
  const Tensor x = ramp({64, 8}).cuda(), rows = tensor({3, 1}).cuda();
  cuda::empty_cache();
  fake_cuda::memory_limit(fake_cuda::memory_in_use());
  expect_error<RuntimeError>([&] { compiled(x, rows); }, "out of memory on cuda:0");
  fake_cuda::reset();
  expect_close(compiled(x, rows), x.cpu().index({tensor({3, 1})}) * 2);
  ASSERT_EQ(compiled.artifacts().size(), 1u);
  EXPECT_EQ(compiled.artifacts()[0].target.substr(0, 4), "cuda");
}

TEST_F(GpuTest, TensorsOfTwoGpusAreRefused) {
  if (cuda::device_count() < 2) GTEST_SKIP() << "there is one GPU";
  const Tensor a = ramp({4}).cuda(), b = ramp({4}).to(Device{DeviceType::cuda, 1});
  const auto add = [](const Tensor& x, const Tensor& y) { return x + y; };
  expect_error<UserError>([&] { add(a, b); }, "got cuda:0 and cuda:1");
  expect_error<UserError>([&] { compile(add)(a, b); }, "got cuda:0 and cuda:1");
  // Each GPU has a program of its own.
  auto compiled = compile(add);
  expect_close(compiled(a, a), ramp({4}) * 2);
  const Tensor sum = compiled(b, b);
  EXPECT_EQ(sum.device().index, 1);
  expect_close(sum, ramp({4}) * 2);
  EXPECT_EQ(compiled.artifacts().size(), 2u);
}

TEST_F(GpuTest, MachineCodeThatTheGpuRefusesIsAnError) {
  if (on_real_gpu()) GTEST_SKIP() << "needs the driver that works on host memory";
  constexpr int32_t kNoBinaryForGpu = 209;
  fake_cuda::fail("cuModuleLoadData", kNoBinaryForGpu);
  auto compiled = compile([](const Tensor& x) { return x * 3 - 11; }, {.strict_native = true});
  const Tensor x = ramp({4, 5});
  expect_error<RuntimeError>([&] { compiled(x.cuda()); },
                             "kernel triton_poi_fused_0, compiled for sm_90, cannot be loaded on Fake GPU");
  expect_close(compiled(x.cuda()), x * 3 - 11);  // nothing stale is kept
}

TEST_F(GpuTest, DynamicFunctionsRefuseWhatTheyRefuseOnTheCpu) {
  const auto n = Dim("n", {.min = 2, .max = 8});
  auto twice =
      compile([](const Tensor& x) { return x * 2; }, {.dynamic = true, .dynamic_shapes = {{{0, n}}}});
  expect_close(twice(ramp({3, 4}).cuda()), ramp({3, 4}) * 2);
  auto fixed = compile(
      [](const Tensor& x) {
        return x + ones({5, 1}, TensorOptions(x.device()));
      },
      {.dynamic = true, .dynamic_shapes = {{{0, n}}}});
  auto checked = compile(
      [](const Tensor& x, const Tensor& i) {
        const SymInt k = i.item().toSymInt();
        check(k >= 0);
        check(k < x.size(0), "k is a row");
        return x.slice(0, 0, k).sum(0);
      },
      {.dynamic = true});
  for (const bool gpu : {false, true}) {
    const auto on = [&](const Tensor& x) { return gpu ? x.cuda() : x; };
    expect_error<UserError>([&] { twice(on(ramp({9, 4}))); }, "within [2, 8]");
    expect_error<UserError>([&] { fixed(on(ramp({5, 4}))); }, "the function fixes it to 5");
    expect_error<UserError>([&] { checked(on(ramp({4, 3})), on(tensor(7))); }, "k is a row");
    expect_error<UserError>(
        [&] {
          compile([](const Tensor& x, const Tensor& y) { return x + y; }, {.dynamic = true})(on(ramp({4})),
                                                                                             on(ramp({5})));
        },
        "broadcast");
    expect_close(checked(on(ramp({4, 3})), on(tensor(2))), ramp({4, 3}).slice(0, 0, 2).sum(0), 1e-5);
  }
}

TEST_F(GpuTest, MoreElementsThan32BitsCount) {
  if (!on_real_gpu()) GTEST_SKIP() << "needs gigabytes of a GPU";
  const int64_t n = (int64_t{1} << 31) + 1024;
  const TensorOptions bytes = TensorOptions(kInt8).device(kCUDA);
  Tensor x = full({n}, 3, bytes);
  x.slice(0, n - 2, n).fill_(5);
  for (const bool dynamic : {false, true}) {
    auto line =
        compile([](const Tensor& a) { return a * 2 + 1; }, {.dynamic = dynamic, .strict_native = true});
    auto sums =
        compile([](const Tensor& a) { return a.sum(1); }, {.dynamic = dynamic, .strict_native = true});
    if (dynamic) {  // the hints
      line(full({100}, 3, bytes));
      sums(full({4, 100}, 3, bytes));
    }
    const Tensor y = line(x);
    expect_close(y.slice(0, n - 4, n), tensor({7, 7, 11, 11}, kInt8));
    expect_close(y.slice(0, 0, 2), tensor({7, 7}, kInt8));
    expect_close(sums(x.view({2, n / 2})), tensor({3 * (n / 2), 3 * (n / 2) + 4}));
    expect_close(
        y.view({n / 1024, 1024}).t().contiguous().slice(1, n / 1024 - 1, n / 1024).slice(0, 1021, 1024),
        tensor({7, 11, 11}, kInt8).view({3, 1}));
  }
}

// 2^62 elements and more: shapes without memory.
TEST_F(GpuTest, SizesThatNoMachineHasAreRefused) {
  const TensorOptions there = TensorOptions(kFloat32).device(kCUDA);
  const int64_t before = cuda::memory_allocated();
  expect_error<RuntimeError>([&] { zeros({int64_t{1} << 50}, there); }, "no machine has that much memory");
  const Tensor one = ramp({1}).cuda();
  auto all = compile([](const Tensor& x) { return x + 1; }, {.dynamic = true});
  expect_error<UserError>([&] { all(one.expand({int64_t{1} << 31, int64_t{1} << 31, 4})); }, "64 bits");
  expect_error<RuntimeError>(
      [&] {
        all(one.expand({int64_t{1} << 25, int64_t{1} << 25, 1}));
      },
      "no machine has that much memory");
  EXPECT_EQ(cuda::memory_allocated(), before + 512);  // of `one`
}

}  // namespace
}  // namespace stax

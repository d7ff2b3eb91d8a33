// Tensors of a GPU, and operators that run at once, against the same on the CPU.
#include "gpu/gpu_testing.h"

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

}  // namespace
}  // namespace stax

// Eager evaluation on the CPU.
#include "compiler/eager.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ops/table.h"
#include "stax/stax.h"

namespace stax {
namespace {

std::vector<double> values(const Tensor& x) {
  const Tensor flat = x.to(kFloat64).contiguous();
  const double* data = flat.data_ptr<double>();
  return {data, data + static_cast<int64_t>(flat.numel())};
}

TEST(Eager, TheDoorsExample) {
  const auto f = [](const Tensor& x, const Tensor& w) { return (relu(x + w) * 2).sum(-1); };
  const Tensor x = tensor({{1.0, -2.0}, {3.0, -4.0}}), w = tensor({{0.5, 1.0}, {0.5, 5.0}});
  EXPECT_EQ(values(f(x, w)), (std::vector<double>{3, 9}));
}

TEST(Eager, BroadcastsAndKeepsLayouts) {
  const Tensor column = tensor({{1.0}, {2.0}}), row = tensor({{10.0, 20.0, 30.0}});
  EXPECT_EQ(values(column + row), (std::vector<double>{11, 21, 31, 12, 22, 32}));
  const Tensor transposed = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}).t();
  const Tensor sum = transposed + transposed;
  EXPECT_TRUE(sum.strides() == IntList({1, 3})) << "operands that agree in stride order keep it";
  EXPECT_EQ(values(sum), (std::vector<double>{2, 8, 4, 10, 6, 12}));
  EXPECT_THROW(column + tensor({1.0, 2.0, 3.0}).expand({3, 3}), UserError);
  EXPECT_TRUE((tensor({1.0}) + empty({0})).sizes() == IntList({0}));
}

TEST(Eager, ViewsShareStorage) {
  const Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  for (const Tensor& view : {x.t(), x.permute({1, 0}), x.view({-1, 2}), x.reshape(-1), x.select(0, 1), x[1],
                             x.expand({2, 2, 3}), x.slice(1, 1, 3), x.unsqueeze(0)}) {
    EXPECT_TRUE(view.is_alias_of(x)) << view;
  }
  EXPECT_FALSE(x.t().reshape(-1).is_alias_of(x));
  EXPECT_EQ(x.slice(1, 1, 3).storage_offset(), 1);
  const Tensor inner = x.slice(1, 1, 3)[1];
  EXPECT_EQ(inner.storage_offset(), 4);
  EXPECT_EQ(values(inner), (std::vector<double>{5, 6}));
  x[1].zero_();
  EXPECT_EQ(values(inner), (std::vector<double>{0, 0}));
  const std::vector<Tensor> parts = x.split(2, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(parts[1].is_alias_of(x));
  EXPECT_EQ(values(parts[1]), (std::vector<double>{3, 0}));
}

TEST(Eager, RandomNumbersFollowTheSeed) {
  manual_seed(7);
  const Tensor first = rand({100}), second = rand({100});
  EXPECT_EQ(default_generator().offset(), 200u);
  manual_seed(7);
  EXPECT_EQ(values(rand({100})), values(first));
  EXPECT_NE(values(first), values(second));
  for (const double v : values(first)) EXPECT_TRUE(v >= 0 && v < 1) << v;
}

TEST(Eager, ManyThreadsCallSmallOperators) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &failures] {
      for (int i = 0; i < 1000; ++i) {
        const int64_t n = 1 + (i + t) % 7;
        const Tensor x = full({n}, i), y = full({n}, 2);
        const Tensor z = (x * y + 1).slice(0, 0, 1);
        if (z.item<int64_t>() != 2 * i + 1) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST(Eager, ReducesAndScansSingleElements) {
  EXPECT_EQ(values(tensor(3.0).sum()), (std::vector<double>{3}));
  EXPECT_EQ(values(tensor({{3.0}, {4.0}}).sum(1)), (std::vector<double>{3, 4}));
  EXPECT_EQ(values(tensor({{3.0}, {4.0}}).cumsum(1)), (std::vector<double>{3, 4}));
}

TEST(Eager, OneProgramServesChangingSizesAndNumbers) {
  for (int64_t n = 1; n < 40; ++n) {
    const Tensor x = arange(n), y = x.to(kFloat32) * (n + 0.5) - n;
    EXPECT_TRUE(y.sizes() == IntList({n}));
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y[i].item<float>(), static_cast<float>(i * (n + 0.5) - n));
    EXPECT_EQ((x * n).dtype(), kInt64);
    EXPECT_EQ((x.view({1, n}) * 2.5).dtype(), kFloat32);
    EXPECT_EQ((x.to(kFloat64) * 0.1)[n - 1].item<double>(), (n - 1) * 0.1);
    EXPECT_EQ((x.to(kFloat16) * 0.1).dtype(), kFloat16);
  }
}

TEST(Eager, KeepsABoundedNumberOfPrograms) {
  compiler::Eager backend;
  const graph::Op& op = *[] {
    for (const graph::Op* row : ops::table().overloads("add")) return row;
    return static_cast<const graph::Op*>(nullptr);
  }();
  for (int i = 0; i < 9000; ++i) {
    // Half tensors have no run-time numbers: each call is another program.
    backend.call(op, {tensor({1.0}, kFloat16), Number::of(static_cast<double>(i)), Number::of(int64_t{1})});
    if (i == 10) {
      EXPECT_EQ(backend.cached_programs(), 11u);
    }
  }
  EXPECT_LE(backend.cached_programs(), 16u * 512u);
}

}  // namespace
}  // namespace stax

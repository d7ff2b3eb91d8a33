// Compiled functions under attack: memory that overlaps, sizes at the ends of 64 bits, very deep and very
// wide programs, indices out of range, exceptions, threads, tensors that outlive their trace.
#include <gmock/gmock.h>

#include <functional>
#include <latch>
#include <thread>

#include "cpu/compile_testing.h"
#include "support/user_error.h"

namespace stax {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using T = Tensor;

// ---- memory ----

TEST(HostileMemory, ArgumentsThatOverlapByAllButOneElement) {
  const auto f = compile(
      [](const T& a, const T& b) {
        a.add_(b);
        return a * b;
      },
      strict());
  const T x = tensor({0.f, 1.f, 2.f, 3.f});
  // a = x[0:3] becomes [0 + 1, 1 + 2, 2 + 3]; b = x[1:4] is then [3, 5, 3].
  expect_floats(f(x.slice(0, 0, 3), x.slice(0, 1, 4)), {3, 15, 15});
  expect_floats(x, {1, 3, 5, 3});
}

TEST(HostileMemory, ViewsOfViewsAreWrittenThrough) {
  const auto f = compile(
      [](const T& a) {
        a.t().select(0, 1).slice(0, 0, 100, 2).unsqueeze(0).add_(10);
        a.view({-1}).slice(0, 3, 6).mul_(2);
        return a.sum();
      },
      strict());
  const T x = tensor({{0.f, 1.f, 2.f}, {3.f, 4.f, 5.f}, {6.f, 7.f, 8.f}});
  EXPECT_EQ(f(x).item<float>(), 0 + 11 + 2 + 6 + 8 + 10 + 6 + 17 + 8);
  expect_floats(x, {0, 11, 2, 6, 8, 10, 6, 17, 8});
}

TEST(HostileMemory, PartsOfExpandedTensorsAreWritten) {
  const auto f = [](const T& a) {
    const T wide = a.expand({3, 4});
    wide[1].add_(1);
    wide.diagonal().mul_(10);
    return wide.sum();
  };
  for (const bool compiled : {false, true}) {
    const T x = tensor({1.f, 2.f, 3.f, 4.f});
    // [2, 3, 4, 5], then its first three times 10
    EXPECT_EQ((compiled ? compile(f, strict())(x) : f(x)).item<float>(), 3 * (20 + 30 + 40 + 5)) << compiled;
    expect_floats(x, {20, 30, 40, 5});
  }
  const T base = zeros({3, 4});
  compile([](const T& a) { a.unsqueeze(0).expand({2, 3, 2})[1].add_(1); }, strict())(base.slice(1, 0, 4, 2));
  expect_floats(base, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
}

TEST(HostileMemory, OffsetsOfAsStridedCountFromTheStorage) {
  const auto f = [](const T& x) {
    const T part = x.slice(0, 2, 5);
    const T own = part.as_strided({2}, {1});
    const T windows = x.as_strided({2, 2}, {1, 2}, x.storage_offset());
    return std::tuple(windows, part.as_strided({2}, {1}, 0), own);  // the last one looks before the others
  };
  const T base = arange(20).to(kFloat);
  const auto compiled = compile(f, strict());
  for (const T& x : {base.slice(0, 1, 20, 2), base.slice(0, 1, 20, 2)}) {  // 1, 3, 5, ...
    for (const auto& [windows, start, own] : {f(x), compiled(x)}) {
      expect_floats(windows, {1, 3, 2, 4});
      expect_floats(start, {0, 1});
      expect_floats(own, {5, 6});
    }
  }
}

TEST(HostileMemory, ATensorIsCopiedOntoItself) {
  const auto f = [](const T& x) {
    const T wide = x.expand({3, 2});
    wide.copy_(wide);
    return wide.sum();
  };
  EXPECT_EQ(f(ones({2})).item<float>(), 6);
  EXPECT_EQ(compile(f, strict())(ones({2})).item<float>(), 6);
}

TEST(HostileMemory, WholeExpandedTensorsAreNot) {
  const auto whole = [](const T& a) { a.expand({3, 4}).add_(1); };
  const auto rows = [](const T& a) { a.expand({3, 4}).slice(0, 1, 3).zero_(); };
  const auto windows = [](const T& a) { a.as_strided({2, 3}, {1, 1}, 0).mul_(2); };
  for (const std::function<void(const T&)>& f :
       std::vector<std::function<void(const T&)>>{whole, rows, windows}) {
    EXPECT_THAT(error_of([&] { f(zeros({4})); }), HasSubstr("lie at one place"));
    EXPECT_THAT(error_of([&] { compile(f, strict())(zeros({4})); }), HasSubstr("lie at one place"));
  }
}

TEST(HostileMemory, ViewsOfMoreElementsThan32BitsCount) {
  const T wide = tensor({7.f}).expand({int64_t{1} << 40});
  const auto f = compile([](const T& x) { return x.slice(0, (int64_t{1} << 40) - 3) + 1; }, strict());
  expect_floats(f(wide), {8, 8, 8});
  EXPECT_THROW(wide + 1, RuntimeError);
  EXPECT_THROW(compile([](const T& x) { return x + 1; }, strict())(wide), RuntimeError);
  expect_floats(f(wide), {8, 8, 8});
}

TEST(HostileMemory, SizesThatLeave64BitsAreUserErrors) {
  static constexpr int64_t kLarge = int64_t{1} << 40, kMost = INT64_MAX;
  const std::vector<std::function<T(const T&)>> calls = {
      [](const T& x) {
        return x.expand({kLarge, kLarge, 4}).sum();
      },
      [](const T& x) {
        return x.expand({kLarge, kLarge, 4}) + 1;
      },
      [](const T& x) { return x.as_strided({3}, {kMost}, 1); },
      [](const T& x) { return x.as_strided({2}, {kMost}, 0); },
      [](const T& x) { return x.as_strided({2}, {1}, kMost); },
      [](const T& x) {
        return x.as_strided({2, 2}, {kMost / 2 + 1, kMost / 2 + 1}, 0);
      },
      [](const T& x) { return x.as_strided({2}, {1}, -1); },
      [](const T& x) {
        return x + zeros({kLarge, kLarge}).sum();
      },
      [](const T& x) { return x.repeat({kMost}); },
      [](const T& x) {
        return constant_pad_nd(x, {kMost, 1});
      },
      [](const T& x) {
        return constant_pad_nd(x, {INT64_MIN, 1});
      },
      [](const T& x) {
        return cat({x.expand({kLarge, kLarge, 4}), x.expand({kLarge, kLarge, 4})});
      },
  };
  for (size_t k = 0; k < calls.size(); ++k) {
    EXPECT_THROW(calls[k](ones({4})), UserError) << k;
    EXPECT_THROW(compile(calls[k], strict())(ones({4})), UserError) << k;
  }
}

TEST(HostileMemory, ResultsThatNoMachineHoldsAreRuntimeErrors) {
  const T huge = tensor({int64_t{1} << 50});
  EXPECT_THROW(bincount(huge), RuntimeError);
  EXPECT_THROW(one_hot(huge), RuntimeError);
  EXPECT_THROW(repeat_interleave(huge), RuntimeError);
  EXPECT_THROW(bincount(tensor({INT64_MAX})), UserError);
  EXPECT_THROW(one_hot(tensor({INT64_MAX})), UserError);
}

// ---- indices ----

TEST(HostileIndices, ErrorsNameTheOperatorWhateverItIsFusedWith) {
  const T x = zeros({1, 2}), far = tensor({{5}});
  const auto fails = [&](const std::string& words, const std::function<T(const T&, const T&)>& f) {
    EXPECT_THAT(error_of([&] { compile(f, strict())(x, far); }), StartsWith(words));
    EXPECT_THAT(error_of([&] { f(x, far); }), HasSubstr("5"));
  };
  fails("[gather] index 5 is out of range for a dimension of size 2",
        [](const T& a, const T& i) { return a.gather(1, i); });
  fails("[gather, sum] index 5", [](const T& a, const T& i) { return (relu(a.gather(1, i)) + 1).sum(); });
  fails("[embedding] index 5", [](const T& a, const T& i) { return embedding(a, i) * 2; });
  fails("[index] index 5", [](const T& a, const T& i) { return a.index({i}) + 1; });
  fails("[scatter] index 5", [](const T& a, const T& i) { return a.scatter(1, i, ones({1, 1})); });
  fails("[index_put] index 5", [](T a, const T& i) { return a.index_put_({i}, ones({1, 1, 2})); });
  fails("[one_hot] index 5", [](const T&, const T& i) { return one_hot(i, 3); });
}

TEST(HostileIndices, TheNextCallWorks) {
  const auto f = compile([](const T& x, const T& i) { return x.index({i}).sum(); }, strict());
  const T x = tensor({1.f, 2.f});
  for (const int64_t bad : {int64_t{2}, int64_t{-3}, INT64_MAX, INT64_MIN}) {
    EXPECT_THROW(f(x, tensor({int64_t{0}, bad})), UserError);
    EXPECT_EQ(f(x, tensor({-1, -2})).item<float>(), 3);
  }
}

// ---- size of programs ----

TEST(HostileSizes, ChainsOfTenThousandOperators) {
  const auto chain = [](const T& x) {
    T y = x;
    for (int i = 0; i < 10'000; ++i) y = y + 1;
    return y;
  };
  expect_floats(compile(chain, {.backend = "debug"})(zeros({2})), {10'000, 10'000});
  EXPECT_EQ(compile(chain, strict()).explain(zeros({2})).kernels.size(), 1u);
  const auto products = [](const T& x) {
    T y = x;
    for (int i = 0; i < 10'000; ++i) y = matmul(y, x);
    return y;
  };
  expect_floats(compile(products, strict())(tensor({{0.f, 1.f}, {-1.f, 0.f}})),
                {0, 1, -1, 0});  // i^10001 is i
  const auto writes = [](const T& x) {
    for (int i = 0; i < 10'000; ++i) x.add_(1);
  };
  const T x = zeros({2});
  compile(writes, {.backend = "debug"})(x);
  expect_floats(x, {10'000, 10'000});
}

TEST(HostileSizes, FiveThousandResultsOfOneInput) {
  const auto f = [](const T& x) {
    std::vector<T> out;
    for (int i = 0; i < 5'000; ++i) out.push_back(x + i);
    return out;
  };
  const std::vector<T> results = compile(f, {.backend = "debug"})(zeros({2}));
  for (size_t i = 0; i < results.size(); i += 499) {
    const auto number = static_cast<float>(i);
    expect_floats(results[i], {number, number});
  }
  EXPECT_LT(compile(f, strict()).explain(zeros({2})).kernels.size(), 1'000u);
}

TEST(HostileSizes, ManyPartsAreJoinedAFewAtATime) {
  constexpr int kParts = 75;
  const auto join = [](const T& x, int64_t dim) {
    std::vector<T> parts;
    for (int i = 0; i < kParts; ++i) parts.push_back(x.slice(dim, 0, i % 3) * i);
    parts.emplace_back(x.to(kDouble));
    return cat(parts, dim);
  };
  std::vector<float> expected;  // along dimension 0
  for (int i = 0; i < kParts; ++i)
    expected.insert(expected.end(), static_cast<size_t>(i % 3), static_cast<float>(i));
  expected.insert(expected.end(), 3, 1.f);
  const auto f = compile(join, strict());
  for (const bool compiled : {false, true}) {
    const T rows = compiled ? f(ones({3, 2}), 0) : join(ones({3, 2}), 0);
    const T columns = compiled ? f(ones({2, 3}), 1) : join(ones({2, 3}), 1);
    EXPECT_EQ(rows.dtype(), kDouble);
    expect_floats(rows.select(1, 1).to(kFloat), expected);
    expect_floats(columns.select(0, 1).to(kFloat), expected);
  }
  const auto wide = compile(
      [](const T& x) {
        std::vector<T> parts;
        for (int i = 0; i < 1'000; ++i) parts.push_back(x + i);
        return cat(parts);
      },
      strict());
  EXPECT_LE(wide.explain(zeros({4})).kernels.size(), 63u);
}

// ---- exceptions, threads, traces that ended ----

TEST(HostileCalls, WhatAFunctionThrowsLeavesItsArgumentsAlone) {
  bool fail = true;
  const auto f = compile([&](const T& x) {
    x.add_(1);
    if (fail) throw 42;  // NOLINT: whatever a function throws
    return x * 2;
  });
  const T x = zeros({2});
  EXPECT_THROW(f(x), int);
  expect_floats(x, {0, 0});
  fail = false;
  expect_floats(f(x), {2, 2});
}

TEST(HostileCalls, AnExceptionInOneOfSeveralFirstCalls) {
  std::atomic<int> calls = 0, thrown = 0, right = 0;
  const auto f = compile([&](const T& x) {
    if (calls++ == 0) throw std::logic_error("mine");
    return x + 1;
  });
  std::latch start(4);
  std::vector<std::jthread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      try {
        if (values(f(zeros({2}))) == std::vector<float>{1, 1}) ++right;
      } catch (const std::logic_error&) {
        ++thrown;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(thrown, 1);
  EXPECT_EQ(right, 3);
  EXPECT_EQ(calls, 2);
}

TEST(HostileCalls, FunctionsThatCallEachOtherOnSeveralThreads) {
  std::function<T(const T&, int64_t)> even, odd;
  const auto f = compile([&](const T& x, int64_t n) { return n == 0 ? x * 1 : odd(x + 1, n - 1); });
  const auto g = compile([&](const T& x, int64_t n) { return n == 0 ? x * 1 : even(x + 1, n - 1); });
  even = [&](const T& x, int64_t n) { return f(x, n); };
  odd = [&](const T& x, int64_t n) { return g(x, n); };
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      for (int64_t n = 0; n < 5; ++n) {
        const auto expected = static_cast<float>(n);
        if (values((k % 2 ? even : odd)(zeros({2}), n)) != std::vector<float>{expected, expected}) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(HostileCalls, AThreadThatATracedFunctionStartsRunsEagerly) {
  const auto inner = compile([](const T& x) { return x * 3; });
  const auto f = compile([&](const T& x) {
    T other;
    std::jthread([&] { other = inner(ones({2})); }).join();
    return x + other;
  });
  for (int i = 0; i < 2; ++i) expect_floats(f(ones({2})), {4, 4});
}

TEST(HostileCalls, NothingOfATraceIsUsedAfterIt) {
  T tensor_of_trace;
  Scalar number_of_trace;
  const auto f = compile([&](const T& x) {
    tensor_of_trace = x + 1;
    number_of_trace = x.sum().item();
    return x;
  });
  const T x = ones({2});
  f(x);
  const std::vector<std::function<void()>> uses = {
      [&] { tensor_of_trace + 1; },
      [&] { tensor_of_trace.add_(1); },
      [&] { tensor_of_trace[0]; },
      [&] { tensor_of_trace.data_ptr<float>(); },
      [&] { x + tensor_of_trace; },
      [&] { x.copy_(tensor_of_trace); },
      [&] { x* number_of_trace; },
      [&] { number_of_trace.toDouble(); },
      [&] { f(tensor_of_trace); },
      [&] { compile([&](const T& y) { return y + tensor_of_trace; })(x); },
      [&] { compile([&](const T&) { return tensor_of_trace; })(x); },
      [&] { compile([&](const T& y) { return y * number_of_trace; })(x); },
  };
  for (size_t k = 0; k < uses.size(); ++k) EXPECT_THAT(error_of(uses[k]), HasSubstr("trace")) << k;
  expect_floats(x, {1, 1});
}

}  // namespace
}  // namespace stax

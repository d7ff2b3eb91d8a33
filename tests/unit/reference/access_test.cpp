// How values reach and leave memory: strides, masks, indirect indices, index arithmetic, several nodes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "device/cpu_info.h"
#include "stax/error.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "support/heap_counter.h"
#include "unit/reference/run_text.h"

namespace stax::reference {
namespace {

/// The lists of one call are made at their length at once.
TEST(Access, AProductTakesLittleOfTheHeap) {
  const Tensor a = ones({4, 8}), b = ones({8, 4});
  const Tensor first = a.matmul(b);  // made ready
  const int64_t before = heap_allocations();
  const Tensor second = a.matmul(b);
  EXPECT_LE(heap_allocations() - before, 14);
  EXPECT_EQ(second[3][3].item<float>(), 8);
}

std::vector<float> ramp(size_t n) {
  std::vector<float> out;
  for (size_t i = 0; i < n; ++i) out.push_back(static_cast<float>(i));
  return out;
}

TEST(Access, StridedTransposedExpanded) {
  for (const auto& [rows, columns] : {std::pair<int, int>{3, 5}, {70, 40}, {600, 3}, {3, 2500}}) {
    const auto x = ramp(rows * columns), bias = ramp(columns);
    const auto y = run_one<float>(
        fmt::format(
            "buffer a float32 [{0}, {1}] strides [1, {0}] input\nbuffer b float32 [{0}, {1}] strides [0, 1] "
            "input\nbuffer o float32 [{0}, {1}] output\nnode n \"add\" [i0 < {0}, i1 < {1}]\n"
            "v0 = load float32 a[i0 + {0}*i1]\nv1 = load float32 b[i1]\nv2 = add float32 v0 v1\n"
            "store o[{1}*i0 + i1] v2\n",
            rows, columns),
        {Data::of(x), Data::of(bias)}, rows * columns);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j)
        ASSERT_EQ(y[i * columns + j], x[i + rows * j] + bias[j]) << i << " " << j;
    }
  }
}

TEST(Access, EveryElementSizeStrided) {
  const auto check = [](std::string_view d, auto zero) {
    using T = decltype(zero);
    std::vector<T> x;
    for (int i = 0; i < 6000; ++i) x.push_back(static_cast<T>(i % 100));
    const auto y =
        run_one<T>(fmt::format("buffer a {0} [6000] input\nbuffer o {0} [4000] output\n"
                               "node n \"t\" [i0 < 2000]\nv0 = load {0} a[3*i0 + 1]\nstore o[2*i0] v0\n",
                               d),
                   {Data::of(x)}, 4000);
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(y[2 * i], x[3 * i + 1]) << d;
  };
  check("uint8", uint8_t{});
  check("int8", int8_t{});
  check("int16", int16_t{});
  check("int32", int32_t{});
  check("int64", int64_t{});
  check("float32", 0.0f);
  check("float64", 0.0);
}

TEST(Access, NegativeStridesAndIndexArithmetic) {
  const auto x = ramp(2049);
  const auto flip = run_one<float>(
      "buffer a float32 [2049] input\nbuffer o float32 [2049] output\nnode n \"flip\" "
      "[i0 < 2049]\nv0 = load float32 a[2048 - i0]\nstore o[i0] v0\n",
      {Data::of(x)}, 2049);
  const auto roll = run_one<float>(
      "buffer a float32 [2049] input\nbuffer o float32 [2049] output\nnode n \"roll\" "
      "[i0 < 2049]\nv0 = load float32 a[(i0 + 5) % 2049]\nstore o[i0] v0\n",
      {Data::of(x)}, 2049);
  const auto repeat = run_one<float>(
      "buffer a float32 [7] input\nbuffer o float32 [2049] output\nnode n \"repeat\" "
      "[i0 < 3, i1 < 683]\nv0 = load float32 a[(683*i0 + i1)//293]\nstore o[683*i0 + i1] v0\n",
      {Data::of(x)}, 2049);
  const auto index = run_one<int64_t>(
      "buffer o int64 [2049] output\nnode n \"arange\" [i0 < 2049]\n"
      "v0 = index_value int64 3*i0 + max(i0, 7) - 2\nstore o[i0] v0\n",
      {}, 2049);
  for (int i = 0; i < 2049; ++i) {
    ASSERT_EQ(flip[i], x[2048 - i]);
    ASSERT_EQ(roll[i], x[(i + 5) % 2049]);
    ASSERT_EQ(repeat[i], x[i / 293]);
    ASSERT_EQ(index[i], 3 * i + std::max(i, 7) - 2);
  }
}

TEST(Access, MasksKeepMemoryUntouched) {
  // The buffer has 5 elements; reading outside of it would be found by the address sanitizer.
  const auto x = ramp(5);
  const auto y = run_one<float>(
      "buffer a float32 [5] input\nbuffer o float32 [9] output\nnode n \"pad\" [i0 < 9]\n"
      "v0 = index_value int64 i0 - 2\nv1 = constant int64 0\nv2 = constant int64 5\n"
      "v3 = ge bool v0 v1\nv4 = lt bool v0 v2\nv5 = bitwise_and bool v3 v4\n"
      "v6 = load float32 a[i0 - 2] mask v5\nstore o[i0] v6\n",
      {Data::of(x)}, 9);
  EXPECT_EQ(y, (std::vector<float>{0, 0, 0, 1, 2, 3, 4, 0, 0}));
  const auto z = run_one<float>(
      "buffer a float32 [5] input\nbuffer o float32 [5] output\nnode n \"some\" [i0 < 5]\n"
      "v0 = load float32 a[i0]\nv1 = constant float32 2.0\nv2 = gt bool v0 v1\n"
      "store o[i0] v0 mask v2\n",
      {Data::of(x)}, 5);
  EXPECT_EQ(z, (std::vector<float>{0, 0, 0, 3, 4}));
}

std::string gather_text(int64_t rows, int64_t columns, int64_t count) {
  return fmt::format(
      "buffer w float32 [{0}, {1}] input\nbuffer k int64 [{2}] input\nbuffer o float32 [{2}, {1}] "
      "output\nnode n \"embedding\" [i0 < {2}, i1 < {1}]\nv0 = load int64 k[i0]\n"
      "v1 = check_index int64 v0 size {0} number 1\nv2 = load float32 w[{1}*t0 + i1] indirect v1\n"
      "store o[{1}*i0 + i1] v2\n",
      rows, columns, count);
}

TEST(Access, GatherRowsWideAndNarrow) {
  for (int64_t columns : {1, 3, 700, 3000}) {
    const auto w = ramp(5 * columns);
    std::vector<int64_t> k;
    for (int i = 0; i < 900; ++i) k.push_back((i * 3) % 10 - 5);
    const auto y = run_one<float>(gather_text(5, columns, 900), {Data::of(w), Data::of(k)}, 900 * columns);
    for (int i = 0; i < 900; ++i) {
      const int64_t row = k[i] < 0 ? k[i] + 5 : k[i];
      ASSERT_EQ(y[i * columns], w[row * columns]);
      ASSERT_EQ(y[(i + 1) * columns - 1], w[(row + 1) * columns - 1]);
    }
  }
}

TEST(Access, IndexOutOfRangeIsReportedOnceAllRan) {
  const auto w = ramp(15);
  const std::vector<int64_t> k = {0, -6, 5};
  try {
    run_one<float>(gather_text(5, 3, 3), {Data::of(w), Data::of(k)}, 9);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(
        e.what(),
        "[embedding] index -6 is out of range for a dimension of size 5; check the indices passed to it");
  }
}

TEST(Access, ScatterAddCountsEveryCollision) {
  std::vector<int64_t> k;
  for (int i = 0; i < 100000; ++i) k.push_back(i % 3);
  for (const std::string d : {"float32", "int64"}) {
    std::vector<Data> in = {Data::of(k)};
    const auto text = fmt::format(
        "buffer k int64 [100000] input\nbuffer o {0} [3] output\nnode z \"zeros\" [i0 < 3]\n"
        "v0 = constant {0} {1}\nstore o[i0] v0\nnode n \"scatter\" [i0 < 100000]\n"
        "v0 = load int64 k[i0]\nv1 = constant {0} {2}\natomic_add o[t0] v1 indirect v0\n",
        d, d == "int64" ? "5" : "5.0", d == "int64" ? "1" : "1.0");
    const auto out = run_text(text, in, 64);
    for (int i = 0; i < 3; ++i) {
      const double got = d == "int64" ? double(out[0].as<int64_t>(3)[i]) : double(out[0].as<float>(3)[i]);
      EXPECT_EQ(got, i == 0 ? 33339 : 33338);
    }
  }
}

TEST(Access, ScalarsSymbolsIntermediatesConstants) {
  std::vector<Data> in = {Data::of(ramp(10))};
  const std::string text =
      "buffer a float32 [s0] input\nbuffer b float32 [s0] intermediate\nbuffer c float32 [1] constant data "
      "0000803f\n"
      "buffer o float32 [s0] output\nscalars [float32, int32]\nbind s0 size 0 0\nnode m \"mul\" [i0 < s0]\n"
      "v0 = load float32 a[i0]\nv1 = scalar float32 0\nv2 = mul float32 v0 v1\nstore b[i0] v2\n"
      "node n \"add\" [i0 < s0]\nv0 = load float32 b[s0 - 1 - i0]\nv1 = scalar int32 1\nv2 = cast float32 "
      "v1\n"
      "v3 = add float32 v0 v2\nv4 = load float32 c[0]\nv5 = add float32 v3 v4\nstore o[i0] v5\n";
  for (int64_t n : {10, 4}) {
    const std::unordered_map<Symbol, int64_t> sizes = {{Symbol{SymbolKind::size, 0}, n}};
    const auto y =
        run_text(text, in, 64, {loops::Constant::of(2.0), loops::Constant::of(int64_t{-3})}, &sizes)[0]
            .as<float>(n);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y[i], 2 * float(n - 1 - i) - 3 + 1);
  }
}

TEST(Access, InPlaceReadsBeforeItWrites) {
  std::vector<Data> in = {Data::of(ramp(3000))};
  const auto out = run_text(
      "buffer a float32 [3000] input mutated\nbuffer o float32 [3000] output\nnode n \"t\" "
      "[i0 < 3000]\nv0 = load float32 a[i0]\nv1 = neg float32 v0\nstore a[i0] v1\n"
      "v3 = add float32 v0 v0\nstore o[i0] v3\n",
      in, 12000);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(in[0].as<float>(3000)[i], -float(i));
    if (i % 97 != 0) continue;
    ASSERT_EQ(out[0].as<float>(3000)[i], 2 * float(i));
  }
}

TEST(Access, NothingToDo) {
  EXPECT_TRUE(run_one<float>("buffer a float32 [0, 4] input\nbuffer o float32 [0, 4] output\nnode n \"t\" "
                             "[i0 < 0, i1 < 4]\nv0 = load float32 a[4*i0 + i1]\nstore o[4*i0 + i1] v0\n",
                             {Data{std::vector<std::byte>(1)}}, 0)
                  .empty());
  const std::vector<float> x = {3.5f};
  EXPECT_EQ(run_one<float>("buffer a float32 [] input\nbuffer o float32 [] output\nnode n \"t\" []\n"
                           "v0 = load float32 a[0]\nstore o[0] v0\n",
                           {Data::of(x)}, 1),
            x);
}

TEST(Access, ExternalNodes) {
  // A transposed view of the first input times the second, then a loop node over the product.
  const std::vector<float> x = {1, 2, 3, 4, 5, 6}, y = {1, 0, 1, 1};
  const auto z = run_one<float>(
      "buffer a float32 [2, 3] input\nbuffer b float32 [2, 2] input\nbuffer p float32 [3, 2] intermediate\n"
      "buffer o float32 [3, 2] output\nexternal m \"mm\" \"mm\"\n"
      "argument tensor a float32 [3, 2] strides [1, 3] offset 0\nargument tensor b float32 [2, 2] offset 0\n"
      "result p float32 [3, 2] offset 0\nnode n \"neg\" [i0 < 6]\nv0 = load float32 p[i0]\nv1 = neg float32 "
      "v0\n"
      "store o[i0] v1\n",
      {Data::of(x), Data::of(y)}, 6);
  EXPECT_EQ(z, (std::vector<float>{-5, -4, -7, -5, -9, -6}));
}

/// Results that outgrow the caches are written past them, whatever their alignment.
TEST(Access, LargeOutputs) {
  const int64_t n = device::last_level_cache_bytes() / 4 + 1003;
  const auto e = Executable::prepare(loops::parse_program(
      fmt::format("buffer o int32 [{0}] output\nnode n \"t\" [i0 < {0}]\n"
                  "v0 = index_value int64 i0 + 7\nv1 = cast int32 v0\nv2 = neg int32 v1\nstore o[i0] v2\n",
                  n)));
  std::vector<int32_t> y(static_cast<size_t>(n) + 2, 1);
  void* out[] = {y.data() + 1};
  e->run({{}, out});
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong += y[static_cast<size_t>(i) + 1] != -static_cast<int32_t>(i + 7);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(y.front(), 1);
  EXPECT_EQ(y.back(), 1);
}

TEST(Access, LargeProgramsRunOnManyThreadsAndFromManyThreads) {
  const int n = 1 << 18;
  const auto e = Executable::prepare(loops::parse_program(fmt::format(
      "buffer a float32 [{0}] input\nbuffer o float32 [{0}] output\nnode n \"t\" [i0 < {0}]\n"
      "v0 = load float32 a[i0]\nv1 = constant float32 1.0\nv2 = add float32 v0 v1\nv3 = exp2 float32 v1\n"
      "v4 = mul float32 v2 v3\nstore o[i0] v4\n",
      n)));
  const auto x = ramp(n);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      std::vector<float> y(n);
      void* in[] = {const_cast<float*>(x.data())};
      void* out[] = {y.data()};
      e->run({in, out});
      for (int i = 0; i < n; ++i) wrong += y[i] != 2 * (x[i] + 1);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace stax::reference

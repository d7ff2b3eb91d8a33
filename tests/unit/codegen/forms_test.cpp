// Kernels of every form against plain loops.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/codegen/compiled.h"

namespace stax::codegen {
namespace {

constexpr int64_t kSizes[] = {1, 7, 15, 16, 17, 31, 33, 1000, 1025};

TEST(Pointwise, EverySizeAndSplit) {
  for (int64_t n : kSizes) {
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer in1 float32 [{0}] input
buffer out0 float32 [{0}] output
node op0 "add, mul" [i0 < {0}]
  v0 = load float32 in0[i0]
  v1 = load float32 in1[i0]
  v2 = add float32 v0 v1
  v3 = mul float32 v2 v0
  store out0[i0] v3
)",
                                 n));
    auto a = numbers<float>(n), b = numbers<float>(n, -2, 2, 5);
    for (int pieces : {1, 3}) {
      std::vector<float> out(n + 1, 99.f);
      c.run({{"in0", a.data()}, {"in1", b.data()}, {"out0", out.data()}}, {}, pieces);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], (a[i] + b[i]) * a[i]) << n << " at " << i;
      EXPECT_EQ(out[n], 99.f) << "wrote past the end";
    }
  }
}

/// Long chains are computed for several vectors at once; results that outgrow the caches are streamed, from
/// whatever alignment.
TEST(Pointwise, LongChainsOfEverySizeAndAlignment) {
  for (int64_t n : {15, 64, 200, 1000}) {
    std::string text = fmt::format(
        "buffer in0 float32 [{0}] input\nbuffer in1 float32 [{0}] input\nbuffer out0 float32 [{0}] output\n"
        "node op0 \"chain\" [i0 < {0}]\n  v0 = load float32 in0[i0]\n  v1 = load float32 in1[i0]\n",
        n);
    for (int k = 2; k < 12; ++k)
      text += fmt::format("  v{} = {} float32 v{} v{}\n", k,
                          k % 3 == 0   ? "maximum"
                          : k % 3 == 1 ? "add"
                                       : "mul",
                          k - 1, k % 2);
    text += "  store out0[i0] v11\n";
    for (int64_t cache_bytes : {100, 32 << 20}) {
      const Compiled c(text, {.cache_bytes = cache_bytes});
      auto a = numbers<float>(n), b = numbers<float>(n, -2, 2, 5);
      a[3] = b[11] = NAN;
      for (int offset : {0, 1, 5}) {
        std::vector<float> memory(n + 8, 99.f);
        float* out = memory.data() + offset;
        c.run({{"in0", a.data()}, {"in1", b.data()}, {"out0", out}}, {}, 3);
        for (int64_t i = 0; i < n; ++i) {
          float v = b[i];
          for (int k = 2; k < 12; ++k) {
            const float w = k % 2 == 0 ? a[i] : b[i];
            v = k % 3 == 1                       ? v + w
                : k % 3 == 2                     ? v * w
                : std::isnan(v) || std::isnan(w) ? NAN
                                                 : std::max(v, w);
          }
          ASSERT_TRUE(out[i] == v || (std::isnan(out[i]) && std::isnan(v))) << n << " at " << i;
        }
        EXPECT_EQ(out[n], 99.f) << "wrote past the end";
      }
    }
  }
}

TEST(InnerReduction, SumOfRows) {
  for (int64_t n : kSizes) {
    const Compiled c(fmt::format(R"(
buffer in0 float32 [5, {0}] input
buffer out0 float32 [5] output
node op0 "sum" [i0 < 5] [r0 < {0}]
  v0 = load float32 in0[{0}*i0 + r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)",
                                 n));
    auto a = numbers<float>(5 * n);
    std::vector<float> out(5);
    c.run({{"in0", a.data()}, {"out0", out.data()}}, {}, 2);
    for (int64_t i = 0; i < 5; ++i) {
      double sum = 0, magnitude = 0;
      for (int64_t r = 0; r < n; ++r) sum += a[i * n + r], magnitude += std::fabs(a[i * n + r]);
      EXPECT_NEAR(out[i], sum, magnitude * 1e-6) << n << " row " << i;
    }
  }
}

TEST(OuterReduction, SumOfColumns) {
  for (int64_t rows : {1, 3, 31, 40, 1500}) {
    for (int64_t n : {1, 7, 16, 33, 100, 1025}) {
      const Compiled c(fmt::format(R"(
buffer in0 float32 [{1}, {0}] input
buffer out0 float32 [{0}] output
node op0 "sum" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{0}*r0 + i0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)",
                                   n, rows));
      auto a = numbers<float>(rows * n);
      std::vector<float> out(n + 1, 99.f);
      c.run({{"in0", a.data()}, {"out0", out.data()}}, {}, 2);
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0, magnitude = 0;
        for (int64_t r = 0; r < rows; ++r) sum += a[r * n + i], magnitude += std::fabs(a[r * n + i]);
        EXPECT_NEAR(out[i], sum, magnitude * 1e-6) << rows << " x " << n << " column " << i;
      }
      EXPECT_EQ(out[n], 99.f);
    }
  }
}

}  // namespace
}  // namespace stax::codegen

// Reductions, scans, several passes over a row, indirect accesses: generated kernels against plain loops,
// reduced along contiguous and along strided ranges.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/codegen/compiled.h"

namespace stax::codegen {
namespace {

/// Index text of element (i, r) of a [rows, n] problem: row-major when the reduction is inner, else [n,
/// rows].
struct Shape {
  int64_t rows, n;
  bool inner;
  std::string index() const { return inner ? fmt::format("{}*i0 + r0", n) : fmt::format("{}*r0 + i0", rows); }
  std::string pointwise() const {
    return inner ? fmt::format("{}*i0 + i1", n) : fmt::format("i0 + {}*i1", rows);
  }
  size_t at(int64_t i, int64_t r) const { return static_cast<size_t>(inner ? i * n + r : r * rows + i); }
  size_t size() const { return static_cast<size_t>(rows * n); }
  std::string str() const { return fmt::format("{} x {} {}", rows, n, inner ? "inner" : "outer"); }
};

std::vector<Shape> shapes() {
  std::vector<Shape> out;
  for (int64_t n : {1, 3, 17, 64, 1025})
    for (int64_t rows : {3, 37, 100})
      for (bool inner : {true, false}) out.push_back({rows, n, inner});
  return out;
}

TEST(Reduce, EveryFold) {
  for (const Shape& s : shapes()) {
    for (const char* dtype : {"float32", "float64", "int32"}) {
      const bool is_int = std::string_view(dtype) == "int32";
      std::string text = fmt::format("buffer in0 {} [{}] input\n", dtype, s.size());
      std::string nodes = fmt::format("node op0 \"folds\" [i0 < {}] [r0 < {}]\n  v0 = load {} in0[{}]\n",
                                      s.rows, s.n, dtype, s.index());
      const char* ops[] = {"sum", "prod", "max", "min"};
      for (int k = 0; k < 4; ++k) {
        text += fmt::format("buffer o{} {} [{}] output\n", k, dtype, s.rows);
        nodes += fmt::format("  v{} = reduce_{} {} v0\n", k + 1, ops[k], dtype);
      }
      for (int k = 0; k < 4; ++k) nodes += fmt::format("  store o{}[i0] v{}\n", k, k + 1);
      const Compiled c(text + nodes);
      const auto values = numbers<double>(s.size(), 0.9, 1.1);
      std::vector<float> f(values.begin(), values.end());
      std::vector<int32_t> z;
      for (double x : values) z.push_back(static_cast<int32_t>((x - 1) * 1e6) | 1);
      std::vector<double> d(values);
      const bool is_double = std::string_view(dtype) == "float64";
      void* in = is_int      ? static_cast<void*>(z.data())
                 : is_double ? static_cast<void*>(d.data())
                             : static_cast<void*>(f.data());
      std::vector<std::vector<double>> o(4, std::vector<double>(s.rows));
      c.run({{"in0", in}, {"o0", o[0].data()}, {"o1", o[1].data()}, {"o2", o[2].data()}, {"o3", o[3].data()}},
            {}, 2);
      for (int64_t i = 0; i < s.rows; ++i) {
        double sum = 0, product = 1, high = -INFINITY, low = INFINITY;
        uint32_t whole = 0, times = 1;
        for (int64_t r = 0; r < s.n; ++r) {
          const size_t k = s.at(i, r);
          const double x = is_int ? z[k] : is_double ? d[k] : f[k];
          sum += x, product *= x, high = std::max(high, x), low = std::min(low, x);
          whole += static_cast<uint32_t>(z[k]), times *= static_cast<uint32_t>(z[k]);
        }
        auto got = [&](int k) -> double {
          if (is_int) return reinterpret_cast<int32_t*>(o[k].data())[i];
          return is_double ? o[k][i] : reinterpret_cast<float*>(o[k].data())[i];
        };
        const double eps = is_double ? 1e-13 : 1e-6;
        if (is_int) {
          ASSERT_EQ(static_cast<int32_t>(got(0)), static_cast<int32_t>(whole)) << s.str();
          ASSERT_EQ(static_cast<int32_t>(got(1)), static_cast<int32_t>(times)) << s.str();
        } else {
          ASSERT_NEAR(got(0), sum, eps * sum) << s.str() << " row " << i;
          ASSERT_NEAR(got(1), product, eps * 40 * product) << s.str() << " row " << i;
        }
        ASSERT_EQ(got(2), high) << s.str() << " row " << i;
        ASSERT_EQ(got(3), low) << s.str() << " row " << i;
      }
    }
  }
}

TEST(Reduce, MaximaPropagateNan) {
  for (bool inner : {true, false}) {
    const Shape s{4, 50, inner};
    auto a = numbers<float>(s.size());
    a[s.at(1, 3)] = NAN;
    a[s.at(2, 49)] = NAN;
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer out0 float32 [4] output
node op0 "max" [i0 < 4] [r0 < 50]
  v0 = load float32 in0[{1}]
  v1 = reduce_max float32 v0
  store out0[i0] v1
)",
                                 s.size(), s.index()));
    float out[4];
    c.run({{"in0", a.data()}, {"out0", out}});
    EXPECT_FALSE(std::isnan(out[0]));
    EXPECT_TRUE(std::isnan(out[1]));
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_FALSE(std::isnan(out[3]));
  }
}

TEST(Reduce, BoolsAndBits) {
  for (const Shape& s : shapes()) {
    std::vector<uint8_t> m(s.size());
    std::vector<int64_t> z(s.size());
    for (size_t k = 0; k < m.size(); ++k)
      m[k] = (k * 7919 + 13) % 11 == 0, z[k] = static_cast<int64_t>(k * 0x9E3779B97F4A7C15u);
    const Compiled c(fmt::format(R"(
buffer in0 bool [{0}] input
buffer in1 int64 [{0}] input
buffer o0 bool [{2}] output
buffer o1 bool [{2}] output
buffer o2 int64 [{2}] output
node op0 "any" [i0 < {2}] [r0 < {3}]
  v0 = load bool in0[{1}]
  v1 = load int64 in1[{1}]
  v2 = reduce_any bool v0
  v3 = logical_not bool v0
  v4 = reduce_all bool v3
  v5 = reduce_xor int64 v1
  store o0[i0] v2
  store o1[i0] v4
  store o2[i0] v5
)",
                                 s.size(), s.index(), s.rows, s.n));
    std::vector<uint8_t> o0(s.rows), o1(s.rows);
    std::vector<int64_t> o2(s.rows);
    c.run({{"in0", m.data()}, {"in1", z.data()}, {"o0", o0.data()}, {"o1", o1.data()}, {"o2", o2.data()}});
    for (int64_t i = 0; i < s.rows; ++i) {
      bool any = false;
      int64_t bits = 0;
      for (int64_t r = 0; r < s.n; ++r) any = any || m[s.at(i, r)], bits ^= z[s.at(i, r)];
      ASSERT_EQ(o0[i], any) << s.str();
      ASSERT_EQ(o1[i], !any) << s.str();
      ASSERT_EQ(o2[i], bits) << s.str();
    }
  }
}

TEST(Reduce, ArgExtrema) {
  for (const Shape& s : shapes()) {
    std::vector<float> a(s.size());
    for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<float>(k * 7919 % 23);  // many ties
    if (s.n > 2) a[s.at(0, s.n - 1)] = a[s.at(0, 2)] = NAN, a[s.at(1, 0)] = -INFINITY;
    for (int64_t r = 0; r < s.n; ++r) a[s.at(2, r)] = -INFINITY;
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer o0 int64 [{2}] output
buffer o1 float32 [{2}] output
buffer o2 int64 [{2}] output
buffer o3 float32 [{2}] output
node op0 "argmax" [i0 < {2}] [r0 < {3}]
  v0 = load float32 in0[{1}]
  v1 = reduce_argmax int64 v0
  v2 = result float32 v1 number 1
  v3 = reduce_argmin int64 v0
  v4 = result float32 v3 number 1
  store o0[i0] v1
  store o1[i0] v2
  store o2[i0] v3
  store o3[i0] v4
)",
                                 s.size(), s.index(), s.rows, s.n));
    std::vector<int64_t> o0(s.rows), o2(s.rows);
    std::vector<float> o1(s.rows), o3(s.rows);
    c.run({{"in0", a.data()}, {"o0", o0.data()}, {"o1", o1.data()}, {"o2", o2.data()}, {"o3", o3.data()}});
    for (int64_t i = 0; i < s.rows; ++i) {
      int64_t high = 0, low = 0;
      for (int64_t r = 1; r < s.n; ++r) {
        const float x = a[s.at(i, r)];
        const float h = a[s.at(i, high)], l = a[s.at(i, low)];
        if (!std::isnan(h) && (std::isnan(x) || x > h)) high = r;
        if (!std::isnan(l) && (std::isnan(x) || x < l)) low = r;
      }
      ASSERT_EQ(o0[i], high) << s.str() << " row " << i;
      ASSERT_EQ(o2[i], low) << s.str() << " row " << i;
      const float h = a[s.at(i, high)];
      ASSERT_TRUE(o1[i] == h || (std::isnan(h) && std::isnan(o1[i]))) << s.str();
    }
  }
}

TEST(Reduce, Welford) {
  for (const Shape& s : shapes()) {
    auto a = numbers<float>(s.size(), 99, 101);
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer o0 float32 [{2}] output
buffer o1 float32 [{2}] output
buffer o2 float32 [{2}] output
node op0 "var" [i0 < {2}] [r0 < {3}]
  v0 = load float32 in0[{1}]
  v1 = reduce_welford float32 v0
  v2 = result float32 v1 number 1
  v3 = result float32 v1 number 2
  store o0[i0] v1
  store o1[i0] v2
  store o2[i0] v3
)",
                                 s.size(), s.index(), s.rows, s.n));
    std::vector<float> mean(s.rows), m2(s.rows), count(s.rows);
    c.run({{"in0", a.data()}, {"o0", mean.data()}, {"o1", m2.data()}, {"o2", count.data()}});
    for (int64_t i = 0; i < s.rows; ++i) {
      double sum = 0, squares = 0;
      for (int64_t r = 0; r < s.n; ++r) sum += a[s.at(i, r)];
      for (int64_t r = 0; r < s.n; ++r) squares += std::pow(a[s.at(i, r)] - sum / s.n, 2);
      ASSERT_NEAR(mean[i], sum / s.n, 1e-4) << s.str();
      ASSERT_NEAR(m2[i], squares, 1e-4 * squares + 1e-6) << s.str();
      ASSERT_EQ(count[i], s.n);
    }
  }
}

TEST(Reduce, WelfordCombine) {
  // Rows of 6 parts with 10 elements each, one part empty.
  std::vector<float> all = numbers<float>(4 * 60, 5, 9), mean(24), m2(24), count(24, 10.f);
  for (int p = 0; p < 24; ++p) {
    double sum = 0, squares = 0;
    for (int k = 0; k < 10; ++k) sum += all[p * 10 + k];
    for (int k = 0; k < 10; ++k) squares += std::pow(all[p * 10 + k] - sum / 10, 2);
    mean[p] = static_cast<float>(sum / 10), m2[p] = static_cast<float>(squares);
  }
  count[5] = 0, mean[5] = NAN, m2[5] = NAN;
  const Compiled c(R"(
buffer in0 float32 [4, 6] input
buffer in1 float32 [4, 6] input
buffer in2 float32 [4, 6] input
buffer o0 float32 [4] output
buffer o1 float32 [4] output
buffer o2 float32 [4] output
node op0 "combine" [i0 < 4] [r0 < 6]
  v0 = load float32 in0[6*i0 + r0]
  v1 = load float32 in1[6*i0 + r0]
  v2 = load float32 in2[6*i0 + r0]
  v3 = reduce_welford_combine float32 v0 v1 v2
  v4 = result float32 v3 number 1
  v5 = result float32 v3 number 2
  store o0[i0] v3
  store o1[i0] v4
  store o2[i0] v5
)");
  float o0[4], o1[4], o2[4];
  c.run(
      {{"in0", mean.data()}, {"in1", m2.data()}, {"in2", count.data()}, {"o0", o0}, {"o1", o1}, {"o2", o2}});
  for (int i = 0; i < 4; ++i) {
    const int n = i == 0 ? 50 : 60;
    double sum = 0, squares = 0;
    for (int k = 0; k < n; ++k) sum += all[i * 60 + k];
    for (int k = 0; k < n; ++k) squares += std::pow(all[i * 60 + k] - sum / n, 2);
    EXPECT_NEAR(o0[i], sum / n, 1e-5);
    EXPECT_NEAR(o1[i], squares, 1e-4 * squares);
    EXPECT_EQ(o2[i], n);
  }
}

TEST(Reduce, OnlineSoftmax) {
  for (const Shape& s : shapes()) {
    auto a = numbers<float>(s.size(), -20, 20);
    for (int64_t r = 0; r < s.n; ++r) a[s.at(1, r)] = -INFINITY;
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer o0 float32 [{2}] output
buffer o1 float32 [{2}] output
node op0 "softmax" [i0 < {2}] [r0 < {3}]
  v0 = load float32 in0[{1}]
  v1 = reduce_softmax float32 v0
  v2 = result float32 v1 number 1
  store o0[i0] v1
  store o1[i0] v2
)",
                                 s.size(), s.index(), s.rows, s.n));
    std::vector<float> m(s.rows), sum(s.rows);
    c.run({{"in0", a.data()}, {"o0", m.data()}, {"o1", sum.data()}});
    for (int64_t i = 0; i < s.rows; ++i) {
      float high = -INFINITY;
      double total = 0;
      for (int64_t r = 0; r < s.n; ++r) high = std::max(high, a[s.at(i, r)]);
      for (int64_t r = 0; r < s.n && high > -INFINITY; ++r)
        total += std::exp(static_cast<double>(a[s.at(i, r)]) - high);
      ASSERT_EQ(m[i], high) << s.str();
      ASSERT_NEAR(sum[i], total, 1e-5 * total) << s.str() << " row " << i;
    }
  }
}

TEST(Passes, SoftmaxIsOneKernel) {
  for (const Shape& s : shapes()) {
    if (s.n < 3) continue;
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer out0 float32 [{0}] output
buffer buf0 float32 [{3}] intermediate
buffer buf1 float32 [{3}] intermediate
node op0 "amax" [i0 < {3}] [r0 < {4}]
  v0 = load float32 in0[{1}]
  v1 = reduce_max float32 v0
  store buf0[i0] v1
node op1 "sum" [i0 < {3}] [r0 < {4}]
  v0 = load float32 in0[{1}]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = reduce_sum float32 v3
  store buf1[i0] v4
node op2 "div" [i0 < {3}, i1 < {4}]
  v0 = load float32 in0[{2}]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = load float32 buf1[i0]
  v5 = div_relaxed float32 v3 v4
  store out0[{2}] v5
)",
                                 s.size(), s.index(), s.pointwise(), s.rows, s.n));
    auto a = numbers<float>(s.size(), -8, 8);
    std::vector<float> out(s.size());
    c.run({{"in0", a.data()}, {"out0", out.data()}}, {}, 2);
    if (s.inner) {
      EXPECT_EQ(c.module.kernels.size(), 1u);
    }
    for (int64_t i = 0; i < s.rows; ++i) {
      double high = -INFINITY, total = 0;
      for (int64_t r = 0; r < s.n; ++r) high = std::max<double>(high, a[s.at(i, r)]);
      for (int64_t r = 0; r < s.n; ++r) total += std::exp(a[s.at(i, r)] - high);
      for (int64_t r = 0; r < s.n; ++r)
        ASSERT_NEAR(out[s.at(i, r)], std::exp(a[s.at(i, r)] - high) / total, 1e-6) << s.str();
    }
  }
}

TEST(Scan, Folds) {
  for (const Shape& s : shapes()) {
    auto a = numbers<float>(s.size(), 0.5, 1.5);
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer o0 float32 [{0}] output
buffer o1 float32 [{0}] output
node op0 "cumsum" [i0 < {2}] [r0 < {3}]
  v0 = load float32 in0[{1}]
  v1 = scan_sum float32 v0
  v2 = scan_prod float32 v0
  store o0[{1}] v1
  store o1[{1}] v2
)",
                                 s.size(), s.index(), s.rows, s.n));
    std::vector<float> o0(s.size()), o1(s.size());
    c.run({{"in0", a.data()}, {"o0", o0.data()}, {"o1", o1.data()}}, {}, 2);
    for (int64_t i = 0; i < s.rows; ++i) {
      double sum = 0, product = 1;
      for (int64_t r = 0; r < s.n; ++r) {
        const size_t k = s.at(i, r);
        sum += a[k], product *= a[k];
        // Positive operands: r roundings, in whatever order.
        const double bound = static_cast<double>(r + 1) * 0x1p-24;
        ASSERT_NEAR(o0[k], sum, bound * sum) << s.str();
        ASSERT_NEAR(o1[k], product, bound * product) << s.str();
      }
    }
  }
}

TEST(Scan, Extrema) {
  for (const Shape& s : shapes()) {
    std::vector<float> a(s.size());
    for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<float>(k * 7919 % 13);
    if (s.n > 5) a[s.at(1, 4)] = NAN;
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer o0 float32 [{0}] output
buffer o1 int64 [{0}] output
buffer o2 int64 [{0}] output
node op0 "cummax" [i0 < {2}] [r0 < {3}]
  v0 = load float32 in0[{1}]
  v1 = scan_max float32 v0
  v2 = result int64 v1 number 1
  v3 = scan_min float32 v0
  v4 = result int64 v3 number 1
  store o0[{1}] v1
  store o1[{1}] v2
  store o2[{1}] v4
)",
                                 s.size(), s.index(), s.rows, s.n));
    std::vector<float> o0(s.size());
    std::vector<int64_t> o1(s.size()), o2(s.size());
    c.run({{"in0", a.data()}, {"o0", o0.data()}, {"o1", o1.data()}, {"o2", o2.data()}});
    for (int64_t i = 0; i < s.rows; ++i) {
      int64_t high = 0, low = 0;
      for (int64_t r = 0; r < s.n; ++r) {
        const float x = a[s.at(i, r)];
        if (std::isnan(x) || x >= a[s.at(i, high)]) high = r;
        if (std::isnan(x) || x <= a[s.at(i, low)]) low = r;
        const float want = a[s.at(i, high)], got = o0[s.at(i, r)];
        ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << s.str();
        ASSERT_EQ(o1[s.at(i, r)], high) << s.str() << " row " << i << " at " << r;
        ASSERT_EQ(o2[s.at(i, r)], low) << s.str() << " row " << i << " at " << r;
      }
    }
  }
}

TEST(Scan, Logaddexp) {
  for (bool inner : {true, false}) {
    const Shape s{20, 30, inner};
    auto a = numbers<float>(s.size(), -5, 5);
    a[s.at(0, 0)] = a[s.at(0, 1)] = -INFINITY;
    const Compiled c(fmt::format(R"(
buffer in0 float32 [{0}] input
buffer o0 float32 [{0}] output
node op0 "logcumsumexp" [i0 < 20] [r0 < 30]
  v0 = load float32 in0[{1}]
  v1 = scan_logaddexp float32 v0
  store o0[{1}] v1
)",
                                 s.size(), s.index()));
    std::vector<float> out(s.size());
    c.run({{"in0", a.data()}, {"o0", out.data()}});
    for (int64_t i = 0; i < s.rows; ++i) {
      double sum = 0;
      for (int64_t r = 0; r < s.n; ++r) {
        sum += std::exp(static_cast<double>(a[s.at(i, r)]));
        if (sum == 0) {
          ASSERT_EQ(out[s.at(i, r)], -INFINITY);
        } else {
          ASSERT_NEAR(out[s.at(i, r)], std::log(sum), 2e-5) << s.str();
        }
      }
    }
  }
}

TEST(Indirect, GatherRows) {
  std::vector<int64_t> rows = {4, 0, 6, 6, 1, -1, 2};
  auto table = numbers<float>(7 * 33);
  const Compiled c(R"(
buffer in0 int64 [7] input
buffer in1 float32 [7, 33] input
buffer out0 float32 [7, 33] output
node op0 "embedding" [i0 < 7, i1 < 33]
  v0 = load int64 in0[i0]
  v1 = check_index int64 v0 size 7 number 1
  v2 = load float32 in1[33*t0 + i1] indirect v1
  store out0[33*i0 + i1] v2
)");
  std::vector<float> out(7 * 33);
  const KernelStatus status = c.run({{"in0", rows.data()}, {"in1", table.data()}, {"out0", out.data()}});
  EXPECT_EQ(status.flag, 0);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 33; ++j)
      EXPECT_EQ(out[i * 33 + j], table[(rows[i] < 0 ? rows[i] + 7 : rows[i]) * 33 + j]);
}

TEST(Indirect, CheckIndex) {
  for (int64_t bad : {int64_t{-6}, int64_t{5}}) {
    std::vector<int64_t> at(29);
    for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i % 10) - 5;
    auto table = numbers<double>(5);
    const Compiled c(R"(
buffer in0 int64 [29] input
buffer in1 float64 [5] input
buffer out0 float64 [29] output
node op0 "take" [i0 < 29]
  v0 = load int64 in0[i0]
  v1 = check_index int64 v0 size 5 number 1
  v2 = load float64 in1[t0] indirect v1
  store out0[i0] v2
)");
    std::vector<double> out(29);
    KernelStatus status = c.run({{"in0", at.data()}, {"in1", table.data()}, {"out0", out.data()}});
    EXPECT_EQ(status.flag, 0);
    for (size_t i = 0; i < 29; ++i) EXPECT_EQ(out[i], table[(at[i] + 5) % 5]);
    at[27] = bad;
    status = c.run({{"in0", at.data()}, {"in1", table.data()}, {"out0", out.data()}});
    EXPECT_EQ(status.flag, 1);
    EXPECT_EQ(status.node, 0);
    EXPECT_EQ(status.value, bad);
    EXPECT_EQ(status.size, 5);
    EXPECT_EQ(out[27], table[bad < 0 ? 0 : 4]) << "clamped";
  }
}

TEST(Indirect, MaskedLoads) {
  // Padding: the load reaches outside its buffer where the mask is false.
  auto a = numbers<float>(20);
  const Compiled c(R"(
buffer in0 float32 [20] input
buffer out0 float32 [31] output
node op0 "pad" [i0 < 31]
  v0 = index_value int64 i0 - 5
  v1 = constant int64 0
  v2 = ge bool v0 v1
  v3 = constant int64 20
  v4 = lt bool v0 v3
  v5 = bitwise_and bool v2 v4
  v6 = load float32 in0[i0 - 5] mask v5
  v7 = constant float32 7.0
  v8 = where float32 v5 v6 v7
  store out0[i0] v8
)");
  std::vector<float> out(31);
  c.run({{"in0", a.data()}, {"out0", out.data()}}, {}, 2);
  for (int i = 0; i < 31; ++i) EXPECT_EQ(out[i], i >= 5 && i < 25 ? a[i - 5] : 7.f) << i;
}

TEST(Indirect, MaskedAndScatteredStores) {
  std::vector<int64_t> at(19);
  std::vector<uint8_t> on(19);
  for (int i = 0; i < 19; ++i) at[i] = i * 7 % 19, on[i] = i % 4 != 0;
  auto a = numbers<float>(19);
  std::vector<float> out(19, -1.f);
  const Compiled c(R"(
buffer in0 int64 [19] input
buffer in1 bool [19] input
buffer in2 float32 [19] input
buffer out0 float32 [19] input mutated
node op0 "scatter" [i0 < 19]
  v0 = load int64 in0[i0]
  v1 = load bool in1[i0]
  v2 = load float32 in2[i0]
  store out0[t0] v2 mask v1 indirect v0
)");
  c.run({{"in0", at.data()}, {"in1", on.data()}, {"in2", a.data()}, {"out0", out.data()}});
  for (int i = 0; i < 19; ++i) EXPECT_EQ(out[at[i]], on[i] ? a[i] : -1.f);
}

TEST(Indirect, AtomicAdd) {
  for (int64_t columns : {1, 21}) {
    std::vector<int64_t> at = {2, 0, 2, 2, 1, 0, 2};
    auto a = numbers<float>(7 * columns);
    std::vector<float> out(3 * columns, 1.f), want(3 * columns, 1.f);
    const Compiled c(fmt::format(R"(
buffer in0 int64 [7] input
buffer in1 float32 [{1}] input
buffer out0 float32 [{2}] input mutated
node op0 "index_add" [i0 < 7, i1 < {0}]
  v0 = load int64 in0[i0]
  v1 = load float32 in1[{0}*i0 + i1]
  atomic_add out0[{0}*t0 + i1] v1 indirect v0
)",
                                 columns, 7 * columns, 3 * columns));
    c.run({{"in0", at.data()}, {"in1", a.data()}, {"out0", out.data()}}, {}, 1);
    for (int64_t i = 0; i < 7; ++i)
      for (int64_t j = 0; j < columns; ++j) want[at[i] * columns + j] += a[i * columns + j];
    for (size_t k = 0; k < want.size(); ++k) EXPECT_FLOAT_EQ(out[k], want[k]) << k;
  }
}

// 1 does not change 2^24 when it is added, but two of them together do: the order shows. Parts of 512 rows
// are added up by themselves.
TEST(Reduce, ColumnsAddTheirRowsInOrder) {
  for (const int64_t columns : {20, 37, 300}) {  // accumulators in registers, and in arrays
    for (const auto& [rows, expected] : {std::pair{40, 16777216.0f}, {43, 16777216.0f}, {600, 16777304.0f}}) {
      const Compiled c(
          fmt::format("buffer in0 float32 [{0}, {1}] input\nbuffer o float32 [{1}] output\n"
                      "node op0 \"sum\" [i0 < {1}] [r0 < {0}]\n  v0 = load float32 in0[{1}*r0 + i0]\n"
                      "  v1 = reduce_sum float32 v0\n  store o[i0] v1\n",
                      rows, columns));
      std::vector<float> in(static_cast<size_t>(rows * columns), 1), out(static_cast<size_t>(columns));
      std::fill_n(in.begin(), columns, 16777216.0f);
      c.run({{"in0", in.data()}, {"o", out.data()}}, {}, 2);
      for (const float sum : out) ASSERT_EQ(sum, expected) << rows << " rows, " << columns << " columns";
    }
  }
}

}  // namespace
}  // namespace stax::codegen

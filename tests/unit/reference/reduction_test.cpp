// Reductions and scans along both axes, at lengths around the block.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/node_plan.h"
#include "stax/error.h"
#include "unit/reference/run_text.h"

namespace stax::reference {
namespace {

/// Reduces [rows, columns] along its columns (along = true) or its rows.
std::string reduce_text(std::string_view body, int64_t rows, int64_t columns, bool along, std::string_view in,
                        std::string_view out) {
  const int64_t kept = along ? rows : columns, reduced = along ? columns : rows;
  const std::string index = along ? fmt::format("{}*i0 + r0", columns) : fmt::format("{}*r0 + i0", columns);
  return fmt::format(
      "buffer a {0} [{1}, {2}] input\nbuffer o {3} [{4}] output\nnode n \"t\" [i0 < {4}] [r0 < {5}]\n"
      "v0 = load {6} a[{7}]\n{8}\nstore o[i0] v9\n",
      in, rows, columns, out, kept, reduced, in == "float16" || in == "bfloat16" ? "float32" : in, index,
      body);
}

struct Shape {
  int64_t rows, columns;
  bool along;
};
const std::vector<Shape> kShapes = {{1, 1, true},     {3, 7, true},     {7, 3, false},   {2, 2047, true},
                                    {2, 2048, true},  {2, 2049, true},  {2049, 2, true}, {33, 65, false},
                                    {5, 2049, false}, {300, 20, false}, {20, 300, true}, {40, 1000, true},
                                    {1000, 40, false}};

template <class T>
std::vector<T> values(const Shape& s) {
  std::vector<T> out;
  for (int64_t i = 0; i < s.rows * s.columns; ++i) out.push_back(static_cast<T>((i * 37) % 101 - 50));
  return out;
}

template <class T, class F>
void for_each_line(const Shape& s, const std::vector<T>& x, F&& f) {
  const int64_t kept = s.along ? s.rows : s.columns, reduced = s.along ? s.columns : s.rows;
  for (int64_t i = 0; i < kept; ++i) {
    std::vector<T> line;
    for (int64_t r = 0; r < reduced; ++r)
      line.push_back(s.along ? x[i * s.columns + r] : x[r * s.columns + i]);
    f(i, line);
  }
}

template <class T, class F>
void check(std::string_view body, std::string_view dtype, std::string_view out, F&& expected) {
  for (const Shape& s : kShapes) {
    const auto x = values<T>(s);
    const auto kept = static_cast<size_t>(s.along ? s.rows : s.columns);
    using R = decltype(expected(x));
    const auto got =
        run_one<R>(reduce_text(body, s.rows, s.columns, s.along, dtype, out), {Data::of(x)}, kept);
    for_each_line(s, x, [&](int64_t i, const std::vector<T>& line) {
      EXPECT_EQ(got[i], expected(line))
          << body << " " << dtype << " " << s.rows << "x" << s.columns << " line " << i;
    });
  }
}

template <class T>
T sum_of(const std::vector<T>& line) {
  int64_t s = 0;
  for (T v : line) s += static_cast<int64_t>(v);
  return static_cast<T>(s);
}
template <class T>
T max_of(const std::vector<T>& line) {
  return *std::max_element(line.begin(), line.end());
}
template <class T>
int64_t argmax_of(const std::vector<T>& line) {
  return std::max_element(line.begin(), line.end()) - line.begin();
}

template <class T>
void check_dtype(std::string_view d) {
  const auto one = [&](std::string_view op) { return fmt::format("v9 = {} {} v0", op, d); };
  check<T>(one("reduce_sum"), d, d, sum_of<T>);
  check<T>(one("reduce_max"), d, d, max_of<T>);
  check<T>(one("reduce_min"), d, d,
           [](const std::vector<T>& l) { return *std::min_element(l.begin(), l.end()); });
  check<T>("v9 = reduce_argmax int64 v0", d, "int64", argmax_of<T>);
  check<T>("v9 = reduce_argmin int64 v0", d, "int64",
           [](const std::vector<T>& l) { return int64_t(std::min_element(l.begin(), l.end()) - l.begin()); });
  check<T>(fmt::format("v1 = reduce_argmax int64 v0\nv9 = result {} v1 number 1", d), d, d, max_of<T>);
}
TEST(Reductions, EveryDtype) {
  check_dtype<uint8_t>("uint8");
  check_dtype<int8_t>("int8");
  check_dtype<int16_t>("int16");
  check_dtype<int32_t>("int32");
  check_dtype<int64_t>("int64");
  check_dtype<float>("float32");
  check_dtype<double>("float64");
}

TEST(Reductions, ProductsXorAnyAll) {
  check<int32_t>("v9 = reduce_prod int32 v0", "int32", "int32", [](const std::vector<int32_t>& l) {
    uint32_t p = 1;
    for (int32_t v : l) p *= static_cast<uint32_t>(v);
    return static_cast<int32_t>(p);
  });
  check<int64_t>("v9 = reduce_xor int64 v0", "int64", "int64", [](const std::vector<int64_t>& l) {
    int64_t p = 0;
    for (int64_t v : l) p ^= v;
    return p;
  });
  const std::string less = "v1 = constant int32 49\nv2 = lt bool v0 v1\n";
  check<int32_t>(less + "v9 = reduce_all bool v2", "int32", "bool", [](const std::vector<int32_t>& l) {
    return uint8_t(std::all_of(l.begin(), l.end(), [](int32_t v) { return v < 49; }));
  });
  check<int32_t>(less + "v3 = logical_not bool v2\nv9 = reduce_any bool v3", "int32", "bool",
                 [](const std::vector<int32_t>& l) {
                   return uint8_t(std::any_of(l.begin(), l.end(), [](int32_t v) { return v >= 49; }));
                 });
}

double mean_of(const std::vector<double>& l) {
  long double s = 0;
  for (double v : l) s += v;
  return static_cast<double>(s / l.size());
}
double m2_of(const std::vector<double>& l) {
  const double mean = mean_of(l);
  long double s = 0;
  for (double v : l) s += (v - mean) * static_cast<long double>(v - mean);
  return static_cast<double>(s);
}

TEST(Reductions, WelfordAndItsCombination) {
  for (const Shape& s : kShapes) {
    const auto x = values<double>(s);
    const auto kept = static_cast<size_t>(s.along ? s.rows : s.columns);
    const auto run = [&](const std::string& body) {
      return run_one<double>(reduce_text(body, s.rows, s.columns, s.along, "float64", "float64"),
                             {Data::of(x)}, kept);
    };
    const auto mean = run("v9 = reduce_welford float64 v0");
    const auto m2 = run("v1 = reduce_welford float64 v0\nv9 = result float64 v1 number 1");
    const auto count = run("v1 = reduce_welford float64 v0\nv9 = result float64 v1 number 2");
    const std::string merge =
        "v1 = constant float64 0.0\nv2 = constant float64 1.0\nv3 = reduce_welford_combine float64 v0 v1 "
        "v2\n";
    const auto combined = run(merge + "v9 = result float64 v3 number 1");
    const auto total = run(merge + "v9 = result float64 v3 number 2");
    for_each_line(s, x, [&](int64_t i, const std::vector<double>& l) {
      EXPECT_NEAR(mean[i], mean_of(l), 1e-12);
      EXPECT_NEAR(m2[i], m2_of(l), 1e-9 * (1 + m2_of(l)));
      EXPECT_NEAR(combined[i], m2_of(l), 1e-9 * (1 + m2_of(l)));
      EXPECT_EQ(count[i], double(l.size()));
      EXPECT_EQ(total[i], double(l.size()));
    });
  }
}

TEST(Reductions, VarianceOfALargeOffset) {
  std::vector<float> x;
  for (int i = 0; i < 4096; ++i) x.push_back(100000.0f + float(i % 2));
  const auto m2 =
      run_one<float>(reduce_text("v1 = reduce_welford float32 v0\nv9 = result float32 v1 number 1", 1, 4096,
                                 true, "float32", "float32"),
                     {Data::of(x)}, 1);
  EXPECT_FLOAT_EQ(m2[0] / 4095, 0.25006105f);
}

TEST(Reductions, OnlineSoftmax) {
  for (const Shape& s : kShapes) {
    const auto x = values<double>(s);
    const auto kept = static_cast<size_t>(s.along ? s.rows : s.columns);
    const auto sum =
        run_one<double>(reduce_text("v1 = reduce_softmax float64 v0\nv9 = result float64 v1 number 1", s.rows,
                                    s.columns, s.along, "float64", "float64"),
                        {Data::of(x)}, kept);
    for_each_line(s, x, [&](int64_t i, const std::vector<double>& l) {
      long double want = 0;
      for (double v : l) want += std::exp(static_cast<long double>(v - max_of(l)));
      EXPECT_NEAR(sum[i], double(want), 1e-12 * double(want));
    });
  }
  const std::vector<float> low(5, -INFINITY);
  const auto zero =
      run_one<float>(reduce_text("v1 = reduce_softmax float32 v0\nv9 = result float32 v1 number 1", 1, 5,
                                 true, "float32", "float32"),
                     {Data::of(low)}, 1);
  EXPECT_EQ(zero[0], 0);
}

TEST(Reductions, TiesNaNAndInfinities) {
  const auto arg = [](std::vector<float> x, std::string_view op) {
    const auto n = static_cast<int64_t>(x.size());
    return run_one<int64_t>(reduce_text(fmt::format("v9 = {} int64 v0", op), 1, n, true, "float32", "int64"),
                            {Data::of(x)}, 1)[0];
  };
  EXPECT_EQ(arg({1, 3, 3, 2}, "reduce_argmax"), 1);
  EXPECT_EQ(arg({2, NAN, 5, NAN}, "reduce_argmax"), 1);
  EXPECT_EQ(arg({2, NAN, 5, NAN}, "reduce_argmin"), 1);
  EXPECT_EQ(arg(std::vector<float>(4, -INFINITY), "reduce_argmax"), 0);
  std::vector<float> tie(5000, 0);
  tie[130] = tie[900] = tie[4900] = 1;
  EXPECT_EQ(arg(tie, "reduce_argmax"), 130);
  tie[4099] = NAN;
  EXPECT_EQ(arg(tie, "reduce_argmax"), 4099);
  for (int64_t n : {1, 8192, 8193, 65537}) {
    const std::vector<float> zeros(static_cast<size_t>(n), -0.0f);
    EXPECT_EQ(run_one<float>(reduce_text("v9 = reduce_max float32 v0", 1, n, true, "float32", "float32"),
                             {Data::of(zeros)}, 1)[0],
              0.0f);
  }
  const std::vector<float> nan = {1, NAN, 3};
  EXPECT_TRUE(std::isnan(run_one<float>(
      reduce_text("v9 = reduce_max float32 v0", 1, 3, true, "float32", "float32"), {Data::of(nan)}, 1)[0]));
}

TEST(Reductions, EmptyAxisGivesTheIdentity) {
  const auto run = [](std::string_view body, std::string_view d) {
    return run_one<float>(reduce_text(body, 10, 0, true, d, d), {Data{std::vector<std::byte>(1)}}, 10);
  };
  EXPECT_EQ(run("v9 = reduce_sum float32 v0", "float32"), std::vector<float>(10, 0));
  EXPECT_EQ(run("v9 = reduce_prod float32 v0", "float32"), std::vector<float>(10, 1));
  EXPECT_EQ(run("v9 = reduce_max float32 v0", "float32"), std::vector<float>(10, -INFINITY));
}

TEST(Reductions, HalfPrecisionSumsAccumulateWide) {
  const std::vector<uint16_t> ones(70000, 0x3f80);  // bfloat16
  const auto text = [](int64_t rows, int64_t columns, bool along) {
    return reduce_text("v9 = reduce_sum float32 v0", rows, columns, along, "bfloat16", "bfloat16");
  };
  EXPECT_EQ(run_one<uint16_t>(text(1, 70000, true), {Data::of(ones)}, 1)[0], 0x4789);  // 70144
  EXPECT_EQ(run_one<uint16_t>(text(3500, 20, false), {Data::of(ones)}, 20)[7],
            0x455b);  // 3504, the bfloat16 nearest to 3500
}

TEST(Reductions, LongFloatSumsStayAccurate) {
  const std::vector<float> x(1 << 20, 0.1f);
  const double want = double(0.1f) * (1 << 20);
  for (bool along : {true, false}) {
    const auto s = along ? Shape{1, 1 << 20, true} : Shape{1 << 15, 32, false};
    const auto got = run_one<float>(
        reduce_text("v9 = reduce_sum float32 v0", s.rows, s.columns, s.along, "float32", "float32"),
        {Data::of(x)}, along ? 1 : 32);
    EXPECT_NEAR(got[0], along ? want : want / 32, (along ? want : want / 32) * 1e-6);
  }
}

/// Threads share the columns in blocks narrower than usual.
TEST(Reductions, FewLongColumns) {
  for (int columns : {300, 600, 2049}) {
    const int rows = 2000;
    std::vector<float> x;
    for (int i = 0; i < rows * columns; ++i) x.push_back(static_cast<float>(i % 7 + i % columns));
    const auto got =
        run_one<float>(fmt::format("buffer a float32 [{0}, {1}] input\nbuffer o float32 [{1}] output\n"
                                   "node n \"sum\" [i0 < {1}] [r0 < {0}]\nv0 = load float32 a[{1}*r0 + i0]\n"
                                   "v1 = reduce_sum float32 v0\nstore o[i0] v1\n",
                                   rows, columns),
                       {Data::of(x)}, columns);
    for (int c = 0; c < columns; ++c) {
      double want = 0;
      for (int r = 0; r < rows; ++r) want += x[r * columns + c];
      ASSERT_EQ(got[c], want) << columns << " column " << c;
    }
  }
}

TEST(Reductions, PointwiseAfterAndOverTheReduction) {
  // softmax over rows in one node: maximum and sum, then a second pass over the row.
  for (const Shape& s : kShapes) {
    if (!s.along) continue;
    const auto text = fmt::format(
        "buffer a float64 [{0}, {1}] input\nbuffer o float64 [{0}, {1}] output\n"
        "node n \"softmax\" [i0 < {0}] [r0 < {1}]\nv0 = load float64 a[{1}*i0 + r0]\n"
        "v1 = reduce_softmax float64 v0\nv2 = result float64 v1 number 1\nv3 = sub float64 v0 v1\n"
        "v4 = exp float64 v3\nv5 = div float64 v4 v2\nstore o[{1}*i0 + r0] v5\n",
        s.rows, s.columns);
    const auto x = values<double>(s);
    const auto y = run_one<double>(text, {Data::of(x)}, x.size());
    for_each_line(s, x, [&](int64_t i, const std::vector<double>& l) {
      double total = 0;
      for (double v : l) total += std::exp(v - max_of(l));
      for (size_t r = 0; r < l.size(); ++r) {
        EXPECT_NEAR(y[i * s.columns + r], std::exp(l[r] - max_of(l)) / total, 1e-13);
      }
    });
  }
}

// --- Scans ---

std::string scan_text(std::string_view body, const Shape& s, std::string_view in, std::string_view out) {
  const int64_t kept = s.along ? s.rows : s.columns, reduced = s.along ? s.columns : s.rows;
  const std::string index =
      s.along ? fmt::format("{}*i0 + r0", s.columns) : fmt::format("{}*r0 + i0", s.columns);
  return fmt::format(
      "buffer a {0} [{1}] input\nbuffer o {2} [{1}] output\nnode n \"t\" [i0 < {3}] [r0 < {4}]\n"
      "v0 = load {0} a[{5}]\n{6}\nstore o[{5}] v9\n",
      in, s.rows * s.columns, out, kept, reduced, index, body);
}

template <class T, class R, class F>
void check_scan(std::string_view body, std::string_view in, std::string_view out, F&& step) {
  for (const Shape& s : kShapes) {
    const auto x = values<T>(s);
    const auto y = run_one<R>(scan_text(body, s, in, out), {Data::of(x)}, x.size());
    for_each_line(s, x, [&](int64_t i, const std::vector<T>& line) {
      R state{};
      for (size_t r = 0; r < line.size(); ++r) {
        state = step(state, line, r);
        const size_t at = s.along ? i * s.columns + r : r * s.columns + i;
        ASSERT_EQ(y[at], state) << body << " " << s.rows << "x" << s.columns << " at " << r;
      }
    });
  }
}

TEST(Scans, Sort) {
  for (const Shape& s : kShapes) {
    if ((s.along ? s.columns : s.rows) > kBlock) continue;
    const auto x = values<int64_t>(s);
    const std::string text = scan_text("v9 = scan_sort int64 v0", s, "int64", "int64");
    const auto y = run_one<int64_t>(text, {Data::of(x)}, x.size());
    for_each_line(s, x, [&](int64_t i, std::vector<int64_t> line) {
      std::ranges::sort(line);
      for (size_t r = 0; r < line.size(); ++r)
        ASSERT_EQ(y[s.along ? i * s.columns + r : r * s.columns + i], line[r])
            << s.rows << "x" << s.columns << " at " << r;
    });
  }
  const Shape longer = {1, kBlock + 1, true};
  const auto x = values<int64_t>(longer);
  EXPECT_THROW(run_one<int64_t>(scan_text("v9 = scan_sort int64 v0", longer, "int64", "int64"), {Data::of(x)},
                                x.size()),
               Error);
}

TEST(Scans, SumsProductsExtrema) {
  check_scan<int32_t, int32_t>("v9 = scan_sum int32 v0", "int32", "int32",
                               [](int32_t a, const auto& l, size_t r) { return a + l[r]; });
  check_scan<double, double>("v9 = scan_sum float64 v0", "float64", "float64",
                             [](double a, const auto& l, size_t r) { return a + l[r]; });
  check_scan<uint8_t, uint8_t>(
      "v9 = scan_prod uint8 v0", "uint8", "uint8",
      [](uint8_t a, const auto& l, size_t r) { return static_cast<uint8_t>(r == 0 ? l[r] : a * l[r]); });
  check_scan<float, float>(
      "v9 = scan_max float32 v0", "float32", "float32",
      [](float a, const auto& l, size_t r) { return r == 0 ? l[r] : std::max(a, l[r]); });
  check_scan<float, int64_t>(
      "v1 = scan_min float32 v0\nv9 = result int64 v1 number 1", "float32", "int64",
      [](int64_t a, const auto& l, size_t r) { return l[r] <= l[a] ? int64_t(r) : a; });
}

TEST(Scans, LogAddExpAndInfinities) {
  const std::vector<double> x = {-INFINITY, 0, 0, 700, 701};
  const auto y = run_one<double>(
      scan_text("v9 = scan_logaddexp float64 v0", {1, 5, true}, "float64", "float64"), {Data::of(x)}, 5);
  EXPECT_EQ(y[0], -INFINITY);
  EXPECT_EQ(y[1], 0);
  EXPECT_NEAR(y[2], std::log(2.0), 1e-15);
  EXPECT_NEAR(y[4], 701 + std::log1p(std::exp(-1.0)), 1e-12);
  const std::vector<float> inf(3000, INFINITY);
  const auto s = run_one<float>(scan_text("v9 = scan_sum float32 v0", {1, 3000, true}, "float32", "float32"),
                                {Data::of(inf)}, 3000);
  EXPECT_EQ(s, inf);
}

}  // namespace
}  // namespace stax::reference

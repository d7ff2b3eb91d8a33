// Scans that a GPU computes in chunks: how they are cut, and what the loops compute, run by the reference
// executor against plain loops over the same numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/builder.h"
#include "lowering/split.h"
#include "support/run_ops.h"

namespace stax {
namespace {

using testing::Array;
using testing::kNaN;
using Numbers = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kChunk = 1024;
/// The last chunk of this many elements is full.
constexpr int64_t kBorder = 33 * kChunk;

struct Scanned {
  std::vector<Array> results;
  size_t nodes = 0;  // of the loop program
};

Scanned scan(const std::string& op, const Array& x, int64_t dim, const std::string& target = "cuda:sm_90") {
  ShapeEnv env;
  graph::Graph graph;
  graph::Builder b{ops::table(), env, graph};
  const std::vector<Expr> sizes(x.sizes.begin(), x.sizes.end());
  const graph::Var in = b.input(graph::dense(x.dtype, sizes));
  for (const graph::Var& v : b.call_all(op, {in, Expr(dim)})) graph.outputs.push_back({v.value(), -1});
  const graph::Graph done = graph::run_passes({ops::table(), env}, graph);
  const Target machine = target.empty() ? Target{} : cuda_target_named(target);
  const auto lowered = lowering::lower(ops::table(), done, env, machine);
  std::vector<Array> inputs = {x};
  return {testing::run_lowered(lowered, inputs), lowered.program.nodes.size()};
}

/// Few different integers, so that extrema repeat within chunks and across them.
Numbers some(int64_t count) {
  Numbers x;
  uint32_t state = 7;
  for (int64_t k = 0; k < count; ++k) {
    state = state * 1664525U + 1013904223U;
    x.push_back(static_cast<double>(state >> 28) - 7);
  }
  return x;
}

/// What `step(result, element, position)` leaves in `result` along dim 1 of [outer, length, inner].
template <class Step>
Numbers along(const Numbers& x, int64_t outer, int64_t length, int64_t inner, double start, Step&& step) {
  Numbers out(x.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double running = start;
      for (int64_t k = 0; k < length; ++k) {
        const auto at = static_cast<size_t>((o * length + k) * inner + i);
        running = step(running, x[at], k);
        out[at] = running;
      }
    }
  }
  return out;
}

void expect_numbers(const Array& got, const Numbers& want, double tolerance = 0) {
  const Numbers values = got.values();
  ASSERT_EQ(values.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    if (std::isnan(want[k]) ? std::isnan(values[k]) : values[k] == want[k]) continue;
    ASSERT_NEAR(values[k], want[k], tolerance * std::max(1.0, std::abs(want[k]))) << "element " << k;
  }
}

lowering::Split cut(int64_t outer, int64_t length, int64_t inner = 1, const char* target = "cuda:sm_90") {
  ShapeEnv env;
  Chooser chooser{Sizes(env)};
  const Target machine = target == nullptr ? Target{} : cuda_target_named(target);
  return lowering::split_scan(machine, outer, inner, length, chooser);
}

TEST(ScanSplit, FewLongRowsAreCutWhereTheTargetIsAGpu) {
  EXPECT_TRUE(cut(1, 1 << 24, 1, nullptr).count.is(1));
  EXPECT_TRUE(cut(1, 32768).count.is(1));
  EXPECT_TRUE(cut(8192, 1 << 16).count.is(1));
  EXPECT_TRUE(cut(1, 1 << 16, 1 << 15).count.is(1));  // rows that lie side by side
  EXPECT_TRUE(cut(1, 2048, 2).count.is(1));
  EXPECT_EQ(cut(1, 2049, 2).count, Expr(5));
  EXPECT_EQ(cut(64, 1 << 20).chunk, Expr(kChunk));
  EXPECT_EQ(cut(1, 1 << 24).chunk, Expr(8192));
  EXPECT_EQ(cut(1, 1000000).chunk, Expr(1000));  // all chunks are full
  EXPECT_EQ(cut(1, 999999).chunk, Expr(kChunk));
  for (const int64_t n : {32769, 100003, 1 << 20, 1 << 24, (1 << 24) + 1, (1 << 30) - 1}) {
    for (const int64_t rows : {1, 2, 64}) {
      const lowering::Split split = cut(rows, n);
      const int64_t count = split.count.value(), chunk = split.chunk.value();
      EXPECT_LE(count, 2048 * 4 / 3);
      EXPECT_EQ(chunk % 8, 0);
      EXPECT_GE(count * chunk, n);
      EXPECT_LT((count - 1) * chunk, n) << "no chunk is empty";
    }
  }
}

TEST(ScanSplit, SumsAndProductsAtTheBordersOfChunks) {
  for (const int64_t n : {kBorder - 1, kBorder, kBorder + 1, int64_t{40009}}) {
    SCOPED_TRACE(n);
    const Numbers x = some(n);
    const Array input = testing::array(kFloat32, {n}, x);
    const Scanned sums = scan("cumsum", input, 0);
    EXPECT_EQ(sums.nodes, 3u);
    expect_numbers(sums.results[0], along(x, 1, n, 1, 0, [](double a, double b, int64_t) { return a + b; }));
    Numbers signs;
    for (const double v : x) signs.push_back(v < 0 ? -1 : 1);
    expect_numbers(scan("cumprod", testing::array(kInt64, {n}, signs), 0).results[0],
                   along(signs, 1, n, 1, 1, [](double a, double b, int64_t) { return a * b; }));
  }
}

TEST(ScanSplit, EveryAxisOfATensor) {
  const int64_t n = kBorder + 1;
  for (const auto& [outer, inner] : {std::pair<int64_t, int64_t>{3, 1}, {1, 5}, {2, 3}}) {
    const Numbers x = some(outer * n * inner);
    const Scanned got = scan("cumsum", testing::array(kFloat64, {outer, n, inner}, x), 1);
    EXPECT_EQ(got.nodes, 3u);
    expect_numbers(got.results[0],
                   along(x, outer, n, inner, 0, [](double a, double b, int64_t) { return a + b; }));
  }
}

TEST(ScanSplit, ExtremaAndTheirLastPositions) {
  for (const DType dtype : {kFloat32, kInt32, kFloat16}) {
    for (const int64_t n : {kBorder + 1, int64_t{40009}}) {
      const Numbers x = some(2 * n);
      const Array input = testing::array(dtype, {2, n}, x);
      for (const bool largest : {true, false}) {
        const Scanned got = scan(largest ? "cummax" : "cummin", input, 1);
        const auto better = [=](double a, double b) { return largest ? b >= a : b <= a; };
        double best = 0;
        expect_numbers(got.results[0], along(x, 2, n, 1, 0, [&](double a, double b, int64_t k) {
                         return k == 0 || better(a, b) ? b : a;
                       }));
        expect_numbers(got.results[1], along(x, 2, n, 1, 0, [&](double at, double b, int64_t k) {
                         if (k > 0 && !better(best, b)) return at;
                         best = b;
                         return static_cast<double>(k);
                       }));
      }
    }
  }
}

TEST(ScanSplit, NaNIsPassedOnAcrossChunks) {
  const int64_t n = 40000;
  Numbers x(n, 1);
  x[3] = kInf;
  x[4000] = kNaN;
  x[39999] = kNaN;
  const Array input = testing::array(kFloat32, {n}, x);
  const Numbers sums = scan("cumsum", input, 0).results[0].values();
  EXPECT_EQ(sums[2], 3);
  for (size_t k = 3; k < 4000; ++k) ASSERT_EQ(sums[k], kInf);
  for (size_t k = 4000; k < 40000; ++k) ASSERT_TRUE(std::isnan(sums[k]));
  const Scanned extrema = scan("cummin", input, 0);
  const std::vector<int64_t> at = extrema.results[1].integers();
  EXPECT_EQ(at[3999], 3999);
  for (size_t k = 4000; k < 39999; ++k) ASSERT_EQ(at[k], 4000) << k;
  EXPECT_EQ(at[39999], 39999);  // the last NaN
  EXPECT_TRUE(std::isnan(extrema.results[0].values()[5000]));
}

TEST(ScanSplit, PrefixSumsOfInfinitiesHoldNoNaN) {
  for (const double infinity : {kInf, -kInf}) {
    const Array input = testing::array(kFloat32, {40009}, Numbers(40009, infinity));
    for (const char* op : {"cumsum", "logcumsumexp", "cummax", "cummin"})
      expect_numbers(scan(op, input, 0).results[0], Numbers(40009, infinity));
  }
}

TEST(ScanSplit, LogarithmsOfRunningSums) {
  const int64_t n = 40009;
  Numbers x(n, 2.5), want(n);
  for (int64_t k = 0; k < 5; ++k) x[k] = want[k] = -kInf;
  for (int64_t k = 5; k < n; ++k) want[k] = 2.5 + std::log(static_cast<double>(k - 4));
  for (const DType dtype : {kFloat32, kFloat64})
    expect_numbers(scan("logcumsumexp", testing::array(dtype, {n}, x), 0).results[0], want, 1e-6);
}

TEST(ScanSplit, BoolsAreCounted) {
  const int64_t n = kBorder + 1;
  Numbers want;
  for (int64_t k = 1; k <= n; ++k) want.push_back(static_cast<double>(k));
  expect_numbers(scan("cumsum", testing::array(kBool, {n}, Numbers(n, 1)), 0).results[0], want);
}

}  // namespace
}  // namespace stax

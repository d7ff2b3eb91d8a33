// Orders of rows, as a GPU computes them: what the loops compute, run by the reference executor,
// against sorted positions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/builder.h"
#include "support/run_ops.h"

namespace stax {
namespace {

using testing::Array;
using testing::kNaN;
using Numbers = std::vector<double>;

struct Ordered {
  Numbers values;
  std::vector<int64_t> positions;
  size_t kernels = 0, functions = 0;  // nodes of the loop program
};

Ordered order(const std::string& op, const Array& x, const std::vector<graph::VarArg>& arguments) {
  ShapeEnv env;
  graph::Graph graph;
  graph::Builder b{ops::table(), env, graph};
  const std::vector<Expr> sizes(x.sizes.begin(), x.sizes.end());
  std::vector<graph::VarArg> all = {b.input(graph::dense(x.dtype, sizes))};
  all.insert(all.end(), arguments.begin(), arguments.end());
  for (const graph::Var& v : b.call_all(op, all)) graph.outputs.push_back({v.value(), -1});
  const graph::Graph done = graph::run_passes({ops::table(), env}, graph);
  const auto lowered = lowering::lower(ops::table(), done, env, cuda_target_named("cuda:sm_90"));
  std::vector<Array> inputs = {x};
  const std::vector<Array> results = testing::run_lowered(lowered, inputs);
  Ordered out{.values = results[0].values(), .positions = results[1].integers()};
  for (const loops::Node& node : lowered.program.nodes)
    ++(node.kind == loops::NodeKind::external ? out.functions : out.kernels);
  return out;
}

/// Few different numbers from `least` on, in no order, so that equal ones lie in the same chunk and in
/// others; some are NaN.
Numbers scattered(int64_t count, double least = -500) {
  Numbers x;
  uint32_t state = 7;
  for (int64_t k = 0; k < count; ++k) {
    state = state * 1664525U + 1013904223U;
    x.push_back(state >> 24 == 3 ? kNaN : least + static_cast<double>(state >> 22));
  }
  return x;
}

/// Positions of the first `k` of `row`, equal elements in their order, NaN as the largest.
std::vector<int64_t> first(const Numbers& row, int64_t k, bool largest) {
  std::vector<int64_t> at(row.size());
  std::iota(at.begin(), at.end(), 0);
  const auto number = [&](int64_t i) {
    const double v = row[static_cast<size_t>(i)];
    return std::isnan(v) ? std::pair(1, 0.0) : std::pair(0, v);
  };
  std::stable_sort(at.begin(), at.end(), [&](int64_t i, int64_t j) {
    return largest ? number(i) > number(j) : number(i) < number(j);
  });
  at.resize(static_cast<size_t>(k));
  return at;
}

void expect_first(const Ordered& got, const Numbers& row, const std::vector<int64_t>& want) {
  EXPECT_EQ(got.positions, want);
  ASSERT_EQ(got.values.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    const double value = row[static_cast<size_t>(want[k])];
    EXPECT_TRUE(std::isnan(value) ? std::isnan(got.values[k]) : got.values[k] == value) << k;
    EXPECT_TRUE(std::isnan(value) || std::signbit(value) == std::signbit(got.values[k])) << k;
  }
  EXPECT_EQ(got.functions, 0u);
}

struct Top {
  int64_t length, k;
  size_t kernels;
};

void expect_top(DType dtype, const Top& top) {
  for (const bool largest : {true, false}) {
    SCOPED_TRACE(fmt::format("{} of {}, {}", top.k, top.length, largest));
    // Zeros behind the end would come before all of these.
    const Numbers row = scattered(top.length, largest ? -1024 : 1);
    const Ordered got =
        order("topk", testing::array(dtype, {top.length}, row), {Expr(top.k), Expr(0), largest, true});
    expect_first(got, row, first(row, top.k, largest));
    EXPECT_EQ(got.kernels, top.kernels);
  }
}

// A whole row of 4096; chunks of 512 that fill it, of which the last has enough or too few elements; and what
// chunks leave of 50257 elements, which is cut again: a count and a move each.
TEST(Orders, TopByRanksOfRowsOfAllLengths) {
  for (const Top& top : {Top{1, 1, 2},
                         {100, 0, 2},
                         {100, 100, 2},
                         {4096, 7, 2},
                         {4608, 5, 4},
                         {4613, 5, 4},
                         {4612, 5, 4},
                         {9000, 128, 4},
                         {50257, 50, 6}})
    expect_top(DType::float64, top);
}

// The same by chunks of 1024 that are sorted at once, as are rows of 2048. Chunks of 256 first elements would
// leave too much, so that all of a row is ranked.
TEST(Orders, TopOfSortedRowsOfAllLengths) {
  for (const Top& top : {Top{1, 1, 2},
                         {2, 1, 1},
                         {100, 0, 1},
                         {100, 100, 1},
                         {2048, 7, 1},
                         {4096, 5, 2},
                         {5125, 5, 2},
                         {5124, 5, 2},
                         {3000, 257, 2},
                         {9000, 128, 2},
                         {50257, 50, 3}})
    expect_top(DType::float32, top);
}

/// Numbers of `dtype`, many of them equal, the least and the largest and what is special among them.
Numbers of_dtype(DType dtype, int64_t count) {
  Numbers special;
  if (is_floating_point(dtype))
    special = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, kNaN, 0x1p-14, -0x1p-14, -kNaN};
  else if (dtype == DType::boolean || dtype == DType::uint8)
    special = {0, 1, dtype == DType::uint8 ? 255.0 : 1.0, dtype == DType::uint8 ? 128.0 : 0.0};
  else
    special = {-std::ldexp(1, 8 * static_cast<int>(itemsize(dtype)) - 1), -1,
               std::ldexp(1, 8 * static_cast<int>(itemsize(dtype)) - 1) - 1, 0};
  Numbers x = scattered(count);
  for (size_t k = 0; k < x.size(); ++k) {
    const double small = std::isnan(x[k]) ? 3 : std::fmod(std::abs(x[k]), 7);
    x[k] = k % 3 == 0 ? special[k / 3 % special.size()] : dtype == DType::boolean ? small > 3 : small;
  }
  return x;
}

TEST(Orders, SortsRowsOfEveryDtypeAtOnce) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::int32, DType::int16,
                            DType::int8, DType::uint8, DType::boolean, DType::float64, DType::int64}) {
    for (const int64_t length : {2, 37, 1024, 2047}) {
      for (const bool descending : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}, {}", length, name(dtype), descending));
        if (length > 1024 && itemsize(dtype) == 8) continue;
        const bool wide = dtype == DType::int64;
        const Numbers row = of_dtype(wide ? DType::int32 : dtype, length);
        const Ordered got =
            order("sort.stable", testing::array(dtype, {length}, row), {true, Expr(0), descending});
        expect_first(got, row, first(row, length, descending));
        EXPECT_EQ(got.kernels, itemsize(dtype) == 8 ? 2u : 1u);
      }
    }
  }
}

// Many elements of a long row, and sorting it, are left to the function.
TEST(Orders, WhatTakesTooManyComparisonsIsAFunction) {
  const auto functions = [](const std::string& op, int64_t length,
                            const std::vector<graph::VarArg>& arguments) {
    return order(op, testing::array(DType::float32, {length}, scattered(length)), arguments).functions;
  };
  EXPECT_EQ(functions("topk", 20000, {Expr(1000), Expr(0), true, true}), 1u);
  EXPECT_EQ(functions("topk", 16384, {Expr(1000), Expr(0), true, true}), 0u);
  EXPECT_EQ(functions("kthvalue", 20000, {Expr(3), Expr(0), true}), 1u);
}

TEST(Orders, SortsAlongAMiddleDimension) {
  const int64_t outer = 3, length = 50, inner = 4;
  const Numbers x = scattered(outer * length * inner);
  const Ordered got =
      order("sort.stable", testing::array(DType::float32, {outer, length, inner}, x), {true, Expr(1), false});
  EXPECT_EQ(got.functions, 0u);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      Numbers row;
      std::vector<int64_t> positions;
      for (int64_t k = 0; k < length; ++k) {
        const auto at = static_cast<size_t>((o * length + k) * inner + i);
        row.push_back(x[at]);
        positions.push_back(got.positions[at]);
      }
      EXPECT_EQ(positions, first(row, length, false)) << o << ", " << i;
    }
  }
}

}  // namespace
}  // namespace stax

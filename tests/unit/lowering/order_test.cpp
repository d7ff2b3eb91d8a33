// Orders of rows by ranks, as a GPU computes them: what the loops compute, run by the reference executor,
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
    return std::isnan(v) ? HUGE_VAL : v;
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
  }
  EXPECT_EQ(got.functions, 0u);
}

// A whole row of 4096; chunks of 512 that fill it, of which the last has enough or too few elements; and what
// chunks leave of 50257 elements, which is cut again.
TEST(Orders, TopOfRowsOfAllLengths) {
  struct Case {
    int64_t length, k;
    size_t kernels;  // a count and a move for each level
  };
  for (const auto& [length, k, kernels] : {Case{1, 1, 2},
                                           {100, 0, 2},
                                           {100, 100, 2},
                                           {4096, 7, 2},
                                           {4608, 5, 4},
                                           {4613, 5, 4},
                                           {4612, 5, 4},
                                           {9000, 128, 4},
                                           {50257, 50, 6}}) {
    for (const bool largest : {true, false}) {
      SCOPED_TRACE(fmt::format("{} of {}, {}", k, length, largest));
      // Zeros behind the end would come before all of these.
      const Numbers row = scattered(length, largest ? -1024 : 1);
      const Ordered got =
          order("topk", testing::array(DType::float32, {length}, row), {Expr(k), Expr(0), largest, true});
      expect_first(got, row, first(row, k, largest));
      EXPECT_EQ(got.kernels, kernels);
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

// The pass gather_one_hot. What products of one-hot rows are follows from their definition: the row of the
// class, or zeros.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/constant_evaluator.h"
#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "lowering/lowering.h"
#include "ops/table.h"
#include "reference/executor.h"
#include "stax/error.h"

namespace stax {
namespace {

using graph::Builder;
using graph::Graph;
using graph::num;
using graph::Var;
using graph::VarArg;
using Exprs = std::vector<Expr>;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct OneHotProduct : testing::Test {
  ShapeEnv env;
  Graph graph;
  Builder b{ops::table(), env, graph};

  template <class T>
  Var constant(DType dtype, Exprs sizes, const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    return b.constant(graph::dense(dtype, std::move(sizes)),
                      std::make_shared<std::vector<std::byte>>(bytes, bytes + values.size() * sizeof(T)));
  }
  /// 3 x 2 weights.
  Var weights(const Floats& values) { return constant(kFloat32, {3, 2}, values); }
  Var classes(Exprs sizes, DType dtype = kInt64) {
    return b.input(graph::dense(dtype, std::move(sizes)), "classes");
  }
  Var column(const Var& x) { return b.call("unsqueeze", {x, -1}); }
  Var to_float(const Var& x) { return b.call("to.dtype", {x, kFloat32}); }
  Var arange(int64_t first, int64_t end) { return b.call("arange.start", {first, end}); }
  Var equal(const Var& x, const Var& y) { return b.call("eq.Tensor", {x, y}); }

  /// The graph after the passes.
  Graph optimised(const Var& output) {
    graph.outputs = {{output.value(), -1}};
    return graph::run_passes({ops::table(), env, compiler::evaluate_constants}, graph);
  }
  static int count(const Graph& g, std::string_view op) {
    int found = 0;
    for (const graph::Node& n : g.nodes) found += n.op != nullptr && n.op->schema.name == op;
    return found;
  }
  /// Whether the product became a reading of rows.
  bool gathers(const Var& output) {
    const Graph g = optimised(output);
    EXPECT_EQ(count(g, "mm") + count(g, "index_select"), 1) << g.str();
    return count(g, "mm") == 0;
  }
  /// What the graph makes of `classes`.
  template <class T>
  Floats run(const Var& output, std::vector<T> classes) {
    const auto lowered = lowering::lower(ops::table(), optimised(output), env);
    const auto executable = reference::Executable::prepare(lowered.program);
    Floats out(static_cast<size_t>(output.numel().value()));
    std::vector<void*> inputs = {classes.data()}, outputs = {out.data()};
    executable->run({.inputs = inputs, .outputs = outputs});
    return out;
  }
};

TEST_F(OneHotProduct, ReadsTheRowsOfItsClasses) {
  const Var hot = to_float(equal(column(classes({4})), arange(0, 3)));
  const Var y = b.call("matmul", {hot, weights({1, 2, 3, 4, 5, 6})});
  EXPECT_TRUE(gathers(y));
  EXPECT_EQ(run<int64_t>(y, {2, 0, 1, 2}), (Floats{5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST_F(OneHotProduct, ClassesThatNoColumnHasGiveZeros) {
  const Var hot = to_float(equal(arange(0, 3), column(classes({5}))));
  const Var y = b.call("matmul", {hot, weights({1, 2, 3, 4, 5, 6})});
  EXPECT_TRUE(gathers(y));
  const int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(run<int64_t>(y, {3, -1, most, least, 1}), (Floats{0, 0, 0, 0, 0, 0, 0, 0, 3, 4}));
}

TEST_F(OneHotProduct, TakesBatchesAndColumnsThatAreConstants) {
  // As exporters write it: integers of 32 bits, expanded, compared with a constant row, cast.
  const Var x =
      b.call("expand", {b.call("reshape", {classes({2, 2}, kInt32), Exprs{-1, 2, 1}}), Exprs{2, 2, 1}});
  const Var hot = to_float(equal(x, constant<int32_t>(kInt32, {1, 1, 3}, {4, 5, 6})));
  const Var y = b.call("matmul", {hot, weights({1, 2, 3, 4, 5, 6})});
  EXPECT_TRUE(gathers(y));
  EXPECT_EQ(run<int32_t>(y, {6, 4, 0, 5}), (Floats{5, 6, 1, 2, 0, 0, 3, 4}));
}

TEST_F(OneHotProduct, TakesOnesAndZerosThatWhereChooses) {
  const Var hit = equal(column(classes({2})), arange(0, 3));
  const Var ones = constant<float>(kFloat32, {}, {1}), zeros = constant<float>(kFloat32, {}, {0});
  const Var y = b.call("matmul", {b.call("where.self", {hit, ones, zeros}), weights({1, 2, 3, 4, 5, 6})});
  EXPECT_TRUE(gathers(y));
  EXPECT_EQ(run<int64_t>(y, {1, 7}), (Floats{3, 4, 0, 0}));
  const Var twos = constant<float>(kFloat32, {}, {2});
  EXPECT_FALSE(
      gathers(b.call("matmul", {b.call("where.self", {hit, twos, zeros}), weights({1, 2, 3, 4, 5, 6})})));
}

TEST_F(OneHotProduct, TakesTheOperatorOneHotAndItsErrors) {
  const Var hot = to_float(b.call("one_hot", {classes({2}), 3}));
  const Var y = b.call("matmul", {hot, weights({1, 2, 3, 4, 5, 6})});
  EXPECT_TRUE(gathers(y));
  EXPECT_EQ(run<int64_t>(y, {2, 1}), (Floats{5, 6, 3, 4}));
  EXPECT_THROW(run<int64_t>(y, {2, 3}), UserError);
}

TEST_F(OneHotProduct, KeepsProductsWithInfinitiesAndNaN) {
  // 0 * inf is NaN, also in rows of other classes.
  for (const float value : {kInfinity, -kInfinity, std::nanf("")}) {
    graph = Graph();
    const Var hot = to_float(equal(column(classes({1})), arange(0, 3)));
    const Var y = b.call("matmul", {hot, weights({1, 2, value, 4, 5, 6})});
    EXPECT_FALSE(gathers(y));
    const Floats out = run<int64_t>(y, {0});
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], 2);
  }
}

TEST_F(OneHotProduct, NegativeZeroBecomesZeroAsInASum) {
  const Var hot = to_float(equal(column(classes({1})), arange(0, 3)));
  const Var y = b.call("matmul", {hot, weights({-0.0f, 2, 3, 4, 5, 6})});
  EXPECT_TRUE(gathers(y));
  const Floats out = run<int64_t>(y, {0});
  EXPECT_EQ(out[0], 0);
  EXPECT_FALSE(std::signbit(out[0]));
}

TEST_F(OneHotProduct, KeepsWhatIsNoSuchProduct) {
  const Var w = weights({1, 2, 3, 4, 5, 6});
  const Var x = classes({3});
  // Weights that are an input may hold anything.
  const Var input = b.input(graph::dense(kFloat32, {3, 2}), "w");
  EXPECT_FALSE(gathers(b.call("matmul", {to_float(equal(column(x), arange(0, 3))), input})));
  // Columns that do not count, and floating-point classes.
  EXPECT_FALSE(
      gathers(b.call("matmul", {to_float(equal(column(x), constant<int64_t>(kInt64, {3}, {0, 2, 1}))), w})));
  EXPECT_FALSE(gathers(b.call("matmul", {to_float(equal(column(to_float(x)), arange(0, 3))), w})));
  // The hot rows transposed: columns are one-hot, rows need not be.
  EXPECT_FALSE(gathers(b.call("matmul", {b.call("t", {to_float(equal(column(x), arange(0, 3)))}), w})));
}

TEST_F(OneHotProduct, ReadsClassesOfATransposedMatrixInItsOrder) {
  const Var square = b.call("t", {classes({2, 3})});
  const Var y =
      b.call("matmul", {to_float(equal(column(square), arange(0, 3))), weights({1, 2, 3, 4, 5, 6})});
  // [[0, 1, 2], [2, 0, 1]] transposed: classes 0 2, 1 0, 2 1.
  EXPECT_EQ(run<int64_t>(y, {0, 1, 2, 2, 0, 1}), (Floats{1, 2, 5, 6, 3, 4, 1, 2, 5, 6, 3, 4}));
}

}  // namespace
}  // namespace stax

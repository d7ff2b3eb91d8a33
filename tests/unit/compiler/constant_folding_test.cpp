// The pass fold_constants with the evaluator of the compiler.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/constant_evaluator.h"
#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "lowering/lowering.h"
#include "ops/table.h"

namespace stax {
namespace {

using graph::Builder;
using graph::Graph;
using graph::num;
using graph::Var;

struct ConstantFolding : testing::Test {
  ShapeEnv env;
  Graph graph;
  Builder b{ops::table(), env, graph};

  Graph folded(const Var& output) {
    graph.outputs.push_back({output.value(), -1});
    return graph::run_passes({ops::table(), env, compiler::evaluate_constants}, graph);
  }
  Var full(std::vector<Expr> sizes, double value) { return b.call("full", {sizes, value, DType::float32}); }
};

std::vector<float> constant_of(const Graph& g) {
  const graph::Node& node = g.nodes[g.outputs[0].value.node];
  if (node.kind != graph::NodeKind::constant) return {};
  std::vector<float> values(node.data->size() / sizeof(float));
  std::memcpy(values.data(), node.data->data(), node.data->size());
  return values;
}

TEST_F(ConstantFolding, ComputesWhatDependsOnNoInput) {
  const Graph g = folded(full({2}, 3) * full({2}, 4) + num(0.5));
  EXPECT_EQ(constant_of(g), (std::vector<float>{12.5f, 12.5f})) << g.str();
}

TEST_F(ConstantFolding, FoldsBesideSizesThatCallsChoose) {
  const Symbol n = env.new_symbol(SymbolKind::size, 5, Interval::at_least(2));
  const Graph constant = folded(full({2}, 3) * full({2}, 4));
  EXPECT_EQ(constant_of(constant), (std::vector<float>{12, 12})) << constant.str();
  graph.outputs.clear();
  // Small, but the number is of the call.
  const Graph open = folded(b.call("full", {std::vector<Expr>{2}, num(Expr(n)), DType::float32}) + num(1));
  EXPECT_EQ(constant_of(open), std::vector<float>{}) << open.str();
}

TEST_F(ConstantFolding, KeepsNegativeZeroAndNaN) {
  const Graph g = folded(
      b.call("cat", {graph::VarArg::Tensors{full({1}, -0.0) * num(1), full({1}, HUGE_VAL) * num(0)}, 0}));
  const auto values = constant_of(g);
  ASSERT_EQ(values.size(), 2u) << g.str();
  EXPECT_TRUE(values[0] == 0 && std::signbit(values[0]));
  EXPECT_TRUE(std::isnan(values[1]));
}

TEST_F(ConstantFolding, RoundsAsTheDTypeDoes) {
  // 1 + 2^-24 is 1 in float32.
  const Graph g = folded(full({1}, 1) + full({1}, 0x1p-24));
  EXPECT_EQ(constant_of(g), std::vector<float>{1.0f});
}

TEST_F(ConstantFolding, LeavesInputsRandomNumbersAndLargeResultsAlone) {
  const Var x = b.input(graph::dense(kFloat32, {2}));
  const Graph g = folded(x * num(0));  // x may be NaN
  EXPECT_EQ(g.nodes[g.outputs[0].value.node].kind, graph::NodeKind::call);
  graph.outputs.clear();
  const Graph large = folded(full({1 << 20}, 1) + num(1));
  EXPECT_EQ(large.nodes[large.outputs[0].value.node].kind, graph::NodeKind::call);
  graph.outputs.clear();
  const Graph random = folded(b.call("rand", {std::vector<Expr>{2}}) + num(1));
  EXPECT_EQ(random.nodes[random.outputs[0].value.node].kind, graph::NodeKind::call);
}

TEST_F(ConstantFolding, OneElementBecomesAnImmediate) {
  const Var x = b.input(graph::dense(kFloat32, {8}));
  const Graph g = folded(x * (full({}, 3) * full({}, 5)));
  const auto lowered = lowering::lower(ops::table(), g, env);
  ASSERT_EQ(lowered.program.nodes.size(), 1u);
  EXPECT_EQ(lowered.program.nodes[0].reads().size(), 1u) << lowered.program.str();
}

}  // namespace
}  // namespace stax

#include "lowering/lowering.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/pass_table.h"
#include "ops/table.h"
#include "support/run_ops.h"

namespace stax {
namespace {

using graph::Builder;
using graph::Graph;
using graph::num;
using graph::Var;

struct Fixture : ::testing::Test {
  ShapeEnv env;
  Graph graph;
  Builder b{ops::table(), env, graph};

  lowering::Lowered lower(std::vector<Var> outputs) {
    for (const Var& v : outputs) graph.outputs.push_back({v.value(), -1});
    const Graph done = graph::run_passes({ops::table(), env}, graph);
    return lowering::lower(ops::table(), done, env);
  }
};

TEST_F(Fixture, ChainOfPointwiseOperatorsIsOneNode) {
  const Var x = b.input(graph::dense(kFloat32, {4, 5}));
  const Var y = b.input(graph::dense(kFloat32, {5}));
  const auto lowered = lower({b.call("exp", {x * num(2) + y})});
  ASSERT_EQ(lowered.program.nodes.size(), 1u) << lowered.program.str();
  EXPECT_EQ(lowered.program.nodes[0].reads().size(), 2u);
}

TEST_F(Fixture, ReductionReadsItsProducerInline) {
  const Var x = b.input(graph::dense(kFloat32, {64, 128}));
  const auto lowered = lower({b.call("sum.dim_IntList", {x * x, std::vector<Expr>{-1}})});
  ASSERT_EQ(lowered.program.nodes.size(), 1u) << lowered.program.str();
  EXPECT_EQ(lowered.program.nodes[0].reduction_ranges, std::vector<Expr>{128});
}

TEST_F(Fixture, TransposedFormulaIsReadThroughItsIndexMap) {
  const Var x = b.input(graph::dense(kFloat32, {3, 4}));
  const auto lowered = lower({b.call("permute", {b.call("exp", {x}), std::vector<Expr>{1, 0}}) + num(1)});
  ASSERT_EQ(lowered.program.nodes.size(), 1u) << lowered.program.str();
  // Element (i0, i1) of the 4x3 result comes from element (i1, i0) of the row-major 3x4 input.
  EXPECT_NE(lowered.program.str().find("in0[i0 + 4*i1]"), std::string::npos) << lowered.program.str();
}

TEST_F(Fixture, LongReductionWithFewResultsIsSplit) {
  const Var x = b.input(graph::dense(kFloat32, {1 << 20}));
  const auto even = lower({b.call("sum", {x})});
  ASSERT_EQ(even.program.nodes.size(), 2u) << even.program.str();
  const loops::Node& first = even.program.nodes[0];
  ASSERT_EQ(first.ranges.size(), 1u);
  EXPECT_EQ(product(first.ranges) * product(first.reduction_ranges), Expr(1 << 20));
  EXPECT_EQ(even.program.str().find("lt"), std::string::npos) << "even chunks need no mask";
}

TEST_F(Fixture, UnevenSplitMasksItsLastChunk) {
  const Var x = b.input(graph::dense(kFloat32, {1000003}));  // a prime
  const auto uneven = lower({b.call("amax", {x})});
  ASSERT_EQ(uneven.program.nodes.size(), 2u) << uneven.program.str();
  EXPECT_NE(uneven.program.str().find("lt"), std::string::npos) << uneven.program.str();
}

// A scan stores what it scans along last, whatever the strides of its meta are: a view has to follow.
TEST_F(Fixture, ViewOfAScanReadsTheScannedElements) {
  const Var x = b.input(graph::dense(kFloat32, {2, 3}));
  const auto lowered = lower({b.call("permute", {b.call("cumsum", {x, 0}), std::vector<Expr>{1, 0}})});
  std::vector<testing::Array> inputs = {testing::array(kFloat32, {2, 3}, {1, 2, 3, 10, 20, 30})};
  EXPECT_EQ(testing::run_lowered(lowered, inputs).at(0).values(), (std::vector<double>{1, 11, 2, 22, 3, 33}));
}

// The result keeps what the input was before the write.
TEST_F(Fixture, AnInputThatIsAResultIsWrittenBackToo) {
  const Var x = b.input(graph::dense(kFloat32, {2}));
  graph.write_backs.push_back({0, (x + num(10)).value()});
  const auto lowered = lower({x});
  std::vector<testing::Array> inputs = {testing::array(kFloat32, {2}, {1, 2})};
  EXPECT_EQ(testing::run_lowered(lowered, inputs).at(0).values(), (std::vector<double>{1, 2}));
  EXPECT_EQ(inputs[0].values(), (std::vector<double>{11, 12}));
}

}  // namespace
}  // namespace stax

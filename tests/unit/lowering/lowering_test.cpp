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

  lowering::Lowered lower(std::vector<Var> outputs, const Target& target = {}) {
    for (const Var& v : outputs) graph.outputs.push_back({v.value(), -1});
    const Graph done = graph::run_passes({ops::table(), env}, graph);
    return lowering::lower(ops::table(), done, env, target);
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

// Chunks have their maximum and the sum of exponentials in one pass: x is read by it and by the quotient.
TEST_F(Fixture, LongSoftmaxOnAGpuReadsItsRowsTwice) {
  const Var x = b.input(graph::dense(kFloat32, {2, 20011}));
  const auto lowered = lower({b.call("softmax.int", {x, -1})}, cuda_target_named("cuda:sm_90"));
  int reads = 0;
  for (const loops::Node& node : lowered.program.nodes)
    for (const loops::Inst& inst : node.body)
      reads += inst.op == loops::OpCode::load && inst.buffer == lowered.program.inputs[0] ? 1 : 0;
  EXPECT_EQ(reads, 2) << lowered.program.str();
  EXPECT_NE(lowered.program.str().find("reduce_softmax"), std::string::npos) << lowered.program.str();
}

TEST_F(Fixture, FewSumsOfGatheredElementsGatherFirstOnAGpu) {
  const Var x = b.input(graph::dense(kFloat32, {1 << 20})), at = b.input(graph::dense(kInt64, {4096}));
  const auto lowered = lower({b.call("sum", {b.call("take", {x, at})})}, cuda_target_named("cuda:sm_90"));
  ASSERT_EQ(lowered.program.nodes.size(), 2u) << lowered.program.str();
  EXPECT_TRUE(lowered.program.nodes[0].reduction_ranges.empty()) << lowered.program.str();
}

// The maximum of one thing says nothing about exponentials of another.
TEST_F(Fixture, SumsOfOtherExponentialsAreTheirOwn) {
  const Var x = b.input(graph::dense(kFloat32, {2, 20011})), y = b.input(graph::dense(kFloat32, {2, 20011}));
  const Var high = b.call("amax", {x, std::vector<Expr>{-1}, true});
  const Var sum = b.call("sum.dim_IntList", {b.call("exp", {y - high}), std::vector<Expr>{-1}});
  const auto lowered = lower({sum, high}, cuda_target_named("cuda:sm_90"));
  EXPECT_EQ(lowered.program.str().find("reduce_softmax"), std::string::npos) << lowered.program.str();
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
TEST_F(Fixture, FormulasOverNothingAreNotComputed) {
  const Var x = b.input(graph::dense(kFloat32, {0, 7, 4}));
  const auto lowered = lower({b.call("exp", {x})});
  EXPECT_TRUE(lowered.program.nodes.empty()) << lowered.program.str();
}

TEST_F(Fixture, NothingThatAFunctionReadsIsWritten) {
  const Var x = b.input(graph::dense(kFloat32, {0, 7})), w = b.input(graph::dense(kFloat32, {7, 3}));
  const auto lowered = lower({b.call("mm", {b.call("exp", {x}), w})});
  EXPECT_EQ(lowered.program.nodes.size(), 2u) << lowered.program.str();
}

// It is computed, being 0, and what it would read has an address that can be written down.
TEST_F(Fixture, SumOfReshapedNothingDividesByNoLength) {
  const Var x = b.input(graph::dense(kFloat32, {0, 7, 4}));
  const Var moved = b.call("permute", {b.call("exp", {x}), std::vector<Expr>{1, 0, 2}});
  const auto lowered = lower({b.call("sum", {b.call("reshape", {moved, std::vector<Expr>{0}})})});
  ASSERT_EQ(lowered.program.nodes.size(), 1u) << lowered.program.str();
  EXPECT_EQ(lowered.program.str().find("% 0"), std::string::npos) << lowered.program.str();
  EXPECT_EQ(lowered.program.str().find("// 0"), std::string::npos) << lowered.program.str();
}

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

// Writes through views of values that are stored: what is written, and how much of the buffer it costs.
struct Writes : Fixture {
  const Var x = b.input(graph::dense(kFloat32, {6}));
  const Var sums = b.call("cumsum", {x, 0});  // stored: 1, 3, 6, 10, 15, 21
  std::vector<testing::Array> inputs = {testing::array(kFloat32, {6}, {1, 2, 3, 4, 5, 6})};

  Var slice(const Var& v, int64_t start, int64_t end) {
    return b.call("slice.Tensor", {v, 0, start, end, 1});
  }
  Var write(const Var& v, const Var& source, int64_t start, int64_t end) {
    return b.call("slice_scatter", {v, source, 0, start, end, 1});
  }
  std::vector<double> run(const lowering::Lowered& lowered, size_t result = 0) {
    return testing::run_lowered(lowered, inputs).at(result).values();
  }
  /// Elements that nodes without reduction store.
  int64_t stored(const lowering::Lowered& lowered) {
    int64_t n = 0;
    for (const loops::Node& node : lowered.program.nodes) {
      if (node.reduction_ranges.empty()) n += product(node.ranges).value();
    }
    return n;
  }
};

TEST_F(Writes, CostTheSliceAndNotTheBuffer) {
  const auto lowered = lower({write(sums, slice(x, 0, 2) * num(100), 1, 3)});
  EXPECT_EQ(stored(lowered), 2) << lowered.program.str();
  EXPECT_EQ(run(lowered), (std::vector<double>{1, 100, 200, 10, 15, 21}));
}

TEST_F(Writes, OfElementsThatTheSourceReads) {
  const auto lowered = lower({write(sums, slice(sums, 1, 3) * num(10), 1, 3)});
  EXPECT_EQ(stored(lowered), 2) << lowered.program.str();
  EXPECT_EQ(run(lowered), (std::vector<double>{1, 30, 60, 10, 15, 21}));
}

TEST_F(Writes, ComputeASourceThatReadsOtherElementsFirst) {
  const auto lowered = lower({write(sums, slice(sums, 0, 5), 1, 6)});
  EXPECT_EQ(stored(lowered), 10) << lowered.program.str();
  EXPECT_EQ(run(lowered), (std::vector<double>{1, 1, 3, 6, 10, 15}));
}

TEST_F(Writes, LeaveValuesAloneThatAreReadLater) {
  const auto itself = lower({write(sums, slice(x, 0, 2), 1, 3), sums});
  EXPECT_EQ(run(itself, 0), (std::vector<double>{1, 1, 2, 10, 15, 21}));
  EXPECT_EQ(run(itself, 1), (std::vector<double>{1, 3, 6, 10, 15, 21}));
}

TEST_F(Writes, LeaveValuesAloneThatFormulasReadLater) {
  const Var twice = sums * num(2);
  const Var written = write(sums, slice(x, 0, 2), 1, 3);
  const auto lowered = lower({written, twice + written});
  EXPECT_EQ(run(lowered, 0), (std::vector<double>{1, 1, 2, 10, 15, 21}));
  EXPECT_EQ(run(lowered, 1), (std::vector<double>{3, 7, 14, 30, 45, 63}));
}

TEST_F(Writes, LeaveValuesAloneWhoseViewsAreReadLater) {
  const Var head = slice(sums, 0, 2);
  const auto lowered = lower({write(sums, slice(x, 0, 2), 1, 3), head});
  EXPECT_EQ(run(lowered, 0), (std::vector<double>{1, 1, 2, 10, 15, 21}));
  EXPECT_EQ(run(lowered, 1), (std::vector<double>{1, 3}));
}

TEST_F(Writes, FollowEachOtherInOneBuffer) {
  Var y = sums;
  for (int64_t k = 0; k < 5; ++k)
    y = b.call("select_scatter", {y, b.call("select.int", {y, 0, k + 1}), 0, k});
  const auto lowered = lower({y});
  // Each source reads another element than it writes: computed, then written.
  EXPECT_EQ(stored(lowered), 10) << lowered.program.str();
  EXPECT_EQ(run(lowered), (std::vector<double>{3, 6, 10, 15, 21, 21}));
}

TEST_F(Writes, StayPartOfAFormulaThatIsComputedAnyway) {
  const auto lowered = lower({write(x * num(2), slice(x, 0, 2), 1, 3) + num(1)});
  EXPECT_EQ(lowered.program.nodes.size(), 1u) << lowered.program.str();
  EXPECT_EQ(run(lowered), (std::vector<double>{3, 2, 3, 9, 11, 13}));
}

TEST_F(Writes, ScatterIntoADyingValueCostsTheIndices) {
  const Var index = b.input(graph::dense(kInt64, {2}));
  inputs.push_back(testing::array(kInt64, {2}, {4, 0}));
  const auto lowered = lower({b.call("scatter.src", {sums, 0, index, slice(x, 0, 2)})});
  EXPECT_EQ(stored(lowered), 2) << lowered.program.str();
  EXPECT_EQ(run(lowered), (std::vector<double>{2, 3, 6, 10, 1, 21}));
}

}  // namespace
}  // namespace stax

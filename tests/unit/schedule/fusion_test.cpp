// Which nodes become one group. The expected groups follow from the rules by hand: what shares data at the
// same index over the same iterations is one kernel, and nothing else.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loops/parse.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace stax::schedule {
namespace {

using loops::Program;
using testing::ElementsAre;
using testing::HasSubstr;

struct Scheduled {
  Program program;
  Schedule schedule;

  /// Node names by group, in execution order.
  std::vector<std::vector<std::string>> groups() const {
    std::vector<std::vector<std::string>> out;
    for (const Group& g : schedule.groups) {
      out.emplace_back();
      for (const Member& m : g.members) out.back().push_back(program.nodes[m.node].name);
    }
    return out;
  }
  std::vector<std::string> local(size_t group) const {
    std::vector<std::string> out;
    for (loops::BufferId b : schedule.groups[group].local) out.push_back(program.buffers[b].name);
    return out;
  }
  std::string text() const { return schedule.str(program); }
};

Scheduled schedule(std::string_view text, Target target = {}) {
  Scheduled out{loops::parse_program(text), {}};
  loops::verify(out.program);
  out.schedule = make_schedule(out.program, target);
  verify(out.schedule, out.program);
  return out;
}

std::vector<std::string> text(const std::vector<Expr>& list) {
  std::vector<std::string> out;
  for (Expr e : list) out.push_back(e.str());
  return out;
}

constexpr std::string_view kSoftmax = R"(
buffer in0 float32 [256, 1000] input
buffer out0 float32 [256, 1000] output
buffer buf0 float32 [256] intermediate
buffer buf1 float32 [256] intermediate
node op0 "amax" [i0 < 256] [r0 < 1000]
  v0 = load float32 in0[1000*i0 + r0]
  v1 = reduce_max float32 v0
  store buf0[i0] v1
node op1 "exp, sum.dim" [i0 < 256] [r0 < 1000]
  v0 = load float32 in0[1000*i0 + r0]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = reduce_sum float32 v3
  store buf1[i0] v4
node op2 "div" [i0 < 256, i1 < 1000]
  v0 = load float32 in0[1000*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = load float32 buf1[i0]
  v5 = div_relaxed float32 v3 v4
  store out0[1000*i0 + i1] v5
)";

TEST(Fusion, SoftmaxIsOneGroup) {
  const Scheduled s = schedule(kSoftmax);
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1", "op2"))) << s.text();
  const Group& g = s.schedule.groups[0];
  EXPECT_EQ(g.name, "fused_amax_exp_sum_div_0");
  EXPECT_THAT(text(g.ranges), ElementsAre("256"));
  EXPECT_THAT(text(g.reduction_ranges), ElementsAre("1000"));
  EXPECT_THAT(s.local(0), ElementsAre("buf0", "buf1"));
  EXPECT_TRUE(g.members[2].over_reduction);
  EXPECT_EQ(g.members[2].body.back().index, g.members[0].body.front().index);
  EXPECT_TRUE(s.schedule.slots.empty());
}

TEST(Fusion, ManyRowsOnManyProcessorsStillFuse) {
  Target target;
  target.processors = 64;
  EXPECT_EQ(schedule(kSoftmax, target).groups().size(), 1u);
}

TEST(Fusion, FewRowsKeepTheirPointwiseTailParallel) {
  Target target;
  target.processors = 1024;
  const Scheduled s = schedule(kSoftmax, target);
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"), ElementsAre("op2"))) << s.text();
  EXPECT_THAT(s.text(), HasSubstr("only 256 rows would run in parallel"));
}

TEST(Fusion, LayerNormIsOneGroup) {
  // Rows lie in a tensor of three dimensions; the last step writes them as they are.
  const Scheduled s = schedule(R"(
buffer in0 float32 [4, 16, 64] input
buffer in1 float32 [64] input
buffer in2 float32 [64] input
buffer out0 float32 [4, 16, 64] output
buffer buf0 float32 [4, 16] intermediate
buffer buf1 float32 [4, 16] intermediate
buffer buf2 float32 [4, 16] intermediate
node op0 "var_mean" [i0 < 4, i1 < 16] [r0 < 64]
  v0 = load float32 in0[1024*i0 + 64*i1 + r0]
  v1 = reduce_welford float32 v0
  v2 = result float32 v1 number 1
  store buf0[16*i0 + i1] v1
  store buf1[16*i0 + i1] v2
node op1 "rsqrt" [i0 < 4, i1 < 16]
  v0 = load float32 buf1[16*i0 + i1]
  v1 = rsqrt float32 v0
  store buf2[16*i0 + i1] v1
node op2 "native_layer_norm" [i0 < 4, i1 < 16, i2 < 64]
  v0 = load float32 in0[1024*i0 + 64*i1 + i2]
  v1 = load float32 buf0[16*i0 + i1]
  v2 = load float32 buf2[16*i0 + i1]
  v3 = sub float32 v0 v1
  v4 = mul float32 v3 v2
  v5 = load float32 in1[i2]
  v6 = load float32 in2[i2]
  v7 = fma float32 v4 v5 v6
  store out0[1024*i0 + 64*i1 + i2] v7
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1", "op2"))) << s.text();
  const Group& g = s.schedule.groups[0];
  EXPECT_THAT(text(g.ranges), ElementsAre("64"));
  EXPECT_THAT(text(g.reduction_ranges), ElementsAre("64"));
  EXPECT_THAT(s.local(0), ElementsAre("buf0", "buf1", "buf2"));
  EXPECT_FALSE(g.members[1].over_reduction);
  EXPECT_TRUE(g.members[2].over_reduction);
}

TEST(Fusion, CrossEntropyOfEachRowIsOneGroup) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [32, 1000] input
buffer in1 int64 [32] input
buffer out0 float32 [32] output
buffer buf0 float32 [32] intermediate
buffer buf1 float32 [32] intermediate
node op0 "log_softmax" [i0 < 32] [r0 < 1000]
  v0 = load float32 in0[1000*i0 + r0]
  v1 = reduce_max float32 v0
  store buf0[i0] v1
node op1 "log_softmax" [i0 < 32] [r0 < 1000]
  v0 = load float32 in0[1000*i0 + r0]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = reduce_sum float32 v3
  store buf1[i0] v4
node op2 "nll_loss" [i0 < 32]
  v0 = load int64 in1[i0]
  v1 = check_index int64 v0 size 1000
  v2 = load float32 in0[1000*i0 + t0] indirect v1
  v3 = load float32 buf0[i0]
  v4 = load float32 buf1[i0]
  v5 = log float32 v4
  v6 = sub float32 v2 v3
  v7 = sub float32 v5 v6
  store out0[i0] v7
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1", "op2"))) << s.text();
  EXPECT_EQ(s.schedule.groups[0].name, "fused_log_softmax_nll_loss_0");
}

TEST(Fusion, PointwiseChainIsOneGroupAndOneLoop) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [8, 1, 16] input
buffer in1 float32 [8, 16] input
buffer out0 float32 [128] output
buffer buf0 float32 [8, 16] intermediate
node op0 "add.Tensor" [i0 < 8, i1 < 1, i2 < 16]
  v0 = load float32 in0[16*i0 + 16*i1 + i2]
  v1 = load float32 in1[16*i0 + i2]
  v2 = add float32 v0 v1
  store buf0[16*i0 + i2] v2
node op1 "relu" [i0 < 128]
  v0 = load float32 buf0[i0]
  v1 = relu float32 v0
  store out0[i0] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"))) << s.text();
  EXPECT_THAT(text(s.schedule.groups[0].ranges), ElementsAre("128"));
  EXPECT_EQ(s.schedule.groups[0].name, "fused_add_relu_0");
  ASSERT_EQ(s.schedule.decisions.size(), 1u);
  EXPECT_EQ(s.schedule.decisions[0].bytes_saved, 2 * 128 * 4);  // buf0 is neither written nor read
}

TEST(Fusion, TransposedAccessFollowsTheProducer) {
  // op1 runs over the transpose of what op0 runs over; the loops follow the stores.
  const Scheduled s = schedule(R"(
buffer in0 float32 [512, 256] input
buffer in1 float32 [256, 512] input
buffer out0 float32 [256, 512] output
buffer buf0 float32 [512, 256] intermediate
node op0 "exp" [i0 < 512, i1 < 256]
  v0 = load float32 in0[256*i0 + i1]
  v1 = exp float32 v0
  store buf0[256*i0 + i1] v1
node op1 "add" [i0 < 256, i1 < 512]
  v0 = load float32 buf0[256*i1 + i0]
  v1 = load float32 in1[512*i0 + i1]
  v2 = add float32 v0 v1
  store out0[512*i0 + i1] v2
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"))) << s.text();
  const Group& g = s.schedule.groups[0];
  EXPECT_EQ(g.ranges.size(), 2u);
  EXPECT_EQ(g.members[0].body.back().index, g.members[1].body.front().index);
}

TEST(Fusion, SplitHeadsMeetTheFlatProducer) {
  // [2, 8, 12] written flat, read as [2, 3, 8, 4]: the last dimension is cut and swapped.
  const Scheduled s = schedule(R"(
buffer in0 float32 [192] input
buffer out0 float32 [2, 3, 8, 4] output
buffer buf0 float32 [2, 8, 12] intermediate
node op0 "relu" [i0 < 192]
  v0 = load float32 in0[i0]
  v1 = relu float32 v0
  store buf0[i0] v1
node op1 "mul" [i0 < 2, i1 < 3, i2 < 8, i3 < 4]
  v0 = load float32 buf0[96*i0 + 4*i1 + 12*i2 + i3]
  v1 = mul float32 v0 v0
  store out0[96*i0 + 32*i1 + 4*i2 + i3] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"))) << s.text();
  EXPECT_THAT(s.local(0), ElementsAre("buf0"));
}

TEST(Fusion, SiblingReductionsShareTheirInput) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [64, 128] input
buffer out0 float32 [64] output
buffer out1 float32 [64] output
node op0 "sum" [i0 < 64] [r0 < 128]
  v0 = load float32 in0[128*i0 + r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
node op1 "amax" [i0 < 64] [r0 < 128]
  v0 = load float32 in0[128*i0 + r0]
  v1 = reduce_max float32 v0
  store out1[i0] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"))) << s.text();
}

TEST(Fusion, ReductionsOverDifferentDimensionsStayApart) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [64, 64] input
buffer out0 float32 [64] output
buffer out1 float32 [64] output
node op0 "sum" [i0 < 64] [r0 < 64]
  v0 = load float32 in0[64*i0 + r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
node op1 "sum" [i0 < 64] [r0 < 64]
  v0 = load float32 in0[64*r0 + i0]
  v1 = reduce_sum float32 v0
  store out1[i0] v1
)");
  EXPECT_EQ(s.groups().size(), 2u) << s.text();
}

TEST(Fusion, ColumnReductionTakesItsPointwiseProducer) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [1024, 32] input
buffer out0 float32 [32] output
buffer buf0 float32 [1024, 32] intermediate
node op0 "mul" [i0 < 32768]
  v0 = load float32 in0[i0]
  v1 = mul float32 v0 v0
  store buf0[i0] v1
node op1 "sum" [i0 < 32] [r0 < 1024]
  v0 = load float32 buf0[32*r0 + i0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"))) << s.text();
  EXPECT_THAT(text(s.schedule.groups[0].ranges), ElementsAre("32"));
  EXPECT_THAT(text(s.schedule.groups[0].reduction_ranges), ElementsAre("1024"));
}

TEST(Fusion, FullReductionTakesProducerAndEpilogue) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [16, 16] input
buffer out0 float32 [] output
buffer buf0 float32 [16, 16] intermediate
buffer buf1 float32 [] intermediate
node op0 "abs" [i0 < 16, i1 < 16]
  v0 = load float32 in0[16*i0 + i1]
  v1 = abs float32 v0
  store buf0[16*i0 + i1] v1
node op1 "sum" [] [r0 < 16, r1 < 16]
  v0 = load float32 buf0[16*r0 + r1]
  v1 = reduce_sum float32 v0
  store buf1[0] v1
node op2 "sqrt" []
  v0 = load float32 buf1[0]
  v1 = sqrt float32 v0
  store out0[0] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1", "op2"))) << s.text();
  EXPECT_THAT(text(s.schedule.groups[0].ranges), ElementsAre());
  EXPECT_THAT(text(s.schedule.groups[0].reduction_ranges), ElementsAre("256"));
}

TEST(Fusion, SplitReductionIsTwoGroups) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [64, 16384] input
buffer out0 float32 [64] output
buffer buf0 float32 [64, 2] intermediate
node op0 "mul, sum" [i0 < 64, i1 < 2] [r0 < 8192]
  v0 = load float32 in0[16384*i0 + 8192*i1 + r0]
  v1 = mul float32 v0 v0
  v2 = reduce_sum float32 v1
  store buf0[2*i0 + i1] v2
node op1 "sum" [i0 < 64] [r0 < 2]
  v0 = load float32 buf0[2*i0 + r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0"), ElementsAre("op1"))) << s.text();
  EXPECT_THAT(text(s.schedule.groups[0].ranges), ElementsAre("128"));
  EXPECT_EQ(s.schedule.slots.size(), 1u);
}

TEST(Fusion, NeverMakesACycle) {
  // op0 and op2 share in0 and would fuse, but op1 (external) lies between them.
  const Scheduled s = schedule(R"(
buffer in0 float32 [64] input
buffer out0 float32 [64] output
buffer buf0 float32 [64] intermediate
buffer buf1 float32 [64] intermediate
node op0 "relu" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = relu float32 v0
  store buf0[i0] v1
external op1 "sort" "sort.stable"
  argument tensor buf0 float32 [64] strides [1] offset 0
  result buf1 float32 [64] strides [1] offset 0
node op2 "add" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = load float32 buf1[i0]
  v2 = add float32 v0 v1
  store out0[i0] v2
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0"), ElementsAre("op1"), ElementsAre("op2")));
  EXPECT_TRUE(s.schedule.groups[1].external);
  EXPECT_EQ(s.schedule.groups[1].name, "external_sort_1");
  EXPECT_THAT(s.text(), HasSubstr("would make a cycle"));
}

TEST(Fusion, ReadingAnotherElementKeepsNodesApart) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [64] input
buffer out0 float32 [64] output
buffer buf0 float32 [64] intermediate
node op0 "relu" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = relu float32 v0
  store buf0[i0] v1
node op1 "flip" [i0 < 64]
  v0 = load float32 buf0[63 - i0]
  v1 = neg float32 v0
  store out0[i0] v1
)");
  EXPECT_EQ(s.groups().size(), 2u);
  EXPECT_THAT(s.text(), HasSubstr("buf0 is written and read at different indices"));
}

TEST(Fusion, AMaskedLoadIsNotTheStoredValue) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [64] input
buffer in1 bool [64] input
buffer out0 float32 [64] output
buffer buf0 float32 [64] intermediate
node op0 "relu" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = relu float32 v0
  store buf0[i0] v1
node op1 "copy" [i0 < 64]
  v0 = load bool in1[i0]
  v1 = load float32 buf0[i0] mask v0
  store out0[i0] v1
)");
  EXPECT_EQ(s.groups().size(), 2u) << s.text();
}

// The mask is never true: the load lies past the end, and does not depend on the store.
TEST(Fusion, ABufferThatIsLoadedElsewhereKeepsItsMemory) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [1] input
buffer out0 float32 [] output
buffer out1 float32 [3] output
buffer buf0 float32 [1] intermediate
node op0 "relu" [i0 < 1]
  v0 = load float32 in0[0]
  v1 = relu float32 v0
  store buf0[0] v1
node op1 "sum" [] [r0 < 3]
  v0 = index_value int64 r0 + 1
  v1 = index_value int64 1
  v2 = lt bool v0 v1
  v3 = load float32 buf0[r0 + 1] mask v2
  v4 = reduce_sum float32 v3
  store out0[0] v4
node op2 "neg" [i0 < 3]
  v0 = load float32 buf0[0]
  v1 = index_value int64 i0 + 1
  v2 = index_value int64 1
  v3 = lt bool v1 v2
  v4 = load float32 buf0[i0 + 1] mask v3
  v5 = sub float32 v4 v0
  store out1[i0] v5
)");
  for (const Group& g : s.schedule.groups) EXPECT_THAT(g.local, testing::IsEmpty()) << s.text();
}

TEST(Fusion, WriteAfterReadOfAMutatedInput) {
  // op1 overwrites in0, which op0 reads: at the same element they may fuse, reversed they may not.
  const auto program = [](std::string_view index) {
    return fmt::format(R"(
buffer in0 float32 [64] input mutated
buffer out0 float32 [64] output
node op0 "exp" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = exp float32 v0
  store out0[i0] v1
node op1 "add_" [i0 < 64]
  v0 = load float32 out0[i0]
  v1 = add float32 v0 v0
  store in0[{}] v1
)",
                       index);
  };
  const Scheduled same = schedule(program("i0"));
  EXPECT_THAT(same.groups(), ElementsAre(ElementsAre("op0", "op1"))) << same.text();
  const Scheduled reversed = schedule(program("63 - i0"));
  EXPECT_THAT(reversed.groups(), ElementsAre(ElementsAre("op0"), ElementsAre("op1"))) << reversed.text();
}

TEST(Fusion, AnInputIsOverwrittenOnlyInTheLastPass) {
  // op1 writes in0; op2 reduces once more over the same rows, and might recompute from in0.
  const Scheduled s = schedule(R"(
buffer in0 float32 [8, 16] input mutated
buffer out0 float32 [8] output
buffer buf0 float32 [8] intermediate
node op0 "sum" [i0 < 8] [r0 < 16]
  v0 = load float32 in0[16*i0 + r0]
  v1 = reduce_sum float32 v0
  store buf0[i0] v1
node op1 "div_" [i0 < 8, i1 < 16]
  v0 = load float32 in0[16*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = div float32 v0 v1
  store in0[16*i0 + i1] v2
node op2 "amax" [i0 < 8] [r0 < 16]
  v0 = load float32 in0[16*i0 + r0]
  v1 = reduce_max float32 v0
  store out0[i0] v1
)");
  EXPECT_EQ(s.groups().size(), 2u) << s.text();
}

TEST(Fusion, PartsOfOneBufferAreIndependent) {
  // cat along the last dimension: two writers of different columns, then a reader of all.
  const Scheduled s = schedule(R"(
buffer in0 float32 [8, 4] input
buffer out0 float32 [8, 8] output
node op0 "cat" [i0 < 8, i1 < 4]
  v0 = load float32 in0[4*i0 + i1]
  store out0[8*i0 + i1] v0
node op1 "cat" [i0 < 8, i1 < 4]
  v0 = load float32 in0[4*i0 + i1]
  v1 = neg float32 v0
  store out0[8*i0 + i1 + 4] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"))) << s.text();
}

TEST(Fusion, OverlappingPartsStayInOrder) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [8, 4] input
buffer out0 float32 [8, 8] output
node op0 "cat" [i0 < 8, i1 < 4]
  v0 = load float32 in0[4*i0 + i1]
  store out0[8*i0 + i1] v0
node op1 "cat" [i0 < 8, i1 < 4]
  v0 = load float32 in0[4*i0 + i1]
  v1 = neg float32 v0
  store out0[8*i0 + i1 + 3] v1
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0"), ElementsAre("op1"))) << s.text();
}

TEST(Fusion, GroupsStayBelowTheLimit) {
  std::string program = "buffer in0 float32 [16] input\nbuffer out0 float32 [16] output\n";
  constexpr int kNodes = 100;
  for (int k = 0; k + 1 < kNodes; ++k) program += fmt::format("buffer buf{} float32 [16] intermediate\n", k);
  for (int k = 0; k < kNodes; ++k) {
    const std::string from = k == 0 ? "in0" : fmt::format("buf{}", k - 1);
    const std::string to = k + 1 == kNodes ? "out0" : fmt::format("buf{}", k);
    program += fmt::format(
        "node op{} \"relu\" [i0 < 16]\n  v0 = load float32 {}[i0]\n  v1 = relu float32 v0\n  store {}[i0] "
        "v1\n",
        k, from, to);
  }
  const Scheduled s = schedule(program);
  size_t nodes = 0;
  for (const auto& g : s.groups()) {
    EXPECT_LE(g.size(), 64u);
    nodes += g.size();
  }
  EXPECT_EQ(nodes, 100u);
  EXPECT_LE(s.groups().size(), 4u);
}

TEST(Fusion, SymbolicSizesFuse) {
  const Scheduled s = schedule(R"(
buffer in0 float32 [s0, s1] input
buffer out0 float32 [s0, s1] output
buffer buf0 float32 [s0] intermediate
bind s0 size 0 0
bind s1 size 0 1
node op0 "sum" [i0 < s0] [r0 < s1]
  v0 = load float32 in0[s1*i0 + r0]
  v1 = reduce_sum float32 v0
  store buf0[i0] v1
node op1 "div" [i0 < s0, i1 < s1]
  v0 = load float32 in0[s1*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = div float32 v0 v1
  store out0[s1*i0 + i1] v2
)");
  EXPECT_THAT(s.groups(), ElementsAre(ElementsAre("op0", "op1"))) << s.text();
}

// The loss of rows: what is gathered by target belongs to the kernel with one instance a row, not to the sum,
// which has one in all. The two sums are one kernel though the quotient met the first of them earlier.
TEST(Fusion, OnAGpuGathersGoWhereThereAreInstances) {
  constexpr std::string_view kLoss = R"(
buffer in0 float32 [8192, 4096] input
buffer in1 int64 [8192] input
buffer buf0 float32 [8192] intermediate
buffer buf1 float32 [8192] intermediate
buffer buf2 float32 [] intermediate
buffer buf3 float32 [] intermediate
buffer buf4 float32 [8192] intermediate
buffer out0 float32 [] output
node op0 "amax" [i0 < 8192] [r0 < 4096]
  v0 = load float32 in0[4096*i0 + r0]
  v1 = reduce_max float32 v0
  store buf4[i0] v1
node op5 "sum" [i0 < 8192] [r0 < 4096]
  v0 = load float32 in0[4096*i0 + r0]
  v1 = load float32 buf4[i0]
  v2 = sub float32 v0 v1
  v3 = reduce_sum float32 v2
  store buf0[i0] v3
node op1 "count" [] [r0 < 8192]
  v0 = load int64 in1[r0]
  v1 = cast float32 v0
  v2 = reduce_sum float32 v1
  store buf2[0] v2
node op2 "gather" [i0 < 8192]
  v0 = load int64 in1[i0]
  v1 = check_index int64 v0 size 4096
  v2 = load float32 in0[4096*i0 + t0] indirect v1
  v3 = load float32 buf0[i0]
  v4 = sub float32 v2 v3
  store buf1[i0] v4
node op3 "sum" [] [r0 < 8192]
  v0 = load float32 buf1[r0]
  v1 = reduce_sum float32 v0
  store buf3[0] v1
node op4 "div" []
  v0 = load float32 buf3[0]
  v1 = load float32 buf2[0]
  v2 = div float32 v0 v1
  store out0[0] v2
)";
  const Scheduled gpu = schedule(kLoss, cuda_target_named("cuda:sm_90"));
  EXPECT_THAT(gpu.groups(), ElementsAre(ElementsAre("op0", "op5", "op2"), ElementsAre("op1", "op3", "op4")))
      << gpu.text();
  const Scheduled cpu = schedule(kLoss);
  EXPECT_THAT(cpu.groups(), ElementsAre(ElementsAre("op0", "op5"), ElementsAre("op1", "op2", "op3", "op4")))
      << cpu.text();
}

}  // namespace
}  // namespace stax::schedule

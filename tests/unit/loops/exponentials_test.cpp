// Maxima and sums of exponentials in chunks: when a pass over the values finds both.
#include "loops/exponentials.h"

#include <gtest/gtest.h>

#include "loops/parse.h"

namespace stax::loops {
namespace {

constexpr const char* kProgram = R"(
buffer in0 float32 [2, 4096] strides [4096, 1] input
buffer max float32 [2, 4] strides [4, 1] intermediate
buffer row float32 [2] strides [1] intermediate
buffer sum float32 [2, 4] strides [4, 1] intermediate
buffer out0 float32 [2] strides [1] output
inputs [in0]
outputs [out0]
node op0 "amax" [i0 < 2, i1 < 4] [r0 < 1024]
  v0 = load float32 in0[4096*i0 + 1024*i1 + r0]
  v1 = reduce_max float32 v0
  store max[4*i0 + i1] v1
node op1 "amax" [i0 < 2] [r0 < 4]
  v0 = load float32 max[4*i0 + r0]
  v1 = reduce_max float32 v0
  store row[i0] v1
node op2 "sum" [i0 < 2, i1 < 4] [r0 < 1024]
  v0 = load float32 in0[4096*i0 + 1024*i1 + r0]
  v1 = load float32 row[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = reduce_sum float32 v3
  store sum[4*i0 + i1] v4
node op3 "sum" [i0 < 2] [r0 < 4]
  v0 = load float32 sum[4*i0 + r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)";

/// The program with `from` replaced, after the pass.
Program merged(const std::string& from = "", const std::string& to = "") {
  std::string text = kProgram;
  if (!from.empty()) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  Program program = parse_program(text);
  verify(program);
  merge_split_softmax(program);
  verify(program);
  return program;
}

TEST(SplitSoftmax, SumsOfExponentialsAreFoundWithTheMaximum) {
  const Program program = merged();
  ASSERT_EQ(program.nodes.size(), 3u) << program.str();
  EXPECT_NE(program.str().find("reduce_softmax"), std::string::npos) << program.str();
  EXPECT_EQ(program.nodes[2].reads(), (std::vector<BufferId>{2, 1, 3})) << program.str();
}

// The second one is taken below 0 where the maximum is infinite.
TEST(SplitSoftmax, TwoSumsBelowOneMaximumAreOne) {
  std::string text = kProgram;
  text.insert(text.find("inputs"), R"(buffer sum2 float32 [2, 4] strides [4, 1] intermediate
buffer out1 float32 [2] strides [1] output
)");
  text.replace(text.find("outputs [out0]"), 14, "outputs [out0, out1]");
  text += R"(node op4 "sum" [i0 < 2, i1 < 4] [r0 < 1024]
  v0 = load float32 in0[4096*i0 + 1024*i1 + r0]
  v1 = load float32 row[i0]
  v2 = isinf bool v1
  v3 = constant float32 0.0
  v4 = where float32 v2 v3 v1
  v5 = sub float32 v0 v4
  v6 = exp float32 v5
  v7 = reduce_sum float32 v6
  store sum2[4*i0 + i1] v7
node op5 "sum" [i0 < 2] [r0 < 4]
  v0 = load float32 sum2[4*i0 + r0]
  v1 = reduce_sum float32 v0
  store out1[i0] v1
)";
  Program program = parse_program(text);
  merge_split_softmax(program);
  verify(program);
  ASSERT_EQ(program.nodes.size(), 4u) << program.str();
  EXPECT_EQ(program.nodes[0].writes().size(), 2u) << program.str();
  EXPECT_EQ(program.nodes[2].reads(), (std::vector<BufferId>{2, 1, 3}));
  EXPECT_EQ(program.nodes[3].reads(), (std::vector<BufferId>{2, 1, 3}));
}

TEST(SplitSoftmax, OtherSumsStayWhatTheyAre) {
  const std::string second = "node op2 \"sum\" [i0 < 2, i1 < 4] [r0 < 1024]\n  v0 = load float32 in0[";
  const std::string x = "4096*i0 + 1024*i1 + r0]";
  // Of other values, below another row's maximum, of other functions, and read before they are added up.
  EXPECT_EQ(merged(second + x, second + "4096*i0 + 1024*i1 - r0 + 1023]").nodes.size(), 4u);
  EXPECT_EQ(merged("row[i0]\n  v2", "row[1 - i0]\n  v2").nodes.size(), 4u);
  EXPECT_EQ(merged("exp float32", "exp2 float32").nodes.size(), 4u);
  EXPECT_EQ(merged("sub float32 v0 v1", "sub float32 v1 v0").nodes.size(), 4u);
  EXPECT_EQ(merged("load float32 sum[4*i0 + r0]", "load float32 sum[4*i0 - r0 + 3]").nodes.size(), 4u);
  EXPECT_EQ(merged("load float32 max[4*i0 + r0]", "load float32 max[4*i0]").nodes.size(), 4u);
}

TEST(SplitSoftmax, ValuesThatChangeBetweenBothAreReadAgain) {
  const std::string change =
      "node op4 \"relu_\" [i0 < 8192]\n  v0 = load float32 in0[i0]\n  v1 = relu float32 v0\n  store in0[i0] "
      "v1\n";
  const std::string input = "strides [4096, 1] input";
  std::string text = kProgram;
  text.replace(text.find(input), input.size(), input + " mutated");
  const auto nodes_changed_before = [&](const std::string& node) {
    std::string changed = text;
    changed.insert(changed.find(node), change);
    Program program = parse_program(changed);
    verify(program);
    merge_split_softmax(program);
    return program.nodes.size();
  };
  EXPECT_EQ(nodes_changed_before("node op1"), 5u);
  EXPECT_EQ(nodes_changed_before("node op2"), 5u);
  // Before the maxima, and after the sums of chunks, nobody minds.
  EXPECT_EQ(nodes_changed_before("node op0"), 4u);
  EXPECT_EQ(nodes_changed_before("node op3"), 4u);
}

}  // namespace
}  // namespace stax::loops

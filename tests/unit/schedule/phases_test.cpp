// Which groups become later loop nests of another one's kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loops/parse.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace stax::schedule {
namespace {

using testing::HasSubstr;

Schedule schedule(const loops::Program& program, Target target) {
  loops::verify(program);
  Schedule out = make_schedule(program, target);
  verify(out, program);
  return out;
}

/// Sums of `rows` rows of `columns` numbers, then their sum.
loops::Program two_sums(int rows, int columns) {
  return loops::parse_program(fmt::format(R"(
buffer in0 float32 [{0}, {1}] input
buffer out0 float32 [] output
buffer buf0 float32 [{0}] intermediate
node op0 "sum" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = reduce_sum float32 v0
  store buf0[i0] v1
node op1 "amax" [] [r0 < {0}]
  v0 = load float32 buf0[r0]
  v1 = reduce_max float32 v0
  store out0[0] v1
)",
                                          rows, columns));
}

TEST(Phases, AReductionOfResultsJoinsTheirKernel) {
  const loops::Program program = two_sums(1000, 10);
  const Schedule s = schedule(program, {.processors = 2, .phases = 2});
  ASSERT_EQ(s.groups.size(), 1u) << s.str(program);
  ASSERT_EQ(s.groups[0].later.size(), 1u);
  EXPECT_EQ(s.groups[0].name, "fused_sum_amax_0");
  // The results travel through memory: 4000 bytes, in lines of 64.
  ASSERT_EQ(s.slots.size(), 1u);
  EXPECT_EQ(s.arena_bytes.value(), 4032);
  ASSERT_EQ(s.decisions.size(), 2u);
  EXPECT_THAT(s.decisions.back().reason, HasSubstr("once the first is done"));
}

TEST(Phases, NotOnATargetWithoutThem) {
  const loops::Program program = two_sums(1000, 10);
  EXPECT_EQ(schedule(program, {.processors = 2}).groups.size(), 2u);
}

TEST(Phases, NotWhatIsAlmostAsMuchWork) {
  const loops::Program long_rows = two_sums(1 << 20, 4), short_rows = two_sums(1 << 20, 3);
  EXPECT_EQ(schedule(long_rows, {.processors = 2, .phases = 2}).groups.size(), 1u);
  EXPECT_EQ(schedule(short_rows, {.processors = 2, .phases = 2}).groups.size(), 2u);
}

TEST(Phases, AsManyAsTheTargetAllows) {
  std::string text = "buffer in0 float32 [16, 16] input\nbuffer out0 float32 [] output\n";
  for (int k = 0; k < 3; ++k) text += fmt::format("buffer buf{} float32 [16] intermediate\n", k);
  text +=
      "node op0 \"sum\" [i0 < 16] [r0 < 16]\n  v0 = load float32 in0[16*i0 + r0]\n  v1 = reduce_sum float32 "
      "v0\n  store buf0[i0] v1\n";
  for (int k = 1; k < 3; ++k)  // reversed, so that it cannot fuse
    text += fmt::format(
        "node op{0} \"flip\" [i0 < 16]\n  v0 = load float32 buf{1}[15 - i0]\n  store buf{0}[i0] v0\n", k,
        k - 1);
  text +=
      "node op3 \"sum\" [] [r0 < 16]\n  v0 = load float32 buf2[r0]\n  v1 = reduce_sum float32 v0\n  store "
      "out0[0] v1\n";
  const loops::Program program = loops::parse_program(text);
  const size_t apart = schedule(program, {.processors = 2}).groups.size();
  EXPECT_GE(apart, 3u);
  EXPECT_EQ(schedule(program, {.processors = 2, .phases = 2}).groups.size(), (apart + 1) / 2);
  EXPECT_EQ(schedule(program, {.processors = 2, .phases = 8}).groups.size(), 1u);
}

TEST(Phases, AGroupBetweenTwoOthersStaysBetweenThem) {
  // op2 waits for op1, a call, which waits for op0: it cannot join op0's kernel.
  const loops::Program program = loops::parse_program(R"(
buffer in0 float32 [16, 8] input
buffer out0 float32 [] output
buffer buf0 float32 [16] intermediate
buffer buf1 float32 [16] intermediate
node op0 "sum" [i0 < 16] [r0 < 8]
  v0 = load float32 in0[8*i0 + r0]
  v1 = reduce_sum float32 v0
  store buf0[i0] v1
external op1 "sort" "sort.stable"
  argument tensor buf0 float32 [16] strides [1] offset 0
  result buf1 float32 [16] strides [1] offset 0
node op2 "sum" [] [r0 < 16]
  v0 = load float32 buf0[r0]
  v1 = load float32 buf1[r0]
  v2 = mul float32 v0 v1
  v3 = reduce_sum float32 v2
  store out0[0] v3
)");
  EXPECT_EQ(schedule(program, {.processors = 2, .phases = 8}).groups.size(), 3u);
}

}  // namespace
}  // namespace stax::schedule

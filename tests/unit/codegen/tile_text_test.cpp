// What kernels for GPUs say.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/tile/tile_kernel.h"
#include "codegen/triton/printer.h"
#include "loops/parse.h"

namespace stax::codegen {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string triton_text(const std::string& text) {
  const loops::Program program = loops::parse_program(text);
  const Target target = cuda_target_named("cuda:sm_90");
  const schedule::Schedule schedule = schedule::make_schedule(program, target);
  return print_triton(make_tile_kernels(program, schedule.groups.at(0), target, 0).at(0));
}

std::string quotient(const char* divisor) {
  return triton_text(fmt::format(R"(
buffer in0 float32 [64] input
buffer out0 float32 [64] output
node op0 "div" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = constant float32 {}
  v2 = div float32 v0 v1
  store out0[i0] v2
)",
                                 divisor));
}

TEST(TileText, OnlyReciprocalsThatAreExactReplaceDivisions) {
  EXPECT_THAT(quotient("4096"), HasSubstr("0.000244140625"));
  EXPECT_THAT(quotient("4096"), Not(HasSubstr("div_rn")));
  EXPECT_THAT(quotient("-0.5"), HasSubstr("-2.0"));
  for (const char* divisor : {"3", "0", "inf", "nan", "1e-38", "1e38"})
    EXPECT_THAT(quotient(divisor), HasSubstr("div_rn")) << divisor;
}

std::string variance(const char* index) {
  return triton_text(fmt::format(R"(
buffer in0 float32 [4096, 4096] input
buffer out0 float32 [4096] output
node op0 "var" [i0 < 4096] [r0 < 4096]
  v0 = load float32 in0[{}]
  v1 = reduce_welford float32 v0
  v2 = result float32 v1 number 1
  store out0[i0] v2
)",
                                 index));
}

TEST(TileText, VariancesAlongMemoryAreThoseOfBlocks) {
  EXPECT_THAT(variance("4096*i0 + r0"), HasSubstr("welford_rows("));
  EXPECT_THAT(variance("i0 + 4096*r0"), HasSubstr("welford_step("));
}

std::string sum_text(const char* rows, const char* columns, const char* bindings) {
  return triton_text(fmt::format(R"(
buffer in0 float32 [{0}, {1}] input
buffer out0 float32 [{1}] output
{2}node op0 "sum" [i0 < {1}] [r0 < {0}]
  v0 = load float32 in0[i0 + {1}*r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)",
                                 rows, columns, bindings));
}

TEST(TileText, LoopsAlongColumnsLoadAhead) {
  const char* loop = "tl.range(0, r0_numel, R0_BLOCK, num_stages=NUM_STAGES)";
  EXPECT_THAT(sum_text("4096", "1024", ""),
              AllOf(HasSubstr(loop), HasSubstr("R0_BLOCK : tl.constexpr, NUM_STAGES : tl.constexpr = 1):")));
  EXPECT_THAT(sum_text("s0", "s1", "bind s0 size 0 0\nbind s1 size 0 1\n"), HasSubstr(loop));
  EXPECT_THAT(variance("4096*i0 + r0"), Not(HasSubstr("NUM_STAGES")));
}

std::string shares(int64_t rows) {
  return triton_text(fmt::format(R"(
buffer in0 float32 [{0}, 1000] input
buffer out0 float32 [{0}, 1000] output
buffer buf0 float32 [{0}] intermediate
node op0 "sum" [i0 < {0}] [r0 < 1000]
  v0 = load float32 in0[1000*i0 + r0]
  v1 = reduce_sum float32 v0
  store buf0[i0] v1
node op1 "div" [i0 < {0}, i1 < 1000]
  v0 = load float32 in0[1000*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = div float32 v0 v1
  store out0[1000*i0 + i1] v2
)",
                                 rows));
}

TEST(TileText, ManyRowsAreReadAgainAndFewAreKept) {
  EXPECT_THAT(shares(256), HasSubstr("@triton_heuristics.persistent_reduction("));
  EXPECT_THAT(shares(65536), HasSubstr("@triton_heuristics.reduction("));
}

// The blocks that stay are loaded by the first pass, before any is used, as they are in memory; both passes
// recall them, and loop over the others.
TEST(TileText, BlocksOfRowsStayInRegisters) {
  std::string text = shares(65536);
  EXPECT_THAT(text, HasSubstr("R0_BLOCK : tl.constexpr, R0_KEPT : tl.constexpr = 0):"));
  const char* in_order[] = {
      "kept0 = ()\n",
      "for r0_step in tl.static_range(R0_KEPT):",
      "kept0 = kept0 + (tl.load(in_ptr0",
      "for r0_step in tl.static_range(R0_KEPT):",
      "= kept0[r0_step]\n",
      "for r0_offset in tl.range(R0_KEPT * R0_BLOCK, r0_numel, R0_BLOCK):",
      "tl.load(in_ptr0",
      "for r0_step in tl.static_range(R0_KEPT):",
      "= kept0[r0_step]\n",
      "tl.store(out_ptr0",
      "for r0_done in tl.range(R0_KEPT * R0_BLOCK, r0_numel, R0_BLOCK):",
      "r0_offset = (r0_numel - 1) // R0_BLOCK * R0_BLOCK + R0_KEPT * R0_BLOCK - r0_done",
      "tl.load(in_ptr0",
      "tl.store(out_ptr0"};
  size_t at = 0;
  for (const char* part : in_order) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << text;
    at += std::string_view(part).size();
  }
  EXPECT_THAT(sum_text("4096", "1024", ""), Not(HasSubstr("R0_KEPT")));
  EXPECT_THAT(variance("4096*i0 + r0"), Not(HasSubstr("R0_KEPT")));
}

TEST(TileText, AStoreRoundsOnce) {
  const std::string text = triton_text(R"(
buffer in0 bfloat16 [64] input
buffer out0 bfloat16 [64] output
node op0 "exp" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = exp float32 v0
  v2 = to_bfloat16 float32 v1
  store out0[i0] v2
)");
  EXPECT_THAT(text, Not(HasSubstr(".to(tl.bfloat16)")));
  EXPECT_THAT(text, HasSubstr("tl.exp(tmp0)"));
}

}  // namespace
}  // namespace stax::codegen

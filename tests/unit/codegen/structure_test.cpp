// The decisions behind a kernel, in its text form.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/kernel/kernel.h"
#include "loops/parse.h"
#include "unit/codegen/compiled.h"

namespace stax::codegen {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string kernel_text(std::string_view text, int64_t cache_bytes = 32 << 20) {
  const loops::Program program = loops::parse_program(text);
  const schedule::Target target{.processors = 2, .vector_bytes = 64, .cache_bytes = cache_bytes};
  const schedule::Schedule schedule = schedule::make_schedule(program, target);
  return make_kernel(program, schedule.groups.at(0), target).str();
}

constexpr std::string_view kRelu = R"(
buffer in0 float32 [64] input
buffer out0 float32 [64] output
node op0 "relu" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = relu float32 v0
  store out0[i0] v1
)";

TEST(Structure, PointwiseInFullAndPartialVectors) {
  EXPECT_EQ(kernel_text(kRelu), R"(kernel fused_relu_0 lanes 16 parallel 64 grain 32768
  block
    let i0 = x1
    loop i0 < x2 - 15 step 16
      v0 = load float32 contiguous p0[i0]
      v1 = compute relu float32 v0
      store float32 contiguous p1[i0] v1
    when i0 < x2
      let x0 = -i0 + x2
      v2 = load float32 contiguous p0[i0] partial
      v3 = compute relu float32 v2
      store float32 contiguous p1[i0] partial v3
)");
}

TEST(Structure, LargeResultsStream) {
  EXPECT_THAT(kernel_text(kRelu), Not(HasSubstr("stream")));
  EXPECT_THAT(kernel_text(kRelu, 100), HasSubstr("stream"));
}

TEST(Structure, LongChainsOfSeveralVectorsAtOnce) {
  std::string text =
      "buffer in0 float32 [640] input\nbuffer out0 float32 [640] output\nnode op0 \"mul\" [i0 < 640]\n"
      "  v0 = load float32 in0[i0]\n";
  for (int k = 1; k <= 8; ++k)
    text += "  v" + std::to_string(k) + " = mul float32 v" + std::to_string(k - 1) + " v0\n";
  EXPECT_THAT(kernel_text(text + "  store out0[i0] v8\n"), HasSubstr("step 64"));
  EXPECT_THAT(kernel_text(text + "  v9 = exp float32 v8\n  store out0[i0] v9\n"), Not(HasSubstr("step 64")));
}

TEST(Structure, ColumnSumsKeepAccumulatorsInArrays) {
  const std::string text = kernel_text(R"(
buffer in0 float32 [512, 4096] input
buffer out0 float32 [4096] output
node op0 "sum" [i0 < 4096] [r0 < 512]
  v0 = load float32 in0[i0 + 4096*r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)");
  EXPECT_THAT(text, HasSubstr("array float32 p2[4096]"));
  EXPECT_THAT(text, HasSubstr("loop r0 = 0 < 512 step 4"));
}

// A line that is asked for megabytes ahead has left the caches before it is read: it came from memory twice.
TEST(Structure, SumsOfRowsFetchLittleAhead) {
  const auto sums = [](int64_t rows, int64_t columns) {
    return kernel_text(fmt::format(R"(
buffer in0 float32 [{0}, {1}] input
buffer out0 float32 [{0}] output
node op0 "sum" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)",
                                   rows, columns),
                       100);
  };
  EXPECT_THAT(sums(64, 1 << 20), HasSubstr("prefetch p0[1048576*i0 + r0 + 1024]"));
  EXPECT_THAT(sums(1 << 20, 64), HasSubstr("prefetch p0[64*i0 + r0 + 128]"));  // two rows
}

// Row sums of 0, 1, 2, ... as float, then the position of the largest as int64: loop nests of other widths.
// The largest is the last row.
TEST(Structure, PhasesOfOneKernelMayDifferInLanes) {
  const Compiled program(R"(
buffer in0 float32 [37, 19] input
buffer out0 int64 [] output
buffer buf0 float32 [37] intermediate
node op0 "sum" [i0 < 37] [r0 < 19]
  v0 = load float32 in0[19*i0 + r0]
  v1 = reduce_sum float32 v0
  store buf0[i0] v1
node op1 "argmax" [] [r0 < 37]
  v0 = load float32 buf0[r0]
  v1 = reduce_argmax int64 v0
  store out0[0] v1
)",
                         Compiled::Options{.phases = 2});
  ASSERT_EQ(program.module.kernels.size(), 1u);
  EXPECT_EQ(program.module.kernels[0].later.size(), 1u);
  std::vector<float> in(37 * 19);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  for (const int pieces : {1, 2, 5, 37}) {
    int64_t out = -1;
    program.run({{"in0", in.data()}, {"out0", &out}}, {}, pieces);
    EXPECT_EQ(out, 36) << pieces;
  }
  const Compiled apart(program.program.str());
  EXPECT_EQ(apart.module.kernels.size(), 2u);
}

}  // namespace
}  // namespace stax::codegen

// The decisions behind a kernel, in its text form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/kernel/kernel.h"
#include "loops/parse.h"

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

}  // namespace
}  // namespace stax::codegen

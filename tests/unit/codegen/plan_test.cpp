// The listing of a plan, written by hand in the form of a Python wrapper.
#include "codegen/plan/plan.h"

#include <gtest/gtest.h>

#include "loops/parse.h"
#include "stax/error.h"

namespace stax::codegen {
namespace {

constexpr std::string_view kPlannedSum = R"(
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
)";

TEST(Plan, PrintsLikeAWrapper) {
  const loops::Program p = loops::parse_program(kPlannedSum);
  const schedule::Schedule s = schedule::make_schedule(p, {});
  ASSERT_EQ(s.groups.size(), 2u);
  const Plan plan = make_plan(
      p, s, {{s.groups[0].name, {0, 2}, {}, {}, 128, 1, 0}, {s.groups[1].name, {2, 1}, {}, {}, 64, 1, 0}});
  EXPECT_EQ(plan.str(), R"(fused_mul_sum_0 = async_compile.cpp('fused_mul_sum_0', '''...''', device_str='cpu')
fused_sum_1 = async_compile.cpp('fused_sum_1', '''...''', device_str='cpu')
async_compile.wait(globals())

def call(self, args):
    in0, = args
    args.clear()
    assert_size_stride(in0, (64, 16384), (16384, 1), 'input')
    buf0 = empty_strided_cpu((64, 2), (2, 1), stax.float32)  # arena[0:512]
    fused_mul_sum_0.run(in0, buf0, 128)
    del in0
    out0 = empty_strided_cpu((64, ), (1, ), stax.float32)
    fused_sum_1.run(buf0, out0, 64)
    del buf0
    return (out0, )
)");
}

TEST(Plan, PrintsSymbolsAndExternalCalls) {
  const loops::Program p = loops::parse_program(R"(
buffer in0 float32 [s0, 4] input
buffer in1 float32 [4, 4] input
buffer out0 float32 [s0, 4] output
buffer out1 int64 [s0] output
bind s0 size 0 0
external op0 "mm" "mm"
  argument tensor in0 float32 [s0, 4] strides [4, 1] offset 0
  argument tensor in1 float32 [4, 4] strides [1, 4] offset 0
  argument bool 1
  argument none
  result out0 float32 [s0, 4] strides [4, 1] offset 0
  result out1 int64 [s0] strides [1] offset 0
)");
  const Plan plan = make_plan(p, schedule::make_schedule(p, {}), {});
  EXPECT_EQ(plan.str(), R"(def call(self, args):
    in0, in1 = args
    args.clear()
    s0 = in0.size(0)
    assert_size_stride(in0, (s0, 4), (4, 1), 'input')
    assert_size_stride(in1, (4, 4), (4, 1), 'input')
    out0 = empty_strided_cpu((s0, 4), (4, 1), stax.float32)
    out1 = empty_strided_cpu((s0, ), (1, ), stax.int64)
    extern_kernels.mm(in0, as_strided(in1, (4, 4), (1, 4), 0), True, None, out=(out0, out1))
    del in0
    del in1
    return (out0, out1)
)");
}

TEST(Plan, NeedsOneKernelForEachGroup) {
  const loops::Program p = loops::parse_program(kPlannedSum);
  EXPECT_THROW(make_plan(p, schedule::make_schedule(p, {}), {}), InternalError);
}

}  // namespace
}  // namespace stax::codegen

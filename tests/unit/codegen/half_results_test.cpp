// Which values of a body may be computed to little more than the half type keeps that they are rounded to.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "codegen/kernel/flat.h"
#include "loops/parse.h"
#include "schedule/schedule.h"

namespace stax::codegen {
namespace {

using loops::OpCode;

/// The body of one node over in0 and in1 (float32), with results out0 (`result`) and out1 (float32).
FlatGroup flat(std::string_view body, std::string_view result = "bfloat16") {
  const loops::Program program = loops::parse_program(fmt::format(R"(
buffer in0 float32 [64] input
buffer in1 float32 [64] input
buffer out0 {} [64] output
buffer out1 float32 [64] output
node op0 "body" [i0 < 64]
{})",
                                                                  result, body));
  const schedule::Schedule schedule = schedule::make_schedule(program, {});
  return flatten(program, schedule.groups.at(0), {.relax_half = true});
}

/// Whether the one instruction `op` is relaxed.
bool relaxed(const FlatGroup& flat, OpCode op) {
  for (size_t i = 0; i < flat.body.size(); ++i)
    if (flat.body[i].op == op) return flat.relaxed[i];
  ADD_FAILURE() << "no " << loops::info(op).name;
  return false;
}

constexpr std::string_view kProduct = R"(
  v0 = load float32 in0[i0]
  v1 = exp float32 v0
  v2 = load float32 in1[i0]
  v3 = mul float32 v1 v2
  store out0[i0] v3
)";

TEST(HalfResults, WhatOnlyAHalfTypeKeeps) {
  EXPECT_TRUE(relaxed(flat(kProduct), OpCode::exp));
  EXPECT_TRUE(relaxed(flat(kProduct, "float16"), OpCode::exp));
  EXPECT_FALSE(relaxed(flat(kProduct, "float32"), OpCode::exp));
  EXPECT_FALSE(relaxed(flat(std::string(kProduct) + "  store out1[i0] v1\n"), OpCode::exp));
  EXPECT_TRUE(relaxed(flat(R"(
  v0 = load float32 in0[i0]
  v1 = exp float32 v0
  v2 = to_bfloat16 float32 v1
  v3 = sub float32 v2 v0
  store out1[i0] v3
)"),
                      OpCode::exp));
}

// x - 1, x < 1 and exp(x) are off by more than x is.
TEST(HalfResults, NotWhatMakesErrorsLarger) {
  for (const char* last : {"sub float32 v1 v0", "add float32 v1 v0", "exp2 float32 v1", "sin float32 v1",
                           "log float32 v1", "floor float32 v1"}) {
    const std::string body = fmt::format(
        "  v0 = load float32 in0[i0]\n  v1 = exp float32 v0\n  v2 = {}\n  store out0[i0] v2\n", last);
    EXPECT_FALSE(relaxed(flat(body), OpCode::exp)) << last;
  }
  EXPECT_FALSE(relaxed(flat(R"(
  v0 = load float32 in0[i0]
  v1 = exp float32 v0
  v2 = lt bool v1 v0
  v3 = where float32 v2 v0 v1
  store out0[i0] v3
)"),
                       OpCode::exp));
}

TEST(HalfResults, SumsOfWhatIsNotNegative) {
  const FlatGroup sigmoid = flat(R"(
  v0 = load float32 in0[i0]
  v1 = exp float32 v0
  v2 = constant float32 1
  v3 = add float32 v2 v1
  v4 = div float32 v0 v3
  store out0[i0] v4
)");
  EXPECT_TRUE(relaxed(sigmoid, OpCode::exp));
  EXPECT_TRUE(relaxed(sigmoid, OpCode::div));
}

constexpr std::string_view kCentred = R"(
  v0 = load float32 in0[i0]
  v1 = {} float32 v0
  v2 = constant float32 1
  v3 = add float32 v1 v2
  v4 = mul float32 v3 v0
  store out0[i0] v4
)";

bool has(const FlatGroup& flat, OpCode op) {
  return std::ranges::any_of(flat.body, [&](const loops::Inst& inst) { return inst.op == op; });
}

TEST(HalfResults, SumsThatCancelBecomeFunctionsThatDoNot) {
  EXPECT_TRUE(relaxed(flat(fmt::format(kCentred, "erf")), OpCode::erfc));
  EXPECT_TRUE(relaxed(flat(fmt::format(kCentred, "tanh")), OpCode::sigmoid));
  EXPECT_FALSE(has(flat(fmt::format(kCentred, "erf"), "float32"), OpCode::erfc));
  EXPECT_FALSE(has(flat(fmt::format(kCentred, "erf") + "  store out1[i0] v1\n"), OpCode::erfc));
  EXPECT_FALSE(has(flat(fmt::format(kCentred, "sin")), OpCode::sigmoid));
}

}  // namespace
}  // namespace stax::codegen

#include "loops/body.h"

#include <gtest/gtest.h>

#include "loops/analysis.h"
#include "stax/error.h"

namespace stax::loops {
namespace {

const Symbol kI0{SymbolKind::index, 0};
const Symbol kR0{SymbolKind::reduction, 0};

TEST(BodyBuilder, EqualInstructionsMerge) {
  BodyBuilder b;
  const ValueId x = b.load(0, DType::float32, Expr(kI0));
  EXPECT_EQ(b.load(0, DType::float32, Expr(kI0)), x);
  EXPECT_NE(b.load(0, DType::float32, Expr(kI0) + 1), x);
  EXPECT_EQ(b.unary(OpCode::exp, x), b.unary(OpCode::exp, x));
  EXPECT_NE(b.constant(DType::float32, 0.0), b.constant(DType::float32, -0.0));
  EXPECT_EQ(b.int_constant(DType::uint8, 256), b.int_constant(DType::uint8, 0));
  EXPECT_EQ(b.dtype(b.binary(OpCode::lt, x, x)), DType::boolean);
}

TEST(BodyBuilder, StoresDoNotMergeAndLoadsSeeThem) {
  BodyBuilder b;
  const ValueId x = b.load(0, DType::float32, Expr(kI0));
  b.store(0, DType::float32, Expr(kI0), x);
  b.store(0, DType::float32, Expr(kI0), x);
  EXPECT_EQ(b.body().size(), 3u);
  EXPECT_NE(b.load(0, DType::float32, Expr(kI0)), x);
}

TEST(BodyBuilder, HalfTypesAreFloat32InsideAndCastsRound) {
  BodyBuilder b;
  const ValueId x = b.load(0, DType::float16, Expr(kI0));
  EXPECT_EQ(b.dtype(x), DType::float32);
  const ValueId y = b.cast(x, DType::bfloat16);
  EXPECT_EQ(b[y].op, OpCode::to_bfloat16);
  EXPECT_EQ(b.cast(x, DType::float32), x);
  EXPECT_EQ(b[b.cast(x, DType::int8)].op, OpCode::cast);
  b.store(1, DType::bfloat16, Expr(kI0), y);
  EXPECT_EQ(b.body().back().dtype, DType::float32);
}

TEST(BodyBuilder, ConstantsTruncateAndSaturate) {
  BodyBuilder b;
  EXPECT_EQ(b[b.constant(DType::int32, -1.9)].constant.as_int(), -1);
  EXPECT_EQ(b[b.constant(DType::int64, 1e300)].constant.as_int(), INT64_MAX);
  EXPECT_EQ(b[b.constant(DType::boolean, 0.5)].constant.as_int(), 1);
  // Rounded where it is used, so that kernels show what was written.
  EXPECT_EQ(b[b.constant(DType::float32, 0.1)].constant.as_double(), 0.1);
}

TEST(CopyValues, SubstitutesAndCopiesOnlyWhatIsNeeded) {
  BodyBuilder from;
  const ValueId x = from.load(0, DType::float32, 2 * Expr(kI0));
  from.load(1, DType::float32, Expr(kI0));
  const ValueId y = from.unary(OpCode::neg, x);
  BodyBuilder to;
  const Expr shifted = Expr(Symbol{SymbolKind::index, 1}) + 3;
  const auto map = [&](Symbol s) { return s == kI0 ? std::optional<Expr>(shifted) : std::nullopt; };
  const ValueId roots[] = {y, x};
  const auto ids = copy_values(from.body(), roots, to, map);
  ASSERT_EQ(to.body().size(), 2u);
  EXPECT_EQ(to[ids[0]].op, OpCode::neg);
  EXPECT_EQ(to[ids[1]].index, 2 * shifted);
}

TEST(CopyValues, MasksAreCombined) {
  BodyBuilder from;
  const ValueId m = from.load(1, DType::boolean, Expr(kI0));
  const ValueId x = from.load(0, DType::float32, Expr(kI0), {}, m);
  const ValueId z = from.load(2, DType::float32, Expr(kI0));
  BodyBuilder to;
  const ValueId outer = to.load(3, DType::boolean, Expr(kI0));
  const ValueId roots[] = {x, z};
  const auto ids = copy_values(from.body(), roots, to, nullptr, outer);
  const Inst& combined = to[to[ids[0]].args[0]];
  EXPECT_EQ(combined.op, OpCode::bitwise_and);
  EXPECT_EQ(to[ids[1]].args, std::vector<ValueId>{outer});
}

TEST(Analysis, ReductionSpace) {
  BodyBuilder b;
  const ValueId x = b.load(0, DType::float32, Expr(kI0) + Expr(kR0));
  const ValueId s = b.reduce(OpCode::reduce_sum, DType::float32, {x});
  const ValueId c = b.reduce(OpCode::scan_sum, DType::float32, {x});
  const ValueId y = b.binary(OpCode::sub, x, s);
  const ValueId z = b.unary(OpCode::neg, s);
  EXPECT_EQ(over_reduction(b.body()), (std::vector<bool>{true, false, true, true, false}));
  EXPECT_EQ((std::vector<ValueId>{x, s, c, y, z}), (std::vector<ValueId>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace stax::loops

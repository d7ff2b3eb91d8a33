// The rewrites within ranges, rule by rule, and decisions.
#include <gtest/gtest.h>

#include "unit/symbolic/symbols.h"

namespace stax {
namespace {

using namespace testing;

/// Loops i0 < 16, i1 < 8, r0 < 4.
Ranges fixed() {
  Ranges ranges;
  ranges.set_extent(i0.symbol(), 16);
  ranges.set_extent(i1.symbol(), 8);
  ranges.set_extent(r0.symbol(), 4);
  return ranges;
}

/// Loops i0 < s0, i1 < s1, i2 < s2 over sizes of at least `smallest`; u0 >= 0.
Ranges dynamic(int64_t smallest = 0) {
  Ranges ranges;
  const std::pair<Expr, Expr> loops[] = {{i0, s0}, {i1, s1}, {i2, s2}};
  for (auto [index, size] : loops) {
    ranges.set(size.symbol(), Interval::at_least(smallest));
    ranges.set_extent(index.symbol(), size);
  }
  ranges.set(u0.symbol(), Interval::at_least(0));
  return ranges;
}

TEST(Simplify, DivisionWithConstantExtents) {
  Ranges ranges = fixed();
  EXPECT_EQ(simplify(floor_div(8 * i0 + i1, 8), ranges), i0);
  EXPECT_EQ(simplify(mod(8 * i0 + i1, 8), ranges), i1);
  EXPECT_EQ(simplify(floor_div(i1, 8), ranges), Expr(0));
  EXPECT_EQ(simplify(floor_div(i1 - 8, 8), ranges), Expr(-1));
  EXPECT_EQ(simplify(floor_div(i1 + 8, 16), ranges), Expr(0));
  EXPECT_EQ(simplify(mod(i1 - 8, 8), ranges), i1);
  EXPECT_EQ(simplify(floor_div(4 * i0 + r0, 8), ranges), floor_div(i0, 2));
  EXPECT_EQ(simplify(mod(4 * i0 + r0, 8), ranges), 4 * mod(i0, 2) + r0);
  // The common divisor of two terms: i2 < 2.
  ranges.set_extent(i2.symbol(), 2);
  EXPECT_EQ(simplify(floor_div(4 * i0 + 6 * i1 + i2, 12), ranges), floor_div(2 * i0 + 3 * i1, 6));
}

TEST(Simplify, FlattenedIndexOfThreeLoops) {
  Ranges ranges = fixed();
  Expr flat = (i0 * 8 + i1) * 4 + r0;
  EXPECT_EQ(simplify(floor_div(flat, 32), ranges), i0);
  EXPECT_EQ(simplify(mod(floor_div(flat, 4), 8), ranges), i1);
  EXPECT_EQ(simplify(mod(flat, 4), ranges), r0);
  ranges = dynamic();
  flat = (i0 * s1 + i1) * s2 + i2;
  EXPECT_EQ(simplify(floor_div(flat, s1 * s2), ranges), i0);
  EXPECT_EQ(simplify(mod(floor_div(flat, s2), s1), ranges), i1);
  EXPECT_EQ(simplify(mod(flat, s2), ranges), i2);
  EXPECT_EQ(simplify(mod(flat, s1 * s2), ranges), i1 * s2 + i2);
}

TEST(Simplify, SymbolicDivisors) {
  Ranges ranges = dynamic();
  EXPECT_EQ(simplify(floor_div(s0 * i1 + i0, s0), ranges), i1);
  EXPECT_EQ(simplify(mod(s0 * i1 + i0, s0), ranges), i0);
  EXPECT_EQ(simplify(floor_div(s1 * u0 + i1, s0 * s1), ranges), floor_div(u0, s0));
  EXPECT_EQ(simplify(mod(s1 * u0 + i1, s0 * s1), ranges), s1 * mod(u0, s0) + i1);
  EXPECT_EQ(simplify(mod(i0 - s0, s0), ranges), i0);
  Ranges positive = dynamic(1);
  EXPECT_EQ(simplify(floor_div(floor_div(u0, s0), s1), positive), floor_div(u0, s0 * s1));
  EXPECT_EQ(simplify(floor_div(mod(u0, s0 * s1), s0), positive), mod(floor_div(u0, s0), s1));
}

TEST(Simplify, DoesNotAssumeWhatTheRangesDoNotSay) {
  Ranges ranges = dynamic();
  for (Expr e : {floor_div(u0, s0), mod(i1, s0), floor_div(i0 + 1, s0), min(s0, s1), mod(i0 - s0 - 1, s0)}) {
    EXPECT_FALSE(simplify(e, ranges).is_constant()) << e.str();
  }
  EXPECT_EQ(simplify(mod(i1, s0), ranges), mod(i1, s0));
  EXPECT_EQ(simplify(floor_div(i0 + 1, s0), ranges), floor_div(i0 + 1, s0));
}

TEST(Simplify, QuotientAndRemainderJoin) {
  Ranges ranges;
  EXPECT_EQ(simplify(8 * floor_div(i0, 8) + mod(i0, 8), ranges), i0);
  EXPECT_EQ(simplify(24 * floor_div(i0, 8) + 3 * mod(i0, 8) + r0, ranges), 3 * i0 + r0);
  EXPECT_EQ(simplify(s0 * floor_div(i0, s0) + mod(i0, s0), ranges), i0);
  EXPECT_EQ(simplify(8 * mod(floor_div(i0, 8), 4) + mod(i0, 8), ranges), mod(i0, 32));
  EXPECT_EQ(simplify(32 * floor_div(i0, 32) + 8 * mod(floor_div(i0, 8), 4) + mod(i0, 8), ranges), i0);
}

TEST(Simplify, Extrema) {
  Ranges ranges = dynamic(2);
  EXPECT_EQ(simplify(min(i0, s0), ranges), i0);
  EXPECT_EQ(simplify(max(i0, 0), ranges), i0);
  EXPECT_EQ(simplify(max(s0, 2), ranges), s0);
  EXPECT_EQ(simplify(min(s0 * s1, s0), ranges), s0);
  EXPECT_EQ(simplify(max(min(s0, s1), 1), ranges), min(s0, s1));
  EXPECT_EQ(simplify(min(s0, 10), ranges), min(s0, 10));
}

TEST(Simplify, LoopsOfOneStep) {
  Ranges ranges = fixed();
  ranges.set_extent(i0.symbol(), 1);
  EXPECT_EQ(simplify(8 * i0 + i1, ranges), i1);
}

TEST(Ranges, Intervals) {
  Ranges ranges = fixed();
  EXPECT_EQ(ranges.interval(8 * i0 + i1), Interval::of(0, 127));
  EXPECT_EQ(ranges.interval(i1 - 3 * r0), Interval::of(-9, 7));
  EXPECT_EQ(ranges.interval(floor_div(i1 - 9, 4)), Interval::of(-3, -1));
  EXPECT_EQ(ranges.interval(mod(i0, 5)), Interval::of(0, 4));
  EXPECT_EQ(ranges.interval(min(i0, i1 + 20)), Interval::of(0, 15));
  EXPECT_EQ(ranges.interval(s0), (Interval{}));
  EXPECT_EQ(Interval::at_least(2).str(), "[2, inf)");
  EXPECT_EQ(Interval::of(2, 4096).str(), "[2, 4096]");
  ranges.set(s0.symbol(), Interval::of(2, INT64_MAX));
  EXPECT_EQ(ranges.interval(s0 * s0), Interval::at_least(4));
}

TEST(Decide, LastElementIsInBounds) {
  Ranges ranges = dynamic();
  EXPECT_EQ(decide(lt(s1 * i0 + i1, s0 * s1), ranges), true);
  EXPECT_EQ(decide(ge(s1 * i0 + i1, s0 * s1), ranges), false);
  EXPECT_EQ(decide(lt((i0 * s1 + i1) * s2 + i2, s0 * s1 * s2), ranges), true);
  EXPECT_EQ(decide(lt(s1 * i0 + i1 + 1, s0 * s1), ranges), std::nullopt);
}

TEST(Decide, Sizes) {
  Ranges ranges = dynamic(2);
  EXPECT_EQ(decide(le(s0, s0 * s1), ranges), true);
  EXPECT_EQ(decide(eq(s0 + 1, s0), ranges), false);
  EXPECT_EQ(decide(eq(s0, 1), ranges), false);
  EXPECT_EQ(decide(ne(s0, 0), ranges), true);
  EXPECT_EQ(decide(eq(2 * s0, 4 * s1 + 1), ranges), false);
  EXPECT_EQ(decide(eq(s0, s1), ranges), std::nullopt);
  EXPECT_EQ(decide(lt(s0, s1), ranges), std::nullopt);
  EXPECT_EQ(decide(le(min(s0, 10), 10), ranges), true);
  EXPECT_EQ(decide(le(min(s0, s1), s0), ranges), true);
  EXPECT_EQ(decide(le(s0, max(s0, s1)), ranges), true);
}

TEST(Decide, RoundedSizesCoverTheSize) {
  Ranges ranges = dynamic(2);
  EXPECT_EQ(decide(le(s0, 128 * ceil_div(s0, 128)), ranges), true);
  EXPECT_EQ(decide(lt(128 * ceil_div(s0, 128), s0 + 128), ranges), true);
  EXPECT_EQ(decide(le(4 * floor_div(s0, 4), s0), ranges), true);
  EXPECT_EQ(decide(lt(mod(u0, s0), s0), ranges), true);
}

TEST(Decide, ThirtyTwoBitIndices) {
  Ranges ranges = dynamic(2);
  EXPECT_EQ(decide(lt(128 * i0 + i1, int64_t{1} << 31), ranges), std::nullopt);
  ranges.set(s0.symbol(), Interval::of(2, 4096));
  ranges.set(s1.symbol(), Interval::of(2, 128));
  EXPECT_EQ(decide(lt(128 * i0 + i1, int64_t{1} << 31), ranges), true);
}

TEST(Decide, LimitsOfInt64) {
  Ranges ranges;
  ranges.set(s0.symbol(), Interval::at_least(0));
  EXPECT_EQ(decide(le(INT64_MIN, s0), ranges), true);
  EXPECT_EQ(decide(lt(INT64_MIN, INT64_MAX), ranges), true);
  EXPECT_EQ(decide(le(s0, INT64_MIN), ranges), false);
}

}  // namespace
}  // namespace stax

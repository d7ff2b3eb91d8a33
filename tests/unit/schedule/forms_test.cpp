// Choices by numbers, ranges and hints, and what is said about them.
#include "schedule/forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loops/parse.h"
#include "symbolic/shape_env.h"
#include "symbolic/sizes.h"

namespace stax::schedule {
namespace {

using testing::HasSubstr;

struct SizesTest : testing::Test {
  ShapeEnv env;
  Sizes sizes{env};

  Expr size(std::optional<int64_t> hint, Interval range = Interval::at_least(2)) {
    return env.new_symbol(hint ? SymbolKind::size : SymbolKind::unbacked, hint, range);
  }
};

TEST_F(SizesTest, NumbersDecideForThemselves) {
  Chooser chooser(sizes);
  EXPECT_TRUE(chooser.likely(lt(3, 4), "yes", "no"));
  EXPECT_FALSE(chooser.at_launch(lt(4, 4), "yes", "no"));
  EXPECT_TRUE(chooser.required(le(4, 4), "yes", "no"));
  EXPECT_TRUE(chooser.choices().empty());
  EXPECT_TRUE(chooser.questions().empty());
}

TEST_F(SizesTest, RangesComeBeforeHints) {
  const Expr n = size(100, Interval::of(2, 128));
  Chooser chooser(sizes);
  EXPECT_TRUE(chooser.required(le(n, 128), "short rows", "long rows"));
  EXPECT_FALSE(chooser.at_launch(gt(n, 128), "long rows", "short rows"));
  EXPECT_TRUE(chooser.questions().empty());
  ASSERT_EQ(chooser.choices().size(), 1u);  // said once
  EXPECT_EQ(chooser.choices()[0].what, "short rows");
  EXPECT_EQ(chooser.choices()[0].reason, "s0 <= 128 for all sizes");
}

TEST_F(SizesTest, HintsDecideWhereRangesDoNot) {
  const Expr n = size(100);
  Chooser chooser(sizes);
  EXPECT_TRUE(chooser.likely(le(n * 4, 1000), "close", "far"));
  EXPECT_FALSE(chooser.likely(le(n * 16, 1000), "close", "far"));
  ASSERT_EQ(chooser.choices().size(), 2u);
  EXPECT_EQ(chooser.choices()[0].reason, "4*s0 <= 1000, by the hint (400)");
  EXPECT_EQ(chooser.choices()[1].what, "far");
  EXPECT_EQ(chooser.choices()[1].reason, "1000 < 16*s0, by the hint (1600)");
}

TEST_F(SizesTest, WhatHasNoHintIsAGuessThatSaysSo) {
  const Expr u = size(std::nullopt, Interval::at_least(0));
  EXPECT_EQ(sizes.likely(u * 2), 512);
  EXPECT_FALSE(sizes.hint(u));
  Chooser chooser(sizes);
  EXPECT_TRUE(chooser.at_launch(le(u, 300), "few", "many"));
  EXPECT_TRUE(chooser.questions().empty());
  EXPECT_THAT(chooser.choices().at(0).reason, HasSubstr("as a guess"));
}

TEST_F(SizesTest, SizesThatLeave64BitsAreLikelyVeryLarge) {
  const Expr n = size(int64_t{1} << 40);
  EXPECT_FALSE(sizes.hint(n * n));
  EXPECT_GT(sizes.likely(n * n), int64_t{1} << 50);
}

TEST_F(SizesTest, LaunchesAskWhatIsNear) {
  const Expr n = size(100);
  Chooser first(sizes);
  EXPECT_FALSE(first.at_launch(gt(n, 1600), "large", "small"));  // 16 times the hint
  EXPECT_FALSE(first.at_launch(gt(n, 1700), "large", "small"));  // too far to ask
  ASSERT_EQ(first.questions().size(), 1u);
  EXPECT_EQ(first.questions()[0].condition, gt(n, 1600));
  EXPECT_FALSE(first.questions()[0].answer);
  EXPECT_FALSE(first.at_launch(gt(n, 1600), "large", "small"));
  EXPECT_EQ(first.questions().size(), 1u);  // one question
  EXPECT_THAT(first.choices().at(0).reason, HasSubstr("a launch may ask"));
  Chooser other(sizes, {true});
  EXPECT_TRUE(other.at_launch(gt(n, 1600), "large", "small"));
}

TEST_F(SizesTest, WhatIsRequiredHoldsOnlyWhereItWasAsked) {
  const Expr n = size(100);
  Chooser usual(sizes);
  EXPECT_FALSE(usual.required(le(n, 128), "short", "any"));  // the hint is no proof
  Chooser other(sizes, {true});
  EXPECT_TRUE(other.required(le(n, 128), "short", "any"));
  EXPECT_EQ(other.questions().at(0).condition, le(n, 128));
}

TEST_F(SizesTest, GuardsAreProofs) {
  const Expr n = size(100);
  ASSERT_TRUE(env.decide(le(n, 200)));
  EXPECT_TRUE(sizes.proves(le(n, 200)));
  EXPECT_FALSE(sizes.proves(le(n, 100)));
}

TEST_F(SizesTest, RowsAreHeldByTheirUpperBoundOrTheirHint) {
  const Target target{.row_bytes = 1000};
  const Expr bounded = size(100, Interval::of(2, 250)), open = size(100), wide = size(1000);
  Chooser chooser(sizes);
  EXPECT_EQ(row_form(bounded * 4, target, chooser), RowForm::held);
  EXPECT_THAT(chooser.choices().back().reason, HasSubstr("for all sizes"));
  EXPECT_EQ(row_form(open * 4, target, chooser), RowForm::held);
  EXPECT_THAT(chooser.choices().back().reason, HasSubstr("by the hint (400)"));
  EXPECT_EQ(row_form(wide * 4, target, chooser), RowForm::recomputed);
}

// ---- widths of indices ----

struct IndexWidthTest : SizesTest {
  /// Of x * 2 over [s0, s1], where both have hint and range.
  IndexWidth width(int64_t hint, Interval range, bool narrow, std::vector<bool> answers = {}) {
    for (int k = 0; k < 2; ++k) size(hint, range);
    program = loops::parse_program(R"(
buffer in0 float32 [s0, s1] input
buffer out0 float32 [s0, s1] output
bind s0 size 0 0
bind s1 size 0 1
node op0 "mul" [i0 < s0, i1 < s1]
  v0 = load float32 in0[s1*i0 + i1]
  v1 = add float32 v0 v0
  store out0[s1*i0 + i1] v1
)");
    const Target target{.narrow_indices = narrow};
    const Schedule schedule = make_schedule(program, target, sizes);
    chooser.emplace(sizes, std::move(answers));
    return index_width(program, schedule.groups.at(0), target, *chooser);
  }
  loops::Program program;
  std::optional<Chooser> chooser;
};

TEST_F(IndexWidthTest, RangesProveIt) {
  const IndexWidth w = width(64, Interval::of(2, 40000), true);  // 1.6e9 elements at most
  EXPECT_EQ(w.bits, 32);
  EXPECT_THAT(chooser->choices().at(0).reason, HasSubstr("for all sizes"));
  EXPECT_TRUE(chooser->questions().empty());
}

TEST_F(IndexWidthTest, TheLargestProductCounts) {
  EXPECT_EQ(width(64, Interval::of(2, 46341), true).bits, 64);  // 46341^2 = 2^31 + 4633
}

TEST_F(IndexWidthTest, LaunchesAskWhereRangesAreOpen) {
  EXPECT_EQ(width(64, Interval::at_least(2), true).bits, 64);  // the kernel for all sizes
  ASSERT_EQ(chooser->questions().size(), 1u);
  EXPECT_EQ(chooser->questions()[0].condition.str(), "s0*s1 < 2147418112");
  SetUp();
  env = {};
  EXPECT_EQ(width(64, Interval::at_least(2), true, {true}).bits, 32);
}

TEST_F(IndexWidthTest, TargetsWithOneWidthSayWhatWouldDo) {
  EXPECT_EQ(width(64, Interval::of(2, 40000), false).bits, 64);
  EXPECT_THAT(chooser->choices().at(0).reason, HasSubstr("the target has no others"));
  EXPECT_THAT(chooser->choices().at(0).reason, HasSubstr("for all sizes"));
}

}  // namespace
}  // namespace stax::schedule

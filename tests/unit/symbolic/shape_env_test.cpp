#include "symbolic/shape_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stax/error.h"

namespace stax {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ShapeEnvTest : public ::testing::Test {
 protected:
  Expr size(int64_t hint, int64_t lower = 2) {
    return env.new_symbol(SymbolKind::size, hint, Interval::at_least(lower));
  }
  ShapeEnv env;
};

TEST_F(ShapeEnvTest, NumbersSymbolsWithinTheirKind) {
  EXPECT_EQ(size(4).str(), "s0");
  EXPECT_EQ(size(4).str(), "s1");
  EXPECT_EQ(env.new_symbol(SymbolKind::unbacked, std::nullopt, Interval::at_least(0)).str(), "u0");
}

TEST_F(ShapeEnvTest, HintsOfExpressions) {
  Expr a = size(6), b = size(7);
  EXPECT_EQ(env.hint(a * b + floor_div(b, 2)), 45);
  EXPECT_EQ(env.hint(a + Symbol{SymbolKind::unbacked, 0}), std::nullopt);
}

TEST_F(ShapeEnvTest, WhatTheRangesDecideNeedsNoGuard) {
  Expr a = size(6);
  EXPECT_TRUE(env.decide(ge(a, 2)));
  EXPECT_FALSE(env.decide(eq(a, 1)));
  EXPECT_TRUE(env.decide(lt(3, 4)));
  EXPECT_TRUE(env.guards().empty());
}

TEST_F(ShapeEnvTest, WhatTheHintDecidesIsRecordedOnceAsItHolds) {
  Expr a = size(3);
  EXPECT_TRUE(env.decide(le(a, 4), "model.cpp:7"));
  EXPECT_FALSE(env.decide(gt(a, 4)));
  EXPECT_TRUE(env.decide(lt(a, 5)));
  ASSERT_EQ(env.guards().size(), 1u);
  EXPECT_EQ(env.guards()[0].condition.str(), "s0 <= 4");
  EXPECT_EQ(env.guards()[0].where, "model.cpp:7");
  ShapeEnv other;
  Expr b = other.new_symbol(SymbolKind::size, 7, Interval::at_least(2));
  EXPECT_FALSE(other.decide(le(b, 4)));
  EXPECT_EQ(other.guards()[0].condition.str(), "4 < s0");
}

TEST_F(ShapeEnvTest, EqualSizesAreInterchangeable) {
  Expr a = size(6), b = size(6), c = size(9);
  EXPECT_FALSE(env.proves(eq(a, b)));
  EXPECT_TRUE(env.decide(eq(b, a)));
  EXPECT_TRUE(env.proves(eq(a * c, b * c)));
  EXPECT_TRUE(env.proves(eq(a + b, 2 * a)));
  EXPECT_FALSE(env.decide(eq(a, c)));
  EXPECT_FALSE(env.decide(eq(b, c)));
  EXPECT_EQ(env.guards().size(), 2u);
}

TEST_F(ShapeEnvTest, EqualityCarriesBounds) {
  Expr a = size(6, 0), b = size(6, 2), c = size(7, 0);
  EXPECT_TRUE(env.decide(eq(a, b)));
  EXPECT_TRUE(env.proves(ge(a, 2)));
  EXPECT_TRUE(env.decide(eq(c, a + 1)));
  EXPECT_TRUE(env.proves(ge(c, 3)));
  EXPECT_TRUE(env.decide(eq(a, 6)));
  EXPECT_TRUE(env.proves(eq(c, 7)));
  EXPECT_TRUE(env.proves(eq(b, 6)));
}

TEST_F(ShapeEnvTest, GuardsBoundOneSymbol) {
  Expr a = size(10);
  EXPECT_FALSE(env.decide(lt(3 * a, 20)));  // a >= 7
  EXPECT_TRUE(env.proves(ge(a, 7)));
  EXPECT_FALSE(env.proves(ge(a, 8)));
  EXPECT_TRUE(env.decide(ne(a, 7)));
  EXPECT_TRUE(env.proves(ge(a, 8)));
}

TEST_F(ShapeEnvTest, GuardsRelateSymbols) {
  Expr a = size(3), b = size(8), c = size(5);
  EXPECT_TRUE(env.decide(lt(a, b)));
  EXPECT_TRUE(env.proves(le(a, b)));
  EXPECT_TRUE(env.proves(lt(a, b + c)));
  EXPECT_TRUE(env.proves(ne(a, b)));
  EXPECT_FALSE(env.decide(eq(a, b)));
  EXPECT_FALSE(env.proves(lt(a + 1, b)));
  EXPECT_TRUE(env.decide(eq(mod(b, 4), 0)));
  EXPECT_TRUE(env.proves(eq(mod(b, 4), 0)));
  EXPECT_EQ(env.guards().size(), 2u);
}

TEST_F(ShapeEnvTest, SizesWithoutHint) {
  Expr u = env.new_symbol(SymbolKind::unbacked, std::nullopt, Interval::of(0, 100));
  Expr a = size(6);
  EXPECT_TRUE(env.decide(ge(u, 0)));
  EXPECT_FALSE(env.proves(le(u, 50)));
  EXPECT_THAT([&] { env.decide(le(u, a), "model.cpp:9"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("u0 <= s0"), HasSubstr("model.cpp:9"))));
  EXPECT_TRUE(env.guards().empty());
}

TEST_F(ShapeEnvTest, NegationIsTheOpposite) {
  Expr a = size(6), b = size(7);
  EXPECT_EQ(le(a, b).negated(), lt(b, a));
  EXPECT_EQ(lt(a, b).negated(), le(b, a));
  EXPECT_EQ(eq(a, b).negated(), ne(a, b));
  EXPECT_EQ(ne(a, b).negated(), eq(a, b));
}

}  // namespace
}  // namespace stax

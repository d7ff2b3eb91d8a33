#include "symbolic/shape_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stax/error.h"
#include "symbolic/expr_program.h"

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
  EXPECT_TRUE(env.decide(le(a, 4)));
  EXPECT_FALSE(env.decide(gt(a, 4)));
  EXPECT_TRUE(env.decide(lt(a, 5)));
  ASSERT_EQ(env.guards().size(), 1u);
  EXPECT_EQ(env.guards()[0].condition.str(), "s0 <= 4");
  EXPECT_FALSE(env.guards()[0].where.empty());
  EXPECT_EQ(env.guards()[0].str().substr(0, 7), "s0 <= 4");
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
  EXPECT_THAT([&] { env.decide(le(u, a)); }, ThrowsMessage<UserError>(HasSubstr("u0 <= s0")));
  EXPECT_TRUE(env.guards().empty());
}

TEST_F(ShapeEnvTest, SaysWhatIsKnownOfAnUndeterminedDecision) {
  Expr u = env.new_symbol(SymbolKind::unbacked, std::nullopt, Interval::of(0, 100));
  Expr a = size(6);
  env.assume(le(u, a));
  EXPECT_EQ(env.decided(le(u, a)), true);
  EXPECT_EQ(env.decided(lt(u, 4)), std::nullopt);
  EXPECT_FALSE(env.surely(lt(u, 4)));
  EXPECT_THAT([&] { env.decide(lt(u, 4)); },
              ThrowsMessage<UndeterminedError>(AllOf(HasSubstr("u0 in [0, 100]"), HasSubstr("u0 <= s0"),
                                                     HasSubstr("stax::check(u0 < 4)"),
                                                     HasSubstr("stax::check(4 <= u0)"))));
  EXPECT_TRUE(env.assertions().empty());
}

TEST_F(ShapeEnvTest, ExpectationsBecomeAssertionsOnce) {
  Expr u = env.new_symbol(SymbolKind::unbacked, std::nullopt, Interval::of(0, 100));
  Expr a = size(6);
  env.set_asker("cat");
  EXPECT_TRUE(env.expect(eq(u, a)));
  EXPECT_TRUE(env.expect(eq(a, u)));
  EXPECT_TRUE(env.proves(eq(2 * u, 2 * a)));
  ASSERT_EQ(env.assertions().size(), 1u);
  EXPECT_EQ(env.assertions()[0].condition, eq(u, a));
  EXPECT_THAT(env.assertions()[0].words, HasSubstr("cat"));
  // A condition over hints stays a decision.
  EXPECT_FALSE(env.expect(lt(a, 5)));
  EXPECT_EQ(env.assertions().size(), 1u);
}

TEST_F(ShapeEnvTest, ChecksAreFactsAndNoGuards) {
  Expr u = env.new_symbol(SymbolKind::unbacked, std::nullopt, Interval{});
  Expr a = size(6);
  env.check(ge(u, 0), "a length", "f.cpp:3");
  env.check(lt(u, a), "", "f.cpp:4");
  EXPECT_TRUE(env.proves(le(u + 1, a)));
  EXPECT_TRUE(env.proves(ge(u, 0)));
  EXPECT_EQ(env.assertions().size(), 2u);
  env.check(ge(u, -1), "", "");  // follows
  EXPECT_EQ(env.assertions().size(), 2u);
  EXPECT_THROW(env.check(lt(u, 0), "", ""), UserError);
  EXPECT_THAT(
      [&] { env.check(gt(a, 7), "too short", "f.cpp:5"); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("f.cpp:5"), HasSubstr("too short"), HasSubstr("s0 = 6"))));
  EXPECT_TRUE(env.guards().empty());
}

TEST(ExprProgram, RunsInStages) {
  const Expr a = Symbol{SymbolKind::size, 0}, u = Symbol{SymbolKind::unbacked, 0};
  ExprProgram program;
  program.set_stage({SymbolKind::unbacked, 0}, 1);
  const int32_t early = program.add(a * 2), late = program.add(floor_div(a * 2, u) + a);
  std::vector<int64_t> registers(program.initial().begin(), program.initial().end());
  const auto set = [&](Symbol symbol, int64_t value) {
    for (const auto& [s, at] : program.symbols()) {
      if (s == symbol) registers[static_cast<size_t>(at)] = value;
    }
  };
  set({SymbolKind::size, 0}, 6);
  EXPECT_TRUE(program.run(registers.data()));  // no division by the symbol that has no value yet
  EXPECT_EQ(registers[static_cast<size_t>(early)], 12);
  set({SymbolKind::unbacked, 0}, 5);
  EXPECT_TRUE(program.run(registers.data(), 1));
  EXPECT_EQ(registers[static_cast<size_t>(late)], 8);
  set({SymbolKind::unbacked, 0}, 0);
  EXPECT_FALSE(program.run(registers.data(), 1));
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

// Random expressions against direct evaluation. A failure prints the seed that reproduces it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "stax/error.h"
#include "unit/symbolic/random_expr.h"

namespace stax {
namespace {

using testing::build;
using testing::RandomExprs;
using testing::Tree;
using testing::value_of;
using testing::Values;

constexpr int kPrograms = 4000;
constexpr int kSamples = 24;

/// STAX_SEED, or a fixed seed so that a run can be repeated.
uint64_t first_seed() {
  const char* text = std::getenv("STAX_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 20240229;
}

int64_t at(Expr e, const Values& values) {
  return evaluate(e, [&](Symbol s) { return values.at(s); });
}

template <typename Check>
void for_random_expressions(Check check) {
  for (int k = 0; k < kPrograms; ++k) {
    uint64_t seed = first_seed() + static_cast<uint64_t>(k);
    SCOPED_TRACE("STAX_SEED=" + std::to_string(seed));
    RandomExprs random(seed);
    Tree tree = random.tree(1 + k % 5);
    check(random, tree, build(tree));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Property, CanonicalFormAndSimplifyKeepTheValue) {
  int compared = 0;
  for_random_expressions([&](RandomExprs& random, const Tree& tree, Expr e) {
    Expr simple = simplify(e, random.ranges());
    Interval interval = random.ranges().interval(e);
    for (int sample = 0; sample < kSamples; ++sample) {
      std::optional<Values> values = random.values();
      std::optional<int64_t> expected = values ? value_of(tree, *values) : std::nullopt;
      if (!expected) continue;
      ++compared;
      std::string where;
      for (auto [s, v] : *values) where += s.str() + "=" + std::to_string(v) + " ";
      for (auto [s, v] : *values) {
        if (auto x = random.ranges().extent(s)) where += s.str() + "<" + x->str() + " ";
      }
      ASSERT_EQ(at(e, *values), *expected) << e.str() << " at " << where;
      ASSERT_EQ(at(simple, *values), *expected) << e.str() << " -> " << simple.str() << " at " << where;
      if (interval.lower) {
        ASSERT_LE(*interval.lower, *expected) << e.str() << " in " << interval.str() << " at " << where;
      }
      if (interval.upper) {
        ASSERT_GE(*interval.upper, *expected) << e.str() << " in " << interval.str() << " at " << where;
      }
    }
  });
  EXPECT_GT(compared, kPrograms);
}

TEST(Property, SimplifyIsIdempotent) {
  for_random_expressions([](RandomExprs& random, const Tree&, Expr e) {
    Expr once = simplify(e, random.ranges());
    ASSERT_EQ(simplify(once, random.ranges()), once)
        << e.str() << " -> " << once.str() << " -> " << simplify(once, random.ranges()).str();
  });
}

TEST(Property, RebuildingGivesTheSameNode) {
  for_random_expressions([](RandomExprs&, const Tree&, Expr e) {
    auto rename = [&](int32_t by) {
      return [by](Symbol s) { return std::optional(Expr(Symbol{s.kind, s.number + by})); };
    };
    ASSERT_EQ(substitute(substitute(e, rename(10)), rename(-10)), e) << e.str();
  });
}

TEST(Property, DecisionsHold) {
  int decided = 0;
  for_random_expressions([&](RandomExprs& random, const Tree& tree, Expr e) {
    Tree other = random.tree(2);
    Expr f = build(other);
    for (Relation relation : {Relation::eq, Relation::ne, Relation::lt, Relation::le}) {
      std::optional<bool> answer = decide({relation, e, f}, random.ranges());
      if (!answer) continue;
      ++decided;
      for (int sample = 0; sample < kSamples; ++sample) {
        std::optional<Values> values = random.values();
        if (!values) continue;
        std::optional<int64_t> a = value_of(tree, *values), b = value_of(other, *values);
        if (!a || !b) continue;
        bool holds = relation == Relation::eq   ? *a == *b
                     : relation == Relation::ne ? *a != *b
                     : relation == Relation::lt ? *a < *b
                                                : *a <= *b;
        ASSERT_EQ(holds, *answer) << Condition{relation, e, f}.str();
      }
    }
  });
  EXPECT_GT(decided, kPrograms / 4);
}

}  // namespace
}  // namespace stax

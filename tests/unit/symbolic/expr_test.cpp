#include "symbolic/expr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "stax/error.h"
#include "unit/symbolic/symbols.h"

namespace stax {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kLargest = INT64_MAX, kSmallest = INT64_MIN;

int64_t at(Expr e, int64_t value) {
  return evaluate(e, [&](Symbol) { return value; });
}

TEST(Expr, SumsAndProductsHaveOneForm) {
  EXPECT_EQ((i0 + 1) * (i0 - 1) + 1, i0 * i0);
  EXPECT_EQ(s0 * i0 + r0, r0 + i0 * s0);
  EXPECT_EQ(2 * (s0 + s1) - s0 - s1, s1 + s0);
  EXPECT_EQ(i0 - i0, Expr(0));
  EXPECT_EQ(s0 * (s1 * s2), (s2 * s0) * s1);
  EXPECT_EQ(sum(std::vector<Expr>{i0, 3, s0, i0, -3}), 2 * i0 + s0);
  EXPECT_EQ(product({s0, 2, s1}), 2 * s0 * s1);
  EXPECT_FALSE(s0 == s1);
}

TEST(Expr, LargeProductsOfSumsStayProducts) {
  Expr a = 0, b = 0;
  for (int k = 0; k < 8; ++k) {
    a += Symbol{SymbolKind::size, k};
    b += Symbol{SymbolKind::index, k};
  }
  Expr e = 2 * a * (3 * b);
  EXPECT_EQ(e.kind(), ExprKind::mul);
  EXPECT_EQ(e, 6 * (b * a));
  EXPECT_EQ(at(e, 1), 6 * 8 * 8);
}

TEST(Expr, DivisionForAllValues) {
  EXPECT_EQ(floor_div(i0, 1), i0);
  EXPECT_EQ(floor_div(s0, s0), Expr(1));
  EXPECT_EQ(floor_div(-7, 2), Expr(-4));
  EXPECT_EQ(floor_div(7, -2), Expr(-4));
  EXPECT_EQ(floor_div(12 * i0 + 4 * i1, 4), 3 * i0 + i1);
  EXPECT_EQ(floor_div(4 * i0 + i1, 4), i0 + floor_div(i1, 4));
  EXPECT_EQ(floor_div(6 * i0 + 3, 4), floor_div(6 * i0 + 3, 4));
  EXPECT_EQ(floor_div(2 * i0 + 3, 8), floor_div(i0 + 1, 4));
  EXPECT_EQ(floor_div(s0 * i0 + r0, s0), i0 + floor_div(r0, s0));
  EXPECT_EQ(floor_div(s0 * i0 + s0 * r0, s0 * s1), floor_div(i0 + r0, s1));
  EXPECT_EQ(floor_div(s0 * s1 + s1, s0 + 1), s1);
  EXPECT_EQ(floor_div(floor_div(i0, 4), 8), floor_div(i0, 32));
  EXPECT_EQ(floor_div(floor_div(i0, s0), 8), floor_div(i0, 8 * s0));
  EXPECT_EQ(floor_div(i0, -3), floor_div(-i0, 3));
  EXPECT_EQ(floor_div(mod(i0, 24), 3), mod(floor_div(i0, 3), 8));
  EXPECT_EQ(ceil_div(ceil_div(s0, 4), 8), ceil_div(s0, 32));
}

TEST(Expr, ModuloForAllValues) {
  EXPECT_EQ(mod(i0, 1), Expr(0));
  EXPECT_EQ(mod(s0, s0), Expr(0));
  EXPECT_EQ(mod(-7, 4), Expr(1));
  EXPECT_EQ(mod(7, -4), Expr(-1));
  EXPECT_EQ(mod(12 * i0 + i1 + 9, 4), mod(i1 + 1, 4));
  EXPECT_EQ(mod(6 * i0 + 4, 9), 3 * mod(2 * i0 + 1, 3) + 1);
  EXPECT_EQ(mod(s0 * i0 + r0, s0), mod(r0, s0));
  EXPECT_EQ(mod(s0 * i0, s0 * s1), s0 * mod(i0, s1));
  EXPECT_EQ(mod(mod(i0, 24), 8), mod(i0, 8));
  EXPECT_EQ(mod(mod(i0, s0 * s1), s0), mod(i0, s0));
  EXPECT_EQ(mod(i1 + mod(i0, 24), 8), mod(i0 + i1, 8));
  EXPECT_EQ(mod(i0, -3), -mod(-i0, 3));
}

TEST(Expr, ExtremaForAllValues) {
  EXPECT_EQ(min(3, 5), Expr(3));
  EXPECT_EQ(max(s0, s0 + 2), s0 + 2);
  EXPECT_EQ(min(s0, s1), min(s1, s0));
  EXPECT_EQ(min(min(s0, 4), min(s1, 6)), min(s0, min(s1, 4)));
  EXPECT_EQ(max(s0, min(s0, s1)), s0);
}

TEST(Expr, NestedDivisionAndModuloOfAnIndex) {
  // y[i] = x[((i mod 24)/3*3) mod 6 + 6*(i/24)]: the division by 3 matters.
  Expr e = mod(floor_div(mod(i0, 24), 3) * 3, 6) + 6 * floor_div(i0, 24);
  Ranges ranges;
  ranges.set_extent(i0.symbol(), 48);
  const std::vector<int64_t> first = {0, 0, 0, 3, 3, 3, 0, 0, 0};
  for (Expr form : {e, simplify(e, ranges)}) {
    for (int64_t i = 0; i < 9; ++i) {
      EXPECT_EQ(at(form, i), first[static_cast<size_t>(i)]);
      EXPECT_EQ(at(form, i + 24), first[static_cast<size_t>(i)] + 6);
    }
  }
}

TEST(Expr, PrintsInTheOrderOfNames) {
  EXPECT_EQ((128 * i0 + r0).str(), "128*i0 + r0");
  EXPECT_EQ((r0 + s0 * i0).str(), "i0*s0 + r0");
  EXPECT_EQ((floor_div(s0 + 3, 4)).str(), "(s0 + 3)//4");
  EXPECT_EQ(mod(s0, 8).str(), "s0 % 8");
  EXPECT_EQ((3 * mod(s0, 8)).str(), "3*(s0 % 8)");
  EXPECT_EQ(max(2, s0).str(), "max(s0, 2)");
  EXPECT_EQ((4 - s0).str(), "4 - s0");
  EXPECT_EQ((-s0 - 4).str(), "-s0 - 4");
  EXPECT_EQ((i0 - 2 * s0).str(), "i0 - 2*s0");
  EXPECT_EQ(Expr(-3).str(), "-3");
  EXPECT_EQ((3 * floor_div(i0, 4) + mod(i0, 2)).str(), "3*(i0//4) + i0 % 2");
  EXPECT_EQ(mod(floor_div(i0, 4), 2).str(), "(i0//4) % 2");
  EXPECT_EQ((i0 + Expr(kSmallest)).str(), "i0 + -9223372036854775808");
}

TEST(Expr, PrintsWithOtherNames) {
  auto name = [](Symbol s) {
    if (s.kind == SymbolKind::reduction) return std::string("r0_1");
    return (s.number == 0 ? "x" : "y") + std::to_string(9 + s.number);
  };
  EXPECT_EQ(to_string(128 * i0 + r0 + 1, name), "r0_1 + 128*x9 + 1");
  EXPECT_EQ(to_string(i1 + 256 * i0, name), "256*x9 + y10");
  auto numbered = [](Symbol s) { return "x" + std::to_string(s.number == 0 ? 10 : 2); };
  EXPECT_EQ(to_string(i0 + i1, numbered), "x2 + x10");
}

TEST(Expr, Reads) {
  Expr e = 3 * i0 * s0 + floor_div(r0, 4);
  EXPECT_THAT(e.symbols(), ElementsAre(i0.symbol(), r0.symbol(), s0.symbol()));
  EXPECT_TRUE(e.contains(r0.symbol()));
  EXPECT_FALSE(e.contains(i1.symbol()));
  EXPECT_TRUE(e.contains(SymbolKind::size));
  EXPECT_FALSE(e.contains(SymbolKind::block));
  EXPECT_EQ(Expr(7).constant(), 7);
  EXPECT_EQ(e.constant(), std::nullopt);
  EXPECT_THROW(e.value(), InternalError);
}

TEST(Expr, SubstitutesAllAtOnce) {
  auto swap = [](Symbol s) -> std::optional<Expr> {
    return s == i0.symbol() ? std::optional(i1) : s == i1.symbol() ? std::optional(i0) : std::nullopt;
  };
  EXPECT_EQ(substitute(floor_div(i0, 4) + 2 * i1, swap), floor_div(i1, 4) + 2 * i0);
  EXPECT_EQ(substitute(mod(i0, s0), s0.symbol(), 1), Expr(0));
}

TEST(Expr, Strides) {
  EXPECT_EQ(stride_of(s0 * i0 + r0, i0.symbol()), s0);
  EXPECT_EQ(stride_of(s0 * i0 + r0, i1.symbol()), Expr(0));
  EXPECT_EQ(stride_of(floor_div(i0, 2), i0.symbol()), std::nullopt);
  EXPECT_EQ(stride_of(i0 * i0, i0.symbol()), std::nullopt);
}

TEST(Expr, OverflowIsAnError) {
  EXPECT_THAT([] { Expr(kLargest) + 1; }, ThrowsMessage<UserError>(HasSubstr("9223372036854775807")));
  EXPECT_THAT([] { (Expr(kLargest) * s0) * 2; },
              ThrowsMessage<UserError>(HasSubstr("9223372036854775807*s0")));
  EXPECT_THROW(-Expr(kSmallest), UserError);
  EXPECT_THROW(floor_div(kSmallest, -1), UserError);
  EXPECT_EQ(mod(kSmallest, -1), Expr(0));
  EXPECT_THAT([] { at(s0 * s0, kLargest); }, ThrowsMessage<UserError>(HasSubstr("s0*s0")));
}

TEST(Expr, OnlyAResultThatIsTooLargeIsAnError) {
  EXPECT_EQ(at(s0 * s0 - s0 * s0 + s0, kLargest), kLargest);
  EXPECT_EQ(at(floor_div(s0 * s0 + 1, s0), kLargest), kLargest);
  EXPECT_EQ(at(s0 + Expr(kLargest) - 1, 1), kLargest);
  // The product of the divisors does not fit, so the division stays nested.
  Expr large = int64_t{1} << 40;
  EXPECT_EQ(at(floor_div(floor_div(s0, large), large), kLargest), 0);
}

TEST(Expr, ZeroDivisorIsAnErrorWhenEvaluated) {
  Expr e = floor_div(i0, s0);
  EXPECT_THAT([&] { at(e, 0); }, ThrowsMessage<UserError>(HasSubstr("i0//s0")));
  EXPECT_THROW(at(floor_div(i0, 0), 1), UserError);
  EXPECT_THROW(at(mod(i0, 0), 1), UserError);
}

TEST(Expr, ThreadsShareNodes) {
  constexpr int kThreads = 4;
  std::vector<std::vector<Expr>> made(kThreads);
  std::vector<std::thread> threads;
  for (auto& list : made) {
    threads.emplace_back([&list] {
      for (int k = 0; k < 2000; ++k) {
        Expr x = Symbol{SymbolKind::block, k % 50};
        list.push_back(floor_div(x * (k + 5000) + s0, 7) + mod(x, s0 + k));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& list : made) EXPECT_EQ(list, made[0]);
}

TEST(Expr, OrderIsTotalAndFollowsNames) {
  std::vector<Expr> ascending = {i0, i0 * s0, Symbol{SymbolKind::index, 2}, Symbol{SymbolKind::index, 10}, r0,
                                 s0, 5};
  for (size_t a = 0; a < ascending.size(); ++a) {
    for (size_t b = 0; b < ascending.size(); ++b) {
      EXPECT_EQ(compare(ascending[a], ascending[b]), a < b ? -1 : a > b ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace stax

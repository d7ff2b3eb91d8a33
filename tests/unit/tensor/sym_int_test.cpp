#include "tensor/sym_int.h"

#include <gtest/gtest.h>

#include <limits>

#include "stax/error.h"
#include "stax/lists.h"

namespace stax {
namespace {

TEST(SymInt, MixesWithEveryArithmeticTypeOnEitherSide) {
  const SymInt n = 10;
  EXPECT_EQ((n + 1).value(), 11);
  EXPECT_EQ((uint8_t{3} * n).value(), 30);
  EXPECT_EQ((size_t{3} - n).value(), -7);
  EXPECT_EQ((n / 4L).value(), 2);
  EXPECT_EQ((-n / 4).value(), -2) << "division truncates, as for C++ integers";
  EXPECT_EQ((-n % 4).value(), -2);
  EXPECT_DOUBLE_EQ(n * 0.5, 5.0);
  EXPECT_FLOAT_EQ(1.0f / n, 0.1f);
  static_assert(std::is_same_v<decltype(n + int16_t{1}), SymInt>);
  static_assert(std::is_same_v<decltype(n * 0.5f), float>);
  static_assert(std::is_same_v<decltype(n < 3u), SymBool>);
}

TEST(SymInt, ConvertsToNumbersAndBools) {
  const SymInt n = 3;
  const int64_t wide = n;
  const int narrow = n;
  const double real = n;
  EXPECT_EQ(wide + narrow, 6);
  EXPECT_EQ(real, 3.0);
  int steps = 0;
  for (int64_t i = 0; i < n; ++i) ++steps;
  EXPECT_EQ(steps, 3);
  EXPECT_TRUE(n == 3 && 3 == n && n != 4 && 4 > n && n <= size_t{3});
  EXPECT_EQ(std::vector<float>(n).size(), 3u);
}

TEST(SymInt, KeepsNumbersThatShareTheTagOfExpressions) {
  for (const int64_t value : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                              -(int64_t{1} << 62), -(int64_t{1} << 62) - 1}) {
    const SymInt n = value;
    EXPECT_EQ(static_cast<int64_t>(n), value);
    EXPECT_FALSE(n.is_symbolic());
    EXPECT_EQ(n.str(), std::to_string(value));
    EXPECT_TRUE(n == value);
  }
}

TEST(SymInt, RefusesResultsThatLeave64Bits) {
  const SymInt large = std::numeric_limits<int64_t>::max();
  EXPECT_THROW((void)(large + 1), UserError);
  EXPECT_THROW((void)(large * 2), UserError);
  EXPECT_THROW((void)(large / 0), UserError);
}

TEST(SymInt, ArithmeticOnSymbolsStaysSymbolic) {
  const SymInt s = to_sym_int(Expr(Symbol{SymbolKind::size, 0}));
  EXPECT_TRUE(s.is_symbolic());
  EXPECT_TRUE(to_expr(2 * s + 1) == Expr(Symbol{SymbolKind::size, 0}) * 2 + 1);
  EXPECT_TRUE((s < 4).is_symbolic());
  EXPECT_FALSE((s - s).is_symbolic());
  EXPECT_EQ((s - s).value(), 0);
}

TEST(SymInt, ReadingASymbolOutsideItsTraceIsAnError) {
  const SymInt s = to_sym_int(Expr(Symbol{SymbolKind::size, 0}));
  EXPECT_THROW((void)static_cast<int64_t>(s), UserError);
  EXPECT_THROW((void)static_cast<bool>(s == 4), UserError);
}

// sym_ite decides nothing: its expression has the chosen value for every size.
TEST(SymInt, ChoiceHoldsForEveryValueOfTheSymbol) {
  const Symbol symbol{SymbolKind::size, 0};
  const SymInt s = to_sym_int(Expr(symbol));
  const auto at = [&](const SymInt& value, int64_t size) {
    return evaluate(to_expr(value), [&](Symbol) { return size; });
  };
  for (int64_t size = 0; size < 9; ++size) {
    EXPECT_EQ(at(sym_ite(s < 4, 100, 200), size), size < 4 ? 100 : 200);
    EXPECT_EQ(at(sym_ite(s <= 4, 100, 200), size), size <= 4 ? 100 : 200);
    EXPECT_EQ(at(sym_ite(s == 4, 100, 200), size), size == 4 ? 100 : 200);
    EXPECT_EQ(at(sym_ite(s != 4, s, 200), size), size != 4 ? size : 200);
    EXPECT_EQ(at(max(s, 3), size), std::max<int64_t>(size, 3));
  }
}

TEST(IntList, TakesNumbersListsAndVectors) {
  const auto values = [](const IntList& list) {
    std::vector<int64_t> out;
    for (size_t i = 0; i < list.size(); ++i) out.push_back(list[i]);
    return out;
  };
  EXPECT_EQ(values(-1), (std::vector<int64_t>{-1}));
  EXPECT_EQ(values({1, 0}), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(values(std::vector<int64_t>{4, 5}), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(values(std::vector<SymInt>{6}), (std::vector<int64_t>{6}));
  EXPECT_EQ(values({}), (std::vector<int64_t>{}));
}

}  // namespace
}  // namespace stax

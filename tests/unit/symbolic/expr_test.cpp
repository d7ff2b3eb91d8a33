#include "symbolic/expr.h"

#include <gtest/gtest.h>

#include "stax/error.h"
#include "symbolic/shape_env.h"

namespace stax {
namespace {

const Expr s0 = Symbol{SymbolKind::size, 0}, s1 = Symbol{SymbolKind::size, 1};
const Expr i0 = Symbol{SymbolKind::index, 0}, i1 = Symbol{SymbolKind::index, 1};
const Expr r0 = Symbol{SymbolKind::reduction, 0};

TEST(Expr, SumsAndProductsHaveOneForm) {
  EXPECT_EQ((i0 + 1) * (i0 - 1) + 1, i0 * i0);
  EXPECT_EQ(s0 * i0 + r0, r0 + i0 * s0);
  EXPECT_EQ(2 * (s0 + s1) - s0 - s1, s1 + s0);
  EXPECT_EQ(i0 - i0, Expr(0));
}

TEST(Expr, PrintsInTheOrderOfNames) {
  EXPECT_EQ((128 * i0 + r0).str(), "128*i0 + r0");
  EXPECT_EQ((r0 + s0 * i0).str(), "i0*s0 + r0");
  EXPECT_EQ(floor_div(s0 + 3, 4).str(), "(s0 + 3)//4");
  EXPECT_EQ(mod(s0, 8).str(), "s0 % 8");
  EXPECT_EQ(max(2, s0).str(), "max(s0, 2)");
  EXPECT_EQ((4 - s0).str(), "4 - s0");
  EXPECT_EQ((3 * floor_div(i0, 4) + mod(i0, 2)).str(), "3*(i0//4) + i0 % 2");
  auto name = [](Symbol s) {
    return s.kind == SymbolKind::reduction ? std::string("r0_1") : "x" + std::to_string(s.number);
  };
  EXPECT_EQ(to_string(128 * i0 + r0, name), "r0_1 + 128*x0");
}

}  // namespace
}  // namespace stax

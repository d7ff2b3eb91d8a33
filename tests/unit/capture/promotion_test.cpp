// Promotion against a table written down from PyTorch's documented rules (tensor_attributes: categories bool,
// integer, float; within a category the smallest type that holds both; uint8 with a signed type widens).
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "stax/stax.h"

namespace stax {
namespace {

constexpr const char* kTable = R"(
     b8   u8   i8   i16  i32  i64  f16  bf16 f32  f64
b8   b8   u8   i8   i16  i32  i64  f16  bf16 f32  f64
u8   u8   u8   i16  i16  i32  i64  f16  bf16 f32  f64
i8   i8   i16  i8   i16  i32  i64  f16  bf16 f32  f64
i16  i16  i16  i16  i16  i32  i64  f16  bf16 f32  f64
i32  i32  i32  i32  i32  i32  i64  f16  bf16 f32  f64
i64  i64  i64  i64  i64  i64  i64  f16  bf16 f32  f64
f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
)";

const std::map<std::string, DType> kNames = {
    {"b8", kBool},   {"u8", kUInt8},    {"i8", kInt8},       {"i16", kInt16},   {"i32", kInt32},
    {"i64", kInt64}, {"f16", kFloat16}, {"bf16", kBFloat16}, {"f32", kFloat32}, {"f64", kFloat64}};

TEST(Promotion, OfTensorsFollowsTheTable) {
  std::istringstream in(kTable);
  std::vector<std::string> columns(10);
  for (std::string& column : columns) in >> column;
  std::string row;
  int checked = 0;
  while (in >> row) {
    for (const std::string& column : columns) {
      std::string expected;
      in >> expected;
      const Tensor a = tensor({1, 1}, kNames.at(row)), b = tensor({1, 1}, kNames.at(column));
      EXPECT_EQ(name((a * b).dtype()), name(kNames.at(expected))) << row << " * " << column;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 100);
}

TEST(Promotion, ZeroDimTensorsCountByCategoryOnly) {
  const Tensor half = tensor({1, 1}, kFloat16), integers = tensor({1, 1}, kInt32);
  EXPECT_EQ((half * tensor(1.0, kFloat64)).dtype(), kFloat16);
  EXPECT_EQ((integers * tensor(1, kInt64)).dtype(), kInt32);
  EXPECT_EQ((integers * tensor(1.0, kFloat64)).dtype(), kFloat64);
  EXPECT_EQ((tensor(1.0, kFloat16) * tensor(1.0, kFloat64)).dtype(), kFloat64);
}

TEST(Promotion, NumbersCountByCategoryOnly) {
  const Tensor half = tensor({1, 1}, kFloat16), integers = tensor({1, 1}, kInt32), bools = tensor({true});
  EXPECT_EQ((half * 2.5).dtype(), kFloat16);
  EXPECT_EQ((half * 2).dtype(), kFloat16);
  EXPECT_EQ((integers * 2).dtype(), kInt32);
  EXPECT_EQ((integers * 2.5).dtype(), kFloat32);
  EXPECT_EQ((2.5 * integers).dtype(), kFloat32);
  EXPECT_EQ((bools * 2).dtype(), kInt64);
  EXPECT_EQ((bools * true).dtype(), kBool);
  EXPECT_EQ((tensor(1, kInt32) * 2).dtype(), kInt32);
  EXPECT_EQ((tensor(1.0, kFloat16) * 2.0).dtype(), kFloat16);
}

TEST(Promotion, DivisionOfIntegersIsReal) {
  const Tensor quotient = tensor({7, -7}) / 2;
  EXPECT_EQ(quotient.dtype(), kFloat32);
  EXPECT_EQ(quotient[0].item<float>(), 3.5f);
  EXPECT_EQ((2 / tensor({4.0, 8.0}))[1].item<float>(), 0.25f);
  EXPECT_EQ((2 - tensor({4, 8}))[1].item<int>(), -6);
  EXPECT_EQ((tensor({-7, 7}) % 4)[0].item<int>(), 1) << "the sign of the divisor";
}

}  // namespace
}  // namespace stax

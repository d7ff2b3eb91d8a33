// The table of instructions, and that of reductions and scans.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "loops/fold.h"

namespace stax::loops {
namespace {

std::vector<OpCode> all_ops() {
  return {
#define X(name, ...) OpCode::name,
      STAX_LOOP_OPS(X)
#undef X
  };
}

TEST(OpTable, OperandsAreThoseOfTheKind) {
  const std::map<OpKind, int> counts = {{OpKind::leaf, 0},    {OpKind::unary, 1}, {OpKind::binary, 2},
                                        {OpKind::ternary, 3}, {OpKind::cast, 1},  {OpKind::scan, 1},
                                        {OpKind::store, 1}};
  for (const OpCode op : all_ops()) {
    const auto count = counts.find(info(op).kind);
    if (count != counts.end()) {
      EXPECT_EQ(info(op).operands, count->second) << info(op).name;
    }
  }
  EXPECT_EQ(info(OpCode::random_bits).operands, 2);  // seed and counter
  EXPECT_EQ(info(OpCode::reduce_welford).operands, 1);
  EXPECT_EQ(info(OpCode::reduce_welford_combine).operands, 3);  // mean, squares, count
}

TEST(OpTable, ComparisonsAndPredicatesGiveBool) {
  std::set<std::string_view> found;
  for (const OpCode op : all_ops())
    if (is_predicate(op)) found.insert(info(op).name);
  EXPECT_EQ(found, (std::set<std::string_view>{"isnan", "isinf", "signbit", "logical_not", "eq", "ne", "lt",
                                               "le", "gt", "ge"}));
}

TEST(FoldTable, HasARowForEachReductionAndScanAndForNothingElse) {
  for (const OpCode op : all_ops()) {
    if (is_reduction(op) || is_scan(op)) {
      EXPECT_EQ(fold_info(op).op, op) << info(op).name;
    } else {
      EXPECT_ANY_THROW(fold_info(op)) << info(op).name;
    }
  }
}

double folded(OpCode step, double a, double b) {
  switch (step) {
    case OpCode::add:
      return a + b;
    case OpCode::mul:
      return a * b;
    case OpCode::maximum:
      return std::max(a, b);
    case OpCode::minimum:
      return std::min(a, b);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

TEST(FoldTable, IdentitiesChangeNothing) {
  int checked = 0;
  for (const OpCode op : {OpCode::reduce_sum, OpCode::reduce_prod, OpCode::reduce_max, OpCode::reduce_min,
                          OpCode::scan_sum, OpCode::scan_prod}) {
    for (const double value : {-3.5, 0.0, 1e300}) {
      const double identity = identity_of(op, DType::float64).as_double();
      EXPECT_EQ(folded(fold_of(op), identity, value), value) << info(op).name;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 18);
  EXPECT_EQ(identity_of(OpCode::reduce_argmin, DType::int8).as_int(), 127);
  EXPECT_EQ(identity_of(OpCode::scan_max, DType::int16).as_int(), -32768);
  EXPECT_EQ(identity_of(OpCode::reduce_all, DType::boolean).as_int(), 1);
  EXPECT_EQ(identity_of(OpCode::reduce_any, DType::boolean).as_int(), 0);
}

TEST(FoldTable, PositionsAreInt64) {
  EXPECT_EQ(result_dtype(OpCode::reduce_argmax, 0, DType::float32), DType::int64);
  EXPECT_EQ(result_dtype(OpCode::reduce_argmax, 1, DType::float32), DType::float32);
  EXPECT_EQ(result_dtype(OpCode::scan_min, 0, DType::float32), DType::float32);
  EXPECT_EQ(result_dtype(OpCode::scan_min, 1, DType::float32), DType::int64);
  EXPECT_EQ(result_dtype(OpCode::reduce_welford, 2, DType::float64), DType::float64);
  EXPECT_EQ(result_count(OpCode::add), 1);
  EXPECT_FALSE(finds_position(OpCode::reduce_max));
}

}  // namespace
}  // namespace stax::loops

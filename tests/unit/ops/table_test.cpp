// Facts about the op table as a whole.
#include "ops/table.h"

#include <gtest/gtest.h>

#include <set>

namespace stax {
namespace {

TEST(OpTable, ParsesEveryRow) {
  const auto& rows = ops::table().rows();
  EXPECT_GE(rows.size(), 150u);
  for (const graph::Op& op : rows) {
    EXPECT_FALSE(op.schema.name.empty());
    EXPECT_FALSE(op.schema.returns.empty()) << op.schema_text;
    std::set<std::string> names;
    for (const auto& p : op.schema.params) EXPECT_TRUE(names.insert(p.name).second) << op.schema_text;
  }
}

TEST(OpTable, EachRowHasWhatItsClassNeeds) {
  using graph::OpClass;
  for (const graph::Op& op : ops::table().rows()) {
    const bool complete = op.op_class == OpClass::pointwise ? op.body != nullptr
                          : op.op_class == OpClass::view    ? op.meta && op.scatter
                          : op.op_class == OpClass::lowered ? op.meta && op.lower
                          : op.op_class == OpClass::composite || op.op_class == OpClass::decomposed
                              ? op.decompose != nullptr
                              : true;
    EXPECT_TRUE(complete) << op.schema_text;
  }
}

}  // namespace
}  // namespace stax

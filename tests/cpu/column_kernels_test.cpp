// Values kept in arrays between the passes of a column reduction, where the last pass runs several vectors at
// once.
#include <gtest/gtest.h>

#include "stax/stax.h"

namespace stax {
namespace {

TEST(ColumnKernels, EveryVectorOfTheLastPassReadsItsOwnColumns) {
  // Column c holds c and 3 c: mean 2 c, biased deviation c.
  for (const int64_t columns : {64, 200, 1001}) {
    const Tensor c = arange(columns).to(kFloat64);
    const Tensor x = stack({c, c * 3});
    const auto deviation = [](const Tensor& x) { return x.std({0}, false); };
    const Tensor got = compile(deviation, {.strict_native = true})(x);
    EXPECT_LT((got - c).abs().max().item<double>(), 1e-9) << columns;
  }
}

}  // namespace
}  // namespace stax

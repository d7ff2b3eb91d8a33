// Calls that C++ must resolve to the overload that libtorch's users mean.
#include <gtest/gtest.h>

#include "stax/stax.h"

namespace stax {
namespace {

TEST(Overloads, VarianceTakesABoolOrACorrection) {
  const Tensor x = tensor({1.0f, 2.0f, 3.0f, 4.0f});
  // Squared deviations from 2.5 sum to 5.
  EXPECT_FLOAT_EQ(x.var(-1, true).item<float>(), 5.0f / 3);
  EXPECT_FLOAT_EQ(x.var(-1, false).item<float>(), 1.25f);
  EXPECT_FLOAT_EQ(x.var(-1, 2).item<float>(), 2.5f);
  EXPECT_FLOAT_EQ(stax::var(x, {0}, 0.0).item<float>(), 1.25f);
}

}  // namespace
}  // namespace stax

// Compiled functions against what the operators give by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "stax/stax.h"

namespace stax {
namespace {

CompileOptions strict() {
  return {.strict_native = true};
}

std::vector<float> values(const Tensor& t) {
  const Tensor dense = t.contiguous();
  const auto* data = dense.data_ptr<float>();
  return {data, data + int64_t{dense.numel()}};
}

void expect_values(const Tensor& t, const std::vector<float>& expected) {
  const std::vector<float> got = values(t);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i;
    } else {
      EXPECT_FLOAT_EQ(got[i], expected[i]) << i;
    }
  }
}

Tensor example(const Tensor& x, const Tensor& w) {
  return (relu(x + w) * 2).sum(-1);
}

TEST(Compile, RunsTheFirstExampleAsOneKernel) {
  const auto compiled = compile(example, strict());
  const Tensor x = tensor({{1.f, -2.f, 3.f}, {-4.f, 5.f, -6.f}});
  const Tensor w = tensor({{1.f, 1.f, 1.f}, {2.f, 2.f, 2.f}});
  // relu(x + w) = [[2, 0, 4], [0, 7, 0]]
  expect_values(compiled(x, w), {12, 14});
  expect_values(compiled(x, w), {12, 14});
  ASSERT_EQ(compiled.artifacts().size(), 1u);
  EXPECT_EQ(compiled.artifacts()[0].kernels.size(), 1u);
}

}  // namespace
}  // namespace stax

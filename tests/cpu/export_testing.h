// What the tests of exported programs share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "stax/stax.h"
#include "support/user_error.h"

namespace stax {

inline void expect_values(const Tensor& tensor, const std::vector<int64_t>& sizes,
                          const std::vector<float>& values) {
  std::vector<int64_t> got;
  for (int64_t d = 0; d < tensor.dim(); ++d) got.push_back(tensor.size(d));
  EXPECT_EQ(got, sizes);
  const Tensor dense = tensor.to(kFloat32).contiguous();
  std::vector<float> elements(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
  EXPECT_EQ(elements, values);
}

/// Example 10.1.
inline Tensor scaled_sum(const Tensor& x, const Tensor& w) {
  const Tensor y = (relu(x + w) * 2).sum(-1);
  return y / x.size(0);
}

}  // namespace stax

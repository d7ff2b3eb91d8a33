// What the tests of compiled functions share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stax/stax.h"

namespace stax {

inline CompileOptions strict() {
  return {.strict_native = true};
}

template <class T = float>
std::vector<T> values(const Tensor& t) {
  const Tensor dense = t.contiguous();
  const T* data = dense.data_ptr<T>();
  return {data, data + int64_t{dense.numel()}};
}

template <class T>
void expect_values(const Tensor& t, const std::vector<T>& expected) {
  const std::vector<T> got = values<T>(t);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << i;
        continue;
      }
    }
    EXPECT_EQ(got[i], expected[i]) << i;
  }
}
inline void expect_floats(const Tensor& t, const std::vector<float>& expected) {
  expect_values<float>(t, expected);
}

/// Up to the last digits of functions such as cosine.
inline void expect_near(const Tensor& t, const std::vector<float>& expected) {
  const std::vector<float> got = values(t);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5f) << i;
}

inline std::vector<int64_t> numbers(const SizeList& list) {
  return list;
}

/// Kernels of the only artifact. Several forms of one, of which each launch takes one, count once.
template <class F>
size_t kernel_count(const CompiledFunction<F>& compiled) {
  const std::vector<Artifact> artifacts = compiled.artifacts();
  EXPECT_EQ(artifacts.size(), 1u);
  size_t count = 0;
  for (const Artifact::Kernel& k : artifacts.at(0).kernels)
    count += k.name.find("_form") == std::string::npos;
  return count;
}

}  // namespace stax

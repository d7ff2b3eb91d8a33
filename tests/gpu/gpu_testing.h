// The GPU that tests run on: a real one, or the driver that works on host memory, with kernels interpreted.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "stax/stax.h"

namespace stax {

/// Whether a real GPU is used.
bool on_real_gpu();

/// Skips the test where there is neither a GPU nor a Python with Triton.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override;
};

/// Host memory that crosses to the device and back while f runs: in calls. 0 on a real GPU.
int64_t transfers(const std::function<void()>& f);

/// -3, -3 + scale, -3 + 2 * scale, ... on the CPU.
inline Tensor ramp(IntList sizes, double scale = 0.25) {
  SymInt count = 1;
  for (size_t k = 0; k < sizes.size(); ++k) count *= sizes[k];
  return (arange(count, kFloat32) * scale - 3).reshape(sizes);
}

/// The values on the CPU are equal, or differ by `tolerance` at most.
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance = 0) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_TRUE(got.sizes() == want.sizes());
  const Tensor here = got.cpu();
  EXPECT_TRUE(tolerance == 0 ? here.equal(want) : here.allclose(want, tolerance, tolerance))
      << here.str() << want.str();
}

}  // namespace stax

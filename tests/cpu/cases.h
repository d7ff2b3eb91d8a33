// What the tests of single behaviours share: each runs a function in every mode, on several lengths and
// layouts, and compares with values that are written in the test.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "stax/stax.h"

namespace stax::cases {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

using Tensors = std::vector<Tensor>;
using Numbers = std::vector<double>;
using Function = std::function<Tensors(const Tensors&)>;

/// A way to run a function of tensors: as it is, or compiled, on a device. Tensors that are given lie on the
/// CPU, and so do results; on another device the function gets copies, and what it writes is copied back.
class Mode {
 public:
  Mode(bool compiled, Device device) : compiled_(compiled), device_(device) {}
  /// The same for functions that read values while they run: what cannot be compiled runs as it is.
  Mode lax() const {
    Mode mode = *this;
    mode.strict_ = false;
    return mode;
  }
  bool compiled() const { return compiled_; }
  /// Where tensors lie that a function makes itself.
  Device device() const { return device_; }
  /// The function, to be called as often as wanted.
  Function prepare(const Function& f) const;
  /// Results of one call.
  Tensors operator()(const Function& f, const Tensors& inputs) const { return prepare(f)(inputs); }

 private:
  bool compiled_, strict_ = true;
  Device device_;
};

/// Runs `body` once a mode; failures name the mode. The device is the CPU, or that which STAX_TEST_DEVICE
/// names.
void for_each_mode(const std::function<void(const Mode&)>& body);

/// One tensor of these values and this shape.
Tensor make(const Numbers& values, DType dtype, const std::vector<int64_t>& sizes);
Tensor make(const Numbers& values, DType dtype = kFloat32);

/// 64-bit integers that doubles do not hold.
Tensor integers(const std::vector<int64_t>& values, DType dtype = kInt64);

/// The elements in row-major order.
Numbers numbers(const Tensor& t);
std::vector<int64_t> whole(const Tensor& t);
std::vector<int64_t> shape(const Tensor& t);

/// Every element is within `tolerance`, relative, of the expected one; NaN equals NaN.
void expect_values(const Tensor& got, const Numbers& expected, double tolerance = 0);
/// Also zeros have the expected sign.
void expect_signed(const Tensor& got, const Numbers& expected);
/// Exactly these integers.
void expect_whole(const Tensor& got, const std::vector<int64_t>& expected);
/// The same for each of several results.
void expect_values(const Tensors& got, const std::vector<Numbers>& expected, double tolerance = 0);
void expect_whole(const Tensors& got, const std::vector<std::vector<int64_t>>& expected);
void expect_form(const Tensor& got, DType dtype, const std::vector<int64_t>& sizes);

/// A pointwise function and its values: inputs[k] are the values of argument k, expected[r] those of result
/// r.
struct Pointwise {
  Function function;
  std::vector<Numbers> inputs;
  std::vector<Numbers> expected;
  double tolerance = 0;
  bool signed_zeros = false;
};

/// Runs it on the values as they are and repeated until vector loops have bodies and tails; dense, with gaps,
/// and column by column; in every mode and for each dtype.
void check_pointwise(const Pointwise& probe, const std::vector<DType>& dtypes);

/// Runs `call` and expects a UserError whose text holds all of `parts`.
void expect_user_error(const std::function<void()>& call, const std::vector<std::string>& parts);

/// True where tests that need gigabytes of memory are wanted (STAX_TEST_HUGE is set).
bool huge_memory_wanted();

}  // namespace stax::cases

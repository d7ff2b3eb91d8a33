// Which numbers the dtypes have values for.
#pragma once

#include <cstdint>
#include <limits>

#include "stax/dtype.h"

namespace stax {

/// The largest finite value of a floating dtype.
constexpr double largest_finite(DType dtype) {
  return dtype == DType::float16    ? 65504.0
         : dtype == DType::bfloat16 ? 0x1.fep127
         : dtype == DType::float32  ? 0x1.fffffep127
                                    : 0x1.fffffffffffffp1023;
}

struct IntegerLimits {
  int64_t lowest, highest;  // integers within the dtype's finite values
  int64_t each;             // the dtype has a value for each integer from 0 to here
};

/// As far as int64 goes.
constexpr IntegerLimits integer_limits(DType dtype) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(),
                    kHighest = std::numeric_limits<int64_t>::max();
  constexpr IntegerLimits kLimits[kDTypeCount] = {
      {0, 1, 1},                                                              // bool
      {0, 255, 255},                                                          // uint8
      {-128, 127, 127},                                                       // int8
      {-32768, 32767, 32767},                                                 // int16
      {-(int64_t{1} << 31), (int64_t{1} << 31) - 1, (int64_t{1} << 31) - 1},  // int32
      {kLowest, kHighest, kHighest},                                          // int64
      {-65504, 65504, int64_t{1} << 11},                                      // float16
      {kLowest, kHighest, int64_t{1} << 8},                                   // bfloat16
      {kLowest, kHighest, int64_t{1} << 24},                                  // float32
      {kLowest, kHighest, int64_t{1} << 53},                                  // float64
  };
  return kLimits[static_cast<int>(dtype)];
}

}  // namespace stax

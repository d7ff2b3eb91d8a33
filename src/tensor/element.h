// Elements in memory as C++ values: one struct a dtype, and the conversions between them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "stax/dtype.h"
#include "support/half.h"

namespace stax {

/// How a dtype is stored and which C++ type holds its value.
template <DType dtype>
struct Element;

#define STAX_ELEMENT(dtype_name, type)                  \
  template <>                                           \
  struct Element<DType::dtype_name> {                   \
    using Stored = type;                                \
    using Value = type;                                 \
    static Value load(Stored stored) { return stored; } \
    static Stored store(Value value) { return value; }  \
  };
STAX_ELEMENT(uint8, uint8_t)
STAX_ELEMENT(int8, int8_t)
STAX_ELEMENT(int16, int16_t)
STAX_ELEMENT(int32, int32_t)
STAX_ELEMENT(int64, int64_t)
STAX_ELEMENT(float32, float)
STAX_ELEMENT(float64, double)
#undef STAX_ELEMENT

template <>
struct Element<DType::boolean> {
  using Stored = uint8_t;
  using Value = bool;
  static Value load(Stored stored) { return stored != 0; }
  static Stored store(Value value) { return value ? 1 : 0; }
};
template <>
struct Element<DType::float16> {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored stored) { return float16_to_float(stored); }
  static Stored store(Value value) { return float_to_float16(value); }
};
template <>
struct Element<DType::bfloat16> {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored stored) { return bfloat16_to_float(stored); }
  static Stored store(Value value) { return float_to_bfloat16(value); }
};

/// A cast between value types: floats truncate towards zero; int32 and int64 saturate, narrower types wrap
/// what int32 holds and are 0 for the rest; NaN gives 0, integers wrap, anything but zero is true.
template <class To, class From>
To cast_value(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    if (std::isnan(value)) return 0;
    // The limits are powers of two, exact in every float type; the upper one is the first value outside.
    constexpr From kUpper = sizeof(Wide) == 8 ? From(0x1p63) : From(0x1p31);
    const Wide wide = value >= kUpper   ? (sizeof(To) < sizeof(Wide) ? 0 : std::numeric_limits<Wide>::max())
                      : value < -kUpper ? std::numeric_limits<Wide>::min()
                                        : static_cast<Wide>(value);
    return static_cast<To>(wide);
  } else {
    return static_cast<To>(value);
  }
}

/// Calls f with Element<dtype>.
template <class F>
auto visit_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
      return f(Element<DType::boolean>());
    case DType::uint8:
      return f(Element<DType::uint8>());
    case DType::int8:
      return f(Element<DType::int8>());
    case DType::int16:
      return f(Element<DType::int16>());
    case DType::int32:
      return f(Element<DType::int32>());
    case DType::int64:
      return f(Element<DType::int64>());
    case DType::float16:
      return f(Element<DType::float16>());
    case DType::bfloat16:
      return f(Element<DType::bfloat16>());
    case DType::float32:
      return f(Element<DType::float32>());
    case DType::float64:
      return f(Element<DType::float64>());
  }
  return f(Element<DType::float32>());
}

}  // namespace stax

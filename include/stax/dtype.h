// Element types of tensors. Names follow libtorch: kFloat32 (kFloat), kInt64 (kLong), ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stax {

/// Element type. The order within integers and within floats is that of widening.
enum class DType : uint8_t { boolean, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64 };

inline constexpr int kDTypeCount = 10;

inline constexpr DType kBool = DType::boolean;
inline constexpr DType kUInt8 = DType::uint8, kByte = DType::uint8;
inline constexpr DType kInt8 = DType::int8, kChar = DType::int8;
inline constexpr DType kInt16 = DType::int16, kShort = DType::int16;
inline constexpr DType kInt32 = DType::int32, kInt = DType::int32;
inline constexpr DType kInt64 = DType::int64, kLong = DType::int64;
inline constexpr DType kFloat16 = DType::float16, kHalf = DType::float16;
inline constexpr DType kBFloat16 = DType::bfloat16;
inline constexpr DType kFloat32 = DType::float32, kFloat = DType::float32;
inline constexpr DType kFloat64 = DType::float64, kDouble = DType::float64;

/// Size of one element in bytes.
constexpr int64_t itemsize(DType dtype) {
  constexpr int8_t sizes[kDTypeCount] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return sizes[static_cast<int>(dtype)];
}
constexpr bool is_floating_point(DType dtype) {
  return dtype >= DType::float16;
}
/// True for the signed and unsigned integer types; bool is not one of them.
constexpr bool is_integral(DType dtype) {
  return dtype >= DType::uint8 && dtype <= DType::int64;
}
constexpr bool is_half(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

/// "float32", "bool", ...
constexpr std::string_view name(DType dtype) {
  constexpr std::string_view names[kDTypeCount] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                                   "int64", "float16", "bfloat16", "float32", "float64"};
  return names[static_cast<int>(dtype)];
}

}  // namespace stax

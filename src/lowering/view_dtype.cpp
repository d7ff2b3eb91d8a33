#include "lowering/view_dtype.h"

#include <array>

#include "lowering/scalar.h"
#include "support/check.h"

namespace stax::lowering {
namespace {

/// The signed integer of that many bytes.
DType integer_of(int64_t bytes) {
  constexpr std::array<DType, 9> types = {DType::int8,  DType::int8,  DType::int16, DType::int8, DType::int32,
                                          DType::int32, DType::int32, DType::int32, DType::int64};
  return types[static_cast<size_t>(bytes)];
}

V integer(Lowering& lowering, int64_t value) {
  return lowering.constant(DType::int64, value);
}

V shifted(Lowering& lowering, loops::OpCode op, V bits, int64_t count) {
  return binary(op, bits, integer(lowering, count));
}

// float16 has 5 bits of exponent with bias 15 and 10 of mantissa, float32 has 8 with bias 127 and 23.
constexpr int64_t kMantissaShift = 23 - 10, kBiasShift = int64_t{127 - 15} << 23;
constexpr int64_t kSign16 = 0x8000, kInfinity16 = 0x7c00, kSmallestNormal16 = 0x0400;
constexpr int64_t kInfinity32 = 0x7f800000, kSmallestNormal32 = kBiasShift + (int64_t{1} << 23);
constexpr double kSubnormalUnit16 = 0x1p-24;

/// The bits of a float32 that holds a value of float16, as those of the float16.
V narrow_float16(Lowering& lowering, V value, V bits) {
  const auto number = [&](int64_t n) { return integer(lowering, n); };
  const auto right = [&](V v, int64_t n) { return shifted(lowering, loops::OpCode::shift_right, v, n); };
  const V size = bitwise_and(bits, number(0x7fffffff));
  const V sign = bitwise_and(right(bits, 16), number(kSign16));
  const V endless =
      bitwise_or(number(kInfinity16), right(bitwise_and(size, number(0x7fffff)), kMantissaShift));
  const V normal = right(size - number(kBiasShift), kMantissaShift);
  // where() evaluates all of its operands: what is not subnormal is kept within the range of the integer.
  const V small = lowering::where(lt(size, number(kSmallestNormal32)), abs(value), like(value, 0));
  const V subnormal = cast(small * like(value, 1 / kSubnormalUnit16), DType::int64);
  return bitwise_or(sign,
                    lowering::where(ge(size, number(kInfinity32)), endless,
                                    lowering::where(ge(size, number(kSmallestNormal32)), normal, subnormal)));
}

/// The float32 that has the value of the float16 with these bits.
V widen_float16(Lowering& lowering, V bits) {
  const auto number = [&](int64_t n) { return integer(lowering, n); };
  const auto left = [&](V v, int64_t n) { return shifted(lowering, loops::OpCode::shift_left, v, n); };
  const V size = bitwise_and(bits, number(0x7fff));
  const V raised = left(size, kMantissaShift);
  const V value = cast(size, DType::float32);
  const V subnormal = cast(bitcast(value * like(value, kSubnormalUnit16), DType::int32), DType::int64);
  const V wide = lowering::where(
      ge(size, number(kInfinity16)), bitwise_or(raised, number(kInfinity32)),
      lowering::where(ge(size, number(kSmallestNormal16)), raised + number(kBiasShift), subnormal));
  const V sign = left(bitwise_and(bits, number(kSign16)), 16);
  return bitcast(cast(bitwise_or(wide, sign), DType::int32), DType::float32);
}

/// The bits of `a`, an element of `dtype`, as int64, above them zeros.
V bits_of(Lowering& lowering, V a, DType dtype) {
  if (is_half(dtype)) {  // computed in float32
    if ((*a.body)[a.id].op != loops::OpCode::load) a = round_to(a, dtype);
    const V bits = bitwise_and(cast(bitcast(a, DType::int32), DType::int64), integer(lowering, 0xffffffff));
    return dtype == DType::float16 ? narrow_float16(lowering, a, bits)
                                   : shifted(lowering, loops::OpCode::shift_right, bits, 16);
  }
  if (dtype == DType::boolean || dtype == DType::uint8) return cast(a, DType::int64);
  const int64_t bytes = itemsize(dtype);
  const V wide = cast(bitcast(a, integer_of(bytes)), DType::int64);
  if (bytes == 8) return wide;
  return bitwise_and(wide, lowering.constant(DType::int64, (int64_t{1} << 8 * bytes) - 1));
}

/// The lowest bits of the int64 `bits` as a value of `dtype`.
V from_bits(Lowering& lowering, V bits, DType dtype) {
  if (dtype == DType::float16) return widen_float16(lowering, bits);
  if (dtype == DType::bfloat16) {
    const V raised = shifted(lowering, loops::OpCode::shift_left, bits, 16);
    return bitcast(cast(raised, DType::int32), DType::float32);
  }
  if (dtype == DType::boolean) return cast(cast(bits, DType::uint8), dtype);
  if (dtype == DType::uint8) return cast(bits, dtype);
  return bitcast(cast(bits, integer_of(itemsize(dtype))), dtype);
}

}  // namespace

Lazy view_as_dtype(Lowering& lowering, const Lazy& in, const graph::TensorMeta& to) {
  const int64_t from_bytes = itemsize(in.dtype), to_bytes = itemsize(to.dtype);
  const auto shift = [&](V bits, loops::OpCode op, Expr count) {
    return binary(op, bits, lowering.index_value(count));
  };
  return lowering.pointwise(to.dtype, to.sizes, [&](const Index& i) {
    if (from_bytes == to_bytes)
      return from_bits(lowering, bits_of(lowering, lowering.load(in, i), in.dtype), to.dtype);
    Index at = i;
    if (from_bytes > to_bytes) {
      const Expr ratio = from_bytes / to_bytes;
      at.back() = floor_div(i.back(), ratio);
      const V bits = bits_of(lowering, lowering.load(in, at), in.dtype);
      return from_bits(
          lowering, shift(bits, loops::OpCode::shift_right, mod(i.back(), ratio) * (8 * to_bytes)), to.dtype);
    }
    const int64_t ratio = to_bytes / from_bytes;
    V bits;
    for (int64_t k = 0; k < ratio; ++k) {
      at.back() = i.back() * ratio + k;
      const V part = shift(bits_of(lowering, lowering.load(in, at), in.dtype), loops::OpCode::shift_left,
                           Expr(8 * from_bytes * k));
      bits = k == 0 ? part : bitwise_or(bits, part);
    }
    return from_bits(lowering, bits, to.dtype);
  });
}

}  // namespace stax::lowering

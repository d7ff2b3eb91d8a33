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

/// The bits of `a` as int64, above them zeros.
V bits_of(Lowering& lowering, V a) {
  const DType dtype = a.dtype();
  if (dtype == DType::boolean || dtype == DType::uint8) return cast(a, DType::int64);
  const int64_t bytes = itemsize(dtype);
  const V wide = cast(bitcast(a, integer_of(bytes)), DType::int64);
  if (bytes == 8) return wide;
  return bitwise_and(wide, lowering.constant(DType::int64, (int64_t{1} << 8 * bytes) - 1));
}

/// The lowest bits of the int64 `bits` as a value of `dtype`.
V from_bits(V bits, DType dtype) {
  if (dtype == DType::boolean) return cast(cast(bits, DType::uint8), dtype);
  if (dtype == DType::uint8) return cast(bits, dtype);
  return bitcast(cast(bits, integer_of(itemsize(dtype))), dtype);
}

}  // namespace

Lazy view_as_dtype(Lowering& lowering, const Lazy& in, const graph::TensorMeta& to) {
  STAX_ASSERT(!is_half(in.dtype) && !is_half(to.dtype), "lowering: {} viewed as {} has no loop form",
              name(in.dtype), name(to.dtype));
  const int64_t from_bytes = itemsize(in.dtype), to_bytes = itemsize(to.dtype);
  const auto shift = [&](V bits, loops::OpCode op, Expr count) {
    return binary(op, bits, lowering.index_value(count));
  };
  return lowering.pointwise(to.dtype, to.sizes, [&](const Index& i) {
    if (from_bytes == to_bytes) return from_bits(bits_of(lowering, lowering.load(in, i)), to.dtype);
    Index at = i;
    if (from_bytes > to_bytes) {
      const Expr ratio = from_bytes / to_bytes;
      at.back() = floor_div(i.back(), ratio);
      const V bits = bits_of(lowering, lowering.load(in, at));
      return from_bits(shift(bits, loops::OpCode::shift_right, mod(i.back(), ratio) * (8 * to_bytes)),
                       to.dtype);
    }
    const int64_t ratio = to_bytes / from_bytes;
    V bits;
    for (int64_t k = 0; k < ratio; ++k) {
      at.back() = i.back() * ratio + k;
      const V part = shift(bits_of(lowering, lowering.load(in, at)), loops::OpCode::shift_left,
                           Expr(8 * from_bytes * k));
      bits = k == 0 ? part : bitwise_or(bits, part);
    }
    return from_bits(bits, to.dtype);
  });
}

}  // namespace stax::lowering

#include "loops/fold.h"

#include <limits>

#include "support/check.h"

namespace stax::loops {
namespace {

Constant extreme(DType dtype, bool lowest) {
  switch (dtype) {
    case DType::boolean:
      return Constant::of(int64_t{!lowest});
    case DType::uint8:
      return Constant::of(int64_t{lowest ? 0 : 255});
    case DType::int8:
      return Constant::of(int64_t{lowest ? -128 : 127});
    case DType::int16:
      return Constant::of(int64_t{lowest ? -32768 : 32767});
    case DType::int32:
      return Constant::of(
          int64_t{lowest ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max()});
    case DType::int64:
      return Constant::of(lowest ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max());
    case DType::float16:
    case DType::bfloat16:
    case DType::float32:
    case DType::float64:
      break;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return Constant::of(lowest ? -infinity : infinity);
}

Constant number(DType dtype, int64_t value) {
  return is_floating_point(dtype) ? Constant::of(static_cast<double>(value)) : Constant::of(value);
}

}  // namespace

Constant identity_of(OpCode op, DType dtype) {
  switch (op) {
    case OpCode::reduce_prod:
    case OpCode::scan_prod:
    case OpCode::reduce_all:
      return number(dtype, 1);
    case OpCode::reduce_max:
    case OpCode::reduce_argmax:
    case OpCode::scan_max:
    case OpCode::scan_logaddexp:
      return extreme(dtype, true);
    case OpCode::reduce_min:
    case OpCode::reduce_argmin:
    case OpCode::scan_min:
      return extreme(dtype, false);
    default:  // sums, any, xor
      return number(dtype, 0);
  }
}

OpCode fold_of(OpCode op) {
  switch (op) {
    case OpCode::reduce_sum:
    case OpCode::scan_sum:
      return OpCode::add;
    case OpCode::reduce_prod:
    case OpCode::scan_prod:
      return OpCode::mul;
    case OpCode::reduce_max:
      return OpCode::maximum;
    case OpCode::reduce_min:
      return OpCode::minimum;
    case OpCode::reduce_any:
      return OpCode::bitwise_or;
    case OpCode::reduce_all:
      return OpCode::bitwise_and;
    case OpCode::reduce_xor:
      return OpCode::bitwise_xor;
    default:
      STAX_ASSERT(false, "{} does not fold with one instruction", info(op).name);
  }
}

}  // namespace stax::loops

#include "loops/fold.h"

#include <algorithm>
#include <array>
#include <limits>

#include "support/check.h"

namespace stax::loops {
namespace {

constexpr auto kFolds = std::to_array<FoldInfo>({
    {OpCode::reduce_sum, 1, Identity::zero, OpCode::add, OpCode::reduce_sum},
    {OpCode::reduce_prod, 1, Identity::one, OpCode::mul, OpCode::reduce_prod},
    {OpCode::reduce_max, 1, Identity::lowest, OpCode::maximum, OpCode::reduce_max},
    {OpCode::reduce_min, 1, Identity::highest, OpCode::minimum, OpCode::reduce_min},
    {OpCode::reduce_any, 1, Identity::zero, OpCode::bitwise_or, OpCode::reduce_any},
    {OpCode::reduce_all, 1, Identity::one, OpCode::bitwise_and, OpCode::reduce_all},
    {OpCode::reduce_xor, 1, Identity::zero, OpCode::bitwise_xor, OpCode::reduce_xor},
    {.op = OpCode::reduce_argmax,
     .results = 2,
     .identity = Identity::lowest,
     .replaces = OpCode::gt,
     .position = 0},
    {.op = OpCode::reduce_argmin,
     .results = 2,
     .identity = Identity::highest,
     .replaces = OpCode::lt,
     .position = 0},
    {.op = OpCode::reduce_welford,
     .results = 3,
     .identity = Identity::zero,
     .total = OpCode::reduce_welford_combine},
    {OpCode::reduce_welford_combine, 3, Identity::zero},
    {OpCode::reduce_softmax, 2, Identity::zero},
    {OpCode::scan_sum, 1, Identity::zero, OpCode::add, OpCode::reduce_sum},
    {OpCode::scan_prod, 1, Identity::one, OpCode::mul, OpCode::reduce_prod},
    {.op = OpCode::scan_max,
     .results = 2,
     .identity = Identity::lowest,
     .total = OpCode::reduce_max,
     .replaces = OpCode::ge,
     .position = 1},
    {.op = OpCode::scan_min,
     .results = 2,
     .identity = Identity::highest,
     .total = OpCode::reduce_min,
     .replaces = OpCode::le,
     .position = 1},
    {OpCode::scan_logaddexp, 1, Identity::lowest},
    {OpCode::scan_sort, 1, Identity::highest},
});

const FoldInfo* find_fold(OpCode op) {
  const auto* const row = std::ranges::find(kFolds, op, &FoldInfo::op);
  return row == kFolds.end() ? nullptr : row;
}

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

const FoldInfo& fold_info(OpCode op) {
  const FoldInfo* const fold = find_fold(op);
  STAX_ASSERT(fold != nullptr, "{} is neither a reduction nor a scan", info(op).name);
  return *fold;
}

Constant identity_of(OpCode op, DType dtype) {
  switch (fold_info(op).identity) {
    case Identity::zero:
      return number(dtype, 0);
    case Identity::one:
      return number(dtype, 1);
    case Identity::lowest:
      return extreme(dtype, true);
    case Identity::highest:
      return extreme(dtype, false);
  }
  return {};
}

OpCode fold_of(OpCode op) {
  const std::optional<OpCode> step = fold_info(op).step;
  STAX_ASSERT(step, "{} does not fold with one instruction", info(op).name);
  return *step;
}

bool finds_position(OpCode op) {
  const FoldInfo* const fold = find_fold(op);
  return fold != nullptr && fold->position >= 0;
}

int32_t result_count(OpCode op) {
  const FoldInfo* const fold = find_fold(op);
  return fold == nullptr ? 1 : fold->results;
}

DType result_dtype(OpCode op, int32_t number, DType operand) {
  return number == fold_info(op).position ? DType::int64 : operand;
}

}  // namespace stax::loops

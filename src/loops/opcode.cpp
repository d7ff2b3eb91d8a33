#include "loops/opcode.h"

#include <array>

namespace stax::loops {

namespace {

constexpr auto kOps = std::to_array<OpInfo>({
#define X(name, kind, operands, result, cost) {#name, OpKind::kind, operands, OpResult::result, OpCost::cost},
    STAX_LOOP_OPS(X)
#undef X
});

static_assert(kOps.size() == kOpCount);

}  // namespace

const OpInfo& info(OpCode op) {
  return kOps[static_cast<size_t>(op)];
}

std::optional<OpCode> find_op(std::string_view name) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i].name == name) return static_cast<OpCode>(i);
  }
  return std::nullopt;
}

}  // namespace stax::loops

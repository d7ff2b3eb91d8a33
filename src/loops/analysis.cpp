#include "loops/analysis.h"

#include <algorithm>

namespace stax::loops {

std::vector<bool> over_reduction(const Body& body) {
  std::vector<bool> over(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    const Inst& inst = body[i];
    const OpKind kind = info(inst.op).kind;
    if (kind == OpKind::reduce) continue;
    bool result = kind == OpKind::scan || inst.index.contains(SymbolKind::reduction);
    for (ValueId a : inst.args) result = result || over[a];
    for (ValueId a : inst.indirect) result = result || over[a];
    over[i] = result;
  }
  return over;
}

int32_t result_count(OpCode op) {
  if (op == OpCode::reduce_welford || op == OpCode::reduce_welford_combine) return 3;
  const bool pair = op == OpCode::reduce_argmax || op == OpCode::reduce_argmin ||
                    op == OpCode::reduce_softmax || op == OpCode::scan_max || op == OpCode::scan_min;
  return pair ? 2 : 1;
}

DType result_dtype(OpCode op, int32_t number, DType operand) {
  if (op == OpCode::reduce_argmax || op == OpCode::reduce_argmin) {
    return number == 0 ? DType::int64 : operand;
  }
  if (op == OpCode::scan_max || op == OpCode::scan_min) return number == 1 ? DType::int64 : operand;
  return operand;
}

int32_t operand_count(OpCode op) {
  switch (info(op).kind) {
    case OpKind::leaf:
      return 0;
    case OpKind::unary:
    case OpKind::cast:
    case OpKind::scan:
    case OpKind::store:
      return 1;
    case OpKind::binary:
      return 2;
    case OpKind::ternary:
      return 3;
    case OpKind::reduce:
      return op == OpCode::reduce_welford_combine ? 3 : 1;
    case OpKind::special:
      return op == OpCode::random_bits ? 2 : 1;
  }
  return 0;
}

bool accesses_memory(const Inst& inst) {
  return inst.op == OpCode::load || info(inst.op).kind == OpKind::store;
}

bool takes_mask(const Inst& inst) {
  return accesses_memory(inst) || inst.op == OpCode::check_index;
}

ValueId mask_of(const Inst& inst) {
  const auto plain = static_cast<size_t>(operand_count(inst.op));
  return takes_mask(inst) && inst.args.size() > plain ? inst.args[plain] : -1;
}

}  // namespace stax::loops

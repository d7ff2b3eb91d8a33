#include "loops/analysis.h"

namespace stax::loops {

std::vector<bool> over_reduction(const Body& body) {
  std::vector<bool> over(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    const Inst& inst = body[i];
    if (is_reduction(inst.op)) continue;
    bool result = is_scan(inst.op) || inst.index.contains(SymbolKind::reduction);
    for (ValueId a : inst.args) result = result || over[a];
    for (ValueId a : inst.indirect) result = result || over[a];
    over[i] = result;
  }
  return over;
}

bool accesses_memory(const Inst& inst) {
  return inst.op == OpCode::load || is_store(inst.op);
}

bool takes_mask(const Inst& inst) {
  return accesses_memory(inst) || inst.op == OpCode::check_index;
}

ValueId mask_of(const Inst& inst) {
  const auto plain = static_cast<size_t>(info(inst.op).operands);
  return takes_mask(inst) && inst.args.size() > plain ? inst.args[plain] : -1;
}

}  // namespace stax::loops

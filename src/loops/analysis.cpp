#include "loops/analysis.h"

#include <algorithm>

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

std::vector<ValueId> needed_by(const Body& body, std::span<const ValueId> roots) {
  ValueId last = -1;
  for (ValueId r : roots) last = std::max(last, r);
  std::vector<bool> needed(static_cast<size_t>(last + 1));
  for (ValueId r : roots) needed[r] = true;
  std::vector<ValueId> ids;
  for (ValueId v = last; v >= 0; --v) {
    if (!needed[v]) continue;
    ids.push_back(v);
    for (ValueId a : body[v].args) needed[a] = true;
    for (ValueId a : body[v].indirect) needed[a] = true;
  }
  std::ranges::reverse(ids);
  return ids;
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

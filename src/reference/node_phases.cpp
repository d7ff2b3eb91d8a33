// Which values of a body are computed before, during and after its reduction.
#include "loops/analysis.h"
#include "reference/plan_stages.h"

namespace stax::reference {

using loops::Inst;
using loops::OpCode;
using loops::OpKind;
using loops::ValueId;

namespace {

std::vector<ValueId> operands(const Inst& inst) {
  std::vector<ValueId> out = inst.args;
  out.insert(out.end(), inst.indirect.begin(), inst.indirect.end());
  return out;
}

}  // namespace

ValuesByPhase assign_phases(const Iteration& it, const loops::Body& body) {
  const size_t n = body.size();
  const std::vector<bool> over = it.collective ? loops::over_reduction(body) : std::vector<bool>(n, false);
  std::vector<bool> after_reduce(n), reduce_needs(n), tail_needs(n), needed(n);
  for (size_t i = 0; i < n; ++i) {
    after_reduce[i] = is_reduction(body[i].op);
    for (ValueId a : operands(body[i])) after_reduce[i] = after_reduce[i] || after_reduce[a];
  }
  for (size_t i = n; i-- > 0;) {
    const OpKind kind = info(body[i].op).kind;
    if (kind == OpKind::store) (over[i] ? tail_needs : needed)[i] = true;
    // A failing index is an error whether or not its value is used.
    if (body[i].op == OpCode::check_index && !reduce_needs[i] && !needed[i]) {
      (over[i] ? tail_needs : needed)[i] = true;
    }
    const bool used = needed[i] || tail_needs[i] || reduce_needs[i];
    for (ValueId a : operands(body[i])) {
      if (!over[a]) needed[a] = needed[a] || used;
      if (over[a] && kind == OpKind::reduce) reduce_needs[a] = reduce_needs[a] || used;
      if (over[a] && kind != OpKind::reduce) {
        tail_needs[a] = tail_needs[a] || tail_needs[i];
        reduce_needs[a] = reduce_needs[a] || reduce_needs[i];
      }
    }
  }
  ValuesByPhase values;
  const auto list = [&](Phase phase) -> std::vector<ValueId>& { return values[static_cast<size_t>(phase)]; };
  for (size_t i = 0; i < n; ++i) {
    const auto id = static_cast<ValueId>(i);
    if (is_reduction(body[i].op)) {
      if (!needed[i]) continue;
      list(Phase::during).push_back(id);
      list(Phase::after).push_back(id);
      continue;
    }
    if (reduce_needs[i]) list(Phase::during).push_back(id);
    if (tail_needs[i]) list(Phase::tail).push_back(id);
    if (needed[i] && !over[i]) list(after_reduce[i] ? Phase::after : Phase::before).push_back(id);
  }
  return values;
}

}  // namespace stax::reference

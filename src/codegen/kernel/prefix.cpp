#include "codegen/kernel/prefix.h"

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;
using loops::OpKind;
using loops::ValueId;

namespace {

/// Position of the mask among the arguments of a load or store; -1: it has none.
int mask_position(const Inst& inst) {
  const bool store = is_store(inst.op);
  if (!store && inst.op != OpCode::load) return -1;
  const size_t at = store ? 1 : 0;
  return inst.args.size() > at ? static_cast<int>(at) : -1;
}

}  // namespace

std::optional<bool> Assumptions::answer(ValueId id) const {
  const auto found = answers_.find(id);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

ValueId Assumptions::chosen(const Inst& inst) const {
  if (answers_.empty() || inst.op != OpCode::where) return -1;
  const auto known = answer(inst.args[0]);
  return known ? inst.args[*known ? 1 : 2] : -1;
}

std::optional<bool> Assumptions::mask(const Inst& inst) const {
  const int at = answers_.empty() ? -1 : mask_position(inst);
  return at < 0 ? std::nullopt : answer(inst.args[static_cast<size_t>(at)]);
}

std::vector<ValueId> Assumptions::operands(const loops::Body& body, ValueId id) const {
  const Inst& inst = body[id];
  if (answer(id)) return {};
  if (const ValueId value = chosen(inst); value >= 0) return {value};
  std::vector<ValueId> out = inst.args;
  if (const auto on = mask(inst)) {
    if (!*on) return {};
    out.erase(out.begin() + mask_position(inst));
  }
  out.insert(out.end(), inst.indirect.begin(), inst.indirect.end());
  return out;
}

std::optional<Prefix> find_prefix(const FlatGroup& flat, const Layout& layout) {
  if (flat.has_scan || layout.reduction_order.empty()) return std::nullopt;
  const Symbol variable{SymbolKind::reduction, layout.reduction_order.back()};
  Prefix out;
  for (size_t i = 0; i < flat.body.size(); ++i) {
    const Inst& inst = flat.body[i];
    if (inst.op != OpCode::lt) continue;
    const Inst &left = flat.body[inst.args[0]], &right = flat.body[inst.args[1]];
    if (left.op != OpCode::index_value || right.op != OpCode::index_value) continue;
    if (!left.indirect.empty() || !right.indirect.empty() || right.index.contains(variable)) continue;
    const auto step = stride_of(left.index, variable);
    if (!step || !step->is_constant() || step->value() < 1) continue;
    const Expr end = ceil_div(right.index - substitute(left.index, variable, Expr(0)), *step);
    if (layout.along == VectorAlong::iteration && end.contains(layout.vector)) continue;
    if (!out.conditions.empty() && !(end == out.end)) continue;
    out.end = end;
    out.conditions.push_back(static_cast<ValueId>(i));
  }
  if (out.conditions.empty()) return std::nullopt;
  return out;
}

std::vector<bool> needed(const FlatGroup& flat, const Assumptions& assumptions) {
  std::vector<bool> out(flat.body.size());
  for (size_t i = flat.body.size(); i-- > 0;) {
    const OpKind kind = loops::info(flat.body[i].op).kind;
    const bool root =
        kind == OpKind::store || kind == OpKind::reduce || flat.body[i].op == OpCode::check_index;
    if (!root && !out[i]) continue;
    out[i] = true;
    for (ValueId a : assumptions.operands(flat.body, static_cast<ValueId>(i))) out[a] = true;
  }
  return out;
}

}  // namespace stax::codegen

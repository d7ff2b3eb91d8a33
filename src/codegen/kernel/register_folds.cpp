// Reductions and scans whose accumulators are in registers.
#include "codegen/kernel/passes.h"
#include "loops/fold.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;
using loops::ValueId;

void Passes::start(ValueId id, int32_t copies) {
  const Inst& inst = flat_.body[id];
  const DType dtype = flat_.body[inst.args[0]].dtype;
  Accumulator& a = accumulators_[id];
  a.value.clear();
  const Var identity = e_.constant(dtype, loops::identity_of(inst.op, dtype));
  for (int32_t k = 0; k < copies; ++k) a.value.push_back(e_.copy(identity, dtype));
  a.position = a.outer = -1;
  if (loops::finds_position(inst.op)) a.position = e_.copy(e_.constant(DType::int64, {0}), DType::int64);
  if (is_long_sum(id) && parts_at_ >= 0) a.outer = e_.copy(identity, dtype);
}

void Passes::update(ValueId id, int32_t copy) {
  const Inst& inst = flat_.body[id];
  if (is_extremum(inst.op)) return update_extremum(id);
  const DType dtype = flat_.body[inst.args[0]].dtype;
  Var v = e_.value(inst.args[0]);
  if (e_.partial() && layout_.along == VectorAlong::reduction)
    v = e_.compute(OpCode::where, dtype,
                   {e_.tail(), v, e_.constant(dtype, loops::identity_of(inst.op, dtype))});
  const Var acc = accumulators_.at(id).value[copy];
  // A maximum looks for NaN in its first operand: not in the one that the next step waits for.
  e_.assign(acc, e_.compute(loops::fold_of(inst.op), dtype, {v, acc}));
}

/// Where in the flattened reduction ranges the lanes at hand are.
Var Passes::reduction_position() {
  Expr flat = 0;
  for (size_t k = 0; k < group_.reduction_ranges.size(); ++k)
    flat = flat * group_.reduction_ranges[k] + Expr(Symbol{SymbolKind::reduction, static_cast<int32_t>(k)});
  return e_.lane_index(e_.at(flat), {});
}

/// Replaces (value, position) by the new value where that is more extreme, the first NaN, or equal and
/// earlier.
void Passes::update_extremum(ValueId id) {
  const Inst& inst = flat_.body[id];
  const DType dtype = flat_.body[inst.args[0]].dtype;
  Accumulator& a = accumulators_.at(id);
  const Var best = a.value[0], v = e_.value(inst.args[0]);
  const Var position = reduction_position();
  auto both = [&](OpCode op, Var x, Var y) { return e_.compute(op, DType::boolean, {x, y}); };
  Var better = e_.compute(*loops::fold_info(inst.op).replaces, dtype, {v, best});
  if (is_floating_point(dtype)) {
    const Var first_nan =
        both(OpCode::gt, e_.compute(OpCode::isnan, dtype, {v}), e_.compute(OpCode::isnan, dtype, {best}));
    better = both(OpCode::bitwise_or, better, first_nan);
  }
  const bool in_order = layout_.reduction_order.size() < 2 ||
                        std::is_sorted(layout_.reduction_order.begin(), layout_.reduction_order.end());
  if (!in_order) {
    Var tie = both(OpCode::bitwise_and, e_.compute(OpCode::eq, dtype, {v, best}),
                   e_.compute(OpCode::lt, DType::int64, {position, a.position}));
    better = both(OpCode::bitwise_or, better, tie);
    if (is_floating_point(dtype)) {
      tie = both(OpCode::bitwise_and, e_.compute(OpCode::isnan, dtype, {v}),
                 e_.compute(OpCode::lt, DType::int64, {position, a.position}));
      better = both(OpCode::bitwise_or, better, tie);
    }
  }
  if (e_.partial() && layout_.along == VectorAlong::reduction)
    better = both(OpCode::bitwise_and, better, e_.tail());
  e_.assign(best, e_.compute(OpCode::where, dtype, {better, v, best}));
  e_.assign(a.position, e_.compute(OpCode::where, DType::int64, {better, position, a.position}));
}

void Passes::scan(ValueId id) {
  const Inst& inst = flat_.body[id];
  STAX_ASSERT(!loops::needs_whole_row(inst.op), "{} is an instruction of kernels for GPUs only",
              loops::info(inst.op).name);
  const DType dtype = flat_.body[inst.args[0]].dtype;
  Accumulator& a = accumulators_.at(id);
  const Var old = a.value[0], v = e_.value(inst.args[0]);
  Var next = -1, position = -1;
  if (layout_.along == VectorAlong::reduction) {
    // Through the lanes, and on from what came before; the last lane goes on.
    const Var in = e_.partial()
                       ? e_.compute(OpCode::where, dtype,
                                    {e_.tail(), v, e_.constant(dtype, loops::identity_of(inst.op, dtype))})
                       : v;
    next = e_.define({.action = Action::prefix, .op = inst.op, .dtype = dtype, .args = {old, in}});
    e_.assign(old, e_.define({.action = Action::last_lane, .dtype = dtype, .args = {next}}));
    return bind_results(id, next, -1);
  }
  if (const auto step = loops::fold_info(inst.op).step) {
    next = e_.compute(*step, dtype, {old, v});
  } else if (inst.op == OpCode::scan_logaddexp) {
    next = e_.compute(OpCode::scan_logaddexp, dtype, {old, v});
  } else {
    Var later = e_.compute(*loops::fold_info(inst.op).replaces, dtype, {v, old});
    if (is_floating_point(dtype))
      later = e_.compute(OpCode::bitwise_or, DType::boolean, {later, e_.compute(OpCode::isnan, dtype, {v})});
    next = e_.compute(OpCode::where, dtype, {later, v, old});
    position = e_.compute(OpCode::where, DType::int64, {later, reduction_position(), a.position});
    e_.assign(a.position, position);
  }
  e_.assign(old, next);
  bind_results(id, next, position);
}

void Passes::bind_results(ValueId id, Var first, Var second) {
  e_.bind(id, first);
  for (size_t i = static_cast<size_t>(id) + 1; i < flat_.body.size(); ++i) {
    const Inst& inst = flat_.body[i];
    if (inst.op == OpCode::result && inst.args[0] == id) e_.bind(static_cast<ValueId>(i), second);
  }
}

void Passes::finish(ValueId id) {
  const Inst& inst = flat_.body[id];
  const DType dtype = flat_.body[inst.args[0]].dtype;
  Accumulator& a = accumulators_.at(id);
  auto across = [&](Action action, std::vector<Var> args) {
    if (layout_.along != VectorAlong::reduction) return args.back();
    return e_.define({.action = action, .op = inst.op, .dtype = dtype, .args = std::move(args)});
  };
  if (is_extremum(inst.op)) {
    const Var position = across(Action::arg_merge, {a.value[0], a.position});
    const Var value = across(Action::horizontal, {a.value[0]});
    return bind_results(id, position, value);
  }
  std::vector<Var> parts = a.value;
  if (a.outer >= 0) parts = {e_.compute(OpCode::add, dtype, {a.outer, sum_of_copies(a, dtype)})};
  while (parts.size() > 1) {
    std::vector<Var> half;
    for (size_t k = 0; k + 1 < parts.size(); k += 2)
      half.push_back(e_.compute(loops::fold_of(inst.op), dtype, {parts[k], parts[k + 1]}));
    parts = half;
  }
  e_.bind(id, across(Action::horizontal, {parts[0]}));
}

}  // namespace stax::codegen

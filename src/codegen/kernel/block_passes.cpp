// Passes of a block of columns: its accumulators are arrays, and each row is read in long runs.
#include <algorithm>

#include "codegen/kernel/passes.h"

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;
using loops::ValueId;

/// Arrays for accumulators, and for iteration values that depend on reductions and are used over the
/// reduction.
void Passes::choose_held() {
  for (size_t i = 0; i < flat_.body.size(); ++i) {
    const Inst& inst = flat_.body[i];
    const auto id = static_cast<ValueId>(i);
    if (is_reduction(inst.op) || is_scan(inst.op)) {
      const DType dtype = flat_.body[inst.args[0]].dtype;
      Accumulator& a = accumulators_[id];
      a.array = e_.array(dtype, layout_.block);
      if (is_long_sum(id)) a.outer_array = e_.array(dtype, layout_.block);
      if (loops::finds_position(inst.op)) a.position_array = e_.array(DType::int64, layout_.block);
    }
    if (!flat_.over_reduction[i] && !is_reduction(inst.op)) continue;
    auto hold = [&](ValueId a) {
      const OpCode op = flat_.body[a].op;
      if (flat_.over_reduction[a] || flat_.ready[a] == 0 || is_reduction(op) || op == OpCode::result ||
          held_.count(a))
        return;
      held_[a] = e_.array(flat_.body[a].dtype, layout_.block);
    };
    for (ValueId a : inst.args) hold(a);
    for (ValueId a : inst.indirect) hold(a);
  }
}

void Passes::block(Expr lo, Expr hi) {
  const Symbol x = e_.fresh();
  const Expr step = layout_.block_step.is_constant() ? layout_.block_step : Expr(e_.let(layout_.block_step));
  e_.loop(x, lo, hi, step, [&] {
    const Expr end = e_.let(min(Expr(x) + step, hi));
    std::fill(ready_.begin(), ready_.end(), false);
    for (int32_t p = 0; p < flat_.passes; ++p) {
      block_pass(p, x, end);
      block_iteration(p + 1, x, end);
    }
  });
}

/// Every element of the array of a block gets the identity of reduction or scan `id`.
void Passes::fill(int32_t array, ValueId id, Expr lo, Expr hi) {
  const DType dtype = flat_.body[flat_.body[id].args[0]].dtype;
  const Symbol v = layout_.vector;
  e_.loop(v, lo, hi, layout_.lanes, [&] {
    e_.store_array(array, dtype, Expr(v) - lo,
                   e_.constant(dtype, loops::identity_of(flat_.body[id].op, dtype)));
  });
}

void Passes::start_block(const Ids& running, Expr lo, Expr hi) {
  const Symbol v = layout_.vector;
  for (ValueId id : running) {
    const Accumulator& a = accumulators_.at(id);
    fill(a.array, id, lo, hi);
    if (a.outer_array >= 0 && parts_at_ > 0) fill(a.outer_array, id, lo, hi);
    if (a.position_array >= 0)
      e_.loop(v, lo, hi, layout_.lanes, [&] {
        e_.store_array(a.position_array, DType::int64, Expr(v) - lo, e_.constant(DType::int64, {0}));
      });
  }
}

void Passes::for_long_sums(const Ids& folds, Expr lo, Expr hi,
                           const std::function<void(const Accumulator&, DType, Expr)>& visit) {
  const Symbol v = layout_.vector;
  for (ValueId id : folds) {
    if (!is_long_sum(id)) continue;
    const Accumulator& a = accumulators_.at(id);
    const DType dtype = flat_.body[id].dtype;
    e_.loop(v, lo, hi, layout_.lanes, [&] { visit(a, dtype, Expr(v) - lo); });
  }
}

void Passes::add_parts(const Ids& folds, Expr lo, Expr hi, int32_t Accumulator::*to) {
  for_long_sums(folds, lo, hi, [&](const Accumulator& a, DType dtype, Expr at) {
    const Var sum = e_.load_array(a.outer_array, dtype, at), part = e_.load_array(a.array, dtype, at);
    e_.store_array(a.*to, dtype, at, e_.compute(OpCode::add, dtype, {sum, part}));
  });
}

/// Puts the part that began at `start` aside; the one that began at 0 is the first.
void Passes::flush_parts(const Ids& folds, Expr lo, Expr hi, Expr start) {
  if (start.is(1)) return add_parts(folds, lo, hi, &Accumulator::outer_array);
  Statement when{.action = Action::when, .index = 0, .end = start};
  e_.in(when.body, [&] { add_parts(folds, lo, hi, &Accumulator::outer_array); });
  e_.in(when.other, [&] {
    for_long_sums(folds, lo, hi, [&](const Accumulator& a, DType dtype, Expr at) {
      e_.store_array(a.outer_array, dtype, at, e_.load_array(a.array, dtype, at));
    });
  });
  e_.add(std::move(when));
}

void Passes::block_pass(int32_t p, Expr lo, Expr hi) {
  const Ids reduce = folds(p);
  const Ids ids = collect(roots(p, true));
  if (ids.empty() && reduce.empty()) return;
  plan_parts(std::any_of(reduce.begin(), reduce.end(), [&](ValueId id) { return is_long_sum(id); }),
             kPartRows);
  Ids running = reduce;
  for (ValueId id : ids)
    if (is_scan(flat_.body[id].op)) running.push_back(id);
  start_block(running, lo, hi);
  const auto reset = [&] {
    for (ValueId id : reduce)
      if (is_long_sum(id)) fill(accumulators_.at(id).array, id, lo, hi);
  };
  unrolled_ = 1;
  const bool simple = running.size() == reduce.size() && ids.size() <= 8;
  const Symbol last = reduction_symbol(layout_.reduction_order.size() - 1);
  nest(
      0,
      [&](Expr first, Expr end) {
        Expr from = first;
        if (simple && !reduce.empty()) {
          from = first + floor_div(end - first, 4) * Expr(4);
          if (!from.is_constant() && !(from == end)) from = e_.let(from);
          e_.loop(last, first, from, 4, [&] { block_rows(ids, reduce, lo, hi, 4); });
        }
        if (!(from == end)) e_.loop(last, from, end, 1, [&] { block_rows(ids, reduce, lo, hi, 1); });
      },
      reset, [&](Expr start) { flush_parts(reduce, lo, hi, start); });
  if (parts_at_ == 0) {
    Statement when{.action = Action::when, .index = part_, .end = reduction_extent(0)};
    e_.in(when.body, [&] { add_parts(reduce, lo, hi, &Accumulator::array); });
    e_.add(std::move(when));
  } else if (parts_at_ > 0) {
    add_parts(reduce, lo, hi, &Accumulator::array);
  }
  for (ValueId id : reduce) {
    ready_[id] = true;
    for (size_t i = 0; i < flat_.body.size(); ++i)
      if (flat_.body[i].op == OpCode::result && flat_.body[i].args[0] == id) ready_[i] = true;
  }
}

/// Emits instructions of a block; what lies in arrays is loaded.
void Passes::emit_in_block(const Ids& ids, Expr lo) {
  const Expr at = Expr(layout_.vector) - lo;
  for (ValueId id : ids) {
    const Inst& inst = flat_.body[id];
    if (!ready_[id]) {
      if (is_scan(inst.op)) {
        scan(id);
      } else if (inst.op != OpCode::result) {
        e_.emit(id);
      }
      continue;
    }
    if (const auto held = held_.find(id); held != held_.end()) {
      e_.bind(id, e_.load_array(held->second, inst.dtype, at));
      continue;
    }
    const ValueId source = inst.op == OpCode::result ? inst.args[0] : id;
    const Accumulator& a = accumulators_.at(source);
    const DType dtype = flat_.body[flat_.body[source].args[0]].dtype;
    const bool position = is_extremum(flat_.body[source].op) && inst.op != OpCode::result;
    e_.bind(id, e_.load_array(position ? a.position_array : a.array, position ? DType::int64 : dtype, at));
  }
}

void Passes::block_rows(const Ids& ids, const Ids& reduce, Expr lo, Expr hi, int32_t rows) {
  const Symbol v = layout_.vector;
  const Symbol last = reduction_symbol(layout_.reduction_order.size() - 1);
  const Expr at = Expr(v) - lo;
  e_.vector_loop(v, lo, hi, [&] {
    Ids running = reduce;
    for (ValueId id : ids)
      if (is_scan(flat_.body[id].op)) running.push_back(id);
    auto operand_dtype = [&](ValueId id) { return flat_.body[flat_.body[id].args[0]].dtype; };
    std::map<ValueId, std::vector<Var>> parts;
    for (ValueId id : running) {
      Accumulator& a = accumulators_.at(id);
      const DType dtype = operand_dtype(id);
      a.value = {e_.copy(e_.load_array(a.array, dtype, at), dtype)};
      if (a.position_array >= 0)
        a.position = e_.copy(e_.load_array(a.position_array, DType::int64, at), DType::int64);
    }
    for (int32_t k = 0; k < rows; ++k) {
      e_.shift(last, k);
      e_.scoped([&] {
        if (layout_.stream && rows > 1 && flat_.passes == 1)
          prefetch_ahead([&](const Expr& step) { return step * Expr(rows); }, last);
        emit_in_block(ids, lo);
        for (ValueId id : reduce) {
          if (is_extremum(flat_.body[id].op)) {
            update_extremum(id);
          } else {
            parts[id].push_back(e_.value(flat_.body[id].args[0]));
          }
        }
      });
    }
    e_.shift(last, 0);
    for (auto& [id, values] : parts) {
      const OpCode fold = loops::fold_of(flat_.body[id].op);
      const DType dtype = operand_dtype(id);
      const Var acc = accumulators_.at(id).value[0];
      // Rows are added in their order, as where accumulators stay in registers: what a sum is does not depend
      // on how its kernel is laid out. Other columns keep the processor busy meanwhile.
      const bool in_order = is_floating_point(dtype) && (fold == OpCode::add || fold == OpCode::mul);
      for (; in_order && values.size() > 1; values.erase(values.begin())) {
        e_.assign(acc, e_.compute(fold, dtype, {acc, values[0]}));
      }
      if (values.size() == 4) {
        const Var a = e_.compute(fold, dtype, {values[0], values[1]}),
                  b = e_.compute(fold, dtype, {values[2], values[3]});
        values = {e_.compute(fold, dtype, {a, b})};
      }
      e_.assign(acc, e_.compute(fold, dtype, {acc, values[0]}));
    }
    for (ValueId id : running) {
      const Accumulator& a = accumulators_.at(id);
      e_.store_array(a.array, operand_dtype(id), at, a.value[0]);
      if (a.position_array >= 0) e_.store_array(a.position_array, DType::int64, at, a.position);
    }
  });
}

/// Iteration values that need `done` passes: those used over the reduction go to their arrays; after the last
/// pass the stores.
void Passes::block_iteration(int32_t done, Expr lo, Expr hi) {
  Ids wanted;
  for (auto [id, array] : held_)
    if (flat_.ready[id] == done && done < flat_.passes) wanted.push_back(id);
  const Ids to_hold = wanted;
  for (size_t i = 0; i < flat_.body.size() && done == flat_.passes; ++i)
    if (is_store(flat_.body[i].op) && !flat_.over_reduction[i]) wanted.push_back(static_cast<ValueId>(i));
  if (wanted.empty()) return;
  const Ids ids = collect(wanted);
  e_.vector_loop(layout_.vector, lo, hi, [&] {
    emit_in_block(ids, lo);
    for (ValueId id : to_hold)
      e_.store_array(held_.at(id), flat_.body[id].dtype, Expr(layout_.vector) - lo, e_.value(id));
  });
  for (ValueId id : to_hold) ready_[id] = true;
}

}  // namespace stax::codegen

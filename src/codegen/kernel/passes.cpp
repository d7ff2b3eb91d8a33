#include "codegen/kernel/passes.h"

#include <algorithm>
#include <set>

#include "schedule/forms.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;
using loops::ValueId;

namespace {

/// Elements that one set of accumulators adds up before the sum is put aside: with at least 16 lanes, chains
/// of at most 1024 additions.
constexpr int64_t kPartElements = 16384;
constexpr int64_t kFetchAhead = 1024;      // elements: some thousand bytes cover the time that memory takes
constexpr int64_t kLocalBytes = 16 << 10;  // kept values of one row in local arrays

/// Costs more than reading the value back from the first-level cache.
bool is_expensive(const Inst& inst) {
  return !inst.indirect.empty() || loops::info(inst.op).cost == loops::OpCost::costly;
}

}  // namespace

Passes::Passes(const schedule::Group& group, const FlatGroup& flat, const Layout& layout,
               const schedule::Target& target, Chooser& chooser, Emitter& emitter)
    : group_(group),
      flat_(flat),
      layout_(layout),
      target_(target),
      choose_(chooser),
      e_(emitter),
      ready_(flat.body.size()) {}

void Passes::prepare() {
  if (layout_.block > 0) return choose_held();
  choose_kept();
}

// ---- Questions ----

Passes::Ids Passes::folds(int32_t p) const {
  Ids ids;
  for (size_t i = 0; i < flat_.body.size(); ++i)
    if (is_reduction(flat_.body[i].op) && flat_.ready[i] - 1 == p) ids.push_back(static_cast<ValueId>(i));
  return ids;
}

Passes::Ids Passes::roots(int32_t p, bool with_folds) const {
  Ids ids;
  for (size_t i = 0; i < flat_.body.size(); ++i)
    if (is_store(flat_.body[i].op) && flat_.over_reduction[i] && flat_.ready[i] == p)
      ids.push_back(static_cast<ValueId>(i));
  if (with_folds)
    for (ValueId id : folds(p)) ids.insert(ids.end(), flat_.body[id].args.begin(), flat_.body[id].args.end());
  return ids;
}

bool Passes::is_leaf(ValueId id) const {
  return e_.bound(id) || ready_[id];
}

Passes::Ids Passes::collect(const Ids& roots) const {
  std::vector<bool> needed(flat_.body.size());
  for (ValueId r : roots) needed[r] = true;
  for (size_t i = flat_.body.size(); i-- > 0;) {
    if (!needed[i] || is_leaf(static_cast<ValueId>(i))) continue;
    for (ValueId a : assumed_.operands(flat_.body, static_cast<ValueId>(i))) needed[a] = true;
  }
  Ids ids, stores;
  for (size_t i = 0; i < flat_.body.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (!needed[i] || e_.bound(id)) continue;
    (is_store(flat_.body[i].op) ? stores : ids).push_back(id);
  }
  ids.insert(ids.end(), stores.begin(), stores.end());
  return ids;
}

bool Passes::is_long_sum(ValueId id) const {
  return flat_.body[id].op == OpCode::reduce_sum && is_floating_point(flat_.body[id].dtype);
}

int32_t Passes::copies(const Ids& ids, const Ids& folds) const {
  if (layout_.along != VectorAlong::reduction || folds.empty() || layout_.one_vector) return 1;
  constexpr int32_t kFixedCopies = 2;  // the number may not depend on what else is fused
  int32_t cost = 0;
  for (ValueId id : ids) {
    cost += is_expensive(flat_.body[id]) ? 16 : 1;
    if (is_scan(flat_.body[id].op)) return 1;
  }
  for (ValueId id : folds)
    if (is_extremum(flat_.body[id].op)) return 1;
  int32_t n = target_.batch_invariant ? kFixedCopies : cost <= 6 ? 4 : cost <= 16 ? 2 : 1;
  const auto extent = reduction_extent(layout_.reduction_order.size() - 1).constant();
  while (n > 1 && extent && *extent < n * layout_.lanes) n /= 2;
  return n;
}

const Inst* Passes::streamed(int32_t p) const {
  if (!layout_.stream || (p >= 0 && !folds(p).empty())) return nullptr;
  for (size_t i = 0; i < flat_.body.size(); ++i) {
    const Inst& inst = flat_.body[i];
    if (inst.op != OpCode::store || !inst.indirect.empty() || inst.args.size() > 1) continue;
    if (flat_.over_reduction[i] != (p >= 0) || (p >= 0 && flat_.ready[i] != p)) continue;
    const auto stride = stride_of(inst.index, layout_.vector);
    if (stride && stride->is(1)) return &inst;
  }
  return nullptr;
}

/// Values over the reduction that a later pass needs again and that cost much go to an array of one row.
void Passes::choose_kept() {
  if (layout_.along != VectorAlong::reduction || flat_.passes < 2) return;
  std::vector<bool> expensive(flat_.body.size());
  for (size_t i = 0; i < flat_.body.size(); ++i) {
    const Inst& inst = flat_.body[i];
    expensive[i] = is_expensive(inst);
    for (ValueId a : inst.args) expensive[i] = expensive[i] || (flat_.over_reduction[a] && expensive[a]);
    if (is_reduction(inst.op) || !flat_.over_reduction[i]) expensive[i] = false;
  }
  std::set<ValueId> before, chosen;
  for (int32_t p = 0; p < flat_.passes; ++p) {
    std::set<ValueId> now;
    std::function<void(ValueId)> visit = [&](ValueId id) {
      if (!flat_.over_reduction[id] || now.count(id)) return;
      if (expensive[id] && before.count(id)) return void(chosen.insert(id));
      now.insert(id);
      for (ValueId a : flat_.body[id].args) visit(a);
      for (ValueId a : flat_.body[id].indirect) visit(a);
    };
    for (ValueId r : roots(p, true)) visit(r);
    before.insert(now.begin(), now.end());
  }
  const Expr row = row_elements();
  Expr bytes = 0;
  for (ValueId id : chosen) {
    bytes += row * itemsize(flat_.body[id].dtype);
    if (schedule::row_form(bytes, target_, choose_) == schedule::RowForm::recomputed) break;
    const auto most = choose_.sizes().ranges().interval(bytes).upper;
    const bool local = most && *most <= kLocalBytes;
    const Expr elements =
        local && !row.is_constant() ? Expr(*choose_.sizes().ranges().interval(row).upper) : row;
    kept_[id] = e_.array(flat_.body[id].dtype, elements, !local);
  }
}

/// Elements of a row array: every inner row is rounded up to vectors.
Expr Passes::row_elements() const {
  Expr outer = 1;
  for (size_t d = 0; d + 1 < layout_.reduction_order.size(); ++d) outer *= reduction_extent(d);
  const int64_t lanes = layout_.lanes;
  if (layout_.one_vector) return outer * lanes;
  return outer * (ceil_div(reduction_extent(layout_.reduction_order.size() - 1), lanes) * Expr(lanes));
}

/// Position in a row array of the vector at hand.
Expr Passes::row_index() const {
  Expr outer = 0;
  for (size_t d = 0; d + 1 < layout_.reduction_order.size(); ++d)
    outer = outer * reduction_extent(d) + reduction_symbol(d);
  const size_t last = layout_.reduction_order.size() - 1;
  const int64_t lanes = layout_.lanes;
  if (layout_.one_vector) return outer * lanes + reduction_symbol(last);
  return outer * (ceil_div(reduction_extent(last), lanes) * Expr(lanes)) + reduction_symbol(last);
}

// ---- Passes of a cell ----

void Passes::cell() {
  std::fill(ready_.begin(), ready_.end(), false);
  for (int32_t p = 0; p < flat_.passes; ++p) pass(p);
  Ids stores;
  for (size_t i = 0; i < flat_.body.size(); ++i)
    if (is_store(flat_.body[i].op) && !flat_.over_reduction[i]) stores.push_back(static_cast<ValueId>(i));
  for (ValueId id : collect(stores)) e_.emit(id);
}

/// The innermost loop that may be longer than `limit` values of a sum, whatever the sizes of a call are.
void Passes::plan_parts(bool long_sums, int64_t limit) {
  parts_at_ = -1;
  if (!long_sums) return;
  const Ranges ranges = choose_.sizes().ranges();
  Expr inside = 1;
  for (size_t d = layout_.reduction_order.size(); d-- > 0;) {
    const bool vector = layout_.one_vector && d + 1 == layout_.reduction_order.size();
    const Expr all = (vector ? Expr(layout_.lanes) : reduction_extent(d)) * inside;
    const auto most = ranges.interval(all).upper;
    if (!most || *most > limit) {
      parts_at_ = static_cast<int32_t>(d);
      part_ =
          std::max<int64_t>(1, limit / std::max<int64_t>(1, ranges.interval(inside).upper.value_or(limit)));
      return;
    }
    inside = all;
  }
}

Var Passes::sum_of_copies(const Accumulator& a, DType dtype) {
  std::vector<Var> parts = a.value;
  while (parts.size() > 1) {
    std::vector<Var> half;
    for (size_t k = 0; k + 1 < parts.size(); k += 2)
      half.push_back(e_.compute(OpCode::add, dtype, {parts[k], parts[k + 1]}));
    parts = half;
  }
  return parts[0];
}

void Passes::pass(int32_t p) {
  const Ids reduce = folds(p);
  const Ids ids = collect(roots(p, true));
  if (ids.empty() && reduce.empty()) return;
  Ids over;
  for (ValueId id : ids) {
    if (flat_.over_reduction[id]) {
      over.push_back(id);
    } else {
      e_.emit(id);
    }
  }
  Rows rows{.pass = p, .ids = over, .folds = reduce};
  if (!reduce.empty()) rows.prefix = find_prefix(flat_, layout_);
  if (rows.prefix) {
    for (ValueId id : rows.prefix->conditions) assumed_.set(id, true);
    for (ValueId id : collect(roots(p, true)))
      if (flat_.over_reduction[id]) rows.ids_inside.push_back(id);
    assumed_.clear();
  }
  const int32_t n = rows.copies = copies(rows.prefix ? rows.ids_inside : over, reduce);
  const bool vectors = layout_.along == VectorAlong::reduction;
  prefetches_ = vectors && p == std::min(1, flat_.passes - 1) && !reduce.empty() && layout_.stream;
  plan_parts(std::any_of(reduce.begin(), reduce.end(), [&](ValueId id) { return is_long_sum(id); }),
             vectors ? kPartElements : kPartRows);
  for (ValueId id : reduce) start(id, n);
  for (ValueId id : over)
    if (is_scan(flat_.body[id].op)) start(id, 1);
  auto long_sums = [&](auto visit) {
    for (ValueId id : reduce)
      if (is_long_sum(id)) visit(accumulators_.at(id), flat_.body[id].dtype);
  };
  auto reset = [&] {
    long_sums([&](Accumulator& a, DType dtype) {
      const Var zero = e_.constant(dtype, loops::identity_of(OpCode::reduce_sum, dtype));
      for (Var v : a.value) e_.assign(v, zero);
    });
  };
  auto flush = [&](Expr) {
    long_sums([&](Accumulator& a, DType dtype) {
      e_.assign(a.outer, e_.compute(OpCode::add, dtype, {a.outer, sum_of_copies(a, dtype)}));
    });
  };
  if (layout_.reduction_order.empty()) {
    body_once(over, reduce, 0);
    for (ValueId id : reduce) finish(id);
    return;
  }
  unrolled_ = vectors && !rows.prefix && n > 1 ? n * layout_.lanes : 1;
  nest(
      0, [&](Expr lo, Expr hi) { this->rows(rows, lo, hi); }, reset, flush);
  for (ValueId id : over)
    if (kept_.count(id)) ready_[id] = true;
  for (ValueId id : reduce) finish(id);
}

/// True where all that the points beyond the prefix would fold is the identity.
bool Passes::folds_nothing(const Rows& rows) const {
  const auto is_identity = [&](ValueId fold) {
    const Inst& inst = flat_.body[fold];
    if (is_extremum(inst.op)) return false;
    ValueId v = inst.args[0];
    while (assumed_.chosen(flat_.body[v]) >= 0) v = assumed_.chosen(flat_.body[v]);
    const loops::Constant identity = loops::identity_of(inst.op, flat_.body[inst.args[0]].dtype);
    return flat_.body[v].op == OpCode::constant && flat_.body[v].constant.bits == identity.bits;
  };
  const auto has_effect = [&](ValueId id) {
    return is_store(flat_.body[id].op) || flat_.body[id].op == OpCode::check_index || kept_.count(id) > 0;
  };
  return std::ranges::all_of(rows.folds, is_identity) && std::ranges::none_of(rows.ids, has_effect);
}

void Passes::rows(const Rows& rows, Expr lo, Expr hi) {
  if (!rows.prefix) return run_rows(rows, rows.ids, lo, hi);
  const auto assume = [&](bool answer) {
    for (ValueId id : rows.prefix->conditions) assumed_.set(id, answer);
  };
  const Expr end = e_.let(max(lo, min(hi, e_.at(rows.prefix->end))));
  assume(true);
  run_rows(rows, rows.ids_inside, lo, end);
  assume(false);
  if (!folds_nothing(rows)) {
    Ids outside;
    for (ValueId id : collect(roots(rows.pass, true)))
      if (flat_.over_reduction[id]) outside.push_back(id);
    run_rows(rows, outside, end, hi);
  }
  assumed_.clear();
}

void Passes::run_rows(const Rows& rows, const Ids& ids, Expr lo, Expr hi) {
  if (layout_.along == VectorAlong::reduction)
    return vector_rows(rows.pass, ids, rows.folds, rows.copies, lo, hi);
  e_.loop(reduction_symbol(layout_.reduction_order.size() - 1), lo, hi, 1,
          [&] { body_once(ids, rows.folds, 0); });
}

/// One instruction, where the answers of some comparisons are known.
void Passes::emit(ValueId id) {
  const Inst& inst = flat_.body[id];
  if (const auto answer = assumed_.answer(id)) {
    return e_.bind(id, e_.constant(DType::boolean, loops::Constant::of(int64_t{*answer})));
  }
  if (const ValueId value = assumed_.chosen(inst); value >= 0) return e_.bind(id, e_.value(value));
  const auto on = assumed_.mask(inst);
  if (!on) return e_.emit(id);
  if (*on) return e_.emit_unmasked(id);
  if (inst.op == OpCode::load)
    e_.bind(id, e_.constant(inst.dtype, loops::identity_of(OpCode::reduce_sum, inst.dtype)));
}

void Passes::vector_rows(int32_t p, const Ids& ids, const Ids& reduce, int32_t n, Expr lo, Expr hi) {
  const Symbol r = layout_.vector;
  const int64_t lanes = layout_.lanes;
  if (const Inst* store = streamed(p)) {
    const Statement access = e_.access_of(*store);
    return e_.vector_loop(
        r, lo, hi, [&] { body_once(ids, reduce, 0); }, &access);
  }
  Expr from = lo;
  if (n > 1) {
    const Expr step = lanes * n;
    from = runs_end_.value_or(lo + floor_div(hi - lo, step) * step);
    if (!runs_end_ && !from.is_constant()) from = e_.let(from);
    e_.loop(r, lo, from, step, [&] {
      for (int32_t k = 0; k < n; ++k) {
        e_.shift(r, k * lanes);
        e_.scoped([&] { body_once(ids, reduce, k); });
      }
      e_.shift(r, 0);
    });
  }
  e_.vector_loop(r, from, hi, [&] { body_once(ids, reduce, 0); });
}

void Passes::body_once(const Ids& ids, const Ids& reduce, int32_t copy) {
  for (ValueId id : ids) {
    const Inst& inst = flat_.body[id];
    const auto kept = kept_.find(id);
    if (ready_[id]) {
      const Var v = e_.load_array(kept->second, inst.dtype, row_index());
      e_.bind(id, v);
    } else if (is_scan(inst.op)) {
      scan(id);
    } else if (inst.op != OpCode::result) {
      emit(id);
      if (kept != kept_.end()) e_.store_array(kept->second, inst.dtype, row_index(), e_.value(id));
    }
  }
  for (ValueId id : reduce) update(id, copy);
  if (prefetches_) prefetch_next_cell();
}

/// Later passes compute on a row that is in the caches, and meanwhile a row further on comes from memory; a
/// single pass is bound by how many lines are under way, and those of its own row the processor fetches by
/// itself, if late.
void Passes::prefetch_next_cell() {
  if (layout_.order.empty()) return;
  const Symbol next(SymbolKind::index, layout_.order.back());
  prefetch_ahead(
      [&](const Expr& step) {
        if (flat_.passes > 1) return step * 2;
        // Lines too far ahead are gone when they are wanted: a long row is fetched from its own next part.
        const auto length = reduction_extent(layout_.reduction_order.size() - 1).constant();
        return length && *length >= kFetchAhead ? Expr(kFetchAhead)
               : length                         ? step * 2
                                                : min(step * 2, kFetchAhead);
      },
      next);
}

/// What is loaded in runs over the reduction, as many elements further on as `distance` says for its step
/// along `next`.
void Passes::prefetch_ahead(const std::function<Expr(const Expr&)>& distance, Symbol next) {
  for (size_t i = 0; i < flat_.body.size(); ++i) {
    const Inst& inst = flat_.body[i];
    if (inst.op != OpCode::load || !flat_.over_reduction[i] || flat_.ready[i] > 0 || !inst.indirect.empty())
      continue;
    const auto along = stride_of(inst.index, layout_.vector), step = stride_of(inst.index, next);
    if (!along || !along->is(1) || !step || step->is(0) || !inst.args.empty()) continue;
    Statement access = e_.access_of(inst);
    access.action = Action::prefetch;
    access.index = access.index + distance(*step);
    e_.add(std::move(access));
  }
}

void Passes::nest(size_t depth, const std::function<void(Expr, Expr)>& innermost, const Emitter::Body& reset,
                  const std::function<void(Expr)>& flush) {
  const Expr extent = reduction_extent(depth);
  auto level = [&](Expr lo, Expr hi) {
    if (depth + 1 == layout_.reduction_order.size()) return innermost(lo, hi);
    e_.loop(reduction_symbol(depth), lo, hi, 1, [&] { nest(depth + 1, innermost, reset, flush); });
  };
  if (static_cast<int32_t>(depth) != parts_at_) return level(0, extent);
  const Symbol x = e_.fresh();
  const Expr step = part_;
  if (depth > 0) {
    const bool even = extent.constant() && *extent.constant() % part_ == 0;
    return e_.loop(x, 0, extent, step, [&] {
      flush(1);
      reset();
      level(x, even ? Expr(x) + step : Expr(e_.let(min(Expr(x) + step, extent))));
    });
  }
  // What the last part adds is added to the others in the end, so that a short loop does nothing more.
  const auto flush_before = [&](Expr end) {
    Statement when{.action = Action::when, .index = end, .end = extent};
    e_.in(when.body, [&] {
      flush(x);
      reset();
    });
    e_.add(std::move(when));
  };
  if (extent.is_constant()) {
    const bool even = extent.value() % part_ == 0;
    return e_.loop(x, 0, extent, step, [&] {
      const Expr end = even ? Expr(x) + step : Expr(e_.let(min(Expr(x) + step, extent)));
      level(x, end);
      flush_before(end);
    });
  }
  // Where the first part ends is the same for all cells, and computed before them.
  const Symbol end = e_.let(min(step, extent));
  const bool runs = unrolled_ > 1 && layout_.reduction_order.size() == 1;
  const auto runs_end = [&](Expr from) { return from + floor_div(Expr(end) - from, unrolled_) * unrolled_; };
  if (runs) runs_end_ = e_.let(runs_end(0));
  Statement loop{.action = Action::loop, .index = 0, .end = extent, .step = 0, .symbol = x};
  e_.in(loop.body, [&] {
    level(x, end);
    flush_before(end);
    e_.add({.action = Action::set, .index = end, .symbol = x});
    e_.add({.action = Action::set, .index = min(Expr(end) + step, extent), .symbol = end});
    if (runs) e_.add({.action = Action::set, .index = runs_end(x), .symbol = runs_end_->symbol()});
  });
  e_.add(std::move(loop));
  runs_end_.reset();
}

}  // namespace stax::codegen

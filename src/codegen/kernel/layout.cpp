#include "codegen/kernel/layout.h"

#include <algorithm>

#include "codegen/kernel/prefix.h"
#include "loops/analysis.h"

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;
using loops::ValueId;

namespace {

/// Rows of a reduction from which its accumulators are kept in arrays over a block of columns, so that each
/// row is read in long runs.
constexpr int64_t kLongColumn = 32;
constexpr int64_t kBlockBytes = 16 << 10;
/// What several passes over the same columns may fill.
constexpr int64_t kCachedBytes = 512 << 10;
constexpr int32_t kTile = 64;

/// Points of the loops that an access depends on: the elements it touches.
Expr touched(const Inst& inst, const schedule::Group& group) {
  Expr n = 1;
  auto visit = [&](SymbolKind kind, const std::vector<Expr>& ranges) {
    for (size_t k = 0; k < ranges.size(); ++k)
      if (inst.index.contains(Symbol{kind, static_cast<int32_t>(k)})) n *= ranges[k];
  };
  visit(SymbolKind::index, group.ranges);
  visit(SymbolKind::reduction, group.reduction_ranges);
  return n;
}

class LayoutMaker {
 public:
  LayoutMaker(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
              const schedule::Target& target, Chooser& chooser)
      : program_(program), group_(group), flat_(flat), target_(target), choose_(chooser) {}

  Layout run() {
    choose_vector();
    choose_order();
    choose_lanes();
    choose_domain();
    choose_memory();
    return layout_;
  }

 private:
  int64_t likely(Expr e) const { return choose_.sizes().likely(e); }

  /// Bytes that become vector loads and stores when vectors run along `symbol`, less what that costs.
  double score(Symbol symbol, Expr extent) const {
    double total = 0;
    for (const Inst& inst : flat_.body) {
      if (!loops::accesses_memory(inst)) continue;
      const double bytes =
          static_cast<double>(likely(touched(inst, group_))) * itemsize(program_.buffers[inst.buffer].dtype);
      const auto stride = stride_of(inst.index, symbol);
      if (!stride) continue;
      if (stride->is(1)) total += bytes * (inst.op == OpCode::load ? 1.0 : 1.5);
      if (stride->is(0)) total += bytes * 0.5;
    }
    const double vector = target_.vector_bytes / 4.0;
    const double n = static_cast<double>(likely(extent));
    if (n < vector) total *= n / vector;
    return total;
  }

  /// Accesses of memory that run along `symbol`.
  int64_t runs_along(Symbol symbol) const {
    return std::ranges::count_if(flat_.body, [&](const Inst& inst) {
      const auto stride = loops::accesses_memory(inst) ? stride_of(inst.index, symbol) : std::nullopt;
      return stride && stride->is(1);
    });
  }

  /// The order in which a row is added up may depend on how it lies in memory, and on nothing else: along it
  /// where something does, else element after element.
  void choose_vector_of_rows() {
    int64_t most = 0;
    for (size_t k = group_.reduction_ranges.size(); k-- > 0;) {
      if (flat_.has_scan && (!scans_lanes() || k + 1 < group_.reduction_ranges.size())) break;
      const Symbol symbol{SymbolKind::reduction, static_cast<int32_t>(k)};
      if (runs_along(symbol) <= most) continue;
      most = runs_along(symbol);
      layout_.along = VectorAlong::reduction;
      layout_.vector = symbol;
    }
    if (most > 0 || group_.ranges.empty()) return;
    for (size_t k = group_.ranges.size(); k-- > 0;) {
      const Symbol symbol{SymbolKind::index, static_cast<int32_t>(k)};
      if (layout_.along == VectorAlong::iteration && runs_along(symbol) <= most) continue;
      most = runs_along(symbol);
      layout_.along = VectorAlong::iteration;
      layout_.vector = symbol;
    }
    if (flat_.has_scan && most == 0) layout_.along = VectorAlong::nothing;
  }

  void choose_vector() {
    if (target_.batch_invariant && !group_.reduction_ranges.empty()) return choose_vector_of_rows();
    double best = 0;
    auto offer = [&](VectorAlong along, SymbolKind kind, const std::vector<Expr>& ranges) {
      for (size_t k = ranges.size(); k-- > 0;) {
        const Symbol symbol{kind, static_cast<int32_t>(k)};
        double value = score(symbol, ranges[k]);
        if (along == VectorAlong::reduction) value *= 0.9;  // lanes have to be merged
        if (value <= best && !(best == 0 && layout_.along == VectorAlong::nothing)) continue;
        best = value;
        layout_.along = along;
        layout_.vector = symbol;
      }
    };
    offer(VectorAlong::iteration, SymbolKind::index, group_.ranges);
    if (!flat_.has_scan) {
      offer(VectorAlong::reduction, SymbolKind::reduction, group_.reduction_ranges);
      return;
    }
    // A scan runs through the lanes in order, so they lie along its last dimension.
    const int32_t last = static_cast<int32_t>(group_.reduction_ranges.size()) - 1;
    if (scans_lanes() && last >= 0) {
      const Symbol symbol{SymbolKind::reduction, last};
      if (const double value = 0.9 * score(symbol, group_.reduction_ranges[last]); value > best) {
        best = value;
        layout_.along = VectorAlong::reduction;
        layout_.vector = symbol;
      }
    }
    // Lanes that lie far apart cost more than they save.
    if (best == 0) layout_.along = VectorAlong::nothing;
  }

  /// True if every scan is one that Passes::scan() takes through the lanes of a vector.
  bool scans_lanes() const {
    return std::all_of(flat_.body.begin(), flat_.body.end(),
                       [](const Inst& inst) { return !is_scan(inst.op) || loops::fold_info(inst.op).step; });
  }

  void choose_order() {
    const bool iteration = layout_.along == VectorAlong::iteration;
    for (size_t k = 0; k < group_.ranges.size(); ++k)
      if (!iteration || static_cast<int32_t>(k) != layout_.vector.number)
        layout_.order.push_back(static_cast<int32_t>(k));
    const bool reduction = layout_.along == VectorAlong::reduction;
    for (size_t k = 0; k < group_.reduction_ranges.size(); ++k)
      if (!reduction || static_cast<int32_t>(k) != layout_.vector.number)
        layout_.reduction_order.push_back(static_cast<int32_t>(k));
    if (reduction) layout_.reduction_order.push_back(layout_.vector.number);
    if (!iteration) return;
    if (group_.reduction_ranges.empty()) choose_tile();
    layout_.order.push_back(layout_.vector.number);
  }

  /// Where some access runs along another dimension u, u comes next to the vector dimension, in tiles.
  void choose_tile() {
    for (const Inst& inst : flat_.body) {
      if (!loops::accesses_memory(inst)) continue;
      const auto along = stride_of(inst.index, layout_.vector);
      if (!along || along->is(0) || along->is(1)) continue;
      for (size_t at = 0; at < layout_.order.size(); ++at) {
        const int32_t u = layout_.order[at];
        const auto stride = stride_of(inst.index, Symbol{SymbolKind::index, u});
        if (!stride || !stride->is(1)) continue;
        const bool worthwhile =
            choose_.likely(ge(group_.ranges[layout_.vector.number], kTile), "tiles", "no tiles") &&
            choose_.likely(ge(group_.ranges[u], 8), "tiles", "no tiles");
        if (!worthwhile) continue;
        layout_.order.erase(layout_.order.begin() + static_cast<std::ptrdiff_t>(at));
        layout_.order.push_back(u);
        layout_.tile = kTile;
        return;
      }
    }
  }

  void choose_lanes() {
    int64_t largest = 1;
    // What only tells where a loop ends is in none of its vectors.
    Assumptions inside;
    const auto prefix = find_prefix(flat_, layout_);
    for (const ValueId id : prefix ? prefix->conditions : std::vector<ValueId>()) inside.set(id, true);
    const std::vector<bool> counts = needed(flat_, inside), varies = varying(flat_, layout_);
    for (size_t i = 0; i < flat_.body.size(); ++i) {
      const Inst& inst = flat_.body[i];
      if (!inside.empty() && (!counts[i] || inside.answer(static_cast<ValueId>(i)))) continue;
      // A size as a value is the same in all lanes.
      const bool is_size = !varies[i] && inst.op == OpCode::index_value;
      if (!is_store(inst.op) && !is_size)
        largest = std::max(largest, itemsize(loops::compute_dtype(inst.dtype)));
      if (is_extremum(inst.op)) largest = 8;
      if (!loops::accesses_memory(inst)) continue;
      const bool masked =
          inst.args.size() > (inst.op == OpCode::load ? 0u : 1u) && !inside.mask(inst).value_or(false);
      const auto stride =
          layout_.along == VectorAlong::nothing ? Expr(0) : stride_of(inst.index, layout_.vector);
      // What has an index of its own in every lane holds these as int64.
      if (!stride || (masked && !stride->is(1)) || inst.op == OpCode::atomic_add || !inst.indirect.empty())
        largest = 8;
    }
    // Rows that fill half a vector at most: the shorter vector needs no mask, and its lanes merge sooner.
    const bool asks =
        layout_.along == VectorAlong::reduction &&
        (!target_.batch_invariant || group_.reduction_ranges[layout_.vector.number].is_constant());
    if (asks && choose_.likely(le(group_.reduction_ranges[layout_.vector.number], target_.vector_bytes / 8),
                               "short vectors", "full vectors"))
      largest = 8;
    layout_.lanes = static_cast<int>(std::max<int64_t>(2, target_.vector_bytes / largest));
    if (layout_.along != VectorAlong::reduction || flat_.has_scan || target_.batch_invariant) return;
    const Condition fits = le(group_.reduction_ranges[layout_.vector.number], layout_.lanes);
    layout_.one_vector = !fits.left.is_constant() && choose_.near(fits) &&
                         choose_.required(fits, "a vector for each row", "several vectors for each row");
  }

  void choose_domain() {
    const int64_t enough = std::max<int64_t>(64, 16 * target_.processors);
    const int32_t outer =
        static_cast<int32_t>(layout_.order.size()) - (layout_.along == VectorAlong::iteration);
    const int32_t limit = layout_.tile > 0 ? std::max(outer - 1, 1) : outer;
    Expr points = 1;
    const auto few = [&] {
      return choose_.likely(lt(points, enough), "threads share further loops",
                            "threads share the outer loops");
    };
    while (layout_.domain < limit && few()) points *= group_.ranges[layout_.order[layout_.domain++]];
    layout_.shares_vector = layout_.along == VectorAlong::iteration && layout_.tile == 0 && few();
    if (layout_.shares_vector) layout_.domain = static_cast<int32_t>(layout_.order.size());
    layout_.serial = flat_.has_atomic;
  }

  void choose_memory() {
    Expr bytes = 0;
    for (const Inst& inst : flat_.body)
      if (loops::accesses_memory(inst))
        bytes += touched(inst, group_) * itemsize(program_.buffers[inst.buffer].dtype);
    // What others left in the caches, and what was read, push results out before all of it is full.
    layout_.stream = !target_.batch_invariant &&  // runs of scans would begin where results are aligned
                     choose_.at_launch(gt(bytes, target_.cache_bytes / 2), "results go past the caches",
                                       "results go through the caches");
    if (layout_.along != VectorAlong::iteration || flat_.passes == 0) return;
    const Expr rows = product(group_.reduction_ranges);
    const Expr columns = group_.ranges[layout_.vector.number];
    constexpr const char *kBlock = "accumulators of a block of columns in arrays",
                         *kRegisters = "accumulators in registers";
    if (!choose_.at_launch(ge(rows, kLongColumn), kBlock, kRegisters) ||
        !choose_.at_launch(gt(columns, layout_.lanes), kBlock, kRegisters))
      return;
    const int64_t vectors = kBlockBytes / target_.vector_bytes;
    Expr together = vectors;
    if (flat_.passes > 1)
      together = max(4, min(floor_div(kCachedBytes / target_.vector_bytes, max(rows, 1)), vectors));
    layout_.block_step = together * layout_.lanes;
    layout_.block = layout_.block_step.constant().value_or(vectors * layout_.lanes);
  }

  const loops::Program& program_;
  const schedule::Group& group_;
  const FlatGroup& flat_;
  const schedule::Target& target_;
  Chooser& choose_;
  Layout layout_;
};

}  // namespace

std::vector<bool> varying(const FlatGroup& flat, const Layout& layout) {
  std::vector<bool> out(flat.body.size(), false);
  if (layout.along == VectorAlong::nothing) return out;
  for (size_t i = 0; i < flat.body.size(); ++i) {
    const Inst& inst = flat.body[i];
    bool varies = inst.op != OpCode::check_index && inst.index.contains(layout.vector);
    for (ValueId a : inst.args) varies = varies || out[a];
    for (ValueId a : inst.indirect) varies = varies || out[a];
    if (is_reduction(inst.op)) {
      if (layout.along == VectorAlong::reduction) varies = false;
    }
    if (inst.op == OpCode::result && !out[inst.args[0]]) varies = false;
    out[i] = varies;
  }
  return out;
}

Layout make_layout(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
                   const schedule::Target& target, Chooser& chooser) {
  return LayoutMaker(program, group, flat, target, chooser).run();
}

}  // namespace stax::codegen

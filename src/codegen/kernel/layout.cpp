#include "codegen/kernel/layout.h"

#include <algorithm>

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;
using loops::OpKind;

namespace {

constexpr int64_t kGuessedExtent = 256;
/// Rows of a reduction from which its accumulators are kept in arrays over a block of columns, so that each
/// row is read in long runs.
constexpr int64_t kLongColumn = 32;
constexpr int64_t kBlockBytes = 16 << 10;
/// What several passes over the same columns may fill.
constexpr int64_t kCachedBytes = 512 << 10;
constexpr int32_t kTile = 64;

bool is_access(const Inst& inst) {
  return inst.op == OpCode::load || loops::info(inst.op).kind == OpKind::store;
}

/// Points of the loops that an access depends on: the elements it touches.
int64_t touched(const Inst& inst, const schedule::Group& group) {
  int64_t n = 1;
  auto visit = [&](SymbolKind kind, const std::vector<Expr>& ranges) {
    for (size_t k = 0; k < ranges.size(); ++k)
      if (inst.index.contains(Symbol{kind, static_cast<int32_t>(k)})) n *= likely_extent(ranges[k]);
  };
  visit(SymbolKind::index, group.ranges);
  visit(SymbolKind::reduction, group.reduction_ranges);
  return n;
}

class Chooser {
 public:
  Chooser(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
          const schedule::Target& target)
      : program_(program), group_(group), flat_(flat), target_(target) {}

  Layout run() {
    choose_vector();
    choose_order();
    choose_lanes();
    choose_domain();
    choose_memory();
    return layout_;
  }

 private:
  /// Bytes that become vector loads and stores when vectors run along `symbol`, less what that costs.
  double score(Symbol symbol, Expr extent) const {
    double total = 0;
    for (const Inst& inst : flat_.body) {
      if (!is_access(inst)) continue;
      const double bytes =
          static_cast<double>(touched(inst, group_)) * itemsize(program_.buffers[inst.buffer].dtype);
      const auto stride = stride_of(inst.index, symbol);
      if (!stride) continue;
      if (stride->is(1)) total += bytes * (inst.op == OpCode::load ? 1.0 : 1.5);
      if (stride->is(0)) total += bytes * 0.5;
    }
    const double vector = target_.vector_bytes / 4.0;
    const double n = static_cast<double>(likely_extent(extent));
    if (n < vector) total *= n / vector;
    return total;
  }

  void choose_vector() {
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
    return std::all_of(flat_.body.begin(), flat_.body.end(), [](const Inst& inst) {
      return loops::info(inst.op).kind != OpKind::scan || inst.op == OpCode::scan_sum ||
             inst.op == OpCode::scan_prod;
    });
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
    if (likely_extent(group_.ranges[layout_.vector.number]) < kTile) return;
    for (const Inst& inst : flat_.body) {
      if (!is_access(inst)) continue;
      const auto along = stride_of(inst.index, layout_.vector);
      if (!along || along->is(0) || along->is(1)) continue;
      for (size_t at = 0; at < layout_.order.size(); ++at) {
        const int32_t u = layout_.order[at];
        const auto stride = stride_of(inst.index, Symbol{SymbolKind::index, u});
        if (!stride || !stride->is(1) || likely_extent(group_.ranges[u]) < 8) continue;
        layout_.order.erase(layout_.order.begin() + static_cast<std::ptrdiff_t>(at));
        layout_.order.push_back(u);
        layout_.tile = kTile;
        return;
      }
    }
  }

  void choose_lanes() {
    int64_t largest = 1;
    for (const Inst& inst : flat_.body) {
      if (loops::info(inst.op).kind != OpKind::store)
        largest = std::max(largest, itemsize(loops::compute_dtype(inst.dtype)));
      if (inst.op == OpCode::reduce_argmax || inst.op == OpCode::reduce_argmin) largest = 8;
      if (!is_access(inst)) continue;
      const bool masked = inst.args.size() > (inst.op == OpCode::load ? 0u : 1u);
      const auto stride =
          layout_.along == VectorAlong::nothing ? Expr(0) : stride_of(inst.index, layout_.vector);
      // What has an index of its own in every lane holds these as int64.
      if (!stride || (masked && !stride->is(1)) || inst.op == OpCode::atomic_add || !inst.indirect.empty())
        largest = 8;
    }
    // Rows that fill half a vector at most: the shorter vector needs no mask, and its lanes merge sooner.
    if (layout_.along == VectorAlong::reduction &&
        likely_extent(group_.reduction_ranges[layout_.vector.number]) <= target_.vector_bytes / 8)
      largest = 8;
    layout_.lanes = static_cast<int>(std::max<int64_t>(2, target_.vector_bytes / largest));
  }

  void choose_domain() {
    const int64_t enough = std::max<int64_t>(64, 16 * target_.processors);
    const int32_t outer =
        static_cast<int32_t>(layout_.order.size()) - (layout_.along == VectorAlong::iteration);
    const int32_t limit = layout_.tile > 0 ? std::max(outer - 1, 1) : outer;
    int64_t points = 1;
    while (layout_.domain < limit && points < enough)
      points *= likely_extent(group_.ranges[layout_.order[layout_.domain++]]);
    layout_.shares_vector = layout_.along == VectorAlong::iteration && layout_.tile == 0 && points < enough;
    if (layout_.shares_vector) layout_.domain = static_cast<int32_t>(layout_.order.size());
    layout_.serial = flat_.has_atomic;
  }

  void choose_memory() {
    int64_t bytes = 0;
    bool constant = true;
    for (const Inst& inst : flat_.body)
      if (is_access(inst)) bytes += touched(inst, group_) * itemsize(program_.buffers[inst.buffer].dtype);
    for (Expr e : group_.ranges) constant = constant && e.is_constant();
    for (Expr e : group_.reduction_ranges) constant = constant && e.is_constant();
    // What others left in the caches, and what was read, push results out before all of it is full.
    layout_.stream = constant && bytes > target_.cache_bytes / 2;
    int64_t rows = 1;
    for (Expr e : group_.reduction_ranges) rows *= likely_extent(e);
    if (layout_.along == VectorAlong::iteration && flat_.passes > 0 && rows >= kLongColumn &&
        likely_extent(group_.ranges[layout_.vector.number]) > layout_.lanes) {
      const int64_t vectors = kBlockBytes / target_.vector_bytes;
      const int64_t cached = kCachedBytes / (rows * target_.vector_bytes);
      layout_.block = layout_.lanes * (flat_.passes > 1 ? std::clamp<int64_t>(cached, 4, vectors) : vectors);
    }
  }

  const loops::Program& program_;
  const schedule::Group& group_;
  const FlatGroup& flat_;
  const schedule::Target& target_;
  Layout layout_;
};

}  // namespace

int64_t likely_extent(Expr extent) {
  return extent.constant().value_or(kGuessedExtent);
}

Layout make_layout(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
                   const schedule::Target& target) {
  return Chooser(program, group, flat, target).run();
}

}  // namespace stax::codegen

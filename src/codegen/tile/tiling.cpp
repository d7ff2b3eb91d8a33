#include "codegen/tile/tiling.h"

#include <algorithm>
#include <bit>
#include <set>

#include "loops/analysis.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;

namespace {

/// A tile narrower than this coalesces that much less.
constexpr int64_t kFullLine = 8;
/// Longest reductions that one block covers: along memory, and across it, where blocks are wide in x.
constexpr int64_t kPersistentInner = 1024, kPersistentOther = 64;
/// Longest rows that one block covers because it has to.
constexpr int64_t kLongestWhole = 2048;
/// Where each launch asks for a row's length: how much shorter than the example's, and how short, its block
/// is.
constexpr int64_t kSmallerRows = 8, kSmallestBlock = 4;

int64_t round_up_to_power_of_two(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

/// A load or store, and the bytes that it moves: stores count twice, because lines that are written in part
/// are read first.
struct WeighedAccess {
  Expr index;
  double bytes = 0;
};

std::vector<WeighedAccess> accesses(const loops::Program& program, const schedule::Group& group,
                                    const FlatGroup& flat, const Sizes& sizes) {
  std::vector<WeighedAccess> found;
  for (const Inst& inst : flat.body) {
    if (!loops::accesses_memory(inst) || !inst.indirect.empty()) continue;
    double points = 1;
    for (size_t k = 0; k < group.ranges.size(); ++k) {
      if (inst.index.contains(Symbol{SymbolKind::index, static_cast<int32_t>(k)}))
        points *= static_cast<double>(sizes.likely(group.ranges[k]));
    }
    const double writes = inst.op == OpCode::load ? 1 : 2;
    found.push_back({inst.index, points * itemsize(program.buffers[inst.buffer].dtype) * writes});
  }
  return found;
}

/// A cut of the iteration loops: the first loop of every run, outermost first.
using Cut = std::vector<size_t>;

/// Bytes that lie in order, or stay the same, along the innermost loop of some run.
double coalesced_bytes(const std::vector<WeighedAccess>& accesses, const schedule::Group& group,
                       const Cut& cut, const Sizes& sizes) {
  double total = 0;
  for (const WeighedAccess& access : accesses) {
    double best = 0;
    for (size_t run = 0; run < cut.size(); ++run) {
      const size_t innermost = (run + 1 < cut.size() ? cut[run + 1] : group.ranges.size()) - 1;
      const auto stride = stride_of(access.index, {SymbolKind::index, static_cast<int32_t>(innermost)});
      if (!stride || !(stride->is(1) || stride->is(0))) continue;
      int64_t points = 1;
      for (size_t k = cut[run]; k <= innermost; ++k) points *= sizes.likely(group.ranges[k]);
      best = std::max(best, static_cast<double>(std::min(points, kFullLine)) / kFullLine);
    }
    total += best * access.bytes;
  }
  return total;
}

std::vector<Cut> cuts(size_t loops, int max_tiles) {
  std::vector<Cut> all = {{0}};
  for (size_t a = 1; a < loops && max_tiles >= 2; ++a) all.push_back({0, a});
  for (size_t a = 1; a < loops && max_tiles >= 3; ++a)
    for (size_t b = a + 1; b < loops; ++b) all.push_back({0, a, b});
  return all;
}

/// Fewer runs first, so that a later one has to gain something.
Cut best_cut(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
             int max_tiles, const Sizes& sizes) {
  Cut best = {0};
  if (group.ranges.size() < 2) return best;
  const auto weighed = accesses(program, group, flat, sizes);
  double most = -1;
  for (const Cut& cut : cuts(group.ranges.size(), max_tiles)) {
    const double bytes = coalesced_bytes(weighed, group, cut, sizes);
    if (bytes <= most * 1.001) continue;
    most = bytes;
    best = cut;
  }
  return best;
}

/// The axis over loops [first, last) of `ranges`; `number` counts the variables of all axes.
TileAxis make_axis(TileAxisKind kind, SymbolKind loop, const std::vector<Expr>& ranges, size_t first,
                   size_t last, int32_t& number, const Sizes& sizes) {
  TileAxis axis{.kind = kind, .numel = 1};
  for (size_t k = first; k < last; ++k) {
    axis.variables.push_back({.symbol = {loop, static_cast<int32_t>(k)},
                              .name = fmt::format("{}{}", facts_of(kind).prefix, number++),
                              .extent = ranges[k],
                              .outermost = k == first});
    axis.numel *= ranges[k];
  }
  Expr divisor = 1;
  for (size_t k = axis.variables.size(); k-- > 0;) {
    axis.variables[k].divisor = divisor;
    divisor *= axis.variables[k].extent;
  }
  axis.size_hint = round_up_to_power_of_two(sizes.likely(axis.numel));
  return axis;
}

bool needs_mask(const TileAxis& axis) {
  const auto numel = axis.numel.constant();
  if (!numel) return true;
  if (axis.block > 0) return *numel != axis.block || axis.block < 32;
  return *numel != 1 && *numel % facts_of(axis.kind).largest_block != 0;
}

/// Bytes that one access moves at most.
constexpr int64_t kVectorBytes = 16;

/// Where the row of an access along `axis` starts, if its elements lie one after another.
std::optional<Expr> start_of(const Inst& inst, const TileAxis& axis) {
  if (!loops::accesses_memory(inst) || !inst.indirect.empty()) return std::nullopt;
  const Symbol along = axis.variables[0].symbol;
  const auto stride = stride_of(inst.index, along);
  if (!stride || !stride->is(1)) return std::nullopt;
  return inst.index - Expr(along);
}

bool is_multiple(Expr e, int64_t n) {
  return mod(e, Expr(n)).is(0);
}

constexpr std::string_view kRowBlock = "a block for each row";

/// For rows as short as the example's, whose length is `usual`; nothing where `otherwise` is taken.
std::optional<int64_t> block_like_example(Expr length, int64_t usual, std::string_view otherwise,
                                          Chooser& chooser) {
  int64_t block = round_up_to_power_of_two(usual);
  if (!chooser.required(le(length, block), kRowBlock, otherwise)) return std::nullopt;
  // Rows that fill a small part of their block have a smaller one.
  const int64_t smallest = std::max(block / kSmallerRows, kSmallestBlock);
  while (block > smallest &&
         chooser.required(le(length, block / 2), "a smaller block for each row", kRowBlock))
    block /= 2;
  return block;
}

}  // namespace

bool aligned_by(const TilePeel& peel, Expr index, const TileAxis& reduction) {
  const Symbol along = reduction.variables[0].symbol;
  const auto stride = stride_of(index, along);
  return stride && stride->is(1) && is_multiple(index - Expr(along) - peel.start, peel.vector);
}

std::optional<TilePeel> choose_peel(const loops::Program& program, const FlatGroup& flat,
                                    const TileAxis& reduction, Chooser& chooser) {
  if (flat.has_scan || reduction.variables.size() != 1) return std::nullopt;
  const auto at_hint = [&](Expr e) {
    return substitute(e, [&](Symbol s) -> std::optional<Expr> {
      if (s.kind != SymbolKind::size && s.kind != SymbolKind::unbacked) return std::nullopt;
      return Expr(chooser.sizes().likely(Expr(s)));
    });
  };
  std::optional<TilePeel> best;
  int64_t most = 0;
  for (const Inst& first : flat.body) {
    const auto start = start_of(first, reduction);
    if (!start) continue;
    const auto vector_of = [&](const Inst& inst) {
      return std::max<int64_t>(1, kVectorBytes / itemsize(program.buffers[inst.buffer].dtype));
    };
    TilePeel peel{*start, 1};
    int64_t gained = 0, lost = 0;
    for (const Inst& inst : flat.body)
      if (start_of(inst, reduction) == start) peel.vector = std::max(peel.vector, vector_of(inst));
    for (const Inst& inst : flat.body) {
      const auto own = start_of(inst, reduction);
      if (!own) continue;
      const bool before = is_multiple(at_hint(*own), vector_of(inst));
      const bool after = is_multiple(at_hint(*own - peel.start), vector_of(inst));
      gained += !before && after ? 1 : 0;
      lost += before && !after ? 1 : 0;
    }
    if (gained - lost <= most) continue;
    most = gained - lost;
    best = peel;
  }
  return best;
}

std::vector<TileAxis> choose_axes(const loops::Program& program, const schedule::Group& group,
                                  const FlatGroup& flat, int max_tiles, int64_t row_block,
                                  const Sizes& sizes) {
  std::vector<TileAxis> axes;
  int32_t number = 0;
  const bool reduces = !group.reduction_ranges.empty();
  const Cut cut = best_cut(program, group, flat, reduces ? 1 : max_tiles, sizes);
  for (size_t run = 0; run < cut.size(); ++run) {
    const auto kind = static_cast<TileAxisKind>(static_cast<size_t>(TileAxisKind::x) + run + 1 - cut.size());
    const size_t last = run + 1 < cut.size() ? cut[run + 1] : group.ranges.size();
    axes.push_back(make_axis(kind, SymbolKind::index, group.ranges, cut[run], last, number, sizes));
  }
  if (reduces) {
    axes.push_back(make_axis(TileAxisKind::r0, SymbolKind::reduction, group.reduction_ranges, 0,
                             group.reduction_ranges.size(), number, sizes));
    axes.back().block = row_block;
  }
  for (TileAxis& axis : axes) axis.masked = needs_mask(axis);
  return axes;
}

ReductionHint reduction_hint(const schedule::Group& group, const FlatGroup& flat) {
  int inner = 0, outer = 0;
  std::set<std::pair<loops::BufferId, const void*>> seen;
  for (const Inst& inst : flat.body) {
    if (inst.op != OpCode::load || !inst.index.contains(SymbolKind::reduction)) continue;
    if (!seen.emplace(inst.buffer, inst.index.node()).second) continue;
    bool along = false;
    for (size_t k = 0; k < group.reduction_ranges.size(); ++k) {
      const auto stride = stride_of(inst.index, {SymbolKind::reduction, static_cast<int32_t>(k)});
      along = along || (stride && stride->is(1));
    }
    ++(along && inst.indirect.empty() ? inner : outer);
  }
  if (inner > 0 && outer == 0) return ReductionHint::inner;
  if (outer > 0 && inner == 0) return ReductionHint::outer;
  return inner > outer ? ReductionHint::inner : ReductionHint::normal;
}

int64_t whole_row_block(const schedule::Group& group, bool asks, Chooser& chooser) {
  const Expr length = product(group.reduction_ranges);
  int64_t longest = 1;
  while (longest <= kLongestWhole && !chooser.sizes().proves(le(length, longest))) longest *= 2;
  STAX_ASSERT(longest <= kLongestWhole,
              "group {} needs whole rows of at most {} elements, which {} is not known to be", group.name,
              kLongestWhole, length.str());
  const auto usual = chooser.sizes().hint(length);
  if (!asks || !usual || round_up_to_power_of_two(*usual) >= longest) return longest;
  return block_like_example(length, *usual, "a block for the longest row", chooser).value_or(longest);
}

int64_t row_block(const schedule::Group& group, ReductionHint hint, bool asks, Chooser& chooser) {
  constexpr std::string_view kLoop = "a loop over each row";
  const Expr length = product(group.reduction_ranges);
  const int64_t longest = hint == ReductionHint::inner ? kPersistentInner : kPersistentOther;
  const auto most = chooser.sizes().ranges().interval(length).upper;
  const auto usual = chooser.sizes().hint(length);
  const bool short_enough = most && *most <= longest;
  if (asks && !short_enough && usual && *usual <= longest)
    return block_like_example(length, *usual, kLoop, chooser).value_or(0);
  if (!length.is_constant()) {
    chooser.note(std::string(short_enough ? kRowBlock : kLoop),
                 fmt::format("{} is {}, and a block has {} elements at most", length.str(),
                             most ? fmt::format("{} at most", *most) : "not bounded", longest));
  }
  return short_enough ? round_up_to_power_of_two(*most) : 0;
}

int64_t fixed_row_block(const schedule::Group& group, ReductionHint hint) {
  const auto length = product(group.reduction_ranges).constant();
  const bool covered = length && *length <= kPersistentInner && hint == ReductionHint::inner;
  return covered ? round_up_to_power_of_two(*length) : 0;
}

}  // namespace stax::codegen

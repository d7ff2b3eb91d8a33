#include "schedule/group.h"

#include <algorithm>
#include <optional>

#include "loops/analysis.h"

namespace stax::schedule {

using loops::Inst;
using loops::OpCode;

namespace {

Member member_of(const loops::Program& program, const FusedNode& node, const Ranges& ranges) {
  Member out{node.node, program.nodes[node.node].body, node.over_reduction};
  for (Inst& inst : out.body) {
    inst.index = simplify(substitute(inst.index,
                                     [&](Symbol s) -> std::optional<Expr> {
                                       if (s.kind == SymbolKind::index) return node.ranges[s.number];
                                       if (s.kind == SymbolKind::reduction) {
                                         return node.reduction_ranges[s.number];
                                       }
                                       return std::nullopt;
                                     }),
                          ranges);
  }
  return out;
}

/// Every index expression of the group; accesses to memory with their size, for the order of loops.
struct Index {
  Expr expr;
  bool memory = false, store = false;
  int64_t bytes = 0;
};

std::vector<Index> indices_of(const loops::Program& program, const Space& space,
                              const std::vector<Member>& members, const Target& target, const Sizes& sizes) {
  std::vector<Index> out;
  for (const Member& m : members) {
    for (const Inst& inst : m.body) {
      const bool memory = loops::accesses_memory(inst);
      if (!memory && !inst.index.contains(SymbolKind::block)) continue;
      const int64_t bytes =
          memory ? footprint(inst.index, space, program.buffers[inst.buffer].dtype, target, sizes) : 0;
      out.push_back({inst.index, memory, memory && inst.op != OpCode::load, bytes});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Index& a, const Index& b) {
    if (a.memory != b.memory) return a.memory;
    if (a.store != b.store) return a.store;
    return a.bytes > b.bytes;
  });
  return out;
}

std::optional<Expr> step(Expr index, int32_t axis) {
  return stride_of(index, axis_symbol(axis));
}

Expr magnitude(Expr e) {
  return e.is_constant() && e.value() < 0 ? -e : e;
}

/// True if the accesses want axis `b` outside axis `a`: the first access that steps along both decides.
bool belongs_outside(int32_t b, int32_t a, const std::vector<Index>& indices, const Ranges& ranges,
                     Chooser& chooser) {
  for (const Index& i : indices) {
    if (!i.memory) break;
    const std::optional<Expr> step_a = step(i.expr, a), step_b = step(i.expr, b);
    if (!step_a || !step_b || step_a->is(0) || step_b->is(0)) continue;
    const Expr size_a = magnitude(*step_a), size_b = magnitude(*step_b);
    if (decide(lt(size_a, size_b), ranges).value_or(false)) return true;
    if (decide(lt(size_b, size_a), ranges).value_or(false)) return false;
    if (size_a == size_b || (step_a->is_constant() && step_b->is_constant())) continue;
    if (!chooser.sizes().hint(size_a) || !chooser.sizes().hint(size_b)) continue;
    return chooser.likely(lt(size_a, size_b), "the loop with the longer steps is outside",
                          "the order of loops is kept");
  }
  return false;
}

/// Axes in loop order, outermost first: an insertion sort, since the preference need not be transitive.
std::vector<int32_t> loop_order(const Space& space, const std::vector<Index>& indices, bool reduction,
                                Chooser& chooser) {
  const Ranges ranges = axis_ranges(space, chooser.sizes().ranges());
  std::vector<int32_t> out;
  for (int32_t k = 0; k < static_cast<int32_t>(space.axes.size()); ++k) {
    if (space.axes[k].reduction != reduction) continue;
    size_t at = out.size();
    if (!(reduction && space.ordered)) {
      while (at > 0 && belongs_outside(k, out[at - 1], indices, ranges, chooser)) --at;
    }
    out.insert(out.begin() + static_cast<int64_t>(at), k);
  }
  return out;
}

/// Proposition 6.3: outer axis `a` and inner axis `b` are one loop.
bool mergeable(int32_t a, int32_t b, Expr inner_extent, const std::vector<Index>& indices,
               const Sizes& sizes) {
  return std::all_of(indices.begin(), indices.end(), [&](const Index& i) {
    const bool has_a = i.expr.contains(axis_symbol(a)), has_b = i.expr.contains(axis_symbol(b));
    if (!has_a && !has_b) return true;
    const std::optional<Expr> step_a = step(i.expr, a), step_b = step(i.expr, b);
    return step_a && step_b && !step_a->contains(SymbolKind::block) && !step_b->contains(SymbolKind::block) &&
           (*step_a == inner_extent * *step_b || sizes.proves(eq(*step_a, inner_extent * *step_b)));
  });
}

/// Loops after merging, and what each axis becomes.
struct Loops {
  std::vector<Expr> extents;
  std::vector<Expr> axes;  // by axis, over the final variables
};

void merge_loops(const std::vector<int32_t>& order, const Space& space, const std::vector<Index>& indices,
                 SymbolKind kind, const Sizes& sizes, std::vector<Expr>& extents, std::vector<Expr>& axes) {
  for (size_t k = 0; k < order.size(); ++k) {
    Expr extent = space.axes[order[k]].extent;
    // The innermost axis of a run carries the merged variable; the strides of the others are multiples.
    size_t last = k;
    while (last + 1 < order.size() &&
           mergeable(order[last], order[last + 1], space.axes[order[last + 1]].extent, indices, sizes)) {
      axes[order[last]] = 0;
      extent *= space.axes[order[++last]].extent;
    }
    axes[order[last]] = Symbol{kind, static_cast<int32_t>(extents.size())};
    extents.push_back(extent);
    k = last;
  }
}

}  // namespace

Group make_group(const loops::Program& program, const FusionGroup& fused, const Target& target,
                 Chooser& chooser) {
  Group out;
  out.external = fused.external;
  if (fused.external) {
    out.members.push_back({fused.nodes[0].node, {}, false});
    return out;
  }
  const Sizes& sizes = chooser.sizes();
  const Ranges before = axis_ranges(fused.space, sizes.ranges());
  for (const FusedNode& n : fused.nodes) out.members.push_back(member_of(program, n, before));
  const std::vector<Index> indices = indices_of(program, fused.space, out.members, target, sizes);
  std::vector<Expr> axes(fused.space.axes.size());
  merge_loops(loop_order(fused.space, indices, false, chooser), fused.space, indices, SymbolKind::index,
              sizes, out.ranges, axes);
  merge_loops(loop_order(fused.space, indices, true, chooser), fused.space, indices, SymbolKind::reduction,
              sizes, out.reduction_ranges, axes);
  if (fused.space.reduces && out.reduction_ranges.empty()) out.reduction_ranges.push_back(1);
  Ranges after = sizes.ranges();
  for (size_t k = 0; k < out.ranges.size(); ++k) {
    after.set_extent({SymbolKind::index, static_cast<int32_t>(k)}, out.ranges[k]);
  }
  for (size_t k = 0; k < out.reduction_ranges.size(); ++k) {
    after.set_extent({SymbolKind::reduction, static_cast<int32_t>(k)}, out.reduction_ranges[k]);
  }
  for (Member& m : out.members) {
    for (Inst& inst : m.body) inst.index = rename(inst.index, axes, after);
  }
  return out;
}

}  // namespace stax::schedule

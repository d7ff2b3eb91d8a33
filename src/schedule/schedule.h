// What runs together, and in which order: groups of loop nodes that become one kernel each.
#pragma once

#include <string>
#include <vector>

#include "device/target.h"
#include "loops/program.h"
#include "symbolic/sizes.h"

namespace stax::schedule {

using stax::Target;

/// One node inside a group, rewritten over the group's variables: Symbol{index, k} runs over Group::ranges[k]
/// and Symbol{reduction, k} over Group::reduction_ranges[k].
struct Member {
  int32_t node = -1;  // position in Program::nodes
  loops::Body body;
  /// True: evaluated at every point of ranges x reduction_ranges (a reduction, a scan, or a pointwise node
  /// over both); false: once for every point of ranges.
  bool over_reduction = false;
};

/// One kernel, or one external call. Members come in dependence order. A member that loads what an earlier
/// member stored loads it at the same index expression, so the value can stay in a register, rounded to the
/// buffer's dtype (or, for a value over reduction space that a later pass needs, be recomputed or kept in a
/// row buffer). Points of `ranges` are independent of each other. A buffer that a member overwrites after
/// members read it is overwritten in the last pass over the reduction, so that recomputing is safe until
/// then. reduction_ranges is [1], not empty, where a reduction has one element.
struct Group {
  std::string name;       // "fused_relu_mul_sum_0": from the origins of its nodes, numbered
  bool external = false;  // members.size() == 1, body unused
  std::vector<Expr> ranges, reduction_ranges;  // adjacent dimensions merged where every access allows it
  std::vector<Member> members;
  std::vector<loops::BufferId> local;  // written here, read only here: never stored to memory
  /// Loop nests of the same kernel, each of which runs once every point of the one before is done. They have
  /// variables of their own, no name and no later nests; buffers written in one and read in another lie in
  /// memory.
  std::vector<Group> later;
};

/// Calls visit(member) for the members of all loop nests, in the order in which they run.
template <class Visit>
void for_each_member(const Group& group, Visit&& visit) {
  for (const Member& m : group.members) visit(m);
  for (const Group& g : group.later) {
    for (const Member& m : g.members) visit(m);
  }
}

/// Buffers that the kernel or call reads or writes in memory, in the order of its members.
std::vector<loops::BufferId> touched_buffers(const loops::Program& program, const Group& group);

/// Fusion decisions in words, for explain(): what was fused or kept apart, why, and the bytes saved.
struct Decision {
  std::string first, second, reason;
  bool fused = false;
  int64_t bytes_saved = 0;
};

/// An intermediate's place in the arena.
struct Slot {
  loops::BufferId buffer = -1;
  Expr offset;                  // bytes, a multiple of 64
  Expr size;                    // bytes
  int32_t first = 0, last = 0;  // groups that write it first and use it last
};

struct Schedule {
  std::vector<Group> groups;  // in execution order
  std::vector<Slot> slots;
  Expr arena_bytes;
  std::vector<Decision> decisions;
  std::vector<Choice> choices;  // that depend on sizes

  std::string str(const loops::Program& program) const;
};

Schedule make_schedule(const loops::Program& program, const Target& target, const Sizes& sizes = {});

}  // namespace stax::schedule

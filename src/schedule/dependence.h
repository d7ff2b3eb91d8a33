// Which nodes touch which elements of which buffers, and which node has to run before which.
#pragma once

#include <vector>

#include "loops/program.h"
#include "symbolic/shape_env.h"

namespace stax::schedule {

/// One load or store of a loop node.
struct Access {
  int32_t node = -1;  // position in Program::nodes
  loops::BufferId buffer = -1;
  Expr index;  // over the variables of the node or, inside fusion, of the group
  bool store = false;
  bool plain = true;    // not atomic, no indirect index, and not a masked store
  bool masked = false;  // a load that is 0 where its mask is false
};

/// Loads and stores of a node in the order of its body; nothing for an external node.
std::vector<Access> accesses_of(const loops::Program& program, int32_t node);

/// Facts about the loop variables of a node.
Ranges loop_ranges(const loops::Node& node);

/// True if two accesses to one buffer provably never touch the same element, whatever the two points are:
/// their intervals are disjoint, or their residues modulo a stride are (columns of one matrix).
bool apart(Expr a, const Ranges& a_ranges, Expr b, const Ranges& b_ranges);

/// For every node the earlier nodes that must have finished before it starts: they write what it reads or
/// writes, or read what it writes. Two loop nodes that provably touch different elements of a buffer are
/// independent. Each list is ascending.
std::vector<std::vector<int32_t>> dependences(const loops::Program& program);

}  // namespace stax::schedule

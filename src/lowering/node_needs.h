// What the readers of a node's values need of them, found before the graph is lowered; and which formulas are
// computed again by each of their readers.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "loops/body.h"

namespace stax::lowering {

/// By node.
struct NodeNeeds {
  std::vector<int32_t> uses;
  std::vector<char> stored;               // some reader needs it, or a view of it, in memory
  std::vector<char> pinned;               // it has to lie in memory as its meta says
  std::vector<int32_t> last_use;          // the last node that reads it
  std::vector<char> in_place;             // a write through a view that may go into the old value's memory
  std::vector<std::vector<Expr>> wanted;  // strides in which an external reader wants it, or none
};

NodeNeeds find_needs(const graph::Graph& graph);

/// A write through a view is a `where` over the whole value, which is free where it is part of a formula that
/// is computed anyway. Where the value would be stored just for it, the write goes into the old value's
/// memory.
bool is_write(const graph::Node& node);

bool is_clone(const graph::Node& node);

/// Whether a formula that has several readers is cheaper to compute in each than to store and load.
bool is_cheap(const loops::Body& body, loops::ValueId formula);

/// The same of a formula on `results` of reductions in two levels, as exp(x - m) is. What computes these
/// results, and what reads the formula, lie in different kernels, so its values would be stored and loaded in
/// any case; an exponential costs less.
bool is_cheap_after(const std::set<loops::BufferId>& results, const loops::Body& body,
                    loops::ValueId formula);

}  // namespace stax::lowering

// The loop dimensions of a node after collapsing, and its index expressions over them.
#pragma once

#include <functional>
#include <vector>

#include "loops/program.h"

namespace stax::reference {

/// base + the sum of strides[d] * index[d] + rest; rest holds what is not linear in the loop variables.
struct IndexForm {
  int64_t base = 0;
  std::vector<int64_t> strides;
  Expr rest;
};

struct Iteration {
  std::vector<int64_t> extents;  // iteration dimensions, then reduction dimensions
  int32_t iteration_dims = 0;
  std::vector<IndexForm> indices;  // parallel to the body
  std::vector<Symbol> variables;   // loop variable of each dimension, meaningful where a rest uses it
  bool collective = false;         // the body reduces or scans
  bool empty_reduction = false;
  int32_t dim_of(Symbol variable) const;  // -1 where no dimension has it

  /// Splits `e` into its linear part and the rest.
  IndexForm split(Expr e) const;
};

/// Substitutes size symbols, drops dimensions of one element, orders them by the strides of what is stored,
/// and merges neighbours where every index allows it.
Iteration make_iteration(const loops::Program& program, const loops::Node& node,
                         const std::function<int64_t(Symbol)>& value_of);

}  // namespace stax::reference

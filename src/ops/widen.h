// Formulas over half types: computed in float32 and rounded once, where they end.
#pragma once

#include "graph/builder.h"

namespace stax::ops {

/// A decomposition whose half tensors are converted to float32 first and whose results are rounded back, so
/// that nothing between is rounded or overflows.
template <graph::DecomposeRule Rule>
std::vector<graph::Var> computed_wide(graph::Builder& b, const graph::VarArgs& args) {
  using graph::Var;
  std::optional<DType> half;
  std::vector<graph::VarArg> wide;
  for (const graph::VarArg& a : args.values()) {
    wide.push_back(map_tensors<Var>(a, [&](const Var& v) {
      if (!is_half(v.dtype())) return v;
      half = half ? graph::promote_types(*half, v.dtype()) : v.dtype();
      return b.call("to.dtype", {v, DType::float32});
    }));
  }
  std::vector<Var> out = Rule(b, graph::VarArgs(args.schema(), wide));
  if (!half) return out;
  for (Var& v : out) {
    if (v.dtype() == DType::float32) v = b.call("to.dtype", {v, *half});
  }
  return out;
}

}  // namespace stax::ops

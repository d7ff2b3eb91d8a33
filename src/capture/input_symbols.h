// Symbols for the sizes and strides of a call's arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/meta.h"
#include "loops/program.h"
#include "stax/dim.h"
#include "stax/tensor.h"
#include "symbolic/shape_env.h"

namespace stax::capture {

struct SymbolOptions {
  /// Sizes and strides of tensors become symbols; otherwise only integers do.
  bool dynamic = false;
  DynamicShapes shapes;
  /// Sizes 0 and 1 become numbers, also of declared dimensions.
  bool specialize_zero_one = true;
  /// The example's sizes of 0 and 1 were replaced by larger ones, which may be outside the declared ranges.
  bool stand_ins = false;
  /// Dimensions that no name is declared for share a symbol where their sizes are equal.
  bool share_equal = true;
  /// The environment keeps all decisions: STAX_CHECK=decisions.
  bool record_decisions = false;
};

/// A declared dimension, as the calls of an artifact are checked against it.
struct DeclaredDim {
  std::string name;
  int64_t min = 0, max = DimOptions::kNoLimit;
  Expr root;  // what the name stands for: a symbol, or a number where it was specialised
};

/// What stands for the arguments of a call while they are traced.
struct InputSymbols {
  std::vector<graph::TensorMeta> tensors;  // offset 0
  std::vector<Expr> integers;
  std::vector<DeclaredDim> dims;
};

/// Tensors that share memory with one another get numbers: how they overlap depends on all of their sizes.
/// UserError where an example contradicts what is declared.
InputSymbols make_symbols(ShapeEnv& env, std::span<const Tensor* const> tensors,
                          std::span<const int64_t> integers, const SymbolOptions& options);

}  // namespace stax::capture

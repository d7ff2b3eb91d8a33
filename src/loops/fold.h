// Reductions and scans: how their values fold, and what they leave. One row each.
#pragma once

#include <optional>

#include "loops/body.h"

namespace stax::loops {

/// The value that changes nothing.
enum class Identity : uint8_t { zero, one, lowest, highest };

struct FoldInfo {
  OpCode op;
  int32_t results;
  Identity identity;
  /// The binary instruction that folds two values, where one does.
  std::optional<OpCode> step;
  /// The reduction that merges the results of parts of a reduction; the one that finds the last result of a
  /// scan. Neither gives positions.
  std::optional<OpCode> total;
  /// Of what finds a position: the comparison with the value so far that lets a new one replace it, ...
  std::optional<OpCode> replaces;
  /// ... and which result is the position; -1: none.
  int32_t position = -1;
};

/// The row of a reduction or scan.
const FoldInfo& fold_info(OpCode op);

/// The value that folds to nothing under a reduction or scan: 0 for sums, -inf for maxima, ...
Constant identity_of(OpCode op, DType dtype);

/// The binary instruction that folds two partial results of a reduction or scan.
OpCode fold_of(OpCode op);

/// Whether `op` is a reduction or scan with the position of an extremum among its results.
bool finds_position(OpCode op);

/// Whether the results need all of a row at once, so that no loop can run through it.
inline bool needs_whole_row(OpCode op) {
  return op == OpCode::scan_sort;
}

/// Number of results of a reduction or scan; 1 for everything else.
int32_t result_count(OpCode op);

/// Dtype of result `number` of a reduction or scan whose operand has dtype `operand`.
DType result_dtype(OpCode op, int32_t number, DType operand);

}  // namespace stax::loops

// A group's members as one list of instructions: values that travel between members stay in registers,
// composite reductions are taken apart, and every instruction knows in which pass over the reduction range it
// can be computed.
#pragma once

#include <vector>

#include "loops/fold.h"
#include "loops/program.h"
#include "schedule/schedule.h"

namespace stax::codegen {

struct FlatGroup {
  loops::Body body;
  /// Varies along (or, for stores, runs at every point of) the reduction variables.
  std::vector<bool> over_reduction;
  /// First pass in which a value over the reduction can be computed; for other values the number of passes
  /// that must be over. A reduce instruction runs in pass `ready - 1`; a scan in pass `ready`.
  std::vector<int32_t> ready;
  std::vector<int32_t> node;  // position in Program::nodes, for check_index
  std::vector<bool> relaxed;  // may be off by a small part of a half type's rounding: relax_half_results()
  int32_t passes = 0;         // over the reduction range
  bool has_scan = false, has_atomic = false;
};

/// What the kernels of a target compute otherwise than the instructions say.
struct FlattenOptions {
  bool divide_by_reciprocal = true;     // a row over one divisor: see Flattener::divide()
  bool multiply_by_reciprocal = false;  // the same without its correction
  bool take_apart = true;      // Welford reductions become two sums, (m, sum of exp) a maximum and a sum
  bool merge_softmax = false;  // a maximum and a sum of exponentials become (m, sum of exp): one pass
  bool relax_half = false;     // what is rounded to a half type anyway is computed to little more
};

/// Flattens `group`. Loads of what an earlier member stored become the stored value, rounded to the buffer's
/// dtype; stores to group.local vanish.
FlatGroup flatten(const loops::Program& program, const schedule::Group& group, FlattenOptions options = {});

/// loops::rebuild() of the group's body, and FlatGroup::node with it. The old body stays until the last.
void rebuild(FlatGroup& flat, const loops::Rebuild& rebuilt);

/// Whether `op` reduces to a position.
inline bool is_extremum(loops::OpCode op) {
  return is_reduction(op) && loops::finds_position(op);
}

}  // namespace stax::codegen

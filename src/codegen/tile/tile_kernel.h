// A GPU kernel after every decision but the block sizes: the axes that program instances share out, blocks of
// values along them, masks, accumulators, order and cache hints of loads. The printer (codegen/triton/)
// spells it, and decides nothing.
//
// A value is a block: along every axis it either varies or has length 1. Block sizes are parameters of the
// kernel, except along the reduction axis of a persistent kernel, which one block covers. Section 9 of the
// specification describes the forms.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel_info.h"
#include "codegen/tile/axes.h"
#include "codegen/tile/launch.h"
#include "device/target.h"
#include "loops/body.h"
#include "loops/program.h"
#include "schedule/schedule.h"

namespace stax::codegen {

/// Number of a block value.
using TileVar = int32_t;

enum class TileForm : uint8_t {
  pointwise,   // no reduction axis
  persistent,  // one block covers the reduction axis
  looped,      // blocks along the reduction axis one after another, accumulators carried between them
};

/// A loop of the group: the axis index // divisor % extent, without the modulo where it is the outermost.
struct TileVariable {
  Symbol symbol;
  std::string name;  // "x0", "r0_1": the axis and the number, outermost first over all axes
  Expr divisor = 1, extent;
  bool outermost = false;
};

struct TileAxis {
  TileAxisKind kind = TileAxisKind::x;
  Expr numel;
  int64_t size_hint = 1;                // numel or its hint, rounded up to a power of two
  std::vector<TileVariable> variables;  // outermost first
  bool masked = true;                   // false: every block lies inside the axis
  int64_t block = 0;                    // fixed block size; 0: a parameter of the launch
};

/// How long the lines that a load brought are wanted in the cache.
enum class Eviction : uint8_t { none, first, last };

/// How the reductions of a kernel run through memory: an input of the launch heuristics.
enum class ReductionHint : uint8_t { normal, inner, outer, outer_tiny };

enum class TileAction : uint8_t {
  constant,    // `number` in every position
  index,       // the integer `index`, int64
  scalar,      // run-time scalar number `count`
  load,        // element `index` (indirect values: `indirect`) of argument `pointer`
  recall,      // the block that the load `kept` brought for this step
  compute,     // op(args)
  check,       // check_index: args (index[, mask]), `index` the size, `count` the node, `wrap`
  random,      // random_bits: args (seed, counter), word `count`
  broadcast,   // args[0] along all axes
  select,      // args[0] where the axes' masks hold, elsewhere `number`
  reduce,      // reduction `op` of the blocks args along r0; results out, out + 1, ...
  scan,        // scan `op` of the blocks args along r0, continued from the accumulators `carried`
  start,       // accumulators out, out + 1, ... = the identity of `op`, and in one position args, if any
  accumulate,  // accumulators `carried` = op(them, args) where the axes' masks hold
  store,       // args[0] to element `index` of argument `pointer`
  atomic_add,  // args[0] added to element `index` of argument `pointer`
  loop,        // { body } for the blocks along r0
  kept_loads,  // { body }, loads, for the first LaunchConfig::kept of them, which stay in registers
  kept_steps,  // { body } for these, before the loop that takes the others
  edges,       // { body } for what lies before and behind the aligned middle of each row
};

/// One statement. Members that its action does not name are unused.
struct TileStatement {
  TileAction action = TileAction::compute;
  loops::OpCode op = loops::OpCode::constant;
  DType dtype = DType::float32;  // of the value; of the elements for memory
  DType from = DType::float32;   // of the operands
  TileVar out = -1;
  std::vector<TileVar> args, carried, indirect;
  AxisSet along = 0;  // axes along which the value varies; for memory: the block
  AxisSet masks = 0;  // axes whose masks guard a load, store, select or accumulate
  TileVar mask = -1;  // a value that guards it too
  loops::Constant number;
  Expr index;
  int64_t count = 0;
  int32_t pointer = -1;
  bool wrap = false;       // check
  bool spread = false;     // memory: the address varies along fewer axes than `along`
  bool has_other = false;  // load: lanes that are off read 0
  bool of_rows = false;    // start, accumulate, reduce: accumulators of whole rows, to which blocks are added
  bool relaxed = false;    // compute: a part of a half type's rounding may be missing
  bool aligned = false;    // memory in a loop: a whole number of vectors from TileKernel::peel
  bool backward = false;   // loop: from the last block to the first
  int32_t kept = -1;       // load, recall: its number among the loads whose blocks later passes recall
  Eviction eviction = Eviction::none;
  std::vector<TileStatement> body;
};

enum class PointerRole : uint8_t { in, out, in_out };

struct TilePointer {
  loops::BufferId buffer = -1;
  DType dtype = DType::float32;
  PointerRole role = PointerRole::in;
  std::string name;  // "in_ptr0", "out_ptr0", "in_out_ptr0"
};

/// Rows that start at any element. Where what a row reads begins at a multiple of `vector` elements, memory
/// is accessed many bytes at a time; so its first elements, up to there, and what is left of its last vector
/// make a block of their own.
struct TilePeel {
  Expr start;          // the element at which a row starts
  int64_t vector = 1;  // a power of two
};

struct TileKernel {
  std::string name;    // "triton_per_fused_0"
  std::string origin;  // operators of the graph that it computes
  TileForm form = TileForm::pointwise;
  std::vector<TileAxis> axes;  // outermost first: z, y, x, then r0
  std::vector<TilePointer> pointers;
  std::vector<Symbol> symbols;  // size symbols that it takes as arguments
  std::vector<DType> scalars;   // of the program, where it uses one
  ReductionHint hint = ReductionHint::normal;
  std::optional<TilePeel> peel;  // of a looped kernel
  bool wide_index = false;       // 64-bit indices
  bool checks = false;           // indices: takes a KernelStatus after the pointers
  bool staged = false;           // its loops load blocks ahead, into shared memory: LaunchConfig::stages
  bool keeps = false;            // later passes recall blocks that are still in registers: LaunchConfig::kept
  bool batch_invariant = false;  // one launch configuration, and variants that know nothing of alignment
  std::vector<TileStatement> body;
  std::vector<Choice> choices;  // that depend on sizes
  std::vector<Condition> when;  // as KernelInfo::when

  const TileAxis* axis(TileAxisKind kind) const;
};

/// How a plan refers to it.
KernelInfo info_of(const TileKernel& kernel);

/// Decides the kernels for a group of loop nodes: where sizes change, at most `most` forms, of which a launch
/// takes the first that fits; the last one fits every size. `number` counts the kernels of the program.
std::vector<TileKernel> make_tile_kernels(const loops::Program& program, const schedule::Group& group,
                                          const schedule::Target& target, int32_t number,
                                          const Sizes& sizes = {}, size_t most = 1);

}  // namespace stax::codegen

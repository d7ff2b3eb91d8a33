// A CPU kernel after every decision: loops, vectors, accumulators, forms of access. The printer
// (codegen/cpp/printer.h) spells it, and decides nothing.
//
// A kernel is a tree of statements. Loop variables and other integers are `long`s named by their Symbol: i0,
// r0 (loops over Group::ranges and reduction_ranges), x0, ... (blocks, counts). Values are vectors of
// Kernel::lanes lanes, numbered; a value that is the same in all lanes is a vector too, so that no result
// depends on how it was computed.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_info.h"
#include "loops/body.h"
#include "loops/program.h"
#include "schedule/schedule.h"
#include "symbolic/sizes.h"

namespace stax::codegen {

/// Number of a vector value.
using Var = int32_t;

/// How the lanes of a memory access lie. For a vector starting at element e:
enum class Access : uint8_t {
  uniform,     // every lane at e; a store writes lane 0
  contiguous,  // e, e + 1, ...
  strided,     // e, e + stride, ...
  indexed,     // lane k at lane k of the vector `lane_index`, plus e
};

enum class Action : uint8_t {
  // values: define vector `out`
  compute,     // op(args)
  constant,    // `number` in every lane
  scalar,      // run-time scalar number `count`
  splat,       // the integer `index` in every lane, int64
  iota,        // 0, 1, 2, ... int64
  tail,        // bool: lanes below `count` of the tail in force
  load,        // from argument or array `pointer`
  horizontal,  // reduction `op` of the lanes of args[0], in every lane
  prefix,      // lane k: sum or product (scan op) of args[0], equal lanes, and lanes 0 to k of args[1]
  last_lane,   // the last lane of args[0] in every lane
  arg_merge,   // argmax or argmin (op) of the lanes of (value args[0], position args[1]): position; in every
               // lane
  check,       // check_index: args (index[, mask]), `index` the size, `count` the node, wrap
  random,      // random_bits: args (seed, counter), word `count`
  // effects
  assign,      // out = args[0], out defined before
  store,       // args[0] to argument or array `pointer`
  atomic_add,  // args[0] added, lane by lane in order
  fence,       // after streaming stores
  prefetch,    // element `index` of `pointer` will be read
  // integers and control
  let,      // symbol = index
  extract,  // symbol = lane 0 of args[0] (int64)
  set,      // symbol = index, symbol defined before
  room,     // symbol = elements from element `index` of `pointer` to the next vector boundary, 1 to lanes
  array,    // array `pointer` of `index` elements: local, or (partial) at byte `end` of the scratch
  block,    // { body }
  loop,  // for (symbol = index; symbol < end; symbol += step) body; open loops leave out the initialisation
  when,  // if (index < end) body else other
};

/// One statement. Members that its action does not name are unused.
struct Statement {
  Action action = Action::compute;
  loops::OpCode op = loops::OpCode::constant;
  DType dtype = DType::float32;  // of the value; of the elements for memory and arrays (half types included)
  Var out = -1;
  std::vector<Var> args;
  loops::Constant number;
  int64_t count = 0;
  int32_t pointer = -1;  // arguments first, then arrays
  Access access = Access::uniform;
  Expr index, end, stride, step;
  Var lane_index = -1;
  Var mask = -1;         // access: lanes that are on
  bool partial = false;  // access: only the lanes of the tail in force; wrap of check
  bool stream = false;   // contiguous store past the caches where it is aligned
  bool aligned = false;  // ... which it always is
  Symbol symbol;
  bool open = false;
  int32_t unroll = 0;  // loop: unroll this often (a hint)
  std::vector<Statement> body, other;
};

/// The symbol that holds the number of lanes of the tail in force.
inline constexpr Symbol kTailCount{SymbolKind::block, 0};
/// The range of the parallel domain that a call computes.
inline constexpr Symbol kBegin{SymbolKind::block, 1}, kEnd{SymbolKind::block, 2};
/// Number of the first block symbol with no fixed meaning.
inline constexpr int32_t kFirstFreeBlockSymbol = 8;

/// A loop nest that runs when those before it are done.
struct LaterNest {
  int lanes = 16;
  std::vector<Statement> body;
};

struct Kernel {
  KernelInfo info;
  int lanes = 16;  // of `body`
  int vector_bytes = 64;
  std::vector<DType> arguments;  // element types, parallel to info.buffers
  std::vector<bool> written;     // parallel to info.buffers
  std::vector<DType> scalars;    // of the program
  std::vector<Statement> body;
  std::vector<LaterNest> later;  // parallel to info.later
  int32_t index_bits = 64;       // of what counts points and finds elements
  std::vector<Choice> choices;   // that depend on sizes

  /// The statements as text, one a line, indented.
  std::string str() const;
};

/// Decides the kernel for a group of loop nodes, one that is right for every size.
Kernel make_kernel(const loops::Program& program, const schedule::Group& group,
                   const schedule::Target& target, const Sizes& sizes = {});

/// The same, after up to `most` - 1 others, which are faster where their KernelInfo::when holds.
std::vector<Kernel> make_kernels(const loops::Program& program, const schedule::Group& group,
                                 const schedule::Target& target, const Sizes& sizes, size_t most);

}  // namespace stax::codegen

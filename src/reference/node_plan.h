// How one loop node runs: dimensions collapsed and ordered, every instruction turned into steps over blocks.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "loops/program.h"
#include "reference/block_kernels.h"

namespace stax::reference {

/// Elements of a register.
inline constexpr int64_t kBlock = 2048;
/// Lanes over which a reduction along the vector dimension spreads.
inline constexpr int64_t kLanes = 64;
/// Loop dimensions of a node, once collapsed.
inline constexpr size_t kMaxDims = 64;

/// The dimensions that one block spans, outermost first; a block is a range of their flattened positions.
struct Domain {
  std::vector<int32_t> dims;
  std::vector<int64_t> extents;
  int64_t size = 1;
};

/// An element offset: base + the sum of stride * index over scalar dimensions + strides over the domain.
struct Access {
  loops::BufferId buffer = -1;
  int64_t base = 0;
  std::vector<std::pair<int32_t, int64_t>> scalar;  // (dimension, stride)
  std::vector<int64_t> strides;                     // over the domain's dimensions; empty where linear
  bool linear = true;                               // position p of the domain lies at stride * p
  int64_t stride = 0;
  int32_t offset = -1;   // register of int64: one more term, the same for the whole block
  int32_t offsets = -1;  // register of int64: one more term an element
};

enum class StepKind : uint8_t {
  elementwise,
  splat,        // out = a, in every element
  copy,         // out = the bytes of a
  load,         // c is the mask
  store,        // a into memory, c is the mask
  atomic_add,   // a into memory, c is the mask
  iota,         // out = the access itself, as int64
  check_index,  // a index, b size (uniform), c mask
  random_bits,  // a seed, b counter
  accumulate,   // a, b, c into reduction `number`
  scan,         // a through scan `number`; out, out2
  finish,       // result `number2` of reduction `number`
};

/// One step over a block of n elements, or over one where `uniform`.
struct Step {
  StepKind kind = StepKind::elementwise;
  bool uniform = false;
  DType dtype = DType::float32;  // of the moved elements: the buffer's for memory, the register's otherwise
  int32_t out = -1, out2 = -1, a = -1, b = -1, c = -1;
  ElementwiseKernel kernel = nullptr;
  Access access;
  bool direct = false;  // elementwise: `out` lies in the memory of `access`
  bool copies = false;  // load: never a pointer into the buffer, which a later step may overwrite
  bool stream = false;  // store: what is written outgrows the caches, and goes past them
  int32_t number = 0, number2 = 0;
};

struct Register {
  enum class Kind : uint8_t { slot, constant, scalar };
  Kind kind = Kind::slot;
  DType dtype = DType::float32;
  bool uniform = false;
  int64_t offset = -1;                    // bytes in the workspace; -1 where only pointers are kept
  alignas(8) std::byte constant[8] = {};  // constant: the element
  int32_t scalar = 0;                     // scalar: position in Invocation::scalars
};

struct Collective {
  ReduceKernels reduce;
  ScanKernels scan;
  int64_t offset = 0;  // bytes in the workspace
};

enum class Mode : uint8_t {
  pointwise,
  inner,  // one point of the iteration space at a time, vectors along the reduction
  outer,  // vectors along the iteration space, one point of the reduction at a time
};

struct NodePlan {
  Mode mode = Mode::pointwise;
  std::vector<int64_t> extents;  // iteration dimensions, then reduction dimensions
  Domain iteration, reduction;   // what blocks span in each space
  std::vector<int32_t> iteration_scalars, reduction_scalars;  // the other dimensions, outermost first
  int64_t iteration_points = 1, reduction_points = 1;         // products of their extents
  int64_t block = kBlock;                                     // elements of a block of the iteration domain
  // before the reduction; in it; after it, in iteration space; after it, in reduction space
  std::vector<Step> before, during, after, tail;
  std::vector<Register> registers;
  std::vector<Collective> reductions, scans;
  int64_t workspace = 0;  // bytes
  bool empty = false;     // no point in the iteration space
  bool streams = false;   // some store does
  int64_t work = 0;       // points of both spaces

  bool has_reduction() const { return mode != Mode::pointwise; }
};

/// Plans `node`. `value_of` gives size symbols their values.
NodePlan plan_node(const loops::Program& program, const loops::Node& node,
                   const std::function<int64_t(Symbol)>& value_of);

}  // namespace stax::reference

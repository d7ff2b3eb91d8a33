// Tight loops over blocks of elements: what one instruction does to one block. The same source is compiled
// for several instruction sets; block_kernels() picks once.
#pragma once

#include <array>
#include <cstdint>

#include "loops/opcode.h"
#include "stax/dtype.h"

namespace stax::reference {

/// out[k] = op(a[k], b[k], c[k]) for k < n. Registers hold elements of the value's dtype (bool: bytes 0 and
/// 1). `out` may be one of the operands. where: a, b are the branches and c is the condition.
using ElementwiseKernel = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);

/// How the operands of a kernel lie: both vary, or one is a single element for the whole block.
enum class Operands : uint8_t { vector_vector, uniform_vector, vector_uniform };
inline constexpr int kOperandForms = 3;

/// Accumulates element k of the block into lane k % lanes. `state` is the reduction's state (see
/// reduction_state_size()); `positions` says whether element k has position `position` (0) or position + k
/// (1).
using AccumulateKernel = void (*)(void* state, int64_t lanes, const void* a, const void* b, const void* c,
                                  int64_t n, int64_t position, bool positions);
/// Sets every lane to the identity.
using InitKernel = void (*)(void* state, int64_t lanes);
/// Merges lanes 1 .. used - 1 into lane 0.
using CombineKernel = void (*)(void* state, int64_t lanes, int64_t used);
/// Writes result `number` of lanes 0 .. n - 1 in the dtype of that result.
using FinishKernel = void (*)(const void* state, int64_t lanes, int32_t number, void* out, int64_t n);

struct ReduceKernels {
  InitKernel init = nullptr;
  AccumulateKernel accumulate = nullptr;
  CombineKernel combine = nullptr;
  FinishKernel finish = nullptr;
  int64_t bytes_per_lane = 0;
};

/// Inclusive scan: element k continues lane k % lanes. `second` takes result 1 where it is not null.
using ScanKernel = void (*)(void* state, int64_t lanes, const void* a, void* out, void* second, int64_t n,
                            int64_t position, bool positions);

struct ScanKernels {
  InitKernel init = nullptr;
  ScanKernel scan = nullptr;
  int64_t bytes_per_lane = 0;
};

/// Moves elements of 1, 2, 4 or 8 bytes (index: log2 of the size).
using GatherStrided = void (*)(void* out, const void* in, int64_t stride, int64_t n);
using ScatterStrided = void (*)(void* out, int64_t stride, const void* in, int64_t n);
/// out[k] = in[stride * k + offsets[k]] where mask[k]; 0 elsewhere. `offsets` and `mask` may be null.
using GatherMasked = void (*)(void* out, const void* in, int64_t stride, const int64_t* offsets,
                              const uint8_t* mask, int64_t n);
/// out[stride * k + offsets[k]] = in[k] where mask[k].
using ScatterMasked = void (*)(void* out, int64_t stride, const int64_t* offsets, const uint8_t* mask,
                               const void* in, int64_t n);
using Splat = void (*)(void* out, const void* value, int64_t n);

struct MemoryKernels {
  std::array<GatherStrided, 4> gather_strided;
  std::array<ScatterStrided, 4> scatter_strided;
  std::array<GatherMasked, 4> gather;
  std::array<ScatterMasked, 4> scatter;
  std::array<Splat, 4> splat;
  /// out[k] = first + step * k
  void (*iota)(int64_t* out, int64_t first, int64_t step, int64_t n);
  /// Half types to and from float32; index: dtype - float16.
  std::array<void (*)(float* out, const uint16_t* in, int64_t n), 2> widen;
  std::array<void (*)(uint16_t* out, const float* in, int64_t n), 2> narrow;
  /// out[stride * k + offsets[k]] += in[k], in float32 for half buffers; index: the buffer's dtype.
  std::array<ScatterMasked, kDTypeCount> atomic_add;
  /// Clamps out[k] into [0, size), counting negative values from the end where `wraps`. Returns the first k
  /// out of range (where mask is true), -1 when there is none. out is 0 where mask is false.
  int64_t (*check_index)(int64_t* out, const int64_t* index, int64_t size, const uint8_t* mask, bool wraps,
                         int64_t n);
  /// Word `number` of Philox-4x32-10 with key `seed` and counter `counter`.
  void (*random_bits)(int64_t* out, const int64_t* seed, const int64_t* counter, int32_t number, int64_t n);
};

struct BlockKernels {
  /// [operation][dtype of the operands][Operands]; null where the table has no such instruction. Unary
  /// kernels are under vector_vector; where one kernel has only that form, operands are splat first.
  ElementwiseKernel elementwise[loops::kOpCount][kDTypeCount][kOperandForms] = {};
  ElementwiseKernel cast[kDTypeCount][kDTypeCount] = {};  // [from][to]
  ReduceKernels reduce[loops::kOpCount][kDTypeCount] = {};
  ScanKernels scan[loops::kOpCount][kDTypeCount] = {};
  MemoryKernels memory = {};
};

/// The kernels for this machine's instruction set.
const BlockKernels& block_kernels();

// One function an instruction set and family; each fills its part of the table.
void fill_math(BlockKernels& kernels);  // transcendental functions, through libm: one version is enough
#define STAX_BLOCK_KERNEL_LEVEL(level)                  \
  void fill_elementwise_##level(BlockKernels& kernels); \
  void fill_collective_##level(BlockKernels& kernels);
STAX_BLOCK_KERNEL_LEVEL(baseline)
STAX_BLOCK_KERNEL_LEVEL(v3)
STAX_BLOCK_KERNEL_LEVEL(v4)
#undef STAX_BLOCK_KERNEL_LEVEL

}  // namespace stax::reference

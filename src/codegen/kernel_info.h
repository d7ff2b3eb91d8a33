// What code generation hands over for one kernel: its source, and how to call it.
//
// The calling convention of CPU kernels is KernelEntry. A kernel computes the iterations [begin, end) of its
// parallel domain [0, parallel_extent); calls for disjoint ranges may run at the same time on several
// threads. The iterations of later phases follow these in number: a call stays within one phase, and a phase
// begins when all calls of the one before have returned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loops/body.h"

namespace stax::codegen {

/// The function that generated source exports, with C linkage.
///
/// buffers: pointers to element 0 of KernelInfo::buffers, in that order; where scratch_bytes > 0 one more:
///   scratch of the calling thread, aligned to 64 bytes, its contents undefined.
/// sizes: the values of KernelInfo::symbols, in that order.
/// scalars: 8 bytes for each of Program::scalars: a double for float dtypes, otherwise an int64 (the bits of
///   loops::Constant).
/// status: one KernelStatus, four words.
using KernelEntry = void (*)(void* const* buffers, const long* sizes, const void* scalars, long* status,
                             long begin, long end);

/// Where kernels leave the first index that a check_index found out of range. `flag` is 0 while there is
/// none. A kernel that finds one exchanges flag (atomically) from 0 to 1 and, if it was the one to do so,
/// fills in the rest.
struct KernelStatus {
  long node = 0;   // position in Program::nodes
  long value = 0;  // the index as it was given
  long size = 0;   // of the dimension that it indexes
  long flag = 0;
};

/// Loop nests of a kernel after its first.
struct KernelPhase {
  Expr extent = 1;  // iterations that may run on different threads
  Expr grain = 1;   // hint: iterations worth handing to one thread at a time
};

/// How to call a kernel.
struct KernelInfo {
  std::string name;                      // exported symbol; the name of its group
  std::vector<loops::BufferId> buffers;  // arguments, in order
  std::vector<Symbol> symbols;           // size symbols whose run-time values it needs, in order
  Expr parallel_extent = 1;              // iterations that may run on different threads
  Expr grain = 1;                        // hint: iterations worth handing to one thread at a time
  int64_t scratch_bytes = 0;             // of each thread
  std::vector<KernelPhase> later;        // phases after that of parallel_extent
};

/// One kernel as text. `source` defines KernelInfo::name and what only it needs; a module is the shared
/// prelude followed by the sources of its kernels.
struct KernelSource {
  KernelInfo info;
  std::string source;
};

}  // namespace stax::codegen

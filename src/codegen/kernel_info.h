// What code generation hands over for one kernel: its source, and how to call it.
//
// The calling convention of CPU kernels is KernelEntry. A kernel computes the iterations [begin, end) of its
// parallel domain [0, parallel_extent); calls for disjoint ranges may run at the same time on several
// threads. The iterations of later phases follow these in number: a call stays within one phase, and a phase
// begins when all calls of the one before have returned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "loops/body.h"
#include "symbolic/ranges.h"

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

/// What a runner lays out for its launches and keeps from one to the next.
class LaunchBlock {
 public:
  virtual ~LaunchBlock() = default;
};

/// A launch of a kernel that is not machine code of this processor.
struct KernelCall {
  std::span<void* const> buffers;            // to element 0 of KernelInfo::buffers
  std::span<const loops::Constant> scalars;  // parallel to Program::scalars
  KernelStatus* status = nullptr;
  std::span<const long> sizes;            // values of KernelInfo::symbols
  std::span<const long> extents;          // values of KernelInfo::extents
  std::function<int64_t(Expr)> evaluate;  // for the sizes of the call
  /// Where given: empty at first, then what the runner left there at the last launch with it, which came from
  /// the same kernel of the same plan, which outlives it. One launch at a time uses it.
  std::unique_ptr<LaunchBlock>* block = nullptr;
};

/// Runs such a kernel to its end.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  virtual void run(const KernelCall& call) const = 0;
};

/// Loop nests of a kernel after its first.
struct KernelPhase {
  Expr extent = 1;  // iterations that may run on different threads
  Expr grain = 1;   // hint: iterations worth handing to one thread at a time
  Expr points = 0;  // of its loops, where known: few enough of them are left to one thread
};

/// Points that one thread computes in little more time than it takes to wake another.
inline constexpr int64_t kGrainPoints = 32768;

/// How to call a kernel. A call for which a number of points leaves 64 bits is refused.
struct KernelInfo {
  std::string name;                      // exported symbol; the name of its group
  std::vector<loops::BufferId> buffers;  // arguments, in order
  std::vector<Symbol> symbols;           // size symbols whose run-time values it needs, in order
  std::vector<Expr> extents;             // of a GPU kernel's axes, outermost first
  Expr parallel_extent = 1;              // iterations that may run on different threads
  Expr grain = 1;                        // hint: iterations worth handing to one thread at a time
  Expr scratch_bytes = 0;                // of each thread
  std::vector<KernelPhase> later;        // phases after that of parallel_extent
  Expr points = 0;                       // as KernelPhase::points, for the first phase
  /// What has to hold when it is launched instead of the next kernel for the same group; the last kernel of a
  /// group has nothing here.
  std::vector<Condition> when;
};

}  // namespace stax::codegen

// Replays calls of one file in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/verify/recorded_file.h"

namespace stax::cli {

enum class Verdict : char { passed = 'P', failed = 'F', unknown = 'U' };

struct Outcome {
  Verdict verdict = Verdict::passed;
  std::string reason;       ///< why it failed or is unknown
  bool native = true;       ///< compiled: everything ran in kernels of its own or in library calls
  int32_t other_sizes = 0;  ///< dynamic: at how many sizes beside its own the call was checked
};

enum class ReplayMode : uint8_t {
  reference,     // eagerly
  compiled,      // each call for its own sizes
  dynamic,       // for all sizes: at the call's own, and at two more against eager evaluation
  cuda,          // as compiled, on the first GPU
  cuda_dynamic,  // as dynamic, on the first GPU
  interpret,     // as compiled, by Triton kernels in Triton's interpreter
  interpret_dynamic,
};

/// Who hears of a replay.
struct ReplayListener {
  std::function<void(size_t call)> begins;  ///< this call is worked on next
  std::function<void(size_t call, const Outcome& outcome)> ends;
};

/// Replays these calls of the file. Compiled calls share runs of the host compiler, so that all are begun
/// before the first one ends.
void replay(const RecordedFile& file, ReplayMode mode, const std::vector<size_t>& calls,
            const ReplayListener& listener);

}  // namespace stax::cli

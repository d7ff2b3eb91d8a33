// Replays the calls of one file in this process.
#pragma once

#include <functional>
#include <string>

#include "cli/verify/recorded_file.h"

namespace stax::cli {

enum class Verdict : char { passed = 'P', failed = 'F', unknown = 'U' };

struct Outcome {
  Verdict verdict = Verdict::passed;
  std::string reason;  ///< why it failed or is unknown
};

enum class ReplayMode : uint8_t { reference, compiled };

/// Replays calls [first, count) of the file, and hands over each outcome as it is known, in order.
void replay(const RecordedFile& file, ReplayMode mode, size_t first, size_t count,
            const std::function<void(const Outcome&)>& report);

}  // namespace stax::cli

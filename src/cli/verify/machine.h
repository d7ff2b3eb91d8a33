// Whether this machine can replay calls at all, asked once and not by each of them.
#pragma once

#include <string>

#include "cli/verify/replay.h"

namespace stax::cli {

/// Why nothing can be replayed in that mode here; "" where it can. Asks in a child: a process that has opened
/// a GPU's driver cannot fork others that use it.
std::string machine_problem(ReplayMode mode);

}  // namespace stax::cli

// How child processes are started, and how long one waits for them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace stax {

/// File descriptors that a child gets; -1: nothing to read, or this process's own.
struct ChildStreams {
  int input = -1, output = -1, errors = -1;
};

/// Starts arguments[0], a path, in a process group of its own, with the environment of this process changed
/// by `changes` (NAME=VALUE). RuntimeError naming the program when it cannot be started.
pid_t spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& changes,
            const ChildStreams& streams);

/// Milliseconds until `deadline`, for poll(); 0 when it is past.
int milliseconds_until(std::chrono::steady_clock::time_point deadline);

}  // namespace stax

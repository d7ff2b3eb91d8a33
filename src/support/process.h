// Runs a program as a child process, without a shell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace stax {

struct ProcessOptions {
  std::chrono::milliseconds time_limit{120'000};
  /// Output beyond this many bytes of each stream is read and dropped.
  size_t output_limit = 1 << 20;
  /// NAME=VALUE, in the place of what the environment has under these names.
  std::vector<std::string> environment;
};

struct ProcessResult {
  int exit_code = 0;  ///< of a program that exited; -1 otherwise
  int signal = 0;     ///< that ended the program; 0 if none
  bool timed_out = false;
  std::string output, errors;  ///< what it wrote to stdout and stderr
  bool ok() const { return exit_code == 0 && signal == 0 && !timed_out; }
};

/// Runs `arguments[0]`, a path, with the given arguments, stdin empty, in a process group of its own, which
/// is killed as a whole at the time limit. Where this process discards the ends of its children (SIGCHLD is
/// ignored, or another thread waits for any child), what the program wrote to stderr tells success from
/// failure. Throws RuntimeError naming the program when it cannot be started.
ProcessResult run_process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

/// From now on, what run_process starts is killed when this process ends before it, however it ends: a helper
/// process, started by this call, waits for that. For programs, early in their main function and in processes
/// that they fork; called by a thread that is alone. Where no helper can be started, nothing is guarded.
void guard_children();

/// From now on, this process is killed within a second or so after `parent`, its own parent, has ended: a
/// thread looks. For processes that are forked. (The kernel's own signal for this comes already when the
/// *thread* of the parent that forked ends.)
void end_with_parent(pid_t parent);

}  // namespace stax

#include "cli/verify/machine.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "device/cuda_device.h"
#include "runtime/triton_interpreter.h"
#include "support/check.h"
#include "support/descriptor.h"
#include "support/process.h"

namespace stax::cli {
namespace {

/// Throws an Error where the mode's machine is not there.
void probe(ReplayMode mode) {
  switch (mode) {
    case ReplayMode::cuda:
    case ReplayMode::cuda_dynamic:
      static_cast<void>(device::cuda_properties(0));
      return;
    case ReplayMode::interpret:
    case ReplayMode::interpret_dynamic:
      runtime::TritonInterpreter().check();
      return;
    case ReplayMode::reference:
    case ReplayMode::compiled:
    case ReplayMode::dynamic:
      return;
  }
}

/// Writes what probe() throws to `fd`.
[[noreturn]] void run_probe(ReplayMode mode, int fd) {
  std::string problem;
  try {
    probe(mode);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const ssize_t written = ::write(fd, problem.data(), std::min<size_t>(problem.size(), 4096));  // at once
  ::_exit(written < 0 ? 1 : 0);
}

}  // namespace

std::string machine_problem(ReplayMode mode) {
  if (mode == ReplayMode::reference || mode == ReplayMode::compiled || mode == ReplayMode::dynamic) return "";
  int ends[2];
  STAX_RUNTIME_CHECK(::pipe(ends) == 0, "verify: cannot make a pipe: {}", std::strerror(errno));
  const Descriptor reads{ends[0]};
  pid_t child = -1;
  {
    const Descriptor writes{ends[1]};
    std::fflush(nullptr);  // the child must not print what waits here
    child = ::fork();
    if (child == 0) {
      guard_children();
      run_probe(mode, writes.fd);
    }
  }
  STAX_RUNTIME_CHECK(child > 0, "verify: cannot start a process: {}", std::strerror(errno));
  std::string problem;
  char buffer[4096];
  for (ssize_t got; (got = ::read(reads.fd, buffer, sizeof buffer)) != 0;) {
    if (got > 0) problem.append(buffer, static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (problem.empty() && status != 0) problem = "asking for it ended with status " + std::to_string(status);
  return problem;
}

}  // namespace stax::cli

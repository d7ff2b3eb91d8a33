#include "examples/program.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

namespace {

/// A full disk or a closed stream shows when the last of the output is written.
int finish_output(std::string_view name, int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "{}: error: cannot write the output: {}\n", name, std::strerror(errno));
  return 1;
}

}  // namespace

int run_program(std::string_view name, const std::function<int()>& run) {
  try {
    return finish_output(name, run());
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: error: {}\n", name, error.what());
    return 1;
  }
}

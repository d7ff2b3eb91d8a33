#include "support/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace stax {
namespace {

constexpr std::chrono::milliseconds kPatience{300};

}  // namespace

Progress::Progress(std::string what, size_t total)
    : what_(std::move(what)),
      total_(total),
      begin_(std::chrono::steady_clock::now()),
      terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::report(size_t done) {
  if (!terminal_ || std::chrono::steady_clock::now() - begin_ < kPatience) return;
  shown_ = true;
  std::fputs(fmt::format("\r\x1b[K{} {}/{}", what_, done, total_).c_str(), stderr);
}

}  // namespace stax

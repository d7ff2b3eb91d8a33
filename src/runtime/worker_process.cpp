#include "runtime/worker_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "support/check.h"
#include "support/descriptor.h"
#include "support/file.h"
#include "support/spawn.h"

namespace stax::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kErrorTail = 2000;  // bytes of stderr that an error shows
constexpr size_t kLongestAnswer = size_t{256} << 20;
constexpr std::chrono::milliseconds kEndLimit{500};  // from the end of a worker's answers to its own

bool wait_for(int fd, short event, Clock::time_point deadline) {
  pollfd poll_for{fd, event, 0};
  for (;;) {
    const int ready = poll(&poll_for, 1, milliseconds_until(deadline));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return false;
  }
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment)
    : name_(arguments.at(0)), owner_(getpid()) {
  std::vector<std::string> words = arguments;
  words[0] = find_program(name_).value_or(name_);
  int ends[2];
  STAX_RUNTIME_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
                     "cannot create a socket: {}; raise the limit of open files", strerror(errno));
  socket_ = ends[0];
  const Descriptor other{ends[1]};
  errors_ = memfd_create("stax-worker-errors", MFD_CLOEXEC);
  try {
    pid_ = spawn(words, environment, {other.fd, other.fd, errors_});
  } catch (...) {
    end();
    throw;
  }
}

WorkerProcess::~WorkerProcess() {
  end();
}

bool WorkerProcess::is_own() const {
  return owner_ == getpid();
}

void WorkerProcess::end() {
  if (pid_ > 0 && is_own()) {
    kill(-pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  for (int* fd : {&socket_, &errors_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

void WorkerProcess::fail(const std::string& what) {
  std::string tail;
  if (errors_ >= 0) {
    const off_t size = lseek(errors_, 0, SEEK_END);
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kErrorTail));
    tail.resize(static_cast<size_t>(size - from));
    const ssize_t got = pread(errors_, tail.data(), tail.size(), from);
    tail.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  end();
  throw_runtime_error(
      fmt::format("[worker] {} {}{}{}", name_, what, tail.empty() ? "" : "; it wrote: ", tail));
}

void WorkerProcess::fail_ended() {
  const Clock::time_point deadline = Clock::now() + kEndLimit;
  int status = 0;
  pid_t done = 0;
  while ((done = waitpid(pid_, &status, WNOHANG)) == 0 && Clock::now() < deadline) usleep(1000);
  if (done != pid_) fail("has ended");
  kill(-pid_, SIGKILL);  // what it started
  pid_ = -1;
  fail(WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                           : fmt::format("has ended with exit status {}", WEXITSTATUS(status)));
}

std::string WorkerProcess::ask(const std::string& line, std::chrono::milliseconds limit) {
  STAX_ASSERT(alive() && line.find('\n') == std::string::npos, "a question is one line to a living worker");
  const Clock::time_point deadline = Clock::now() + limit;
  send(line + '\n', deadline);
  return receive(deadline);
}

void WorkerProcess::send(const std::string& text, Clock::time_point deadline) {
  for (size_t sent = 0; sent < text.size();) {
    if (!wait_for(socket_, POLLOUT, deadline)) fail("does not take its work in time");
    const ssize_t got = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN && errno != EINTR) fail_ended();
    if (got > 0) sent += static_cast<size_t>(got);
  }
}

std::string WorkerProcess::receive(Clock::time_point deadline) {
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (!wait_for(socket_, POLLIN, deadline)) fail("does not answer in time");
    std::array<char, 16384> buffer;
    const ssize_t got = read(socket_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_ended();
    if (received_.size() > kLongestAnswer) fail("answers without an end");
    received_.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace stax::runtime

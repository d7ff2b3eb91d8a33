#include "runtime/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "support/check.h"

extern char** environ;

namespace stax::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kErrorTail = 2000;  // bytes of stderr that an error shows

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

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
    : name_(arguments.at(0)) {
  std::vector<std::string> variables = environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::ranges::none_of(environment, [&](const std::string& e) { return e.starts_with(name); }))
      variables.emplace_back(text);
  }
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  STAX_RUNTIME_CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0,
                     "cannot create a pipe: {}; raise the limit of open files", strerror(errno));
  errors_ = memfd_create("stax-worker-errors", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  if (errors_ >= 0) posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int reason = posix_spawnp(&pid_, arguments[0].c_str(), &actions, &attributes,
                                  pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  fcntl(to_, F_SETFL, O_NONBLOCK);
  if (reason != 0) pid_ = -1;
  if (reason != 0) end();
  STAX_RUNTIME_CHECK(reason == 0, "cannot start {}: {}", name_, strerror(reason));
}

WorkerProcess::~WorkerProcess() {
  end();
}

void WorkerProcess::end() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  for (int* fd : {&to_, &from_, &errors_}) {
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

std::string WorkerProcess::ask(const std::string& line, std::chrono::milliseconds limit) {
  STAX_ASSERT(alive() && line.find('\n') == std::string::npos, "a question is one line to a living worker");
  const Clock::time_point deadline = Clock::now() + limit;
  send(line + '\n', deadline);
  return receive(deadline);
}

void WorkerProcess::send(const std::string& text, Clock::time_point deadline) {
  for (size_t sent = 0; sent < text.size();) {
    if (!wait_for(to_, POLLOUT, deadline)) fail("does not take its work in time");
    // A worker that has ended must not end this process by a signal.
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const ssize_t got = write(to_, text.data() + sent, text.size() - sent);
    const int error = errno;
    if (got < 0 && error == EPIPE) {
      const timespec now{};
      sigtimedwait(&pipe_signal, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (got < 0 && error != EAGAIN && error != EINTR) fail("has ended");
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
    if (!wait_for(from_, POLLIN, deadline)) fail("does not answer in time");
    std::array<char, 16384> buffer;
    const ssize_t got = read(from_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("has ended");
    received_.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace stax::runtime

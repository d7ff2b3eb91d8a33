#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "support/check.h"
#include "support/spawn.h"

namespace stax {

namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    STAX_RUNTIME_CHECK(pipe2(ends, O_CLOEXEC) == 0, "cannot create a pipe: {}; raise the limit of open files",
                       strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close_end(read);
    close_end(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

/// Reads what is there into `text`; false at the end of the stream.
bool drain(int fd, std::string& text, size_t limit) {
  std::array<char, 16384> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  const size_t room = limit - std::min(limit, text.size());
  text.append(buffer.data(), std::min(room, static_cast<size_t>(got)));
  return got > 0;
}

/// Collects both streams until they end; false when the deadline comes first.
bool collect(Pipe& output, Pipe& errors, ProcessResult& result, size_t limit, Clock::time_point deadline) {
  while (output.read >= 0 || errors.read >= 0) {
    std::array<pollfd, 2> polls{
        {{output.read, POLLIN, 0}, {errors.read, POLLIN, 0}}};  // negative ones are skipped
    const int ready = poll(polls.data(), polls.size(), milliseconds_until(deadline));
    if (ready == 0) return false;
    if (ready < 0) continue;
    if (polls[0].revents != 0 && !drain(output.read, result.output, limit)) Pipe::close_end(output.read);
    if (polls[1].revents != 0 && !drain(errors.read, result.errors, limit)) Pipe::close_end(errors.read);
  }
  return true;
}

constexpr int kLostStatus = -1;
constexpr std::chrono::milliseconds kParentPoll{500};

/// Where the helper of guard_children reads: process groups that began, and negated those that ended.
int guard = -1;

void tell_guard(pid_t message) {
  if (guard >= 0) send(guard, &message, sizeof(message), MSG_NOSIGNAL);
}

/// The helper's life: until the last writer is gone.
[[noreturn]] void keep_guard(int messages) {
  constexpr int kMost = 256;
  pid_t groups[kMost] = {}, message = 0;
  setsid();  // no signal of the terminal ends it first
  dup2(messages, 0);
  close_range(1, ~0u, 0);
  while (read(0, &message, sizeof(message)) == sizeof(message)) {
    pid_t* const place = std::find(groups, groups + kMost, message > 0 ? 0 : -message);
    if (place != groups + kMost) *place = message > 0 ? message : 0;
  }
  for (const pid_t group : groups) {
    if (group > 0) kill(-group, SIGKILL);
  }
  _exit(0);
}

/// Waits for the end of a child whose streams have ended; false when the deadline comes first.
bool reap(pid_t pid, int& status, Clock::time_point deadline) {
  for (useconds_t pause = 50;; pause = std::min<useconds_t>(pause * 2, 20'000)) {
    const pid_t done = waitpid(pid, &status, WNOHANG);
    if (done == pid) return true;
    if (done < 0 && errno != EINTR) {  // someone else reaped it
      status = kLostStatus;
      return true;
    }
    if (Clock::now() >= deadline) return false;
    usleep(pause);
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  STAX_ASSERT(!arguments.empty(), "a process needs a program");
  ProcessResult result;
  Pipe output, errors;
  const Clock::time_point deadline = Clock::now() + options.time_limit;
  const pid_t pid = spawn(arguments, options.environment, {-1, output.write, errors.write});
  tell_guard(pid);
  Pipe::close_end(output.write);
  Pipe::close_end(errors.write);
  int status = 0;
  if (!collect(output, errors, result, options.output_limit, deadline) || !reap(pid, status, deadline)) {
    result.timed_out = true;
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  tell_guard(-pid);
  if (status == kLostStatus) {
    result.exit_code = result.errors.empty() ? 0 : 1;
    return result;
  }
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

void guard_children() {
  if (guard >= 0) close(guard);  // of the process that this one was forked from
  guard = -1;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  const pid_t helper = fork();
  if (helper == 0) {
    close(ends[1]);
    keep_guard(ends[0]);
  }
  close(ends[0]);
  if (helper > 0) {
    guard = ends[1];
  } else {
    close(ends[1]);
  }
}

void end_with_parent(pid_t parent) {
  std::thread([parent] {
    while (getppid() == parent) std::this_thread::sleep_for(kParentPoll);
    kill(getpid(), SIGKILL);
  }).detach();
}

}  // namespace stax

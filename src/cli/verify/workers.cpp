#include "cli/verify/workers.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "ops/table.h"
#include "stax/error.h"
#include "support/check.h"
#include "support/process.h"

namespace stax::cli {
namespace {

using Clock = std::chrono::steady_clock;

// What a child writes, a line each: "C <calls> <name>"; "@ <call>" before it works on a call; then a letter
// for each outcome (the verdict's, or 'I' for one that passed without kernels of its own), the call and the
// reason; or "E <error>" when the file cannot be read.
void write_line(int fd, char letter, std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text = letter + (' ' + text) + '\n';
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(3);
    done += static_cast<size_t>(n);
  }
}

constexpr char kPassedInterpreted = 'I';

char letter_of(const Outcome& outcome) {
  if (outcome.verdict == Verdict::passed && !outcome.native) return kPassedInterpreted;
  return static_cast<char>(outcome.verdict);
}

Outcome outcome_of(char letter, std::string reason) {
  if (letter == kPassedInterpreted) return {Verdict::passed, std::move(reason), false};
  return {static_cast<Verdict>(letter), std::move(reason), true};
}

/// Replays the calls that have no outcome yet.
[[noreturn]] void run_child(const std::string& path, const WorkerOptions& options,
                            const std::vector<std::optional<Outcome>>& known, int fd) {
  if (!options.verbose) {  // warnings of thousands of calls help nobody
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDERR_FILENO);
  }
  // Each child has compilers of its own.
  const size_t share =
      std::max<size_t>(1, std::thread::hardware_concurrency() / std::max<size_t>(1, options.processes));
  ::setenv("STAX_TRITON_WORKERS", std::to_string(share).c_str(), 0);
  try {
    const RecordedFile file(path);
    const size_t count = options.limit > 0 ? std::min(options.limit, file.size()) : file.size();
    write_line(fd, 'C', std::to_string(count) + " " + file.name());
    std::vector<size_t> calls;
    for (size_t i = 0; i < count; ++i) {
      if (i >= known.size() || !known[i]) calls.push_back(i);
    }
    const auto begins = [&](size_t call) { write_line(fd, '@', std::to_string(call)); };
    const auto ends = [&](size_t call, const Outcome& outcome) {
      write_line(fd, letter_of(outcome), fmt::format("{} {} {}", call, outcome.other_sizes, outcome.reason));
    };
    replay(file, options.mode, calls, {begins, ends});
  } catch (const std::exception& error) {
    write_line(fd, 'E', error.what());
  }
  ::_exit(0);
}

/// One file on its way, in one child at a time.
class Job {
 public:
  Job(std::string path, const WorkerOptions& options) : options_(options) {
    report_.path = std::move(path);
    report_.name = std::filesystem::path(report_.path).stem().string();
    start();
  }
  Job(const Job&) = delete;
  ~Job() {
    if (pid_ > 0) end();
  }

  int fd() const { return fd_; }
  bool done() const { return pid_ <= 0; }
  FileReport& report() { return report_; }

  /// Milliseconds until the call that runs now has taken too long.
  int patience() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
  }

  void read() {
    char buffer[4096];
    const ssize_t n = ::read(fd_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {
      child_ended();
      return;
    }
    text_.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1))
      take_line(text_.substr(0, end));
    extend();
  }

  void time_out() {
    ::kill(pid_, SIGKILL);
    end();
    lose_call("took longer than " + std::to_string(options_.call_seconds) + " s");
  }

 private:
  void start() {
    int ends[2];
    STAX_RUNTIME_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "verify: cannot make a pipe: {}", std::strerror(errno));
    const pid_t parent = ::getpid();
    std::fflush(nullptr);  // the child must not print what waits here
    pid_ = ::fork();
    STAX_RUNTIME_CHECK(pid_ >= 0, "verify: cannot start a process: {}", std::strerror(errno));
    if (pid_ == 0) {
      ::close(ends[0]);
      guard_children();
      end_with_parent(parent);
      run_child(report_.path, options_, outcomes_, ends[1]);
    }
    ::close(ends[1]);
    fd_ = ends[0];
    text_.clear();
    extend();
  }

  void extend() { deadline_ = Clock::now() + std::chrono::seconds(options_.call_seconds); }

  void take_line(const std::string& line) {
    const char letter = line.empty() ? '?' : line[0];
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    if (letter == 'E') {
      report_.error = rest;
      return;
    }
    const size_t space = std::min(rest.find(' '), rest.size());
    const size_t number = std::stoul(rest.substr(0, space));
    const std::string text = space < rest.size() ? rest.substr(space + 1) : "";
    if (letter == 'C') {
      outcomes_.resize(number);
      report_.name = text;
    } else if (letter == '@') {
      current_ = number;
    } else {
      const size_t gap = std::min(text.find(' '), text.size());
      outcomes_.at(number) = outcome_of(letter, text.substr(std::min(gap + 1, text.size())));
      outcomes_.at(number)->other_sizes = std::stoi(text.substr(0, gap));
    }
  }

  int end() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    ::close(fd_);
    pid_ = -1;
    return status;
  }

  bool complete() const {
    return std::all_of(outcomes_.begin(), outcomes_.end(), [](const auto& o) { return o.has_value(); });
  }

  void finish() {
    for (auto& outcome : outcomes_) report_.outcomes.push_back(std::move(*outcome));
    outcomes_.clear();
  }

  void child_ended() {
    const int status = end();
    const std::string how = WIFSIGNALED(status)
                                ? std::string("crashed: ") + ::strsignal(WTERMSIG(status))
                                : "the process ended with status " + std::to_string(WEXITSTATUS(status));
    if (outcomes_.empty() && report_.error.empty() && status != 0) report_.error = "reading it " + how;
    if (!report_.error.empty() || complete()) {
      std::erase_if(outcomes_, [](const auto& o) { return !o.has_value(); });
      finish();
      return;
    }
    lose_call(how);
  }

  /// The call that was worked on has failed; the rest goes on in a new child.
  void lose_call(std::string reason) {
    if (current_ >= outcomes_.size() ||
        outcomes_[current_]) {  // between calls: blame the first without outcome
      current_ = static_cast<size_t>(
          std::find_if(outcomes_.begin(), outcomes_.end(), [](const auto& o) { return !o.has_value(); }) -
          outcomes_.begin());
    }
    if (current_ < outcomes_.size()) outcomes_[current_] = Outcome{Verdict::failed, std::move(reason)};
    if (outcomes_.empty()) {
      report_.error = reason;
    } else if (complete()) {
      finish();
    } else {
      start();
    }
  }

  const WorkerOptions& options_;
  FileReport report_;
  std::vector<std::optional<Outcome>> outcomes_;  // by call, as they become known
  size_t current_ = 0;                            // the call that the child works on
  pid_t pid_ = -1;
  int fd_ = -1;
  std::string text_;
  Clock::time_point deadline_;
};

/// Waits until a child has something to say, and listens.
void listen(const std::deque<std::unique_ptr<Job>>& jobs) {
  std::vector<pollfd> polls;
  std::vector<Job*> running;
  int patience = 60'000;
  for (const auto& job : jobs) {
    if (job->done()) continue;
    polls.push_back({job->fd(), POLLIN, 0});
    running.push_back(job.get());
    patience = std::min(patience, job->patience());
  }
  if (::poll(polls.data(), polls.size(), patience + 1) < 0) return;
  for (size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents != 0) {
      running[i]->read();
    } else if (running[i]->patience() == 0) {
      running[i]->time_out();
    }
  }
}

}  // namespace

void replay_files(const std::vector<std::string>& paths, const WorkerOptions& options,
                  const std::function<void(const FileReport&)>& report) {
  ops::table();  // parsed once, before the children inherit it
  std::deque<std::unique_ptr<Job>> jobs;
  size_t next = 0;
  while (next < paths.size() || !jobs.empty()) {
    const auto running = [&] {
      return static_cast<size_t>(
          std::count_if(jobs.begin(), jobs.end(), [](const auto& job) { return !job->done(); }));
    };
    while (next < paths.size() && running() < std::max<size_t>(1, options.processes))
      jobs.push_back(std::make_unique<Job>(paths[next++], options));
    if (running() > 0) listen(jobs);
    for (; !jobs.empty() && jobs.front()->done(); jobs.pop_front()) report(jobs.front()->report());
  }
}

}  // namespace stax::cli

// A child process that answers one line with one line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace stax::runtime {

/// Started at construction, ended (with its process group) at destruction by the process that started it.
/// What it writes to stderr goes to a file of its own, whose end is part of errors. Not thread-safe.
class WorkerProcess {
 public:
  /// Runs arguments[0], found along PATH where it has no slash; `environment` is added. RuntimeError when it
  /// cannot be started.
  WorkerProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Sends `line` and a line break, returns the answer without its line break. RuntimeError when the process
  /// ends, or does not answer in time: it is killed then, and alive() false.
  std::string ask(const std::string& line, std::chrono::milliseconds limit);
  bool alive() const { return pid_ > 0; }
  /// Whether this process started it, and did not inherit it by fork().
  bool is_own() const;

 private:
  void send(const std::string& text, std::chrono::steady_clock::time_point deadline);
  std::string receive(std::chrono::steady_clock::time_point deadline);
  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void fail_ended();
  void end();

  std::string name_;
  pid_t pid_ = -1, owner_ = -1;
  int socket_ = -1, errors_ = -1;
  std::string received_;  // beyond the last line
};

}  // namespace stax::runtime

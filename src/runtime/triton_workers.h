// A pool of worker processes that each keep Triton imported.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/json.h"

namespace stax::runtime {

/// Thread-safe. Each thread that asks has a worker of its own meanwhile.
class TritonWorkers {
 public:
  struct Options {
    std::vector<std::string> command;      ///< of one worker
    std::vector<std::string> environment;  ///< NAME=VALUE, added to this process's
    int32_t most = 1;                      ///< workers at a time
    std::chrono::milliseconds limit{120'000};
  };
  explicit TritonWorkers(Options options);
  ~TritonWorkers();

  /// Takes a worker's answers to a request and to hello. It throws an Error where an answer is none.
  using Reader = std::function<void(const Json& answer, const Json& hello)>;

  /// Sends `request`, an object, to a worker and hands its answer to `read`. A worker that ends, does not
  /// answer in time, or whose answer `read` does not take, is ended, and a fresh one asked instead; once.
  /// RuntimeError that begins with `what` where both fail, with the command and what they wrote, and where
  /// Python has no Triton.
  void ask(const std::string& what, const Json& request, const Reader& read);

  /// An answer to hello: of a worker that is up, or of one that is started for it.
  Json hello();

  /// Starts processes, without waiting for them, until `count` are up or as many as there may be.
  void start(int32_t count);

  int64_t started() const;
  int32_t most() const { return options_.most; }

 private:
  struct Worker;
  struct State;
  class Lease;
  std::unique_ptr<Worker> started_worker() const;
  void ask_one(const std::string& line, const Reader& read, bool fresh);

  Options options_;
  std::unique_ptr<State> state_;
};

}  // namespace stax::runtime

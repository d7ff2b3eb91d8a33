// How far long work is, for people at a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace stax {

/// A line on stderr that says "what 3/12" and goes away in the end. Shown only on a terminal, and only once
/// the work has taken a while. Not thread-safe.
class Progress {
 public:
  Progress(std::string what, size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void report(size_t done);

 private:
  std::string what_;
  size_t total_;
  std::chrono::steady_clock::time_point begin_;
  bool terminal_, shown_ = false;
};

}  // namespace stax

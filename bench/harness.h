// Measures ratios that survive a noisy machine: two functions run alternately, and the medians are compared.
// Absolute times are printed with the machine they were taken on; targets are stated as ratios.
#pragma once

#include <fmt/core.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "device/thread_pool.h"
#include "support/median.h"

namespace bench {

/// Where a measurement was taken.
struct Machine {
  std::string cpu;  ///< model name of /proc/cpuinfo, or "unknown CPU"
  int threads = 1;  ///< hardware threads that this process may use
};

inline Machine this_machine() {
  Machine machine{"unknown CPU", std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      machine.cpu = line.substr(colon + 2);
      break;
    }
  }
  return machine;
}

/// How long and how often to measure.
struct Options {
  int rounds = 15;                   ///< samples of each function
  double seconds_per_sample = 0.02;  ///< a sample repeats the function until it took about this long
};

using stax::median;

/// Seconds that `repetitions` calls of `f` take together.
inline double time_calls(const std::function<void()>& f, int64_t repetitions) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < repetitions; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Calls of `f` that take about `seconds`, found by doubling. The first call is not counted: it may compile.
inline int64_t repetitions_for(const std::function<void()>& f, double seconds) {
  f();
  int64_t repetitions = 1;
  for (double taken = time_calls(f, 1); taken < seconds / 2; taken = time_calls(f, repetitions))
    repetitions *= 2;
  return repetitions;
}

/// Seconds a call of each function, and how they compare.
struct Comparison {
  double a = 0;      ///< median seconds a call of the first function
  double b = 0;      ///< median seconds a call of the second function
  double ratio = 0;  ///< a / b
  double low = 0;    ///< lower quartile of the ratios of neighbouring samples
  double high = 0;   ///< upper quartile of the ratios of neighbouring samples
};

/// Runs `a` and `b` alternately, so that whatever slows the machine down for a while hits both.
inline Comparison compare(const std::function<void()>& a, const std::function<void()>& b,
                          Options options = {}) {
  const int64_t calls_a = repetitions_for(a, options.seconds_per_sample);
  const int64_t calls_b = repetitions_for(b, options.seconds_per_sample);
  std::vector<double> times_a, times_b, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const bool a_first = round % 2 == 0;
    double time_a = a_first ? time_calls(a, calls_a) : 0;
    const double time_b = time_calls(b, calls_b) / static_cast<double>(calls_b);
    if (!a_first) time_a = time_calls(a, calls_a);
    times_a.push_back(time_a / static_cast<double>(calls_a));
    times_b.push_back(time_b);
    ratios.push_back(times_a.back() / time_b);
  }
  std::sort(ratios.begin(), ratios.end());
  const double median_a = median(times_a), median_b = median(times_b);
  return {median_a, median_b, median_a / median_b, ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4]};
}

/// Median seconds a call of `f`.
inline double measure(const std::function<void()>& f, Options options = {}) {
  const int64_t calls = repetitions_for(f, options.seconds_per_sample);
  std::vector<double> times;
  for (int round = 0; round < options.rounds; ++round) {
    times.push_back(time_calls(f, calls) / static_cast<double>(calls));
  }
  return median(times);
}

constexpr size_t kPage = 4096;
using Buffer = std::unique_ptr<char, decltype(&std::free)>;

/// `size` bytes at the start of a page, every page touched.
inline Buffer page_buffer(size_t size) {
  const size_t rounded = (size + kPage - 1) / kPage * kPage;
  Buffer buffer(static_cast<char*>(std::aligned_alloc(kPage, rounded)), &std::free);
  if (!buffer) throw std::bad_alloc();
  std::memset(buffer.get(), 1, size);
  return buffer;
}

/// Shares the pages of `size` bytes out between the threads that kernels run on, in the way that kernels are.
inline void for_each_run_of_pages(size_t size, const std::function<void(size_t at, size_t bytes)>& f) {
  const auto pages = static_cast<int64_t>((size + kPage - 1) / kPage);
  stax::device::ThreadPool::global().parallel_for(0, pages, 16, [&](int64_t begin, int64_t end) {
    const size_t at = static_cast<size_t>(begin) * kPage;
    f(at, std::min(size, static_cast<size_t>(end) * kPage) - at);
  });
}

/// The baseline of everything that is bound by memory: a copy of a buffer, past the caches, on the threads
/// that kernels run on and shared out between them in the same way.
class ParallelCopy {
 public:
  /// `bytes` is what one run reads plus what it writes, so half of it is copied.
  explicit ParallelCopy(size_t bytes)
      : size_(bytes / 2), from_(page_buffer(size_)), to_(page_buffer(size_)) {}

  void run() {
    for_each_run_of_pages(size_,
                          [&](size_t at, size_t bytes) { stream(to_.get() + at, from_.get() + at, bytes); });
  }

 private:
  /// memcpy streams from a size on that depends on the machine; this does at any size. Both are aligned.
  static void stream(char* to, const char* from, size_t bytes) {
    size_t at = 0;
#ifdef __SSE2__
    for (; at + 64 <= bytes; at += 64) {
      for (size_t k = at; k < at + 64; k += 16)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                         _mm_load_si128(reinterpret_cast<const __m128i*>(from + k)));
    }
    _mm_sfence();
#endif
    std::memcpy(to + at, from + at, bytes - at);
  }

  size_t size_;
  Buffer from_, to_;
};

/// The bound of what reads much and writes little: cores have a limit of lines under way, and some machines
/// read slower than they copy the same number of bytes, because stores past the caches need none of them.
class ParallelRead {
 public:
  ParallelRead(const void* data, size_t bytes) : data_(static_cast<const char*>(data)), size_(bytes) {}

  void run() {
    for_each_run_of_pages(size_, [&](size_t at, size_t bytes) { fold(data_ + at, bytes); });
  }

 private:
  /// One load a line, into a sum that the compiler has to keep.
  static void fold(const char* from, size_t bytes) {
    int64_t sum = 0;
    for (size_t at = 0; at + 64 <= bytes; at += 64) {
      int64_t word;
      std::memcpy(&word, from + at, sizeof word);
      sum += word;
    }
    asm volatile("" : : "r"(sum));
  }

  const char* data_;
  size_t size_;
};

/// A time with a fitting unit: "1.25 ms".
inline std::string format_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds >= 1e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  return fmt::format("{:.3g} ns", seconds * 1e9);
}

/// The line that every table starts with.
inline void print_machine(const Machine& machine = this_machine()) {
  fmt::print("{}, {} threads\n", machine.cpu, machine.threads);
}

/// Head of a table of comparisons: what is measured, and against what.
inline void print_head(std::string_view ours, std::string_view theirs) {
  fmt::print("| {:36} | {:>10} | {:>10} | ratio (quartiles) |\n| --- | --- | --- | --- |\n", "", ours,
             theirs);
}

inline void print_row(std::string_view name, const Comparison& c) {
  fmt::print("| {:36} | {:>10} | {:>10} | {:.3f} ({:.3f} to {:.3f}) |\n", name, format_seconds(c.a),
             format_seconds(c.b), c.ratio, c.low, c.high);
}

}  // namespace bench

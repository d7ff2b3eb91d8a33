// How long the first result of a program of one kernel takes on a GPU: with an empty cache, with a worker
// that is up, and in a new process that finds the kernel in the cache. Every figure is of processes of their
// own.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "device/cuda_device.h"
#include "stax/stax.h"
#include "support/file.h"
#include "support/json.h"
#include "support/median.h"
#include "support/process.h"

namespace {

using stax::Json;
using stax::Tensor;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// In a process of its own: prints what it measured as JSON, in milliseconds.
int child(const std::string& tuning) {
  const auto start = Clock::now();
  stax::device::use_cuda_device(0);
  const double driver = milliseconds_since(start);
  const Tensor x = stax::randn({64, 128}).cuda(), w = stax::randn({64, 128}).cuda();
  const auto result = [&](auto f) {
    const double triton = stax::compiler::triton_compiler().seconds();
    const auto begin = Clock::now();
    stax::compile(f, {.strict_native = true, .tuning = tuning})(x, w).cpu();
    const double taken = milliseconds_since(begin);
    return std::pair(taken, 1e3 * (stax::compiler::triton_compiler().seconds() - triton));
  };
  const auto first = result([](const Tensor& a, const Tensor& b) { return (relu(a + b) * 2).sum(-1); });
  const auto second = result([](const Tensor& a, const Tensor& b) { return (relu(a - b) * 3).sum(-1); });
  Json out = Json::object();
  out.set("driver", driver);
  out.set("first", first.first);
  out.set("first_triton", first.second);
  out.set("second", second.first);
  out.set("second_triton", second.second);
  fmt::print("{}\n", out.dump());
  return 0;
}

Json run(const std::string& tuning, const std::string& cache) {
  const stax::ProcessResult result =
      stax::run_process({"/proc/self/exe", "--child", tuning}, {.environment = {"STAX_CACHE_DIR=" + cache}});
  if (!result.ok()) {
    fmt::print("{}", result.errors);
    std::exit(1);
  }
  return Json::parse(result.output);
}

/// Until a worker answers, with Triton imported.
double worker_start() {
  const stax::TemporaryFolder cache(stax::temporary_root(), "stax-bench-");
  const auto start = Clock::now();
  stax::runtime::TritonCompiler({.cache_folder = cache.path()}).describe();
  return milliseconds_since(start);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) return child(argv[2]);
  if (!stax::cuda::is_available()) {
    fmt::print("not run: {}\n", stax::cuda::unavailable_reason());
    return 0;
  }
  constexpr int kTimes = 3;
  std::vector<double> starts;
  for (int k = 0; k < kTimes; ++k) starts.push_back(worker_start());
  const double start = stax::median(starts);
  fmt::print("(relu(x+w)*2).sum(-1) on 64x128, medians of {} processes, in ms\n", kTimes);
  fmt::print("start of a worker: {:.0f}\n", start);
  for (const char* tuning : {"none", "candidates"}) {
    std::vector<double> cold, beyond, up, warm, driver;
    for (int k = 0; k < kTimes; ++k) {
      const stax::TemporaryFolder cache(stax::temporary_root(), "stax-bench-");
      const Json empty = run(tuning, cache.path());
      cold.push_back(empty.at("first").as_double());
      beyond.push_back(cold.back() - start - empty.at("first_triton").as_double());
      up.push_back(empty.at("second").as_double());
      const Json full = run(tuning, cache.path());
      warm.push_back(full.at("first").as_double());
      driver.push_back(full.at("driver").as_double());
    }
    fmt::print("tuning {}:\n", tuning);
    fmt::print(
        "  first result, empty cache:       {:.1f}; without a worker's start and Triton's time {:.1f}\n",
        stax::median(cold), stax::median(beyond));
    fmt::print("  another program, the worker up:  {:.1f}\n", stax::median(up));
    fmt::print("  new process, kernel in the cache: {:.1f} (driver and context before that: {:.0f})\n",
               stax::median(warm), stax::median(driver));
  }
}

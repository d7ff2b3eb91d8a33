// stax verify: replays recorded calls and says how many pass.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "cli/commands.h"
#include "cli/verify/machine.h"
#include "cli/verify/workers.h"
#include "support/check.h"

namespace stax::cli {
namespace {

namespace fs = std::filesystem;

ReplayMode parse_mode(const std::string& text) {
  if (text == "reference") return ReplayMode::reference;
  if (text == "compiled") return ReplayMode::compiled;
  if (text == "dynamic") return ReplayMode::dynamic;
  if (text == "interpret") return ReplayMode::interpret;
  if (text == "interpret-dynamic") return ReplayMode::interpret_dynamic;
  if (text == "cuda") return ReplayMode::cuda;
  if (text == "cuda-dynamic") return ReplayMode::cuda_dynamic;
  throw_user_error(
      fmt::format("verify: there is no mode '{}'; there are: reference, compiled, dynamic, interpret, "
                  "interpret-dynamic, cuda, cuda-dynamic",
                  text));
}

/// Files of recorded calls below the paths, by name; with `op`, only those of that operator.
std::vector<std::string> find_files(const VerifyOptions& options) {
  std::vector<std::string> files;
  for (const std::string& path : options.paths) {
    STAX_CHECK(fs::exists(path), "verify: '{}' does not exist", path);
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    }
  }
  if (!options.op.empty()) {
    std::erase_if(files, [&](const std::string& path) {
      const std::string stem = fs::path(path).stem().string();
      return stem != options.op && stem.substr(0, stem.find('~')) != options.op &&
             stem != "nn.functional." + options.op;
    });
  }
  STAX_CHECK(!files.empty(), "verify: no files of recorded calls{} in: {}",
             options.op.empty() ? "" : " of '" + options.op + "'", fmt::join(options.paths, ", "));
  std::sort(files.begin(), files.end());
  return files;
}

struct Counts {
  int64_t passed = 0, failed = 0, unknown = 0;
  int64_t interpreted = 0;  // of the passed: without kernels of their own
  int64_t one_size = 0;     // of the passed: checked at no other sizes
  void add(const Outcome& outcome) {
    switch (outcome.verdict) {
      case Verdict::passed:
        ++passed;
        if (!outcome.native) ++interpreted;
        if (outcome.other_sizes == 0) ++one_size;
        break;
      case Verdict::failed:
        ++failed;
        break;
      case Verdict::unknown:
        ++unknown;
        break;
    }
  }
  void add(const Counts& other) {
    passed += other.passed;
    failed += other.failed;
    unknown += other.unknown;
    interpreted += other.interpreted;
    one_size += other.one_size;
  }
};

Counts count(const FileReport& report) {
  Counts counts;
  for (const Outcome& outcome : report.outcomes) counts.add(outcome);
  if (!report.error.empty()) ++counts.failed;
  return counts;
}

void print(const FileReport& report, bool verbose) {
  const Counts counts = count(report);
  fmt::print("{:<44} {:>4} passed {:>4} failed {:>4} unknown", report.name, counts.passed, counts.failed,
             counts.unknown);
  const auto first = std::find_if(report.outcomes.begin(), report.outcomes.end(),
                                  [](const Outcome& o) { return o.verdict == Verdict::failed; });
  if (!report.error.empty()) {
    fmt::print("  {}", report.error);
  } else if (first != report.outcomes.end() && !verbose) {
    fmt::print("  call {}: {}", first - report.outcomes.begin(), first->reason);
  }
  fmt::print("\n");
  if (verbose) {
    for (size_t i = 0; i < report.outcomes.size(); ++i) {
      const Outcome& outcome = report.outcomes[i];
      if (outcome.verdict == Verdict::passed) continue;
      fmt::print("    call {} {}: {}\n", i, outcome.verdict == Verdict::failed ? "failed" : "unknown",
                 outcome.reason);
    }
  }
  std::fflush(stdout);
}

Json to_json(const FileReport& report) {
  const Counts counts = count(report);
  Json entry;
  entry.set("name", report.name)
      .set("passed", counts.passed)
      .set("failed", counts.failed)
      .set("unknown", counts.unknown)
      .set("interpreted", counts.interpreted)
      .set("one_size", counts.one_size);
  if (!report.error.empty()) entry.set("error", report.error);
  Json failures = Json::array();
  for (size_t i = 0; i < report.outcomes.size(); ++i) {
    if (report.outcomes[i].verdict != Verdict::failed) continue;
    Json failure;
    failure.set("call", static_cast<int64_t>(i)).set("reason", report.outcomes[i].reason);
    failures.push_back(std::move(failure));
  }
  return entry.set("failures", std::move(failures));
}

}  // namespace

int verify(const VerifyOptions& options) {
  WorkerOptions workers;
  workers.mode = parse_mode(options.mode);
  workers.verbose = options.verbose;
  workers.limit = static_cast<size_t>(std::max<int64_t>(0, options.limit));
  workers.processes = options.jobs > 0 ? static_cast<size_t>(options.jobs)
                                       : std::max(1u, std::thread::hardware_concurrency());
  const std::vector<std::string> files = find_files(options);
  const std::string problem = machine_problem(workers.mode);
  STAX_RUNTIME_CHECK(problem.empty(), "verify: nothing can be replayed in mode {}: {}", options.mode,
                     problem);
  Counts total;
  Json operators = Json::array();
  replay_files(files, workers, [&](const FileReport& report) {
    total.add(count(report));
    if (options.json) {
      operators.push_back(to_json(report));
    } else {
      print(report, options.verbose);
    }
  });
  if (options.json) {
    Json result;
    result.set("mode", options.mode)
        .set("passed", total.passed)
        .set("failed", total.failed)
        .set("unknown", total.unknown)
        .set("interpreted", total.interpreted)
        .set("one_size", total.one_size)
        .set("operators", std::move(operators));
    fmt::print("{}\n", result.dump(1));
  } else {
    if (workers.mode != ReplayMode::reference)
      fmt::print("{} of the passed calls ran without kernels of their own\n", total.interpreted);
    if (workers.mode == ReplayMode::dynamic || workers.mode == ReplayMode::cuda_dynamic ||
        workers.mode == ReplayMode::interpret_dynamic)
      fmt::print("{} of the passed calls have no free size that could be changed\n", total.one_size);
    fmt::print("{} passed, {} failed, {} unknown\n", total.passed, total.failed, total.unknown);
  }
  return total.failed > 0 ? 1 : 0;
}

}  // namespace stax::cli

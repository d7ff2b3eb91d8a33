// Random programs: the reference executor against NumPy, which evaluates them operator by operator in float64
// with a table of its own (numpy_operators.py).
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/generator.h"
#include "fuzz/oracle_file.h"
#include "fuzz/settings.h"
#include "support/process.h"

namespace stax::fuzz {
namespace {

constexpr int64_t kShards = 4;

class Oracle : public ::testing::TestWithParam<int64_t> {};

// The programs that NumPy can tell the results of.
int64_t write_programs(const std::string& path, int64_t begin, int64_t end) {
  std::ofstream file(path);
  int64_t written = 0;
  for (int64_t seed = begin; seed < end; ++seed) {
    Prepared prepared = prepare(generate(static_cast<uint64_t>(seed)));
    if (prepared.program.has_random_numbers || prepared.program.has_bad_index) continue;
    const Outcome outcome = run_reference(prepared);
    if (outcome.failed) continue;
    file << oracle_line(prepared.program, outcome);
    ++written;
  }
  return written;
}

TEST_P(Oracle, ReferenceAgreesWithNumPy) {
  const std::string python = STAX_TEST_PYTHON;
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no Python with NumPy at " << python;
  const int64_t seed = first_seed(), count = program_count();
  const int64_t begin = seed + count * GetParam() / kShards, end = seed + count * (GetParam() + 1) / kShards;
  fmt::print("seeds {} to {}\n", begin, end - 1);
  const std::string path = fmt::format("{}fuzz_{}_{}.jsonl", ::testing::TempDir(), begin, ::getpid());
  const int64_t written = write_programs(path, begin, end);
  const ProcessOptions options{.time_limit = std::chrono::minutes(30)};  // for large STAX_FUZZ_COUNT
  const ProcessResult result =
      run_process({python, STAX_TEST_DATA "/../fuzz/numpy_oracle.py", path}, options);
  std::istringstream lines(result.output);
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    if (line.rfind("seed ", 0) != 0) continue;
    const auto failed = std::strtoull(line.c_str() + 5, nullptr, 10);
    ADD_FAILURE() << fmt::format("{}\n{}repeat with: STAX_FUZZ_SEED={} STAX_FUZZ_COUNT=1 {}/test_fuzz\n",
                                 line, text(generate(failed)), failed, STAX_TEST_PROGRAMS);
  }
  EXPECT_EQ(last, fmt::format("programs {}", written)) << result.output << result.errors;
  if (!HasFailure()) std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Shards, Oracle, ::testing::Range(int64_t{0}, kShards));

}  // namespace
}  // namespace stax::fuzz

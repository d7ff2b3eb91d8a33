// Calls of PyTorch operators, replayed. A few of each family lie in tests/data/recorded; STAX_RECORDED names
// a folder with more of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/process.h"
#include "support/triton_python.h"

namespace stax {
namespace {

ProcessResult verify(const std::string& folder, const std::string& mode) {
  return run_process({STAX_TEST_PROGRAMS "/stax", "verify", folder, "--mode", mode},
                     {.time_limit = std::chrono::minutes(40)});
}

class Recorded : public testing::TestWithParam<const char*> {};

TEST_P(Recorded, FamiliesPass) {
  const ProcessResult result = verify(STAX_TEST_DATA "/recorded", GetParam());
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, testing::HasSubstr(" passed, 0 failed, 0 unknown"));
}

TEST_P(Recorded, FolderPasses) {
  const char* folder = std::getenv("STAX_RECORDED");
  if (folder == nullptr) GTEST_SKIP() << "STAX_RECORDED names no folder of recorded calls";
  const ProcessResult result = verify(folder, GetParam());
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

/// As Triton kernels, in Triton's interpreter: a few calls of each family, and one or more of each row of the
/// op table.
class InterpretedRecorded : public testing::TestWithParam<const char*> {};

TEST_P(InterpretedRecorded, Passes) {
  if (!use_triton_python()) GTEST_SKIP() << kNoTriton;
  const ProcessResult result = verify(STAX_TEST_DATA "/" + std::string(GetParam()), "interpret");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, testing::HasSubstr(" passed, 0 failed, 0 unknown"));
}

INSTANTIATE_TEST_SUITE_P(Folders, InterpretedRecorded, testing::Values("recorded", "recorded_rows"),
                         [](const auto& test) { return std::string(test.param); });

INSTANTIATE_TEST_SUITE_P(Modes, Recorded, testing::Values("reference", "compiled"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace stax

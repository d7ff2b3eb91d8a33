// Files of `stax show --stage triton`, run by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/atomic_file.h"
#include "support/file.h"
#include "support/process.h"

namespace stax {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class StandaloneKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* chosen = std::getenv("STAX_TEST_PYTHON");
    python_ = chosen != nullptr ? chosen : STAX_TEST_PYTHON;
    if (!std::filesystem::exists(python_) ||
        run_process({python_, "-c", "import triton, numpy"}).exit_code != 0)
      GTEST_SKIP() << python_ << " has no Triton; make setup installs it";
  }

  /// The file of a built-in example.
  std::string file_of(const std::string& example, bool dynamic = false) {
    std::vector<std::string> command{
        STAX_TEST_PROGRAMS "/stax", "show", example, "--target", "cuda:sm_90", "--stage", "triton"};
    if (dynamic) command.emplace_back("--dynamic");
    const ProcessResult shown = run_process(command);
    EXPECT_EQ(shown.exit_code, 0) << shown.errors;
    std::string path = folder_.path() + "/" + example + (dynamic ? "-dynamic.py" : ".py");
    std::ofstream(path) << shown.output;
    return path;
  }

  ProcessResult run_python(const std::string& driver, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"/usr/bin/env",
                                     "PYTHONPATH=" STAX_TEST_DATA "/../../python",
                                     "STAX_CUDA_DRIVER=" + driver,
                                     "FAKE_CUDA_PYTHON=" + python_,
                                     "TRITON_CACHE_DIR=" + folder_.path() + "/cache",
                                     python_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_process(command, {.time_limit = std::chrono::minutes(5)});
  }
  ProcessResult run_without_gpu(const std::vector<std::string>& arguments) {
    return run_python("/no/such/driver", arguments);
  }
  ProcessResult run_on_fake_gpu(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), STAX_TEST_DATA "/../support/fake_cuda/run_standalone.py");
    return run_python(STAX_TEST_PROGRAMS "/../tests/libfake_cuda.so", arguments);
  }

  std::string python_;
  TemporaryFolder folder_{temporary_root(), "stax-standalone-"};
};

TEST_F(StandaloneKernel, CompilesAndEvaluatesTheExamplesWithoutGpu) {
  for (const char* example : {"ex-1.1", "ex-5.1", "ex-6.1", "ex-6.2", "softmax"}) {
    const ProcessResult result = run_without_gpu({file_of(example)});
    EXPECT_EQ(result.exit_code, 0) << example << ": " << result.output << result.errors;
    EXPECT_THAT(result.output, AllOf(ContainsRegex("no GPU .*: compiled for sm_90 \\([0-9]+ registers\\)"),
                                     HasSubstr("evaluated with NumPy only; not timed")));
  }
}

TEST_F(StandaloneKernel, RunsTheFormForTheSizesOfTheExample) {
  const std::string file = file_of("softmax", true);
  const ProcessResult result = run_without_gpu({file});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("triton_red_fused_0_form1: for other sizes than the example's, not run"),
                    ContainsRegex("triton_per_fused_0_form2: no GPU .*: compiled for sm_90")));
  const ProcessResult on_gpu = run_on_fake_gpu({file, "", "", "--config", "XBLOCK=64"});
  EXPECT_EQ(on_gpu.exit_code, 0) << on_gpu.output << on_gpu.errors;
  EXPECT_THAT(on_gpu.output, HasSubstr("triton_per_fused_0_form2 on Fake GPU (sm_90"));
}

/// The driver's events lie half a millisecond apart, and softmax reads and writes 256 x 1000 floats.
TEST_F(StandaloneKernel, ComparesAndMeasuresOnGpus) {
  const ProcessResult result = run_on_fake_gpu({file_of("softmax"), "", "", "--config", "XBLOCK=64"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("out_ptr0: largest relative difference 0\n"),
                    HasSubstr("0.5000 ms, 4.096 GB/s (2048000 bytes)"), Not(HasSubstr("WRONG"))));
}

TEST_F(StandaloneKernel, FailsWhereTheNumbersAreWrong) {
  const ProcessResult result =
      run_on_fake_gpu({file_of("softmax"), "tmp5 / tmp8", "tmp5 * tmp8", "--config", "XBLOCK=64"});
  EXPECT_EQ(result.exit_code, 1) << result.output << result.errors;
  EXPECT_THAT(result.output, ContainsRegex("out_ptr0: largest relative difference .*: WRONG"));
}

TEST_F(StandaloneKernel, TakesAConfigurationAndRefusesOthers) {
  const std::string file = file_of("softmax");
  const ProcessResult result =
      run_without_gpu({file, "--target", "sm_80", "--config", "XBLOCK=4,num_warps=8"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("compiled for sm_80"), HasSubstr("XBLOCK=4, num_warps=8")));
  const ProcessResult refused = run_without_gpu({file, "--config", "YBLOCK=4"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("'YBLOCK=4'"));
}

}  // namespace
}  // namespace stax

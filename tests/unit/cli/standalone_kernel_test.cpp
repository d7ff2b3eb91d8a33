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
using ::testing::StartsWith;

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

  using Words = std::vector<std::string>;
  static constexpr const char* kPackage = STAX_TEST_DATA "/../../python";

  /// `environment`: "NAME=value", which count more than what is set anyway.
  ProcessResult run_python(const Words& arguments, const Words& environment = {}) {
    Words command{"/usr/bin/env", std::string("PYTHONPATH=") + kPackage, "STAX_CUDA_DRIVER=/no/such/driver",
                  "FAKE_CUDA_PYTHON=" + python_, "TRITON_CACHE_DIR=" + folder_.path() + "/cache"};
    command.insert(command.end(), environment.begin(), environment.end());
    command.push_back(python_);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_process(command, {.time_limit = std::chrono::minutes(5)});
  }
  ProcessResult run_on_fake_gpu(Words arguments, Words environment = {}) {
    arguments.insert(arguments.begin(), STAX_TEST_DATA "/../support/fake_cuda/run_standalone.py");
    environment.push_back("STAX_CUDA_DRIVER=" STAX_TEST_PROGRAMS "/../tests/libfake_cuda.so");
    return run_python(arguments, environment);
  }

  /// The file with `to` for the one `from` in it.
  static void replace_in(const std::string& path, const std::string& from, const std::string& to) {
    std::string text = read_file(path).value();
    const size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << text;
    ASSERT_EQ(text.find(from, place + 1), std::string::npos) << text;
    std::ofstream(path) << text.replace(place, from.size(), to);
  }

  std::string python_;
  TemporaryFolder folder_{temporary_root(), "stax-standalone-"};
};

TEST_F(StandaloneKernel, ChecksTheExamplesWithoutGpu) {
  for (const char* example : {"ex-1.1", "ex-5.1", "ex-6.1", "ex-6.2", "softmax"}) {
    for (const bool dynamic : {false, true}) {
      if (dynamic && std::string_view(example) != "softmax" && std::string_view(example) != "ex-6.2")
        continue;
      const ProcessResult result = run_python({file_of(example, dynamic)});
      EXPECT_EQ(result.exit_code, 0) << example << ": " << result.output << result.errors;
      EXPECT_THAT(
          result.output,
          AllOf(HasSubstr("no GPU (/no/such/driver: "),
                HasSubstr("\ncompiled for sm_90 and run in Triton's interpreter, not timed\n"),
                ContainsRegex("triton_[^\n]* \\([0-9]+ registers\\), [^\n]*, against the plain evaluation:\n"
                              "  out_ptr0: largest relative difference [0-9.e-]+\n"),
                Not(HasSubstr("WRONG"))));
    }
  }
}

TEST_F(StandaloneKernel, FindsAWrongKernelWithoutGpu) {
  const std::string softmax = file_of("softmax");
  replace_in(softmax, "tmp9 = (tmp5 / tmp8)", "tmp9 = (tmp5 * tmp8)");
  // The first of two kernels; the second one is given what the first should have made.
  const std::string squares = file_of("ex-6.2");
  replace_in(squares, "tmp4 = (_tmp0 + tmp3)", "tmp4 = (_tmp0 + tmp3 + 1)");
  for (const std::string& file : {softmax, squares}) {
    const ProcessResult result = run_python({file});
    EXPECT_EQ(result.exit_code, 1) << result.output << result.errors;
    EXPECT_THAT(result.output,
                ContainsRegex("_0 \\([^\n]*:\n  out_ptr0: largest relative difference .*: WRONG"));
  }
}

TEST_F(StandaloneKernel, RunsTheFormForTheSizesOfTheExample) {
  const std::string file = file_of("softmax", true);
  const ProcessResult result = run_on_fake_gpu({file, "", "", "--config", "XBLOCK=64"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("triton_red_fused_0_form1: for other sizes than the example's, not run"),
                    HasSubstr("on Fake GPU (sm_90)\n"),
                    HasSubstr("triton_per_fused_0_form2 (1 registers), XBLOCK=64")));
}

/// The driver's events lie half a millisecond apart, and softmax reads and writes 256 x 1000 floats.
TEST_F(StandaloneKernel, ComparesAndMeasuresOnGpus) {
  const ProcessResult result = run_on_fake_gpu({file_of("softmax"), "", "", "--config", "XBLOCK=64"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_THAT(result.output,
              AllOf(ContainsRegex("triton_per_fused_0 .*, against the plain evaluation:\n"
                                  "  out_ptr0: largest relative difference [0-9.]+e-08\n"),
                    HasSubstr("0.5000 ms, 4.096 GB/s (2048000 bytes)"), Not(HasSubstr("WRONG"))));
}

TEST_F(StandaloneKernel, FindsAWrongKernelOnGpus) {
  const ProcessResult result =
      run_on_fake_gpu({file_of("softmax"), "tmp5 / tmp8", "tmp5 * tmp8", "--config", "XBLOCK=64"});
  EXPECT_EQ(result.exit_code, 1) << result.output << result.errors;
  EXPECT_THAT(result.output, ContainsRegex("out_ptr0: largest relative difference .*: WRONG"));
}

/// A sum that cancels, where roundings weigh more.
TEST_F(StandaloneKernel, LetsSumsDifferByRoundings) {
  const std::string script = folder_.path() + "/script.py";
  std::ofstream(script) << R"(
import numpy as np
from stax_triton import evaluation, plain
from stax_triton.heuristics import Kernel

terms = np.random.default_rng(3).standard_normal(4096).astype(np.float32)
terms[-1] -= terms.sum(dtype=np.float64) - 1

def sum_of(in_ptr0: "in0", out_ptr0: "out0"):
    out_ptr0[0] = plain.total(in_ptr0)[0]

kernel = Kernel(None, "reduction", {}, {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, "Grid1D",
                elements={"in_ptr0": 4096, "out_ptr0": 1}, numels={})
task = evaluation.make_task(kernel, sum_of, {"in0": terms}, "random")
in_order = np.cumsum(terms)[-1]
print("in order is off by", abs(in_order - 1))
print("in order:", evaluation.compare(task, {"out_ptr0": np.array([in_order])}))
print("wrong:", evaluation.compare(task, {"out_ptr0": np.array([1.001], np.float32)}))
)";
  const ProcessResult result = run_python({script});
  EXPECT_THAT(result.output, AllOf(ContainsRegex("off by [0-9.]*e-0[45]"), HasSubstr("in order: True"),
                                   HasSubstr("wrong: False")))
      << result.errors;
}

TEST_F(StandaloneKernel, TakesAConfigurationAndRefusesOthers) {
  const std::string file = file_of("softmax");
  const ProcessResult result = run_python({file, "--target", "sm_80", "--config", "XBLOCK=4,num_warps=8"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("compiled for sm_80"), HasSubstr("XBLOCK=4, num_warps=8")));
  const ProcessResult refused = run_python({file, "--config", "YBLOCK=4"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("'YBLOCK=4'"));
  EXPECT_THAT(run_python({file, "--config", "XBLOCK=²"}).errors, StartsWith("--config: 'XBLOCK=²'"));
  for (const char* from : {"the assembler", "Triton's cache"})
    EXPECT_EQ(run_python({file, "--target", "sm_100", "--config", "XBLOCK=4"}).exit_code, 0) << from;
  EXPECT_THAT(run_python({file, "--target", "sm_9"}).errors, HasSubstr("'sm_9' is none of sm_75, sm_80, "));
  const ProcessResult uneven = run_python({file, "--config", "XBLOCK=7"});
  EXPECT_EQ(uneven.exit_code, 1);
  EXPECT_THAT(uneven.errors,
              AllOf(HasSubstr("does not compile for sm_90 with XBLOCK=7"), Not(HasSubstr("Traceback"))));
}

/// This GPU takes 5 blocks along y at most, the kernel has 8.
TEST_F(StandaloneKernel, NumbersTheBlocksOfLongGridsAlongX) {
  const std::string file = file_of("ex-6.1");
  const Words environment{"FAKE_CUDA_GRID=5"};
  const ProcessResult result = run_on_fake_gpu({file, "", "", "--config", "XBLOCK=256"}, environment);
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  const ProcessResult wrong =
      run_on_fake_gpu({file, "yoffset = (tl.program_id(0) // ", "yoffset = 0 * (tl.program_id(0) // ",
                       "--config", "XBLOCK=256"},
                      environment);
  EXPECT_EQ(wrong.exit_code, 1) << wrong.output << wrong.errors;
  EXPECT_THAT(wrong.output, HasSubstr("WRONG"));
}

TEST_F(StandaloneKernel, SaysWhatTheGpuLacks) {
  const std::string file = file_of("ex-1.1");
  const auto errors = [&](const char* from, const char* to, const char* variable) {
    const ProcessResult result = run_on_fake_gpu({file, from, to}, {variable});
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_THAT(result.errors, Not(HasSubstr("Traceback")));
    return result.errors;
  };
  EXPECT_THAT(errors("", "", "FAKE_CUDA_MEMORY=40000"),
              HasSubstr("triton_per_fused_0: Fake GPU is out of memory: 32768 bytes are needed, "));
  // Of 8 instances.
  EXPECT_THAT(errors("", "", "SCRATCH_BYTES=1000000000000"), HasSubstr("8000000000000 bytes are needed"));
  EXPECT_THAT(errors("", "", "SHARED_BYTES=300000"),
              HasSubstr("it needs 300000 bytes of shared memory, Fake GPU has 232448 for a block"));
  EXPECT_THAT(errors("(tmp0 + tmp1)", "(tmp0 + nothing)", "A=B"),
              HasSubstr("triton_per_fused_0: cuLaunchKernel: "));
  const ProcessResult enough = run_on_fake_gpu({file, "", ""}, {"SCRATCH_BYTES=64", "SHARED_BYTES=60000"});
  EXPECT_EQ(enough.exit_code, 0) << enough.output << enough.errors;
}

TEST_F(StandaloneKernel, SaysWhichPackageIsMissing) {
  const std::string file = file_of("ex-1.1");
  const ProcessResult nowhere = run_python({file}, {"PYTHONPATH=/no/such/folder"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.errors,
              AllOf(HasSubstr("No module named 'stax_triton': set PYTHONPATH to the folder python"),
                    Not(HasSubstr("Traceback"))));
  const std::string pinned = read_file(STAX_TEST_DATA "/../../tools/requirements.txt").value();
  for (const std::string package : {"numpy", "triton"}) {
    const std::string folder = folder_.path() + "/without-" + package;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + package + ".py") << "raise ModuleNotFoundError(\"No module named it\")\n";
    const ProcessResult result = run_python({file}, {"PYTHONPATH=" + folder + ":" + kPackage});
    EXPECT_EQ(result.exit_code, 1);
    const size_t line = pinned.find("\n" + package + "==") + 1;
    EXPECT_THAT(result.errors,
                AllOf(HasSubstr(package + " cannot be imported (No module named it)"),
                      HasSubstr("-m pip install " + pinned.substr(line, pinned.find('\n', line) - line)),
                      Not(HasSubstr("Traceback"))));
  }
}

}  // namespace
}  // namespace stax

// The `stax` program as its users meet it: exit statuses, messages, output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cli/examples.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "stax/io.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/json.h"
#include "support/process.h"

namespace stax {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ProcessResult run_stax(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), STAX_TEST_PROGRAMS "/stax");
  return run_process(arguments);
}

const std::string kRecorded = STAX_TEST_DATA "/recorded";
const std::string kModels = STAX_TEST_DATA "/onnx";

/// One line on stderr that names the program.
void expect_error(const ProcessResult& result, int status, const std::string& words) {
  EXPECT_EQ(result.exit_code, status);
  EXPECT_THAT(result.errors, StartsWith("stax: error: "));
  EXPECT_THAT(result.errors, HasSubstr(words));
  EXPECT_EQ(result.errors.find('\n'), result.errors.size() - 1) << result.errors;
}

TEST(CommandLine, RefusesWrongUsageWithStatusTwo) {
  expect_error(run_stax({}), 2, "a command is missing; there are: verify run");
  expect_error(run_stax({"verify"}), 2, "PATH is required; see stax verify --help");
  expect_error(run_stax({"frobnicate"}), 2, "there is no command 'frobnicate'; there are: verify run");
  expect_error(run_stax({"cache", "frobnicate"}), 2,
               "'frobnicate'; there are: list size clear; see stax cache");
  expect_error(run_stax({"run", "model.onnx", "--output-dir", "out", "--no-such-option"}), 2,
               "--no-such-option");
  expect_error(run_stax({"bench", ""}), 2, "MODEL: is empty");
  for (const char* option : {"--jobs", "--limit"})
    expect_error(run_stax({"verify", kRecorded, "--mode", "reference", option, "-3"}), 2,
                 "at least 0, not -3");
}

TEST(CommandLine, SaysItsVersion) {
  const ProcessResult result = run_stax({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, testing::MatchesRegex("stax [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

/// Also where the command itself would not ask.
TEST(CommandLine, WarnsOfMisspeltSettings) {
  for (const char* setting :
       {"STAX_TRITON=bogus", "STAX_TUNING=bogus", "STAX_CHECK=bogus", "STAX_LOG=bogus"}) {
    const ProcessResult result =
        run_process({"/usr/bin/env", setting, STAX_TEST_PROGRAMS "/stax", "verify", kRecorded, "--mode",
                     "compiled", "--op", "add", "--limit", "1"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.errors, AllOf(StartsWith("stax: warning: STAX_"), HasSubstr("'bogus'")));
    EXPECT_EQ(result.errors.find('\n'), result.errors.size() - 1) << result.errors;
  }
}

TEST(CommandLine, HelpIsNoError) {
  const ProcessResult result = run_stax({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* command : {"run", "bench", "show", "compile", "verify", "examples", "cache", "doctor"})
    EXPECT_THAT(result.output, HasSubstr(command));
}

/// The files agree with the listings of the specification, which were made by another compiler.
TEST(CommandLine, ShowPrintsTheTritonKernelsOfTheExamples) {
  for (const std::string name : {"ex-1.1", "ex-5.1", "ex-6.1", "ex-6.2", "softmax"}) {
    const ProcessResult shown = run_stax({"show", name, "--target", "cuda:sm_90", "--stage", "triton"});
    EXPECT_EQ(shown.exit_code, 0) << name << ": " << shown.errors;
    EXPECT_EQ(shown.output, read_file(STAX_TEST_DATA "/triton/" + name + ".py")) << name;
  }
}

/// Every step of listing 9.6.
TEST(CommandLine, ShowPrintsThePlanForAGpu) {
  const ProcessResult shown = run_stax({"show", "ex-6.2", "--target", "cuda:sm_90", "--stage", "plan"});
  EXPECT_EQ(shown.output, read_file(STAX_TEST_DATA "/triton/ex-6.2.plan"));
}

TEST(CommandLine, ShowRefusesTargetsAndStagesThatThereAreNot) {
  expect_error(run_stax({"show", "softmax", "--target", "cuda:sm_75", "--stage", "triton"}), 1,
               "there are: cpu, cuda:sm_80, cuda:sm_90, cuda:sm_100");
  expect_error(run_stax({"show", "softmax", "--target", "cuda:sm_90", "--stage", "cpp"}), 1,
               "expected graph, loops, schedule, triton or plan");
  expect_error(run_stax({"show", "softmax", "--target", "cuda:sm_90", "--stage", "kernels"}), 1,
               "expected graph, loops, schedule, triton or plan");
}

TEST(CommandLine, ListsTheExamplesThatShowPrints) {
  const ProcessResult list = run_stax({"examples"});
  EXPECT_EQ(list.exit_code, 0);
  for (const char* name : {"ex-1.1", "ex-5.1", "ex-6.1", "ex-6.2", "softmax"}) {
    EXPECT_THAT(list.output, HasSubstr(name));
    for (const char* stage : {"graph", "loops", "schedule", "kernels", "cpp", "plan"}) {
      const ProcessResult shown = run_stax({"show", name, "--target", "cpu", "--stage", stage});
      EXPECT_EQ(shown.exit_code, 0) << name << " " << stage << ": " << shown.errors;
      EXPECT_THAT(shown.output, Not(testing::IsEmpty())) << name << " " << stage;
    }
  }
}

TEST(CommandLine, ShowsSoftmaxAsOneKernel) {
  const ProcessResult shown = run_stax({"show", "softmax", "--target", "cpu", "--stage", "kernels"});
  size_t kernels = 0;
  for (size_t at = shown.output.find("kernel "); at != std::string::npos;
       at = shown.output.find("\nkernel ", at + 1)) {
    ++kernels;
  }
  EXPECT_EQ(kernels, 1u) << shown.output;
}

TEST(CommandLine, ShowsExamplesWithSymbolicSizes) {
  for (const char* stage : {"graph", "loops", "schedule", "kernels", "cpp", "plan"}) {
    const ProcessResult shown =
        run_stax({"show", "ex-1.1", "--target", "cpu", "--stage", stage, "--dynamic"});
    EXPECT_EQ(shown.exit_code, 0) << shown.errors;
    EXPECT_THAT(shown.output, testing::HasSubstr("s1")) << stage;
    EXPECT_THAT(shown.output, testing::Not(testing::HasSubstr("8192"))) << stage;  // 64 * 128
  }
}

TEST(CommandLine, RefusesWhatItCannotShow) {
  expect_error(run_stax({"show", "ex-9.9", "--target", "cpu", "--stage", "graph"}), 1, "ex-9.9");
  expect_error(run_stax({"show", "softmax", "--target", "abacus", "--stage", "graph"}), 1, "abacus");
  expect_error(run_stax({"show", "softmax", "--target", "cpu", "--stage", "poem"}), 1, "poem");
}

TEST(CommandLine, VerifiesRecordedCallsInEveryMode) {
  for (const char* mode : {"reference", "compiled"}) {
    const ProcessResult result = run_stax({"verify", kRecorded, "--mode", mode});
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr(" passed, 0 failed, 0 unknown"));
  }
}

TEST(CommandLine, VerifySelectsOneOperator) {
  const ProcessResult result =
      run_stax({"verify", kRecorded, "--mode", "reference", "--op", "softmax", "--limit", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Json report = Json::parse(result.output);
  EXPECT_EQ(report.at("operators").size(), 1u);
  EXPECT_EQ(report.at("passed").as_int(), 2);
}

TEST(CommandLine, VerifyRefusesWhatIsNotThere) {
  expect_error(run_stax({"verify", "/no/such/folder", "--mode", "reference"}), 1, "/no/such/folder");
  expect_error(run_stax({"verify", kRecorded, "--mode", "guess"}), 1, "guess");
  expect_error(run_stax({"verify", kRecorded, "--mode", "reference", "--op", "nothing"}), 1, "nothing");
}

TEST(CommandLine, VerifyCountsADamagedFileAsFailedAndGoesOn) {
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  const std::string good = folder.path() + "/b.safetensors";
  std::filesystem::copy_file(kRecorded + "/add.safetensors", good);
  std::string text = *read_file(good);
  AtomicFile damaged(folder.path() + "/a.safetensors");
  damaged.write(text.substr(0, text.size() / 2));
  damaged.commit();
  const ProcessResult result = run_stax({"verify", folder.path(), "--mode", "reference"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("a.safetensors"));
  EXPECT_THAT(result.output, HasSubstr(" 1 failed, 0 unknown"));
}

TEST(CommandLine, RunSaysWhichInputIsWrong) {
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  expect_error(run_stax({"run", "/no/model.onnx", "--output-dir", folder.path()}), 1, "/no/model.onnx");
  const std::string model = kModels + "/mlp.onnx";
  expect_error(run_stax({"run", model, "--output-dir", folder.path()}), 1, "'x'");
  save_npy(folder.path() + "/x.npy", tensor({1, 2, 3}));
  expect_error(
      run_stax({"run", model, "--input", "x=" + folder.path() + "/x.npy", "--output-dir", folder.path()}), 1,
      "float32");
  expect_error(run_stax({"run", model, "--input", "y=a.npy", "--output-dir", folder.path()}), 1, "x");
}

TEST(CommandLine, RunRefusesShapesFilesAndFoldersThatDoNotFit) {
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  const std::string model = kModels + "/mlp.onnx", out = folder.path() + "/out", x = folder.path() + "/x.npy";
  const auto run_with = [&](const std::string& input, const std::string& output) {
    return run_stax({"run", model, "--input", input, "--output-dir", output});
  };
  save_npy(x, zeros({2, 5}));
  expect_error(run_with("x=" + x, out), 1, "dimension 1 of input 'x' is to be 2, not 5");
  save_npy(x, zeros({2, 2, 2}));
  expect_error(run_with("x=" + x, out), 1, "2 dimensions, not 3");
  expect_error(run_with("x=" + folder.path(), out), 1, "got a folder");
  expect_error(run_with("x=" + folder.path() + "/none.npy", out), 1, "none.npy: expected a readable file");
  expect_error(run_with("x=" + model, out), 1, "expected a .npy file");
  expect_error(run_with("x=", out), 1, "NAME=FILE.npy");
  expect_error(run_with("x", out), 1, "NAME=FILE.npy");
  expect_error(run_with("", out), 1, "NAME=FILE.npy");
  expect_error(run_stax({"run", folder.path(), "--output-dir", out}), 1, "got a folder");
  expect_error(run_stax({"run", "/dev/zero", "--output-dir", out}), 1, "got a device");
  expect_error(run_stax({"run", x, "--output-dir", out}), 1, "expected an ONNX model");
  EXPECT_FALSE(std::filesystem::exists(out));
  save_npy(x, zeros({2, 2}));
  expect_error(run_with("x=" + x, "/dev/null/out"), 1, "cannot make the folder '/dev/null/out'");
  expect_error(run_with("x=" + x, x), 1, "cannot make the folder");
  EXPECT_EQ(run_with("x=" + x, out).exit_code, 0);
}

TEST(CommandLine, BenchRefusesWhatItCannotTime) {
  const std::string model = kModels + "/mlp.onnx";
  expect_error(run_stax({"bench", "/no/such/model.onnx"}), 1, "/no/such/model.onnx");
  expect_error(run_stax({"bench", model, "--batch", "-3"}), 1, "--batch");
  expect_error(run_stax({"bench", model, "--batch", "many"}), 2, "--batch");
  expect_error(run_stax({"bench", model, "--batch", "99999999999999"}), 1, "memory");
  for (const char* seconds : {"0", "-1", "nan"})
    expect_error(run_stax({"bench", model, "--seconds", seconds}), 1, "--seconds");
}

/// Where nothing has that length it would be lost.
TEST(CommandLine, RefusesABatchThatNothingHas) {
  expect_error(run_stax({"show", "softmax", "--target", "cpu", "--stage", "graph", "--batch", "3"}), 1,
               "show: --batch is for models");
  expect_error(run_stax({"show", "softmax", "--target", "cpu", "--stage", "graph", "--batch", "1"}), 1,
               "'softmax'");
  expect_error(run_stax({"compile", "softmax", "--target", "cuda:sm_90", "--batch", "3"}), 1,
               "compile: --batch is for models");
  const std::string mlp = kModels + "/mlp.onnx";
  const ProcessResult shown = run_stax({"show", mlp, "--target", "cpu", "--stage", "graph", "--batch", "3"});
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_THAT(shown.output, HasSubstr("[3, "));
  expect_error(run_stax({"bench", mlp, "--input", "x=x.npy", "--batch", "3"}), 1,
               "bench: --batch is for inputs");
  const std::string fixed = kModels + "/external.onnx";
  expect_error(run_stax({"show", fixed, "--target", "cpu", "--stage", "graph", "--batch", "3"}), 1,
               "leave it out");
}

TEST(CommandLine, SaysThatTheOutputCannotBeWritten) {
  const auto in_shell = [](const std::string& words) {
    return run_process({"/bin/sh", "-c", STAX_TEST_PROGRAMS "/stax " + words});
  };
  for (const char* command : {"examples", "show softmax --target cpu --stage cpp"}) {
    expect_error(in_shell(std::string(command) + " > /dev/full"), 1, "No space left");
    expect_error(in_shell(std::string(command) + " >&-"), 1, "cannot write");
  }
  const ProcessResult cut = in_shell("show softmax --target cpu --stage cpp | head -n 1");
  EXPECT_EQ(cut.exit_code, 0);
  EXPECT_EQ(cut.errors, "");
  EXPECT_EQ(std::count(cut.output.begin(), cut.output.end(), '\n'), 1);
}

TEST(CommandLine, DoctorAndCacheSayWhatIsBroken) {
  const auto with = [](const std::string& variable, std::vector<std::string> words) {
    words.insert(words.begin(), {"/usr/bin/env", variable, STAX_TEST_PROGRAMS "/stax"});
    return run_process(words);
  };
  for (const char* compiler : {"/no/such/compiler", "/bin/false", "/bin/true"}) {
    const ProcessResult result = with(std::string("STAX_CXX=") + compiler, {"doctor"});
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_THAT(result.output, HasSubstr(compiler));
    EXPECT_THAT(result.output, HasSubstr("STAX_CXX"));
  }
  expect_error(with("STAX_CACHE_DIR=/dev/null/cache", {"cache", "list"}), 1, "/dev/null/cache");
  const ProcessResult result = with("STAX_CACHE_DIR=/dev/null/cache", {"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("not used: cannot create /dev/null/cache"));
}

TEST(CommandLine, RunsAModel) {
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  const std::string input = folder.path() + "/x.npy";
  save_npy(input, tensor({{1.0, -2.0}, {0.5, 3.0}}, kFloat32));
  for (const bool eager : {true, false}) {
    std::vector<std::string> command = {"run",        kModels + "/mlp.onnx", "--input",
                                        "x=" + input, "--output-dir",        folder.path() + "/out"};
    if (eager) command.push_back("--eager");
    const ProcessResult result = run_stax(command);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    // mlp.onnx is relu(x @ [[1, 2, 3], [4, 5, 6]] + [0.5, -100, 1]), summed over rows.
    const Tensor y = load_npy(folder.path() + "/out/y.npy");
    ASSERT_EQ(y.sizes().values(), (std::vector<int64_t>{3}));
    EXPECT_FLOAT_EQ(y[0].item<float>(), 0 + 13);
    EXPECT_FLOAT_EQ(y[1].item<float>(), 0);
    EXPECT_FLOAT_EQ(y[2].item<float>(), 0 + 20.5);
  }
}

TEST(CommandLine, ListsEveryOperatorThatIsNotMapped) {
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  const ProcessResult result = run_stax({"run", kModels + "/unmapped.onnx", "--output-dir", folder.path()});
  expect_error(result, 1, "Loop");
  EXPECT_THAT(result.errors, HasSubstr("NonMaxSuppression"));
}

TEST(CommandLine, BenchReportsTimes) {
  const ProcessResult result =
      run_stax({"bench", kModels + "/mlp.onnx", "--batch", "4", "--seconds", "0.01", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Json report = Json::parse(result.output);
  EXPECT_GT(report.at("calls").as_int(), 0);
  EXPECT_LE(report.at("min_ms").as_double(), report.at("median_ms").as_double());
}

/// In the unit that fits, for programs of nanoseconds, too.
TEST(CommandLine, BenchPrintsTimesThatSaySomething) {
  const ProcessResult result = run_stax({"bench", kModels + "/mlp.onnx", "--seconds", "0.01"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const char* time = "[0-9.]*[1-9][0-9.]* (ns|us|ms|s)";
  EXPECT_THAT(result.output,
              testing::ContainsRegex(std::string("^first call ") + time + "; then [0-9]+ calls?: median " +
                                     time + ", fastest " + time + ", 90 % within " + time + "\n$"));
}

/// What is wrong with the machine is said once, and not of each call.
TEST(CommandLine, VerifySaysOnceWhatTheMachineLacks) {
  const auto with = [](const std::string& variable, const std::string& mode) {
    return run_process(
        {"/usr/bin/env", variable, STAX_TEST_PROGRAMS "/stax", "verify", kRecorded, "--mode", mode});
  };
  for (const char* mode : {"cuda", "cuda-dynamic"})
    expect_error(with("STAX_CUDA_DRIVER=/no/such/driver", mode), 1, "/no/such/driver cannot be opened");
  expect_error(with("STAX_PYTHON=/no/such/python", "interpret"), 1, "/no/such/python");
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  std::filesystem::create_directory(folder.path() + "/numpy");  // one in front of all others that has nothing
  AtomicFile broken(folder.path() + "/numpy/__init__.py");
  broken.write("raise ImportError('No module named numpy')\n");
  broken.commit();
  const ProcessResult result = run_process(
      {"/usr/bin/env", "STAX_PYTHON=python3", "PYTHONPATH=" + folder.path(), "TMPDIR=" + folder.path(),
       STAX_TEST_PROGRAMS "/stax", "verify", kRecorded, "--mode", "interpret"});
  expect_error(result, 1, "lacks what it needs (No module named numpy); install it");
  EXPECT_THAT(result.errors, Not(HasSubstr("Traceback")));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().filename(), "numpy");  // no folder is left behind
}

TEST(CommandLine, DoctorFindsACompiler) {
  const ProcessResult result = run_stax({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* subject : {"host compiler", "oneDNN", "cache", "Python", "Triton", "GPU"})
    EXPECT_THAT(result.output, HasSubstr(subject));
}

TEST(CommandLine, DoctorSaysHowToGetPythonAndTriton) {
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  const auto doctor = [&](const std::string& python) {
    return run_process({"/usr/bin/env", "STAX_PYTHON=" + python, "PYTHONPATH=" + folder.path(),
                        STAX_TEST_PROGRAMS "/stax", "doctor"});
  };
  const ProcessResult without_python = doctor("/no/such/python");
  EXPECT_EQ(without_python.exit_code, 0) << without_python.output;
  EXPECT_THAT(without_python.output, AllOf(HasSubstr("/no/such/python"), HasSubstr("STAX_PYTHON")));
  // A package in front of all others, as where an installation is broken or too old.
  std::filesystem::create_directory(folder.path() + "/triton");
  const std::string package = folder.path() + "/triton/__init__.py";
  AtomicFile(package).commit();
  const ProcessResult broken = doctor("python3");
  EXPECT_EQ(broken.exit_code, 0) << broken.output;
  EXPECT_THAT(broken.output, HasSubstr("pip install triton==3.6.0"));
  AtomicFile old(package);
  old.write("__version__ = '3.3.1'\n");
  old.commit();
  const ProcessResult refused = doctor("python3");
  EXPECT_EQ(refused.exit_code, 0) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("Triton 3.3.1 cannot be used"), HasSubstr("3.4 to 3.9")));
}

TEST(CommandLine, DoctorSaysWhichLibraryMultipliesMatrices) {
  const auto doctor = [](const std::string& library) {
    return run_process({"/usr/bin/env", "STAX_CUBLASLT=" + library, STAX_TEST_PROGRAMS "/stax", "doctor"});
  };
  const std::string stand_in = STAX_TEST_PROGRAMS "/../tests/libfake_cuda.so";
  EXPECT_THAT(doctor(stand_in).output, AllOf(HasSubstr("cuBLASLt"), HasSubstr("13.1.0 (" + stand_in + ")")));
  EXPECT_THAT(doctor("/no/such/library").output,
              AllOf(HasSubstr("/no/such/library, which STAX_CUBLASLT names, cannot be opened"),
                    HasSubstr("pip install nvidia-cublas")));
}

/// Every kernel of every example becomes machine code for every architecture.
TEST(CommandLine, CompilesTheExamplesForGpus) {
  const char* chosen = std::getenv("STAX_TEST_PYTHON");
  const std::string python = chosen != nullptr ? chosen : STAX_TEST_PYTHON;
  if (!std::filesystem::exists(python) || run_process({python, "-c", "import triton"}).exit_code != 0)
    GTEST_SKIP() << python << " has no Triton; make setup installs it";
  const TemporaryFolder folder(temporary_root(), "stax-cli-");
  std::vector<std::string> command{"/usr/bin/env", "STAX_PYTHON=" + python,
                                   "STAX_CACHE_DIR=" + folder.path() + "/cache", STAX_TEST_PROGRAMS "/stax",
                                   "compile"};
  for (const cli::Example& example : cli::examples()) command.emplace_back(example.name);
  command.insert(command.end(), {"--target", "cuda:sm_80,cuda:sm_90,cuda:sm_100"});
  for (const bool cached : {false, true}) {
    const ProcessResult result = run_process(command, {.time_limit = std::chrono::minutes(9)});
    ASSERT_EQ(result.exit_code, 0) << result.output << result.errors;
    EXPECT_THAT(result.output,
                HasSubstr("softmax cuda:sm_100 triton_per_fused_0: persistent, XBLOCK 1, 2 warps: "));
    EXPECT_THAT(result.output, HasSubstr(cached ? ": 0 compiled, " : " 0 failed, in "));
    EXPECT_EQ(result.output.find("with 0 processes") != std::string::npos, cached) << result.output;
  }
}

TEST(CommandLine, CompileRefusesWhatThereIsNot) {
  for (const char* target : {"cpu", "cuda", "cuda:sm_75", "cuda:sm_999", "cuda:sm_90x"})
    expect_error(run_stax({"compile", "softmax", "--target", target}), 1,
                 std::string("'") + target +
                     "' is no GPU to compile for; there are: cuda:sm_80, cuda:sm_90, cuda:sm_100\n");
  expect_error(run_stax({"compile", "ex-9.9", "--target", "cuda:sm_90"}), 1, "ex-9.9");
  const ProcessResult result =
      run_process({"/usr/bin/env", "STAX_PYTHON=/no/such/python", STAX_TEST_PROGRAMS "/stax", "compile",
                   "softmax", "ex-1.1", "--target", "cuda:sm_90"});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("2 kernels: 0 compiled, 0 from the cache, 2 failed"),
                                   HasSubstr("/no/such/python"), HasSubstr("failed: as the one before\n")));
  EXPECT_EQ(result.output.find("/no/such/python"), result.output.rfind("/no/such/python")) << result.output;
}

}  // namespace
}  // namespace stax

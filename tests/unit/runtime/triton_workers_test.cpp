// Workers that misbehave: each failure gives a retry on a fresh process, then an error that says all; never a
// kernel that was not asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "runtime/triton_compiler.h"
#include "runtime/triton_identity.h"
#include "stax/error.h"
#include "support/file.h"

namespace stax::runtime {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TritonRequest kRequest{
    .source = "source", .kernel = "triton_poi_fused_0", .config = {.blocks = {{"XBLOCK", 64}}}};

class WorkerFailures : public ::testing::Test {
 protected:
  TritonCompilerOptions options(std::vector<std::string> modes) const {
    std::vector<std::string> command{"python3", STAX_TEST_DATA "/triton/fake_worker.py", folder_.path()};
    command.insert(command.end(), modes.begin(), modes.end());
    return {.workers = 1,
            .cache_folder = folder_.path() + "/cache",
            .time_limit = milliseconds(60'000),
            .command = command};
  }
  static std::string failure(TritonCompiler& compiler) {
    try {
      compiler.compile(kRequest);
    } catch (const RuntimeError& error) {
      return error.what();
    }
    return "a kernel";
  }

  TemporaryFolder folder_{temporary_root(), "stax-test-"};
};

TEST_F(WorkerFailures, GivesWhatTheWorkerSays) {
  TritonCompiler compiler(options({"good"}));
  const auto kernel = compiler.compile(kRequest);
  EXPECT_EQ(kernel->entry, "fake_kernel");
  EXPECT_THAT(kernel->arguments, ::testing::ElementsAre("*fp32", "i32"));
  EXPECT_EQ(kernel->registers, 20);
  EXPECT_EQ(kernel->shared_bytes, 64);
  EXPECT_EQ(kernel->cubin.size(), 64u + 12u);
  EXPECT_EQ(compiler.triton_version(), "3.6.0");
  EXPECT_EQ(compiler.started(), 1);
}

TEST_F(WorkerFailures, RetriesOnceOnAFreshWorker) {
  for (const char* mode : {"crash", "crash at start", "garbage", "other request", "other code", "short code",
                           "other machine", "other function", "no registers"}) {
    const TemporaryFolder folder(temporary_root(), "stax-test-");
    TritonCompilerOptions how = options({mode, "good"});
    how.command[2] = folder.path();
    how.cache_folder = folder.path() + "/cache";
    TritonCompiler compiler(how);
    EXPECT_EQ(compiler.compile(kRequest)->registers, 20) << mode;
    EXPECT_EQ(compiler.started(), 2) << mode;
  }
}

TEST_F(WorkerFailures, RetriesAfterAHang) {
  TritonCompilerOptions how = options({"hang", "good"});
  how.time_limit = milliseconds(5000);
  TritonCompiler compiler(how);
  EXPECT_EQ(compiler.compile(kRequest)->registers, 20);
  EXPECT_EQ(compiler.started(), 2);
}

TEST_F(WorkerFailures, SaysHowTwoWorkersFailed) {
  TritonCompiler compiler(options({"crash", "garbage"}));
  EXPECT_THAT(failure(compiler), AllOf(HasSubstr("triton_poi_fused_0"), HasSubstr("signal 11"),
                                       HasSubstr("the assembler is out of order"),
                                       HasSubstr("the worker's answer"), HasSubstr("fake_worker.py")));
  EXPECT_EQ(compiler.started(), 2);
  EXPECT_EQ(compiler.compiled(), 0);
}

TEST_F(WorkerFailures, NeverTakesCodeThatIsNotWhatWasAsked) {
  const std::pair<const char*, const char*> cases[] = {
      {"other request", "another request"}, {"other code", "does not match its hash"},
      {"short code", "no machine code"},    {"other machine", "processor 62"},
      {"other function", "another_kernel"}, {"no registers", "registers"}};
  for (const auto& [mode, words] : cases) {
    TritonCompiler compiler(options({mode}));
    EXPECT_THAT(failure(compiler), HasSubstr(words)) << mode;
  }
}

TEST_F(WorkerFailures, AnsweredErrorsAreNotRetried) {
  TritonCompiler compiler(options({"refuse", "good"}));
  EXPECT_THAT(failure(compiler),
              AllOf(HasSubstr("triton_poi_fused_0: Triton 3.6.0 does not compile it for sm_90"),
                    HasSubstr("CompilationError: at 3:4")));
  EXPECT_EQ(compiler.started(), 1);
}

TEST_F(WorkerFailures, OtherVersionsAreRefusedWithTheReason) {
  TritonCompiler compiler(options({"version 3.3.1"}));
  EXPECT_THAT(failure(compiler), AllOf(HasSubstr("Triton 3.3.1 cannot be used"), HasSubstr("3.4 to 3.9"),
                                       HasSubstr("triton==3.6.0")));
  for (const char* works : {"3.4.0", "3.6.0", "3.6.0+git1234", "3.9.2"})
    EXPECT_THAT(triton_version_problem(works), IsEmpty()) << works;
  for (const char* refused : {"2.3.1", "3.3.1", "3.10.0", "4.0.0", "", "nightly"})
    EXPECT_THAT(triton_version_problem(refused), HasSubstr("3.4 to 3.9")) << refused;
}

TEST_F(WorkerFailures, MissingTritonAndPythonSayWhatToDo) {
  TritonCompiler without_triton(options({"no triton"}));
  EXPECT_THAT(failure(without_triton),
              AllOf(HasSubstr("No module named 'triton'"), HasSubstr("-m pip install triton==3.6.0"),
                    HasSubstr("STAX_PYTHON")));
  EXPECT_EQ(without_triton.started(), 1);
  TritonCompiler without_python({.python = "/no/such/python", .cache_folder = folder_.path() + "/cache"});
  EXPECT_THAT(failure(without_python), AllOf(HasSubstr("/no/such/python"), HasSubstr("STAX_PYTHON")));
}

/// Triton was exchanged while a worker ran: what the new one makes is not kept under the old one's name.
TEST_F(WorkerFailures, ResultsCountForTheTritonThatMadeThem) {
  {
    TritonCompiler compiler(options({"crash", "version 3.5.0"}));
    EXPECT_EQ(compiler.compile(kRequest)->registers, 20);
    EXPECT_EQ(compiler.triton_version(), "3.5.0");
  }
  TritonCompiler of_3_6(options({"good", "good", "good"}));
  EXPECT_EQ(of_3_6.compile(kRequest)->registers, 20);
  EXPECT_EQ(of_3_6.triton_version(), "3.6.0");
  EXPECT_EQ(of_3_6.compiled(), 1);
}

TEST_F(WorkerFailures, OneFailureOfManyLeavesTheOthers) {
  TritonCompilerOptions how = options({"crash", "crash", "good"});
  TritonCompiler compiler(how);
  std::vector<TritonRequest> requests(3, kRequest);
  for (size_t k = 0; k < requests.size(); ++k) requests[k].source = std::to_string(k);
  std::vector<size_t> reports;
  const auto outcomes = compiler.compile(requests, [&](size_t done) { reports.push_back(done); });
  EXPECT_EQ(outcomes[0].kernel, nullptr);
  EXPECT_THAT(outcomes[0].error, HasSubstr("signal 11"));
  for (size_t k : {1, 2}) EXPECT_EQ(outcomes[k].kernel->registers, 20) << outcomes[k].error;
  EXPECT_THAT(reports, ::testing::ElementsAre(1, 2, 3));
}

class TritonRecord : public ::testing::Test {
 protected:
  TritonRecord() : cache_(folder_.path() + "/cache"), file_(folder_.path() + "/libtriton.so") {
    std::ofstream(file_) << "code";
    struct stat status;
    EXPECT_EQ(stat(file_.c_str(), &status), 0);
    Json file = Json::array(), files = Json::array();
    file.push_back(file_);
    file.push_back(static_cast<int64_t>(status.st_size));
    file.push_back(status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec);
    files.push_back(std::move(file));
    hello_.set("triton", "3.6.0");
    hello_.set("package", "0123");
    hello_.set("files", std::move(files));
    record_triton(cache_, "/bin/sh", hello_);
  }
  auto recorded(const std::string& python = "/bin/sh") const {
    return recorded_triton(cache_, python, package_);
  }

  TemporaryFolder folder_{temporary_root(), "stax-test-"};
  CodeCache cache_;
  std::string file_, package_ = folder_.path();
  Json hello_;
};

TEST_F(TritonRecord, HoldsWhileTheFilesAreAsTheyWere) {
  ASSERT_TRUE(recorded());
  EXPECT_EQ(recorded()->version, "3.6.0");
  EXPECT_FALSE(recorded("/bin/cat")) << "of another Python";
  std::ofstream(file_) << "edoc";  // as long as before
  std::filesystem::last_write_time(file_,
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
  EXPECT_FALSE(recorded());
  std::filesystem::remove(file_);
  EXPECT_FALSE(recorded());
}

TEST_F(TritonRecord, NamesAllThatDeterminesResults) {
  const std::string before = recorded()->text;
  std::filesystem::create_directory(package_ + "/stax_triton");
  std::ofstream(package_ + "/stax_triton/helpers.py") << "pass";
  const std::string with_package = recorded()->text;
  EXPECT_NE(with_package, before);
  setenv("TRITON_ALL_BLOCKS_PARALLEL", "1", 1);
  EXPECT_NE(recorded()->text, with_package);
  unsetenv("TRITON_ALL_BLOCKS_PARALLEL");
  EXPECT_EQ(recorded()->text, with_package);
}

TEST_F(TritonRecord, IsNotBelievedWhereItIsDamaged) {
  std::string path;
  for (const auto& file : std::filesystem::directory_iterator(cache_.folder()))
    if (file.path().filename().string().starts_with("triton-")) path = file.path();
  const std::string whole = *read_file(path);
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), std::string(), whole + "{}", "x" + whole}) {
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_FALSE(recorded()) << damaged;
  }
}

TEST_F(WorkerFailures, ResultsStayOnDiskAndDamageIsNoticed) {
  const std::string code = TritonCompiler(options({"good"})).compile(kRequest)->cubin;
  const std::string kernels = folder_.path() + "/cache/kernels";
  const auto entry = std::filesystem::directory_iterator(kernels)->path();
  const std::string whole = *read_file(entry.string());
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  const std::pair<std::string, int64_t> cases[] = {
      {whole, 0}, {flipped, 1}, {whole.substr(0, 100), 1}, {"", 1}};
  for (const auto& [content, compiled] : cases) {
    std::ofstream(entry, std::ios::binary) << content;
    TritonCompiler compiler(options({"good"}));
    EXPECT_EQ(compiler.compile(kRequest)->cubin, code);
    EXPECT_EQ(compiler.compiled(), compiled);
  }
}

TEST_F(WorkerFailures, LeaveNoFolderBehindNorThoseOfKilledProcesses) {
  const std::filesystem::path root = folder_.path() + "/tmp";
  std::filesystem::create_directory(root);
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  setenv("TMPDIR", root.c_str(), 1);
  std::filesystem::create_directory(root / "stax-worker-killed");
  std::filesystem::last_write_time(root / "stax-worker-killed",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  {
    TritonCompiler compiler(options({"crash", "good"}));
    compiler.compile(kRequest);
  }
  before != nullptr ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(root));
}

}  // namespace
}  // namespace stax::runtime

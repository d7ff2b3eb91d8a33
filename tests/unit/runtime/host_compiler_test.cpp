#include "runtime/host_compiler.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "stax/error.h"
#include "support/file.h"
#include "support/hash.h"
#include "unit/runtime/cache_fixture.h"

namespace stax::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class HostCompilerTest : public CacheTest {
 protected:
  std::string entry_path() const {
    for (const auto& file : fs::directory_iterator(folder() + "/cache/kernels")) return file.path().string();
    return {};
  }
  static std::string message_of(HostCompiler& compiler, const std::string& source) {
    try {
      compiler.compile(source, {});
    } catch (const RuntimeError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST(Hash, Sha256KnownAnswers) {
  // FIPS 180-2, appendix B.1, and the hash of nothing.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_F(HostCompilerTest, CompilesOnceAndIsFoundAgainWithoutTheCompiler) {
  {
    HostCompiler compiler(options());
    auto module = compiler.compile(source_returning(41), {});
    EXPECT_EQ(answer(*module), 41);
    EXPECT_EQ(compiler.compile(source_returning(41), {}), module);
    EXPECT_EQ(compiler.compiler_runs(), 1);
  }
  HostCompiler later(options());
  EXPECT_EQ(answer(*later.compile(source_returning(41), {})), 41);
  EXPECT_EQ(later.compiler_runs(), 0);
  EXPECT_EQ(later.cache().list().size(), 1u);
  EXPECT_EQ(later.cache().size(), static_cast<int64_t>(fs::file_size(entry_path())));
  EXPECT_EQ(later.cache().clear(), 1);
  EXPECT_EQ(later.cache().size(), 0);
}

TEST_F(HostCompilerTest, KeysDifferBySourceFlagsTargetAndCompiler) {
  HostCompiler compiler(options());
  const std::string base = compiler.key("a", {});
  EXPECT_EQ(base, compiler.key("a", {}));
  EXPECT_NE(base, compiler.key("b", {}));
  EXPECT_NE(base, compiler.key("a", {.optimization = 3}));
  EXPECT_NE(base, compiler.key("a", {.target = {"-march=x86-64-v3"}}));
  EXPECT_NE(base, compiler.key("a", {.address_sanitizer = true}));
  HostCompiler other(options(script("other", "echo other compiler 1.0")));
  EXPECT_NE(base, other.key("a", {}));
}

TEST_F(HostCompilerTest, AWarmProcessDoesNotAskForTheVersion) {
  const std::string program = script("counting", "echo run >> " + folder() + "/log; exec c++ \"$@\"");
  HostCompiler(options(program)).compile(source_returning(1), {});
  const std::string cold = *read_file(folder() + "/log");
  EXPECT_EQ(cold, "run\nrun\n");
  EXPECT_EQ(answer(*HostCompiler(options(program)).compile(source_returning(1), {})), 1);
  EXPECT_EQ(*read_file(folder() + "/log"), cold);
}

TEST_F(HostCompilerTest, TruncatedAndEditedEntriesAreRebuilt) {
  HostCompiler(options()).compile(source_returning(7), {});
  const std::string path = entry_path(), whole = *read_file(path);
  std::string edited = whole;
  edited[whole.size() / 2] ^= 1;
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), whole.substr(0, 10), std::string(), edited, whole + "x"}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    HostCompiler compiler(options());
    EXPECT_EQ(answer(*compiler.compile(source_returning(7), {})), 7);
    EXPECT_EQ(compiler.compiler_runs(), 1);
    HostCompiler next(options());
    EXPECT_EQ(answer(*next.compile(source_returning(7), {})), 7);
    EXPECT_EQ(next.compiler_runs(), 0);
  }
}

TEST_F(HostCompilerTest, WorksWhereNothingCanBeWritten) {
  std::ofstream(folder() + "/file") << "not a folder";
  HostCompilerOptions broken = options();
  broken.cache_folder = folder() + "/file/cache";
  ::testing::internal::CaptureStderr();
  HostCompiler compiler(broken);
  EXPECT_EQ(answer(*compiler.compile(source_returning(3), {})), 3);
  EXPECT_EQ(answer(*compiler.compile(source_returning(4), {})), 4);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("not kept on disk"));
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  EXPECT_TRUE(compiler.cache().list().empty());
}

TEST_F(HostCompilerTest, AFolderOthersCanWriteToIsRefused) {
  fs::create_directory(folder() + "/cache");
  chmod((folder() + "/cache").c_str(), 0777);
  ::testing::internal::CaptureStderr();
  HostCompiler compiler(options());
  EXPECT_EQ(answer(*compiler.compile(source_returning(5), {})), 5);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("writable by others"));
  EXPECT_TRUE(fs::is_empty(folder() + "/cache"));
}

TEST_F(HostCompilerTest, TheFolderIsPrivate) {
  HostCompiler compiler(options());
  struct stat status;
  ASSERT_EQ(stat((folder() + "/cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(HostCompilerTest, AFullDiskMovesTheCompilationElsewhere) {
  // A compiler that finds no space on the cache's disk.
  const std::string program =
      script("full", "case \"$*\" in *" + folder() +
                         "/cache/*) echo 'No space left on device' >&2; exit 1;; esac\n"
                         "exec c++ \"$@\"");
  ::testing::internal::CaptureStderr();
  HostCompiler compiler(options(program));
  EXPECT_EQ(answer(*compiler.compile(source_returning(6), {})), 6);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("not kept on disk"));
}

TEST_F(HostCompilerTest, AMissingCompilerIsNamed) {
  HostCompiler by_path(options("/no/such/compiler"));
  EXPECT_THAT(message_of(by_path, "int x;"), AllOf(HasSubstr("/no/such/compiler"), HasSubstr("STAX_CXX")));
  HostCompiler by_name(options("no-such-compiler"));
  EXPECT_THAT(message_of(by_name, "int x;"), AllOf(HasSubstr("no-such-compiler"), HasSubstr("install")));
}

TEST_F(HostCompilerTest, ABrokenCompilerIsQuoted) {
  const std::string version = "[ \"$1\" = --version ] && echo 'broken 1.0' && exit 0\n";
  HostCompiler failing(options(script("failing", version + "echo 'cc1plus: gone' >&2; exit 3")));
  EXPECT_THAT(message_of(failing, "int x;"), AllOf(HasSubstr("exit status 3"), HasSubstr("cc1plus: gone"),
                                                   HasSubstr("failing -O2"), HasSubstr("STAX_CXX")));
  HostCompiler silent(options(script("silent", version + "exit 0")));
  EXPECT_THAT(message_of(silent, "int x;"), HasSubstr("cannot be loaded"));
  HostCompiler garbage(options(script(
      "garbage", version + "while [ \"$1\" != -o ]; do shift; done; echo '\\377\\000 not code' > \"$2\"")));
  EXPECT_THAT(message_of(garbage, "int x;"), HasSubstr("cannot be loaded"));
  HostCompiler cut(options(script("cut", version + "c++ \"$@\"; while [ \"$1\" != -o ]; do shift; done;"
                                                   " truncate -s 3000 \"$2\"")));
  EXPECT_THAT(message_of(cut, source_returning(1)), HasSubstr("no whole shared object"));
  HostCompiler other(options(script("other", version + "while [ \"$1\" != -o ]; do shift; done;"
                                                       " echo 'int x;' | c++ -shared -o \"$2\" -x c++ -")));
  EXPECT_THROW(answer(*other.compile(source_returning(1), {})), RuntimeError);
  HostCompiler killed(options(script("killed", version + "kill -9 $$")));
  EXPECT_THAT(message_of(killed, "int x;"), HasSubstr("signal 9"));
  HostCompiler mute(options(script("mute", "exit 0")));
  EXPECT_THAT(message_of(mute, "int x;"), AllOf(HasSubstr("mute --version"), HasSubstr("install")));
}

TEST_F(HostCompilerTest, AHangingCompilerIsStopped) {
  HostCompilerOptions hanging =
      options(script("hanging", "[ \"$1\" = --version ] && echo 'slow 1.0' && exit 0\nsleep 60"));
  hanging.time_limit = std::chrono::milliseconds(200);
  HostCompiler compiler(hanging);
  EXPECT_THAT(message_of(compiler, "int x;"), HasSubstr("did not end within 200 ms"));
}

TEST_F(HostCompilerTest, AnErrorInTheSourceShowsTheFirstLinesAndIsNotRemembered) {
  HostCompiler compiler(options());
  EXPECT_THAT(message_of(compiler, "int f() { return undeclared_name; }"), HasSubstr("undeclared_name"));
  EXPECT_EQ(compiler.cache().list().size(), 0u);
  EXPECT_EQ(answer(*compiler.compile(source_returning(8), {})), 8);
}

TEST_F(HostCompilerTest, SeveralSourcesAndSeveralThreads) {
  HostCompiler compiler(options());
  std::vector<std::string> sources;
  for (int i = 0; i < 5; ++i) sources.push_back(source_returning(i % 4));
  auto modules = compiler.compile_all(sources, {}, 4);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(answer(*modules[static_cast<size_t>(i)]), i % 4);
  EXPECT_EQ(compiler.compiler_runs(), 4);
  sources[2] = "this is no C++";
  EXPECT_THROW(compiler.compile_all(sources, {}, 2), RuntimeError);
}

TEST_F(HostCompilerTest, TwoProcessesCompileTheSameSource) {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      HostCompiler compiler(options());
      _exit(answer(*compiler.compile(source_returning(9), {})) == 9 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(HostCompiler(options()).cache().list().size(), 1u);
}

TEST_F(HostCompilerTest, AProcessKilledWhileCompilingLeavesNothingForLong) {
  const std::string slow =
      script("slow", "[ \"$1\" = --version ] && echo 'slow 1.0' && exit 0\nsleep 2; exec c++ \"$@\"");
  const pid_t child = fork();
  if (child == 0) {
    HostCompiler compiler(options(slow));
    compiler.compile(source_returning(10), {});
    _exit(0);
  }
  const std::string scratch = folder() + "/cache/scratch";
  for (int i = 0; i < 2000 && (!fs::exists(scratch) || fs::is_empty(scratch)); ++i) usleep(1000);
  ASSERT_FALSE(fs::is_empty(scratch));
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(fs::is_empty(scratch));
  HostCompiler compiler(options());
  EXPECT_EQ(answer(*compiler.compile(source_returning(10), {})), 10);
  EXPECT_TRUE(fs::is_empty(scratch));
}

#if defined(__SANITIZE_ADDRESS__)
TEST_F(HostCompilerTest, TheAddressSanitizerSeesIntoKernels) {
  HostCompiler compiler(options());
  auto module = compiler.compile(
      "extern \"C\" __attribute__((visibility(\"default\"))) int at(const int* x, long i) { return x[i]; }\n",
      {.address_sanitizer = true});
  auto at = reinterpret_cast<int (*)(const int*, long)>(module->symbol("at"));
  std::vector<int> values(8, 3);
  EXPECT_EQ(at(values.data(), 7), 3);
  EXPECT_DEATH(at(values.data(), 8), "heap-buffer-overflow");
}
#endif

TEST_F(HostCompilerTest, TheCacheIsBoundedAndDropsWhatWasUsedLongestAgo) {
  HostCompiler compiler(options());
  for (int i = 0; i < 3; ++i) compiler.compile(source_returning(i), {});
  const auto entries = compiler.cache().list();
  ASSERT_EQ(entries.size(), 3u);
  const std::string oldest = compiler.key(source_returning(1), {});
  timeval past[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimes((folder() + "/cache/kernels/" + oldest + ".so").c_str(), past), 0);
  CodeCache small(folder() + "/cache", entries[0].bytes * 2 + 100);
  small.trim();
  const auto kept = small.list();
  ASSERT_EQ(kept.size(), 2u);
  for (const auto& entry : kept) EXPECT_NE(entry.key, oldest);
}

}  // namespace
}  // namespace stax::runtime

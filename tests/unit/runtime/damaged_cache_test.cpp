// Caches and compilers as a hostile machine leaves them: full, read-only and noexec disks, entries that are
// no files, other owners. Every run gives the right function, or one error; the next run works.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "runtime/host_compiler.h"
#include "stax/error.h"
#include "support/file.h"
#include "unit/runtime/cache_fixture.h"

namespace stax::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A file system in memory, for as long as the object lives. Only root may mount one.
class Mount {
 public:
  Mount(std::string folder, const std::string& options, unsigned long flags = 0)
      : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    // Seen by this process only.
    static const bool apart =
        unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    mounted_ = apart && mount("none", folder_.c_str(), "tmpfs", flags, ("mode=700," + options).c_str()) == 0;
  }
  ~Mount() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  explicit operator bool() const { return mounted_; }
  bool make_read_only() const {
    return mount("none", folder_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0;
  }

 private:
  std::string folder_;
  bool mounted_ = false;
};

class DamagedCacheTest : public CacheTest {
 protected:
  static int answer(HostCompiler& compiler, int value) {
    return runtime::answer(*compiler.compile(source_returning(value), {}));
  }
  /// What a new compiler over the cache says on stderr while it compiles a function that returns `value`.
  std::string warning_of(int value, const std::string& program = "") const {
    ::testing::internal::CaptureStderr();
    HostCompiler compiler(options(program));
    EXPECT_EQ(answer(compiler, value), value);
    return ::testing::internal::GetCapturedStderr();
  }
  int64_t runs_for(int value) const {
    HostCompiler compiler(options());
    EXPECT_EQ(answer(compiler, value), value);
    return compiler.compiler_runs();
  }
  std::string entry_path(int value) const {
    HostCompiler compiler(options());
    return cache() + "/kernels/" + compiler.key(source_returning(value), {}) + ".so";
  }
};

TEST_F(DamagedCacheTest, AFullDisk) {
  const Mount disk(cache(), "size=64k");
  if (!disk) GTEST_SKIP() << "only root may mount a small disk";
  EXPECT_EQ(warning_of(1), "");  // there is room for one
  std::ofstream(cache() + "/filler") << std::string(1 << 20, 'x');
  EXPECT_THAT(warning_of(2), HasSubstr("not kept on disk"));
  fs::remove(cache() + "/filler");
  EXPECT_EQ(runs_for(1), 0);
  EXPECT_EQ(runs_for(2), 1);
  EXPECT_EQ(runs_for(2), 0);
}

TEST_F(DamagedCacheTest, AReadOnlyDisk) {
  const Mount disk(cache(), "size=1m");
  if (!disk) GTEST_SKIP() << "only root may mount a disk";
  EXPECT_EQ(runs_for(1), 1);
  ASSERT_TRUE(disk.make_read_only());
  EXPECT_EQ(runs_for(1), 0);
  EXPECT_THAT(warning_of(2), HasSubstr("not kept on disk"));
}

TEST_F(DamagedCacheTest, ADiskThatForbidsExecution) {
  const Mount disk(cache(), "size=1m", MS_NOEXEC);
  if (!disk) GTEST_SKIP() << "only root may mount a disk";
  for (int round = 0; round < 2; ++round) EXPECT_THAT(warning_of(1), HasSubstr("not kept on disk"));
}

TEST_F(DamagedCacheTest, AnotherOwner) {
  fs::create_directories(cache());
  if (chown(cache().c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root may give folders away";
  EXPECT_THAT(warning_of(1), HasSubstr("belongs to another user"));
  EXPECT_TRUE(fs::is_empty(cache()));
}

TEST_F(DamagedCacheTest, APartThatOthersCanWriteTo) {
  EXPECT_EQ(runs_for(1), 1);
  chmod((cache() + "/kernels").c_str(), 0777);
  EXPECT_THAT(warning_of(1), AllOf(HasSubstr("kernels"), HasSubstr("writable by others")));
}

TEST_F(DamagedCacheTest, AFileWhereFoldersShouldBe) {
  for (const char* name : {"", "/kernels", "/scratch"}) {
    fs::remove_all(cache());
    if (*name != '\0') fs::create_directories(cache());
    std::ofstream(cache() + name) << "a file";
    EXPECT_THAT(warning_of(1), AllOf(HasSubstr("not kept on disk"), HasSubstr("is not a folder"))) << name;
  }
}

TEST_F(DamagedCacheTest, LinksToFolders) {
  fs::create_directories(folder() + "/real");
  fs::permissions(folder() + "/real", fs::perms::owner_all);
  fs::create_symlink(folder() + "/real", cache());
  EXPECT_EQ(runs_for(1), 1);
  EXPECT_EQ(runs_for(1), 0);
  fs::remove_all(folder() + "/real/kernels");
  fs::create_symlink("/no/such/folder", folder() + "/real/kernels");
  EXPECT_THAT(warning_of(1), HasSubstr("not kept on disk"));
}

TEST_F(DamagedCacheTest, EntriesThatAreNoFilesAreReplaced) {
  EXPECT_EQ(runs_for(1), 1);
  const std::string path = entry_path(1);
  const std::vector<std::function<void()>> damages = {
      [&] { fs::create_directories(path + "/below"); },   [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); },
      [&] { fs::create_symlink("/dev/zero", path); },     [&] { fs::create_symlink(path, path); },
      [&] { fs::create_symlink("/no/such/file", path); }, [&] { fs::create_symlink("/etc/passwd", path); },
  };
  for (size_t k = 0; k < damages.size(); ++k) {
    SCOPED_TRACE(k);
    fs::remove_all(path);
    damages[k]();
    EXPECT_EQ(runs_for(1), 1);
    EXPECT_EQ(runs_for(1), 0);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path)));
  }
  EXPECT_TRUE(fs::exists("/etc/passwd"));
}

TEST_F(DamagedCacheTest, ARecordOfTheCompilerThatIsDamaged) {
  EXPECT_EQ(runs_for(1), 1);
  std::string record;
  for (const auto& file : fs::directory_iterator(cache())) {
    if (file.path().filename().string().starts_with("compiler-")) record = file.path().string();
  }
  const std::string whole = *read_file(record);
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() / 2), whole + "x"}) {
    std::ofstream(record, std::ios::trunc) << damaged;
    EXPECT_EQ(runs_for(1), 0);  // the compiler was asked again, and says what it said
    EXPECT_EQ(*read_file(record), whole);
  }
  fs::remove(record);
  fs::create_directories(record + "/below");
  EXPECT_EQ(warning_of(1), "");
  EXPECT_EQ(*read_file(record), whole);
}

TEST_F(DamagedCacheTest, FailuresOfADiskAreKnownInEveryLanguage) {
  const std::string version = "[ \"$1\" = --version ] && echo 'polyglot 1.0' && exit 0\n";
  // A compiler that has no room on the cache's disk, and says so in the language of its environment.
  for (const char* words : {"No space left on device", "Disk quota exceeded", "File too large"}) {
    const std::string program = script(
        "polyglot", version + "case \"$*\" in *" + cache() + "/*) if [ \"$LC_ALL\" = C ]; then echo '" +
                        words + "' >&2; else echo 'kein Platz' >&2; fi; exit 1;; esac\nexec c++ \"$@\"");
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    EXPECT_THAT(warning_of(2, program), HasSubstr("not kept on disk"));
    unsetenv("LC_ALL");
  }
}

TEST_F(DamagedCacheTest, TheCompilersTemporaryFilesLieBesideItsOutput) {
  const std::string program = script("telling", "echo $TMPDIR >> " + folder() + "/log; exec c++ \"$@\"");
  EXPECT_EQ(warning_of(1, program), "");
  const std::string log = *read_file(folder() + "/log");
  EXPECT_THAT(log, HasSubstr(cache() + "/scratch/"));
}

TEST_F(DamagedCacheTest, AProcessThatDiscardsTheEndsOfItsChildren) {
  signal(SIGCHLD, SIG_IGN);
  HostCompiler compiler(options());
  EXPECT_EQ(answer(compiler, 1), 1);
  EXPECT_THROW(compiler.compile("this is no C++", {}), RuntimeError);
  signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(runs_for(1), 0);
}

TEST_F(DamagedCacheTest, NoFolderToCompileIn) {
  const Mount disk(folder() + "/full", "size=4k");
  const Mount memory("/dev/shm", "size=4k");
  if (!disk || !memory) GTEST_SKIP() << "only root may mount a disk";
  std::ofstream(folder() + "/full/filler") << std::string(1 << 16, 'x');
  std::ofstream("/dev/shm/filler") << std::string(1 << 16, 'x');
  const char* root = std::getenv("TMPDIR");
  const std::string before = root != nullptr ? root : "";
  setenv("TMPDIR", (folder() + "/full").c_str(), 1);
  HostCompilerOptions full = options();
  full.cache_folder = folder() + "/full/cache";
  ::testing::internal::CaptureStderr();
  try {
    HostCompiler compiler(full);
    compiler.compile(source_returning(1), {});
    ADD_FAILURE() << "compiled without a disk";
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("disk full"));
  }
  ::testing::internal::GetCapturedStderr();
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
  EXPECT_EQ(runs_for(1), 1);
}

}  // namespace
}  // namespace stax::runtime

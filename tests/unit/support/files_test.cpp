#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "stax/error.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/mapped_file.h"
#include "support/utf8.h"

namespace stax {
namespace {

namespace fs = std::filesystem;

class SupportFiles : public ::testing::Test {
 protected:
  SupportFiles() {
    std::string name = (fs::temp_directory_path() / "stax_support_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~SupportFiles() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t count() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(SupportFiles, AtomicFileAppearsOnlyAtCommit) {
  {
    AtomicFile file(path("a"));
    file.write("one");
    file.write_zeros(5000);
    EXPECT_EQ(file.offset(), 5003u);
    EXPECT_FALSE(fs::exists(path("a")));
    file.commit();
  }
  EXPECT_EQ(read(path("a")), "one" + std::string(5000, '\0'));
  {
    AtomicFile file(path("a"));
    file.write(std::string(200000, 'x'));
  }
  EXPECT_EQ(read(path("a")).size(), 5003u);  // never committed: the old file stays
  EXPECT_EQ(count(), 1u);
}

TEST_F(SupportFiles, AtomicFileKeepsPermissionsAndOrder) {
  std::ofstream(path("a")) << "old";
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  AtomicFile file(path("a"));
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    const std::string piece(static_cast<size_t>(i) * 997, static_cast<char>('a' + i % 26));
    file.write(piece);
    expected += piece;
  }
  file.commit();
  EXPECT_EQ(read(path("a")), expected);
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SupportFiles, AtomicFileReportsTheMachine) {
  AtomicFile full("/dev/full");
  full.write("x");
  EXPECT_THROW(full.commit(), RuntimeError);
  EXPECT_THROW(AtomicFile(path("no/such/folder")), RuntimeError);
  EXPECT_THROW(AtomicFile(path("")), UserError);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(SupportFiles, MappedFileIsPrivate) {
  std::ofstream(path("a")) << "abc";
  const auto file = MappedFile::open(path("a"));
  ASSERT_EQ(file->bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(file->bytes()[1]), 'b');
  const_cast<std::byte&>(file->bytes()[0]) = std::byte{'z'};
  EXPECT_EQ(read(path("a")), "abc");
  std::ofstream(path("empty"));
  EXPECT_TRUE(MappedFile::open(path("empty"))->bytes().empty());
  EXPECT_THROW(MappedFile::open(path("missing")), UserError);
  EXPECT_THROW(MappedFile::open(path("")), UserError);
}

TEST_F(SupportFiles, FoldersOfKilledProcessesAreRemoved) {
  const auto old = [](const std::string& folder) {
    fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(1));
  };
  const TemporaryFolder used(folder_, "stax-used-");
  old(used.path());
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryFolder killed(folder_, "stax-used-");
    std::ofstream(killed.path() + "/file") << "left";
    old(killed.path());
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  fs::create_directory(path("stax-used-new"));  // its process has not locked it yet
  fs::create_directory(path("stax-other"));
  old(path("stax-other"));
  fs::create_directory_symlink("/", path("stax-used-link"));
  EXPECT_EQ(count(), 5u);
  remove_abandoned_folders(folder_, "stax-used-");
  EXPECT_TRUE(fs::exists(used.path()));
  EXPECT_TRUE(fs::exists(path("stax-used-new")));
  EXPECT_TRUE(fs::exists(path("stax-other")));
  EXPECT_EQ(count(), 4u) << "what the killed process left is still there";
}

// The boundary cases of RFC 3629, section 4.
TEST(Utf8, FollowsTheStandard) {
  for (const char* good :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "x\xc3\xa9y"}) {
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe1\x80",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
  }
  EXPECT_TRUE(is_valid_utf8(std::string_view("\0", 1)));
}

}  // namespace
}  // namespace stax

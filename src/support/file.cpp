#include "support/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "support/check.h"
#include "support/descriptor.h"

namespace stax {

std::optional<std::string> read_file(const std::string& path) {
  // O_NONBLOCK: a pipe has no end to wait for.
  Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status;
  if (file.fd < 0 || fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string bytes;
  bytes.resize(static_cast<size_t>(status.st_size));
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size())
      bytes.resize(bytes.size() + 4096);  // room to see the end, or more than was announced
    const ssize_t got = read(file.fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

TemporaryFolder::TemporaryFolder(const std::string& parent, const std::string& prefix)
    : path_(parent + "/" + prefix + "XXXXXX") {
  STAX_RUNTIME_CHECK(mkdtemp(path_.data()) != nullptr, "cannot create a temporary folder in {}: {}", parent,
                     strerror(errno));
  // Where a file system has no locks nobody can take them from it, either.
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) flock(lock_, LOCK_SH | LOCK_NB);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

void remove_abandoned_folders(const std::string& parent, const std::string& prefix) {
  constexpr time_t kAge = 60;  // seconds: between the creation of a folder and its lock
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const Descriptor folder{open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    struct stat status;
    if (folder.fd < 0 || fstat(folder.fd, &status) != 0 || status.st_uid != geteuid()) continue;
    if (time(nullptr) - status.st_mtime < kAge) continue;
    if (flock(folder.fd, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(entry.path(), ignored);
  }
}

std::string temporary_root() {
  const char* root = std::getenv("TMPDIR");
  return root != nullptr && *root != '\0' ? root : "/tmp";
}

std::optional<std::string> find_program(const std::string& program) {
  auto is_executable = [](const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos)
    return is_executable(program) ? std::optional(program) : std::nullopt;
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!folders.empty()) {
    const size_t end = folders.find(':');
    std::string candidate = std::string(folders.substr(0, end)) + "/" + program;
    if (candidate.front() == '/' && is_executable(candidate)) return candidate;
    folders = end == std::string_view::npos ? std::string_view{} : folders.substr(end + 1);
  }
  return std::nullopt;
}

}  // namespace stax

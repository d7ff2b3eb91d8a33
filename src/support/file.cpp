#include "support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
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
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
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

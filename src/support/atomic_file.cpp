#include "support/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/check.h"
#include "support/plural.h"

namespace stax {
namespace {

constexpr size_t kBufferSize = size_t{1} << 16;

std::string follow_links(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

std::string temporary_name(const std::string& target) {
  static std::atomic<uint64_t> counter{0};  // two threads may write the same target
  return fmt::format("{}.tmp.{}.{}", target, getpid(), counter.fetch_add(1));
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(follow_links(path)) {
  struct stat status;
  const bool exists = stat(target_.c_str(), &status) == 0;
  STAX_CHECK(!exists || !S_ISDIR(status.st_mode), "{}: expected a file's name to write to, got a folder",
             path);
  if (exists && !S_ISREG(status.st_mode)) {
    fd_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    temporary_ = temporary_name(target_);
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  const int error = errno;
  if (fd_ < 0) temporary_.clear();
  STAX_RUNTIME_CHECK(fd_ >= 0, "{}: cannot create the file: {}", path, std::strerror(error));
  if (exists && !temporary_.empty())
    fchmod(fd_, status.st_mode & 07777);  // a replaced file keeps its permissions
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t size) {
  STAX_ASSERT(fd_ >= 0, "{} written after commit", path_);
  if (size == 0) return;
  offset_ += size;
  if (buffer_.size() + size <= kBufferSize) {
    buffer_.append(static_cast<const char*>(data), size);
    return;
  }
  flush();
  write_through(static_cast<const char*>(data), size);
}

void AtomicFile::write_zeros(size_t count) {
  static constexpr char zeros[4096] = {};
  for (; count > 0; count -= std::min(count, sizeof zeros)) write(zeros, std::min(count, sizeof zeros));
}

void AtomicFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::write_through(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd_, data, std::min(size, size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    STAX_RUNTIME_CHECK(written >= 0, "{}: cannot write {}: {}; nothing was saved", path_,
                       counted(size, "byte"), std::strerror(errno));
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit(bool durable) {
  flush();
  if (durable && !temporary_.empty()) {
    // Without this a crash soon after the rename could leave an empty file under the final name.
    STAX_RUNTIME_CHECK(fsync(fd_) == 0, "{}: cannot write to the disk: {}; nothing was saved", path_,
                       std::strerror(errno));
  }
  const int closed = close(fd_);
  fd_ = -1;
  STAX_RUNTIME_CHECK(closed == 0, "{}: cannot finish the file: {}; nothing was saved", path_,
                     std::strerror(errno));
  if (temporary_.empty()) return;
  STAX_RUNTIME_CHECK(rename(temporary_.c_str(), target_.c_str()) == 0,
                     "{}: cannot put the file in its place: {}; nothing was saved", path_,
                     std::strerror(errno));
  temporary_.clear();
}

}  // namespace stax

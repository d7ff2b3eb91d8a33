#include "support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "support/check.h"
#include "support/descriptor.h"
#include "support/plural.h"

namespace stax {

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer only to be refused below.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  STAX_CHECK(file.fd >= 0, "{}: expected a readable file, got: {}", path, std::strerror(errno));
  struct stat status;
  STAX_RUNTIME_CHECK(fstat(file.fd, &status) == 0, "{}: cannot read the file's size: {}", path,
                     std::strerror(errno));
  STAX_CHECK(S_ISREG(status.st_mode), "{}: expected a regular file, got a {}", path,
             S_ISDIR(status.st_mode) ? "folder" : "device or pipe");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<MappedFile>(new MappedFile(path, nullptr, 0));
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd, 0);
  STAX_RUNTIME_CHECK(data != MAP_FAILED, "{}: cannot map {}: {}", path, counted(size, "byte"),
                     std::strerror(errno));
  return std::shared_ptr<MappedFile>(new MappedFile(path, static_cast<std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace stax

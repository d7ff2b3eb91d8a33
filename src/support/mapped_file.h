// A whole file in memory, mapped.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace stax {

/// The bytes of a regular file, mapped privately: pages are read when touched and copied when written, so a
/// holder may write to them and the file never changes. A file that another process shortens while it is
/// mapped kills the reader (SIGBUS), as with every mapped file.
class MappedFile {
 public:
  /// Throws UserError when there is no regular, readable file at path, RuntimeError when the system cannot
  /// map it.
  static std::shared_ptr<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  std::byte* data_;
  size_t size_;
};

}  // namespace stax

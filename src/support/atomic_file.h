// Writing a file so that it is there whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stax {

/// Writes to a temporary file beside the target and renames it at commit. Without commit, on an error or a
/// killed process, whatever stood at the target stays. A target that is a device or a pipe is written to
/// directly. Every failure of the system (no space, no permission, no such folder) throws RuntimeError naming
/// the target.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write_zeros(size_t count);
  /// Bytes written so far.
  uint64_t offset() const { return offset_; }
  /// Writes everything to the disk and puts the file in its place. Nothing may be written afterwards. Where a
  /// reader sees by the content whether it is whole, `durable` may be false: the system writes it to the disk
  /// when it likes.
  void commit(bool durable = true);

 private:
  void flush();
  void write_through(const char* data, size_t size);

  std::string path_;    // as the caller gave it, for messages
  std::string target_;  // with symbolic links followed, so that a link's target is replaced and not the link
  std::string temporary_;  // empty when writing to a device directly
  std::string buffer_;
  uint64_t offset_ = 0;
  int fd_ = -1;
};

}  // namespace stax

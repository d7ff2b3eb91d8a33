// Reading whole files, temporary folders, search on PATH. Writing: support/atomic_file.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stax {

/// The bytes of a regular file; nothing when it cannot be read.
std::optional<std::string> read_file(const std::string& path);

/// A folder of mode 0700 that is removed with all it holds when the object goes. Until then, or until all
/// processes end that have it locked, remove_abandoned_folders() leaves it alone.
class TemporaryFolder {
 public:
  /// Creates `parent`/`prefix`XXXXXX. Throws RuntimeError when that fails.
  TemporaryFolder(const std::string& parent, const std::string& prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  // a shared lock of the folder
};

/// Removes folders `parent`/`prefix`... of this user that no process has locked and nothing was created in
/// for a minute: their processes were killed. Errors are ignored.
void remove_abandoned_folders(const std::string& parent, const std::string& prefix);

/// TMPDIR, else /tmp.
std::string temporary_root();

/// The executable file that `program` names: itself when it contains a slash, else the first match on PATH.
std::optional<std::string> find_program(const std::string& program);

}  // namespace stax

// The disk cache of compiled kernels, for CPUs and GPUs: one file an entry, named by the SHA-256 of all that
// determined it.
//
// Every file ends in a trailer with its length and hash, so a truncated or edited entry is noticed and counts
// as missing. Entries appear by rename, so readers in other processes see whole ones only; a process killed
// while compiling leaves a scratch folder behind, which a later process removes. Nothing is synchronised to
// the disk: after a power failure an entry may be damaged, which is noticed as above.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/file.h"

namespace stax::runtime {

class CodeCache {
 public:
  struct Entry {
    std::string key;
    int64_t bytes = 0;
    int64_t last_used = 0;  ///< seconds since 1970
  };

  /// Opens (and creates, mode 0700) the cache in `folder`. A folder that is owned by another user, is
  /// writable by others or cannot be created is not used: problem() says why, find() finds nothing, put()
  /// stores nothing. `byte_limit` bounds the sum of the entries' sizes; the least recently used go first.
  explicit CodeCache(std::string folder, int64_t byte_limit = int64_t{1} << 30);

  /// STAX_CACHE_DIR, else XDG_CACHE_HOME/stax, else ~/.cache/stax; empty when there is no home.
  static std::string default_folder();

  const std::string& folder() const { return folder_; }
  /// Why the folder is not used; empty when it is.
  const std::string& problem() const { return problem_; }

  /// Path of the intact entry of `key` (64 hexadecimal digits), marked as used now. A damaged entry is
  /// removed.
  std::optional<std::string> find(const std::string& key) const;

  /// What the intact entry of `key` holds, likewise.
  std::optional<std::string> read(const std::string& key) const;

  /// Moves `file`, which should lie in scratch(), into the cache. Returns the entry's path, or nothing (and
  /// leaves a usable `file`) when the cache cannot take it.
  std::optional<std::string> put(const std::string& key, const std::string& file) const;

  /// Stores `content`; false when the cache cannot take it.
  bool write(const std::string& key, std::string_view content) const;

  /// A private folder to compile in, on the cache's file system; null when the cache cannot be written.
  std::unique_ptr<TemporaryFolder> scratch() const;

  /// All entries, last used first.
  std::vector<Entry> list() const;
  /// Bytes of all entries.
  int64_t size() const;
  /// Removes all entries and abandoned scratch folders; returns the number of entries.
  int64_t clear() const;
  /// Removes scratch folders whose process is gone, then the least recently used entries above the limit.
  void trim() const;

 private:
  std::string path_of(const std::string& key) const;

  std::string folder_;
  int64_t byte_limit_;
  std::string problem_;
};

}  // namespace stax::runtime

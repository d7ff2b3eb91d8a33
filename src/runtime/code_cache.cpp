#include "runtime/code_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/check.h"
#include "support/hash.h"

namespace stax::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic = "STAXCODE";
constexpr size_t kTrailerBytes = 8 + 8 + 32;
constexpr std::string_view kSuffix = ".so";
constexpr int64_t kScratchAge =
    24 * 3600;  // seconds after which a scratch folder is abandoned, whoever made it

std::string trailer_of(std::string_view content) {
  std::string trailer(kMagic);
  const uint64_t length = content.size();
  trailer.append(reinterpret_cast<const char*>(&length), sizeof length);
  const auto digest = sha256(content);
  trailer.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return trailer;
}

bool is_intact(std::string_view file) {
  if (file.size() < kTrailerBytes) return false;
  const std::string_view content = file.substr(0, file.size() - kTrailerBytes);
  return file.substr(content.size()) == trailer_of(content);
}

/// Why `folder` may not hold code that this process runs; empty when it may.
std::string distrust(const std::string& folder) {
  struct stat status;
  if (stat(folder.c_str(), &status) != 0) return fmt::format("cannot read {}: {}", folder, strerror(errno));
  if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a folder", folder);
  if (status.st_uid != geteuid()) return fmt::format("{} belongs to another user", folder);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("{} is writable by others (run chmod go-w on it)", folder);
  return {};
}

std::string prepare(const std::string& folder) {
  if (folder.empty()) return "there is no home folder and STAX_CACHE_DIR is not set";
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fmt::format("cannot create {}: {}", folder, strerror(errno));
  std::string problem = distrust(folder);
  for (const char* part : {"/kernels", "/scratch"}) {
    if (!problem.empty()) break;
    if (mkdir((folder + part).c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
      return fmt::format("cannot create {}{}: {}", folder, part, strerror(errno));
    struct stat status;
    if (stat((folder + part).c_str(), &status) == 0) problem = distrust(folder + part);
  }
  return problem;
}

int64_t seconds_since_use(const struct stat& status) {
  return time(nullptr) - status.st_mtime;
}

/// Scratch folders are named PID-XXXXXX. One of a process that is gone, or a very old one, is abandoned.
bool is_abandoned(const fs::path& path) {
  const std::string name = path.filename().string();
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return false;
  if (seconds_since_use(status) > kScratchAge) return true;
  pid_t pid = 0;
  std::from_chars(name.data(), name.data() + name.size(), pid);
  return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

CodeCache::CodeCache(std::string folder, int64_t byte_limit)
    : folder_(std::move(folder)), byte_limit_(byte_limit), problem_(prepare(folder_)) {}

std::string CodeCache::default_folder() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (std::string folder = variable("STAX_CACHE_DIR"); !folder.empty()) return folder;
  if (std::string root = variable("XDG_CACHE_HOME"); root.starts_with('/')) return root + "/stax";
  if (std::string home = variable("HOME"); home.starts_with('/')) return home + "/.cache/stax";
  return {};
}

std::string CodeCache::path_of(const std::string& key) const {
  return folder_ + "/kernels/" + key + std::string(kSuffix);
}

std::optional<std::string> CodeCache::find(const std::string& key) const {
  if (!read(key)) return std::nullopt;
  return path_of(key);
}

std::optional<std::string> CodeCache::read(const std::string& key) const {
  if (!problem_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  std::optional<std::string> file = read_file(path);
  if (!file) return std::nullopt;
  if (!is_intact(*file)) {
    unlink(path.c_str());
    return std::nullopt;
  }
  struct stat status;
  // The time of the last use orders eviction; once a minute is exact enough and spares the disk.
  if (stat(path.c_str(), &status) == 0 && seconds_since_use(status) > 60)
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  file->resize(file->size() - kTrailerBytes);
  return file;
}

bool CodeCache::write(const std::string& key, std::string_view content) const {
  const auto folder = scratch();
  if (!folder) return false;
  const std::string path = folder->path() + "/entry";
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  return file.good() && put(key, path).has_value();
}

std::optional<std::string> CodeCache::put(const std::string& key, const std::string& file) const {
  if (!problem_.empty()) return std::nullopt;
  std::optional<std::string> content = read_file(file);
  if (!content) return std::nullopt;
  {
    std::ofstream out(file, std::ios::binary | std::ios::app);
    out << trailer_of(*content);
    if (!out.flush()) return std::nullopt;  // a partial trailer does not matter to the loader
  }
  std::string path = path_of(key);
  if (rename(file.c_str(), path.c_str()) == 0) return path;
  std::error_code error;
  if (errno == EISDIR) fs::remove_all(path, error);  // no entry of ours
  if (rename(file.c_str(), path.c_str()) != 0) return std::nullopt;
  return path;
}

std::unique_ptr<TemporaryFolder> CodeCache::scratch() const {
  if (!problem_.empty()) return nullptr;
  try {
    return std::make_unique<TemporaryFolder>(folder_ + "/scratch", fmt::format("{}-", getpid()));
  } catch (const RuntimeError&) {
    return nullptr;
  }
}

std::vector<CodeCache::Entry> CodeCache::list() const {
  std::vector<Entry> entries;
  if (!problem_.empty()) return entries;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_ + "/kernels", error)) {
    struct stat status;
    const std::string name = file.path().filename().string();
    if (!name.ends_with(kSuffix) || stat(file.path().c_str(), &status) != 0) continue;
    entries.push_back({name.substr(0, name.size() - kSuffix.size()), status.st_size, status.st_mtime});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.last_used != b.last_used ? a.last_used > b.last_used : a.key < b.key;
  });
  return entries;
}

int64_t CodeCache::size() const {
  int64_t bytes = 0;
  for (const Entry& entry : list()) bytes += entry.bytes;
  return bytes;
}

int64_t CodeCache::clear() const {
  int64_t count = 0;
  for (const Entry& entry : list()) count += unlink(path_of(entry.key).c_str()) == 0;
  trim();
  return count;
}

void CodeCache::trim() const {
  if (!problem_.empty()) return;
  std::error_code error;
  for (const fs::directory_entry& folder : fs::directory_iterator(folder_ + "/scratch", error))
    if (is_abandoned(folder.path())) fs::remove_all(folder.path(), error);
  int64_t bytes = 0;
  for (const Entry& entry : list()) {
    bytes += entry.bytes;
    if (bytes > byte_limit_) unlink(path_of(entry.key).c_str());
  }
}

}  // namespace stax::runtime

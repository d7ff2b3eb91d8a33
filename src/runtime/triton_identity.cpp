#include "runtime/triton_identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "support/atomic_file.h"
#include "support/check.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/python.h"

extern char** environ;

namespace stax::runtime {
namespace {

constexpr int kOldestMinor = 4, kNewestMinor = 9;  // of version 3
constexpr std::string_view kRecordEnd = "\nend\n";

/// Variables by which Triton, its LLVM and its assembler change what they make.
std::string compiler_environment() {
  constexpr std::string_view kPrefixes[] = {"TRITON_", "PTXAS_",   "LLVM_",     "MLIR_",
                                            "NVPTX_",  "DISABLE_", "USE_IR_LOC"};
  constexpr std::string_view kSetForWorkers[] = {"TRITON_CACHE_DIR=", "TRITON_HOME=", "TRITON_INTERPRET="};
  std::vector<std::string_view> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto begins = [&](std::string_view prefix) { return text.starts_with(prefix); };
    if (std::ranges::any_of(kPrefixes, begins) && std::ranges::none_of(kSetForWorkers, begins))
      found.push_back(text);
  }
  std::ranges::sort(found);
  std::string all;
  for (std::string_view text : found) (all += text) += '\n';
  return all;
}

TritonIdentity identity_of(const Json& hello, const std::string& package) {
  TritonIdentity identity{hello.at("triton").as_string(), {}};
  identity.text = fmt::format("{}\n{}\n{}\n{}", identity.version, hello.at("files").dump(), package,
                              compiler_environment());
  return identity;
}

std::string stamp_of(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return path + " is gone";
  return fmt::format("{} {} {}.{:09}", path, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

/// What decides which Triton a Python imports, as far as it is cheap to see.
std::string python_stamp(const std::string& python) {
  std::string stamp = stamp_of(python);
  for (const char* name : {"PYTHONPATH", "PYTHONHOME", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"}) {
    const char* value = std::getenv(name);
    stamp += fmt::format(" {}={}", name, value != nullptr ? value : "");
  }
  return stamp + "\n";
}

std::string record_path(const CodeCache& cache, const std::string& stamp) {
  return cache.folder() + "/triton-" + sha256_hex(stamp).substr(0, 16);
}

bool is_unchanged(const Json& file) {
  struct stat status;
  if (stat(file.at(size_t{0}).as_string().c_str(), &status) != 0) return false;
  return status.st_size == file.at(1).as_int() &&
         status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec == file.at(2).as_int();
}

}  // namespace

std::string triton_version_problem(const std::string& version) {
  int parts[2] = {-1, -1};
  const char *at = version.data(), *const end = at + version.size();
  for (int& part : parts) {
    at = std::from_chars(at, end, part).ptr;
    if (at != end) ++at;  // the dot
  }
  const auto refused = [&](std::string_view why) {
    return fmt::format("Triton {} cannot be used: {}. Versions 3.{} to 3.{} work (pip install triton=={})",
                       version, why, kOldestMinor, kNewestMinor, kPinnedTriton);
  };
  if (parts[0] < 0 || parts[1] < 0) return refused("its version is not understood");
  if (parts[0] < 3 || (parts[0] == 3 && parts[1] < kOldestMinor))
    return refused("it lacks interfaces that came with 3.4");
  if (parts[0] > 3 || parts[1] > kNewestMinor)
    return refused("it is newer than all versions whose kernels were checked");
  return {};
}

TritonIdentity triton_identity(const Json& hello) {
  return identity_of(hello, hello.at("package").as_string());
}

std::optional<TritonIdentity> recorded_triton(const CodeCache& cache, const std::string& python,
                                              const std::string& package_folder) {
  if (!cache.problem().empty()) return std::nullopt;
  const std::string stamp = python_stamp(python);
  const auto text = read_file(record_path(cache, stamp));
  if (!text || !text->starts_with(stamp) || !text->ends_with(kRecordEnd)) return std::nullopt;
  try {
    std::string_view content = std::string_view(*text).substr(stamp.size());
    content.remove_suffix(kRecordEnd.size());
    const Json hello = Json::parse(content, {.what = "the record of Triton's version"});
    const Json::Array& files = hello.at("files").as_array();
    if (files.empty() || !std::ranges::all_of(files, is_unchanged)) return std::nullopt;
    return identity_of(hello, python_package_hash(package_folder));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

void record_triton(const CodeCache& cache, const std::string& python, const Json& hello) {
  if (!cache.problem().empty()) return;
  const std::string stamp = python_stamp(python);
  AtomicFile file(record_path(cache, stamp));
  file.write(stamp + hello.dump() + std::string(kRecordEnd));
  file.commit(false);
}

}  // namespace stax::runtime

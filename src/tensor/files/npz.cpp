#include "tensor/files/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "support/check.h"
#include "tensor/files/npy.h"
#include "tensor/files/zip.h"

namespace stax::files {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

NpzFile::NpzFile(const std::string& path)
    : path_(path), zip_(std::make_unique<ZipReader>(MappedFile::open(path))) {
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < zip_->entries().size(); ++i) {
    std::string name = zip_->entries()[i].name;
    if (name.ends_with('/')) continue;  // a folder
    if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
    STAX_CHECK(seen.insert(name).second, "{}: expected every array name once, got '{}' twice", path, name);
    names_.push_back(std::move(name));
    entries_.push_back(i);
  }
}

NpzFile::~NpzFile() = default;
NpzFile::NpzFile(NpzFile&&) noexcept = default;

ArrayView NpzFile::array(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  STAX_CHECK(found != names_.end(), "{}: expected an array named '{}', got [{}]", path_, name,
             fmt::join(names_.begin(), names_.begin() + std::min<ptrdiff_t>(names_.size(), 20), ", "));
  const ZipEntry& entry = zip_->entries()[entries_[found - names_.begin()]];
  const ZipReader::Content content = zip_->read(entry);
  return parse_npy(content.bytes, content.owner, fmt::format("{}: {}", path_, entry.name));
}

std::vector<std::pair<std::string, ArrayView>> load_npz(const std::string& path) {
  const NpzFile file(path);
  std::vector<std::pair<std::string, ArrayView>> out;
  for (const std::string& name : file.names()) out.emplace_back(name, file.array(name));
  return out;
}

void save_npz(const std::string& path, const std::vector<std::pair<std::string, ArrayView>>& arrays,
              const NpzOptions& options) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, array] : arrays) {
    STAX_CHECK(seen.insert(name).second, "{}: expected every array name once, got '{}' twice", path, name);
    check_view(array, name);
  }
  ZipWriter zip(path, options.compress, options.always_zip64);
  for (const auto& [name, array] : arrays) {
    const std::string header = npy_header(array);
    zip.add(name + std::string(kSuffix), std::as_bytes(std::span(header)),
            {array.data, static_cast<size_t>(array.nbytes)});
  }
  zip.finish();
}

}  // namespace stax::files

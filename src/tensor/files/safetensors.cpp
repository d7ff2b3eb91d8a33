#include "tensor/files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "support/atomic_file.h"
#include "support/check.h"
#include "support/json.h"
#include "support/mapped_file.h"
#include "support/plural.h"
#include "support/utf8.h"

namespace stax::files {
namespace {

constexpr int64_t kMaxHeader = 100'000'000;  // the limit of the format's own implementation
constexpr size_t kMaxRank = 1024;  // the format has no limit; PyTorch writes files beyond NumPy's 64
constexpr std::string_view kMetadata = "__metadata__";

struct FileDType {
  std::string_view name;
  int64_t bytes;  // of one element
  std::optional<DType> dtype;
};

// What the format knows; those without a dtype of ours are checked, but cannot be asked for.
constexpr FileDType kFileDTypes[] = {
    {"F64", 8, kFloat64}, {"F32", 4, kFloat32}, {"F16", 2, kFloat16}, {"BF16", 2, kBFloat16},
    {"I64", 8, kInt64},   {"I32", 4, kInt32},   {"I16", 2, kInt16},   {"I8", 1, kInt8},
    {"U8", 1, kUInt8},    {"BOOL", 1, kBool},   {"U16", 2, {}},       {"U32", 4, {}},
    {"U64", 8, {}},       {"C64", 8, {}},       {"F8_E4M3", 1, {}},   {"F8_E5M2", 1, {}},
    {"F8_E8M0", 1, {}},
};

const FileDType* find_dtype(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFileDTypes), std::end(kFileDTypes),
                                   [&](const FileDType& d) { return d.name == name; });
  return found == std::end(kFileDTypes) ? nullptr : found;
}

std::string_view file_name_of(DType dtype) {
  for (const FileDType& row : kFileDTypes) {
    if (row.dtype == dtype) return row.name;
  }
  STAX_ASSERT(false, "dtype {} has no name in safetensors files", name(dtype));
}

std::vector<int64_t> integers(const Json& list) {
  std::vector<int64_t> out;
  for (const Json& element : list.as_array()) out.push_back(element.as_int());
  return out;
}

SafetensorsFile::Entry read_entry(const std::string& name, const Json& json) {
  for (const auto& [key, value] : json.as_object()) {
    STAX_CHECK(key == "dtype" || key == "shape" || key == "data_offsets",
               "expected the members dtype, shape and data_offsets, got \"{}\"", key);
  }
  const std::vector<int64_t> offsets = integers(json.at("data_offsets"));
  STAX_CHECK(offsets.size() == 2, "expected two data_offsets, got {}", offsets.size());
  SafetensorsFile::Entry entry{name, json.at("dtype").as_string(), integers(json.at("shape")), offsets[0],
                               offsets[1]};
  STAX_CHECK(entry.begin >= 0 && entry.begin <= entry.end, "expected rising data_offsets, got [{}, {}]",
             entry.begin, entry.end);
  STAX_CHECK(entry.sizes.size() <= kMaxRank, "expected at most {}, got {}", counted(kMaxRank, "dimension"),
             entry.sizes.size());
  const FileDType* dtype = find_dtype(entry.dtype);
  const int64_t bytes = checked_bytes(entry.sizes, dtype != nullptr ? dtype->bytes : 1);
  STAX_CHECK(bytes >= 0, "expected sizes that are not negative and whose product fits in 63 bits");
  STAX_CHECK(dtype == nullptr || bytes == entry.end - entry.begin,
             "expected {} for its shape and dtype {}, got {}", counted(bytes, "byte"), entry.dtype,
             entry.end - entry.begin);
  return entry;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(MappedFile::open(path)) {
  const auto bytes = file_->bytes();
  STAX_CHECK(bytes.size() >= 8, "{}: expected a safetensors file of at least 8 bytes, got {}", path,
             bytes.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  STAX_CHECK(length <= bytes.size() - 8 && length <= kMaxHeader,
             "{}: expected a safetensors header of at most {}, got a length of {}; the file is "
             "truncated or of another kind",
             path, counted(std::min<uint64_t>(bytes.size() - 8, kMaxHeader), "byte"), length);
  data_begin_ = 8 + length;
  read_header({reinterpret_cast<const char*>(bytes.data()) + 8, length});
  check_layout();
}

void SafetensorsFile::read_header(std::string_view header) {
  const std::string& path = file_->path();
  STAX_CHECK(header.starts_with('{'),
             "{}: expected a safetensors header that starts with '{{', got other bytes", path);
  const Json json = Json::parse(header, {.what = path, .max_depth = 8});
  for (const auto& [name, value] : json.as_object()) {
    try {
      if (name == kMetadata) {
        for (const auto& [key, text] : value.as_object()) metadata_.emplace(key, text.as_string());
      } else {
        entries_.push_back(read_entry(name, value));
      }
    } catch (const UserError& error) {
      throw_user_error(fmt::format("{}: safetensors header, tensor '{}': {}", path, name, error.what()));
    }
  }
}

void SafetensorsFile::check_layout() {
  const std::string& path = file_->path();
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t covered = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    STAX_CHECK(entry.begin == covered, "{}: expected tensor '{}' at byte {} of the data, got {}: tensors {}",
               path, entry.name, covered, entry.begin, entry.begin < covered ? "overlap" : "leave a hole");
    covered = entry.end;
    index_.emplace(entry.name, i);
  }
  const auto available = static_cast<int64_t>(file_->bytes().size() - data_begin_);
  STAX_CHECK(covered == available, "{}: expected {} of tensor data, got {}{}", path, counted(covered, "byte"),
             available, covered > available ? "; the file is truncated" : "");
}

ArrayView SafetensorsFile::tensor(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  STAX_CHECK(found != index_.end(), "{}: expected a tensor named '{}', got {} others; entries() lists them",
             file_->path(), name, entries_.size());
  const Entry& entry = entries_[found->second];
  const FileDType* dtype = find_dtype(entry.dtype);
  STAX_CHECK(dtype != nullptr && dtype->dtype.has_value(),
             "{}: tensor '{}': expected a dtype among F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL, got {}",
             file_->path(), name, entry.dtype);
  return make_view(*dtype->dtype, entry.sizes, file_->bytes().data() + data_begin_ + entry.begin, file_);
}

namespace {

void check_names(const std::string& path, const std::vector<std::pair<std::string, ArrayView>>& tensors,
                 const std::map<std::string, std::string>& metadata) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, view] : tensors) {
    STAX_CHECK(name != kMetadata && is_valid_utf8(name),
               "{}: expected a tensor name in UTF-8 other than {}, got '{}'", path, kMetadata, name);
    STAX_CHECK(seen.insert(name).second, "{}: expected every tensor name once, got '{}' twice", path, name);
    STAX_CHECK(view.sizes.size() <= kMaxRank, "{}: expected at most {}, got {}", path,
               counted(kMaxRank, "dimension"), view.sizes.size());
    check_view(view, name);
  }
  for (const auto& [key, value] : metadata) {
    STAX_CHECK(is_valid_utf8(key) && is_valid_utf8(value),
               "{}: expected metadata in UTF-8, got other bytes under '{}'", path, key);
  }
}

std::string header_of(const std::vector<std::pair<std::string, ArrayView>>& tensors,
                      const std::vector<size_t>& order, const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto add = [&](std::string_view name, const Json& value) {
    if (text.size() > 1) text += ", ";
    text += Json(name).dump() + ": " + value.dump();
  };
  if (!metadata.empty()) {
    Json map = Json::object();
    for (const auto& [key, value] : metadata) map.set(key, value);
    add(kMetadata, map);
  }
  int64_t offset = 0;
  for (size_t i : order) {
    const auto& [name, view] = tensors[i];
    Json sizes = Json::array();
    for (int64_t size : view.sizes) sizes.push_back(size);
    Json entry = Json::object();
    entry.set("dtype", file_name_of(view.dtype)).set("shape", sizes);
    entry.set("data_offsets", Json::array().push_back(offset).push_back(offset + view.nbytes));
    add(name, entry);
    offset += view.nbytes;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, ArrayView>>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  check_names(path, tensors, metadata);
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int64_t width_a = itemsize(tensors[a].second.dtype), width_b = itemsize(tensors[b].second.dtype);
    return width_a != width_b ? width_a > width_b : tensors[a].first < tensors[b].first;
  });
  const std::string header = header_of(tensors, order, metadata);
  STAX_CHECK(static_cast<int64_t>(header.size()) <= kMaxHeader, "{}: expected a header of at most {}, got {}",
             path, counted(kMaxHeader, "byte"), header.size());
  AtomicFile file(path);
  const uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header);
  for (size_t i : order) {
    const ArrayView view = to_c_order(tensors[i].second);
    file.write(view.data, static_cast<size_t>(view.nbytes));
  }
  file.commit();
}

}  // namespace stax::files

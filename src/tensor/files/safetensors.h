// safetensors files: an 8-byte length, a JSON header, then the tensors' bytes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/files/array_view.h"

namespace stax {
class MappedFile;
}

namespace stax::files {

/// An open file. Tensors stay in the mapped file unless their bytes are not aligned to the element size.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string dtype;  ///< as the file spells it: "F32", "BF16", ...
    std::vector<int64_t> sizes;
    int64_t begin = 0, end = 0;  ///< bytes within the data that follows the header
  };

  /// Reads and checks the whole header: its length, that every name stands once, that sizes, dtype and bytes
  /// agree, and that the tensors cover the data exactly, with no overlap, no hole and nothing beyond the end.
  /// Throws UserError naming the file, what was expected and what came.
  explicit SafetensorsFile(const std::string& path);

  /// In the order of their bytes.
  const std::vector<Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(std::string_view name) const { return index_.count(std::string(name)) > 0; }
  /// The tensor of that name. Throws UserError when there is none, or when its dtype is none of F64 F32 F16
  /// BF16 I64 I32 I16 I8 U8 BOOL; a file may hold such tensors as long as nobody asks for them.
  ArrayView tensor(std::string_view name) const;

 private:
  void read_header(std::string_view header);
  void check_layout();

  std::shared_ptr<MappedFile> file_;
  size_t data_begin_ = 0;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

/// Writes the tensors, widest elements first so that all are aligned, replacing the file whole or not at all.
/// Throws UserError for a name that stands twice, is "__metadata__" or is not UTF-8, and for an inconsistent
/// view; RuntimeError when the system cannot write.
void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, ArrayView>>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace stax::files

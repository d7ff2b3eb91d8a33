// NumPy's .npz files: zip archives of .npy members.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/files/array_view.h"

namespace stax::files {

class ZipReader;

/// An open archive. Stored arrays stay in the mapped file; compressed ones are unpacked when asked for.
/// Everything throws UserError naming the file for malformed, truncated or damaged archives.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  ~NpzFile();
  NpzFile(NpzFile&&) noexcept;

  /// Names of the arrays in the archive's order, without the ".npy".
  const std::vector<std::string>& names() const { return names_; }
  /// The array of that name; throws UserError listing the names when there is none.
  ArrayView array(std::string_view name) const;

 private:
  std::string path_;
  std::unique_ptr<ZipReader> zip_;
  std::vector<std::string> names_;
  std::vector<size_t> entries_;  // index into the zip's entries for each name
};

/// All arrays of the archive with their names, in its order.
std::vector<std::pair<std::string, ArrayView>> load_npz(const std::string& path);

struct NpzOptions {
  bool compress = false;
  bool always_zip64 = false;  ///< 64-bit records even where the archive is small
};

/// Writes the arrays, replacing the file whole or not at all. Throws UserError for a name that stands twice
/// or an inconsistent view, RuntimeError when the system cannot write.
void save_npz(const std::string& path, const std::vector<std::pair<std::string, ArrayView>>& arrays,
              const NpzOptions& options = {});

}  // namespace stax::files

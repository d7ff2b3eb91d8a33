// Zip archives as far as .npz needs them: stored and deflated members, 64-bit sizes. Internal to the file
// readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/atomic_file.h"
#include "support/mapped_file.h"

namespace stax::files {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;  ///< 0 stored, 8 deflated
  uint32_t crc = 0;
  uint64_t stored_size = 0;  ///< bytes in the archive
  uint64_t size = 0;         ///< bytes when unpacked
  uint64_t header_offset = 0;
  uint64_t data_offset = 0;  ///< readers only: where the stored bytes begin
};

/// Reads an archive. The constructor checks the whole directory: every header lies in the file, no two
/// members share bytes, no member is encrypted or claims to unpack to more than deflate can reach. Throws
/// UserError naming the file.
class ZipReader {
 public:
  explicit ZipReader(std::shared_ptr<MappedFile> file);

  const std::vector<ZipEntry>& entries() const { return entries_; }

  struct Content {
    std::span<const std::byte> bytes;
    std::shared_ptr<void> owner;
  };
  /// Unpacks one member and checks its CRC. Stored members stay in the mapped file.
  Content read(const ZipEntry& entry) const;

 private:
  std::shared_ptr<MappedFile> file_;
  std::vector<ZipEntry> entries_;
};

/// Writes an archive; it is in place only after finish().
class ZipWriter {
 public:
  /// With always_zip64 every record has its 64-bit form, which otherwise only large archives get.
  ZipWriter(const std::string& path, bool compress, bool always_zip64);

  /// Adds a member that consists of the two pieces, one after the other. Stored bytes begin at a multiple
  /// of 64.
  void add(const std::string& name, std::span<const std::byte> first, std::span<const std::byte> second);
  void finish();

 private:
  void write_local_header(const ZipEntry& entry);
  void write_directory_entry(const ZipEntry& entry);

  AtomicFile file_;
  bool compress_;
  bool always_zip64_;
  std::vector<ZipEntry> entries_;
};

}  // namespace stax::files

// Record layouts: the ZIP application note (APPNOTE.TXT), sections 4.3 and 4.5.3.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "support/check.h"
#include "support/plural.h"
#include "tensor/files/array_view.h"
#include "tensor/files/zip.h"

namespace stax::files {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint16_t kEncrypted = 0x2041;   // traditional, strong and masked-directory encryption flags
constexpr uint64_t kDeflateRatio = 1032;  // deflate expands a byte to at most this many

// Little-endian fields of a file, each read checked against its length.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <typename T>
  T get(uint64_t offset) const {
    require(offset, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::string text(uint64_t offset, uint64_t length) const {
    require(offset, length);
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, static_cast<size_t>(length)};
  }
  void require(uint64_t offset, uint64_t length) const {
    STAX_CHECK(offset <= bytes_.size() && length <= bytes_.size() - offset,
               "{}: expected {} at offset {} of the zip archive, got a file of {}", path_,
               counted(length, "byte"), offset, counted(bytes_.size(), "byte"));
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
};

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

uint64_t find_end(const Fields& fields, const std::string& path) {
  const uint64_t size = fields.size();
  STAX_CHECK(size >= 22, "{}: expected a zip archive of at least 22 bytes, got {}", path, size);
  const uint64_t furthest = std::min<uint64_t>(size - 22, 65535);
  for (uint64_t comment = 0; comment <= furthest; ++comment) {
    const uint64_t offset = size - 22 - comment;
    if (fields.get<uint32_t>(offset) == kEnd && fields.get<uint16_t>(offset + 20) == comment) return offset;
  }
  throw_user_error(fmt::format(
      "{}: expected a zip archive, got no end record; the file is truncated or of another kind", path));
}

Directory read_end64(const Fields& fields, uint64_t end, const std::string& path) {
  STAX_CHECK(end >= 20 && fields.get<uint32_t>(end - 20) == kEnd64Locator,
             "{}: expected a zip64 locator before the end record, got none", path);
  const auto offset = fields.get<uint64_t>(end - 12);
  fields.require(offset, 56);
  STAX_CHECK(fields.get<uint32_t>(offset) == kEnd64,
             "{}: expected a zip64 end record at offset {}, got other bytes", path, offset);
  STAX_CHECK(fields.get<uint32_t>(offset + 16) == 0 && fields.get<uint32_t>(offset + 20) == 0 &&
                 fields.get<uint64_t>(offset + 24) == fields.get<uint64_t>(offset + 32),
             "{}: expected a zip archive in one file, got a part of a split one", path);
  return {fields.get<uint64_t>(offset + 48), fields.get<uint64_t>(offset + 40),
          fields.get<uint64_t>(offset + 32)};
}

Directory find_directory(const Fields& fields, const std::string& path) {
  const uint64_t end = find_end(fields, path);
  Directory directory{fields.get<uint32_t>(end + 16), fields.get<uint32_t>(end + 12),
                      fields.get<uint16_t>(end + 10)};
  const bool saturated =
      directory.offset == UINT32_MAX || directory.size == UINT32_MAX || directory.count == UINT16_MAX;
  if (saturated) {
    directory = read_end64(fields, end, path);
  } else {
    STAX_CHECK(fields.get<uint16_t>(end + 4) == 0 && fields.get<uint16_t>(end + 6) == 0 &&
                   fields.get<uint16_t>(end + 8) == directory.count,
               "{}: expected a zip archive in one file, got a part of a split one", path);
  }
  fields.require(directory.offset, directory.size);
  STAX_CHECK(directory.count <= directory.size / 46,
             "{}: expected a zip directory of at least 46 bytes a member, got {} for {}", path,
             counted(directory.size, "byte"), counted(directory.count, "member"));
  return directory;
}

// Replaces the fields that the 32-bit record could not hold by those of the zip64 extra field.
void read_extra64(const Fields& fields, uint64_t offset, uint64_t length, ZipEntry& entry,
                  const std::string& path) {
  const uint64_t end = offset + length;
  uint64_t* wanted[] = {&entry.size, &entry.stored_size, &entry.header_offset};
  while (offset + 4 <= end) {
    const auto id = fields.get<uint16_t>(offset);
    const uint64_t stop = offset + 4 + fields.get<uint16_t>(offset + 2);
    STAX_CHECK(stop <= end,
               "{}: expected an extra field within its record of the zip directory, got a longer one", path);
    uint64_t position = offset + 4;
    for (uint64_t* field : wanted) {
      if (id != 1 || *field != UINT32_MAX) continue;
      STAX_CHECK(position + 8 <= stop, "{}: expected 64-bit sizes of zip member '{}', got a shorter field",
                 path, entry.name);
      *field = fields.get<uint64_t>(position);
      position += 8;
    }
    offset = stop;
  }
}

void check_entry(const ZipEntry& entry, uint16_t flags, const std::string& path) {
  STAX_CHECK((flags & kEncrypted) == 0, "{}: expected plain zip members, got '{}' encrypted", path,
             entry.name);
  STAX_CHECK(entry.method == 0 || entry.method == 8,
             "{}: expected zip member '{}' stored or deflated, got compression method {}", path, entry.name,
             entry.method);
  STAX_CHECK(entry.method != 0 || entry.stored_size == entry.size,
             "{}: expected the two sizes of stored zip member '{}' to agree, got {} and {}", path, entry.name,
             entry.stored_size, entry.size);
  STAX_CHECK(entry.method != 8 || entry.size / kDeflateRatio <= entry.stored_size,
             "{}: expected zip member '{}' to unpack to at most {} times its {}, got {}", path, entry.name,
             kDeflateRatio, counted(entry.stored_size, "byte"), entry.size);
}

ZipEntry read_directory_entry(const Fields& fields, uint64_t& offset, const std::string& path) {
  STAX_CHECK(fields.get<uint32_t>(offset) == kDirectoryEntry,
             "{}: expected an entry of the zip directory at offset {}, got other bytes", path, offset);
  ZipEntry entry;
  fields.require(offset, 46);
  const auto name_length = fields.get<uint16_t>(offset + 28);
  const auto extra_length = fields.get<uint16_t>(offset + 30);
  const auto comment_length = fields.get<uint16_t>(offset + 32);
  entry.name = fields.text(offset + 46, name_length);
  entry.method = fields.get<uint16_t>(offset + 10);
  entry.crc = fields.get<uint32_t>(offset + 16);
  entry.stored_size = fields.get<uint32_t>(offset + 20);
  entry.size = fields.get<uint32_t>(offset + 24);
  entry.header_offset = fields.get<uint32_t>(offset + 42);
  read_extra64(fields, offset + 46 + name_length, extra_length, entry, path);
  check_entry(entry, fields.get<uint16_t>(offset + 8), path);
  offset += 46 + uint64_t{name_length} + extra_length + comment_length;
  return entry;
}

void read_local_header(const Fields& fields, ZipEntry& entry, uint64_t limit, const std::string& path) {
  const uint64_t offset = entry.header_offset;
  fields.require(offset, 30);
  STAX_CHECK(fields.get<uint32_t>(offset) == kLocalHeader,
             "{}: expected the header of zip member '{}' at offset {}, got other bytes", path, entry.name,
             offset);
  const auto name_length = fields.get<uint16_t>(offset + 26);
  STAX_CHECK(
      fields.text(offset + 30, name_length) == entry.name && fields.get<uint16_t>(offset + 8) == entry.method,
      "{}: expected the header of zip member '{}' to agree with the directory, got another name or method",
      path, entry.name);
  entry.data_offset = offset + 30 + name_length + fields.get<uint16_t>(offset + 28);
  STAX_CHECK(entry.data_offset <= limit && entry.stored_size <= limit - entry.data_offset,
             "{}: expected the {} of zip member '{}' before the directory at offset {}, got "
             "them at {}",
             path, counted(entry.stored_size, "byte"), entry.name, limit, entry.data_offset);
}

void check_overlap(std::vector<ZipEntry> entries, const std::string& path) {
  std::sort(entries.begin(), entries.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.header_offset < b.header_offset; });
  for (size_t i = 1; i < entries.size(); ++i) {
    const ZipEntry& before = entries[i - 1];
    STAX_CHECK(before.data_offset + before.stored_size <= entries[i].header_offset,
               "{}: expected zip members apart from each other, got '{}' and '{}' sharing bytes", path,
               before.name, entries[i].name);
  }
}

// Unpacks `from` into exactly `to`. zlib counts in 32 bits, so large members go in pieces.
bool inflate_all(std::span<const std::byte> from, std::span<std::byte> to) {
  constexpr size_t kPiece = size_t{1} << 30;
  z_stream stream{};
  STAX_RUNTIME_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zip: cannot start zlib");
  size_t read = 0, written = 0;
  int status = Z_OK;
  Bytef none = 0;
  while (status == Z_OK) {
    const auto in = static_cast<uInt>(std::min(kPiece, from.size() - read));
    const auto out = static_cast<uInt>(std::min(kPiece, to.size() - written));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data())) + read;
    stream.avail_in = in;
    stream.next_out = out == 0 ? &none : reinterpret_cast<Bytef*>(to.data()) + written;
    stream.avail_out = out;
    status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    if (in == stream.avail_in && out == stream.avail_out && status == Z_OK) break;  // no progress
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && written == to.size() && read == from.size();
}

}  // namespace

ZipReader::ZipReader(std::shared_ptr<MappedFile> file) : file_(std::move(file)) {
  const std::string& path = file_->path();
  const Fields fields(file_->bytes(), path);
  const Directory directory = find_directory(fields, path);
  uint64_t offset = directory.offset;
  entries_.reserve(directory.count);
  for (uint64_t i = 0; i < directory.count; ++i) {
    ZipEntry entry = read_directory_entry(fields, offset, path);
    read_local_header(fields, entry, directory.offset, path);
    entries_.push_back(std::move(entry));
  }
  STAX_CHECK(offset == directory.offset + directory.size, "{}: expected a zip directory of {}, got {} in {}",
             path, counted(directory.size, "byte"), counted(directory.count, "member"),
             counted(offset - directory.offset, "byte"));
  check_overlap(entries_, path);
}

ZipReader::Content ZipReader::read(const ZipEntry& entry) const {
  const auto stored = file_->bytes().subspan(entry.data_offset, entry.stored_size);
  Content content{stored, file_};
  if (entry.method == 8) {
    auto unpacked = allocate(static_cast<int64_t>(entry.size));
    const std::span<std::byte> to(unpacked.get(), entry.size);
    STAX_CHECK(inflate_all(stored, to), "{}: expected zip member '{}' to unpack to {}, got damaged data",
               file_->path(), entry.name, counted(entry.size, "byte"));
    content = {to, unpacked};
  }
  const auto* bytes = reinterpret_cast<const Bytef*>(content.bytes.data());
  const auto crc = static_cast<uint32_t>(crc32_z(0, bytes, content.bytes.size()));
  STAX_CHECK(content.bytes.empty() || crc == entry.crc,
             "{}: expected CRC {:08x} of zip member '{}', got {:08x}; the file is damaged", file_->path(),
             entry.crc, entry.name, crc);
  return content;
}

}  // namespace stax::files

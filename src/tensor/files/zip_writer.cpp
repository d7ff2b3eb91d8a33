// Record layouts: the ZIP application note (APPNOTE.TXT), sections 4.3 and 4.5.3.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "support/check.h"
#include "tensor/files/zip.h"

namespace stax::files {
namespace {

constexpr uint16_t kVersion = 20, kVersion64 = 45;
constexpr uint16_t kUtf8Names = 0x0800;
constexpr uint16_t kDosDate = 0x0021;       // 1 January 1980: the same arrays give the same bytes
constexpr uint16_t kPaddingField = 0x5853;  // an extra field of our own that readers skip
constexpr uint16_t kZip64Field = 1;

// Appends little-endian fields.
class Record {
 public:
  Record& u16(uint64_t value) { return put(static_cast<uint16_t>(value)); }
  Record& u32(uint64_t value) { return put(static_cast<uint32_t>(value)); }
  Record& u64(uint64_t value) { return put(value); }
  Record& text(const std::string& value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  Record& put(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  std::string bytes_;
};

uint64_t narrow32(uint64_t value, bool zip64) {
  return zip64 ? UINT32_MAX : value;
}

std::string deflate_pieces(std::span<const std::byte> first, std::span<const std::byte> second) {
  z_stream stream{};
  STAX_RUNTIME_CHECK(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      "zip: cannot start zlib");
  std::string out, buffer(size_t{1} << 16, '\0');
  constexpr size_t kPiece = size_t{1} << 30;
  const auto feed = [&](std::span<const std::byte> piece, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, flush);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (std::span<const std::byte> piece : {first, second}) {
    for (; !piece.empty(); piece = piece.subspan(std::min(kPiece, piece.size()))) {
      feed(piece.first(std::min(kPiece, piece.size())), Z_NO_FLUSH);
    }
  }
  feed({}, Z_FINISH);
  deflateEnd(&stream);
  return out;
}

}  // namespace

ZipWriter::ZipWriter(const std::string& path, bool compress, bool always_zip64)
    : file_(path), compress_(compress), always_zip64_(always_zip64) {}

void ZipWriter::write_local_header(const ZipEntry& entry) {
  const bool zip64 = always_zip64_ || std::max(entry.size, entry.stored_size) >= UINT32_MAX;
  Record extra;
  if (zip64) extra.u16(kZip64Field).u16(16).u64(entry.size).u64(entry.stored_size);
  if (entry.method == 0) {
    const uint64_t begin = file_.offset() + 30 + entry.name.size() + extra.bytes().size() + 4;
    const uint64_t padding = (64 - begin % 64) % 64;
    extra.u16(kPaddingField).u16(padding).text(std::string(padding, '\0'));
  }
  Record record;
  record.u32(0x04034b50)
      .u16(zip64 ? kVersion64 : kVersion)
      .u16(kUtf8Names)
      .u16(entry.method)
      .u16(0)
      .u16(kDosDate);
  record.u32(entry.crc).u32(narrow32(entry.stored_size, zip64)).u32(narrow32(entry.size, zip64));
  record.u16(entry.name.size()).u16(extra.bytes().size()).text(entry.name).text(extra.bytes());
  file_.write(record.bytes());
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> first,
                    std::span<const std::byte> second) {
  STAX_CHECK(name.size() <= 60000, "zip: expected a member's name of at most 60000 bytes, got {}",
             name.size());
  ZipEntry entry;
  entry.name = name;
  entry.header_offset = file_.offset();
  entry.size = first.size() + second.size();
  auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(first.data()), first.size());
  if (!second.empty()) crc = crc32_z(crc, reinterpret_cast<const Bytef*>(second.data()), second.size());
  entry.crc = static_cast<uint32_t>(crc);
  if (compress_) {
    const std::string packed = deflate_pieces(first, second);
    entry.method = 8;
    entry.stored_size = packed.size();
    write_local_header(entry);
    file_.write(packed);
  } else {
    entry.stored_size = entry.size;
    write_local_header(entry);
    file_.write(first.data(), first.size());
    file_.write(second.data(), second.size());
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::write_directory_entry(const ZipEntry& entry) {
  const bool zip64 =
      always_zip64_ || std::max({entry.size, entry.stored_size, entry.header_offset}) >= UINT32_MAX;
  Record extra;
  if (zip64) extra.u16(kZip64Field).u16(24).u64(entry.size).u64(entry.stored_size).u64(entry.header_offset);
  const uint16_t version = zip64 ? kVersion64 : kVersion;
  Record record;
  record.u32(0x02014b50).u16(version).u16(version).u16(kUtf8Names).u16(entry.method).u16(0).u16(kDosDate);
  record.u32(entry.crc).u32(narrow32(entry.stored_size, zip64)).u32(narrow32(entry.size, zip64));
  record.u16(entry.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0).u32(0);
  record.u32(narrow32(entry.header_offset, zip64)).text(entry.name).text(extra.bytes());
  file_.write(record.bytes());
}

void ZipWriter::finish() {
  const uint64_t begin = file_.offset();
  for (const ZipEntry& entry : entries_) write_directory_entry(entry);
  const uint64_t end = file_.offset(), size = end - begin;
  const bool zip64 = always_zip64_ || entries_.size() >= UINT16_MAX || end >= UINT32_MAX;
  Record record;
  if (zip64) {
    record.u32(0x06064b50).u64(44).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    record.u64(entries_.size()).u64(entries_.size()).u64(size).u64(begin);
    record.u32(0x07064b50).u32(0).u64(end).u32(1);
  }
  const uint64_t count = zip64 ? UINT16_MAX : entries_.size();
  record.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count);
  record.u32(narrow32(size, zip64)).u32(narrow32(begin, zip64)).u16(0);
  file_.write(record.bytes());
  file_.commit();
}

}  // namespace stax::files

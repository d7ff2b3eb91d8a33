// Exported programs on the disk: the frame of their files.
#include "compiler/export_file.h"

#include <algorithm>
#include <cstring>

#include "support/atomic_file.h"
#include "support/check.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/plural.h"

namespace stax {

using compiler::kExportChecksumAt;
using compiler::kExportHeader;
using compiler::kExportMagic;
using compiler::kExportVersion;

namespace {

uint64_t number_at(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int k = 0; k < count; ++k) {
    value |= uint64_t{static_cast<uint8_t>(bytes[at + static_cast<size_t>(k)])} << (8 * k);
  }
  return value;
}

std::shared_ptr<const detail::ExportedState> state_of(const std::string& file, const std::string& path) {
  const std::string_view bytes = file;
  const size_t common = std::min(bytes.size(), kExportMagic.size());
  STAX_CHECK(common > 0 && bytes.substr(0, common) == kExportMagic.substr(0, common),
             "{}: is no exported program", path);
  STAX_CHECK(bytes.size() >= kExportHeader, "{}: is incomplete, it ends after {}", path,
             counted(bytes.size(), "byte"));
  const uint64_t version = number_at(bytes, 8, 4);
  STAX_CHECK(version <= kExportVersion,
             "{}: was written by a newer Stax (format {}, this one reads up to {})", path, version,
             kExportVersion);
  STAX_CHECK(version > 0, "{}: is damaged, there is no format 0", path);
  const uint64_t text = number_at(bytes, 12, 8), data = number_at(bytes, 20, 8),
                 rest = bytes.size() - kExportHeader;
  STAX_CHECK(text <= rest && data <= rest - text, "{}: is incomplete, {} bytes are missing", path,
             text > rest ? text - rest : data - (rest - text));
  STAX_CHECK(text + data == rest, "{}: is damaged, it goes on for {} after its end", path,
             counted(rest - text - data, "byte"));
  std::string summed(bytes.substr(0, kExportChecksumAt));
  summed += bytes.substr(kExportHeader);
  const auto sum = sha256(summed);
  STAX_CHECK(std::memcmp(sum.data(), bytes.data() + kExportChecksumAt, sum.size()) == 0,
             "{}: is damaged, its checksum is another one", path);
  try {
    const Json program = Json::parse(bytes.substr(kExportHeader, text));
    return compiler::export_state(program, bytes.substr(kExportHeader + text));
  } catch (const Error& error) {
    throw_user_error(fmt::format("{}: is damaged: {}", path, error.what()));
  }
}

}  // namespace

void ExportedProgram::save(const std::string& path) const {
  AtomicFile file(path);
  file.write(compiler::export_file(*state_));
  file.commit();
}

ExportedProgram ExportedProgram::load(const std::string& path) {
  const std::optional<std::string> bytes = read_file(path);
  STAX_CHECK(bytes, "{}: cannot be read", path);
  return ExportedProgram(state_of(*bytes, path));
}

}  // namespace stax

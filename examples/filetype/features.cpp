#include "examples/filetype/features.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "support/check.h"
#include "support/json.h"
#include "support/mapped_file.h"
#include "support/utf8.h"

namespace filetype {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhitespace = " \t\n\r\v\f";

stax::Json read_json(const std::string& path) {
  const auto file = stax::MappedFile::open(path);
  const auto bytes = file->bytes();
  return stax::Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, {.what = path});
}

// A size that arithmetic on file offsets cannot overflow.
int64_t read_size(const stax::Json& json, std::string_view key) {
  const int64_t value = json.at(key).as_int();
  STAX_CHECK(value >= 0 && value <= (1 << 24), "expected {} between 0 and {}, got {}", key, 1 << 24, value);
  return value;
}

void read_config(const stax::Json& json, ModelConfig& config) {
  config.begin_size = read_size(json, "beg_size");
  config.end_size = read_size(json, "end_size");
  config.block_size = read_size(json, "block_size");
  config.min_file_size = read_size(json, "min_file_size_for_dl");
  config.padding = static_cast<int32_t>(read_size(json, "padding_token"));
  config.medium_threshold = json.at("medium_confidence_threshold").as_double();
  for (const stax::Json& label : json.at("target_labels_space").as_array())
    config.labels.push_back(label.as_string());
  for (const auto& [label, value] : json.at("thresholds").as_object())
    config.thresholds[label] = value.as_double();
  for (const auto& [label, value] : json.at("overwrite_map").as_object())
    config.overwrite[label] = value.as_string();
  STAX_CHECK(read_size(json, "mid_size") == 0 && !json.at("use_inputs_at_offsets").as_bool(),
             "expected a model without tokens from the middle of a file, got one with; only versions without "
             "are read");
  STAX_CHECK(config.begin_size < config.block_size && config.end_size < config.block_size &&
                 config.min_file_size >= 1 && config.min_file_size <= config.begin_size,
             "expected 1 <= min_file_size_for_dl <= beg_size < block_size and end_size < block_size, got {}, "
             "{}, {} and {}",
             config.min_file_size, config.begin_size, config.block_size, config.end_size);
  STAX_CHECK(!config.labels.empty(), "expected labels, got none");
}

// Reads with the file's name in front of any error.
template <typename Read>
void read_file(const std::string& path, Read read) {
  const stax::Json json = read_json(path);
  try {
    read(json);
  } catch (const stax::UserError& error) {
    stax::throw_user_error(fmt::format("{}: {}", path, error.what()));
  }
}

std::string read_bytes(std::ifstream& file, const std::string& path, int64_t offset, int64_t count) {
  std::string out(static_cast<size_t>(count), '\0');
  file.seekg(offset);
  file.read(out.data(), count);
  STAX_RUNTIME_CHECK(file.gcount() == count,
                     "{}: expected {} bytes at offset {}, got {}; did the file change?", path, count, offset,
                     file.gcount());
  return out;
}

std::string_view strip_left(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhitespace);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::string_view strip_right(std::string_view text) {
  const size_t last = text.find_last_not_of(kWhitespace);
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

int32_t token(char byte) {
  return static_cast<unsigned char>(byte);
}

Verdict plain(std::string label) {
  return {.label = std::move(label)};
}

Verdict without_model(std::string_view content) {
  return plain(stax::is_valid_utf8(content) ? "txt" : "unknown");
}

// The start of the file fills the first tokens from the left, its end the last ones from the right.
std::vector<int32_t> make_tokens(std::string_view begin, std::string_view end, const ModelConfig& config) {
  begin = strip_left(begin);
  begin = begin.substr(0, static_cast<size_t>(config.begin_size));
  end = strip_right(end);
  end.remove_prefix(end.size() - std::min(end.size(), static_cast<size_t>(config.end_size)));
  std::vector<int32_t> tokens(static_cast<size_t>(config.token_count()), config.padding);
  std::transform(begin.begin(), begin.end(), tokens.begin(), token);
  std::transform(end.begin(), end.end(), tokens.end() - static_cast<ptrdiff_t>(end.size()), token);
  return tokens;
}

FileFeatures extract_regular(const std::string& path, const ModelConfig& config) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<int64_t>(file.tellg());
  STAX_RUNTIME_CHECK(file.good() && size >= 0, "{}: cannot read the file", path);
  if (size == 0) return {plain("empty"), {}};
  if (size < config.min_file_size) return {without_model(read_bytes(file, path, 0, size)), {}};
  const int64_t count = std::min(size, config.block_size);
  const std::string begin = read_bytes(file, path, 0, count);
  const std::string end = read_bytes(file, path, size - count, count);
  // Counted after stripping: a file of blanks with a letter is too little for the model.
  if (static_cast<int64_t>(strip_left(begin).size()) < config.min_file_size)
    return {without_model(begin), {}};
  return {std::nullopt, make_tokens(begin, end, config)};
}

}  // namespace

ModelConfig ModelConfig::load(const std::string& folder) {
  ModelConfig config;
  read_file((fs::path(folder) / "config.min.json").string(),
            [&](const stax::Json& json) { read_config(json, config); });
  fs::path types = fs::path(folder) / "content_types_kb.min.json";
  if (!fs::exists(types)) types = fs::path(folder) / ".." / ".." / "config" / "content_types_kb.min.json";
  read_file(types.string(), [&](const stax::Json& json) {
    for (const auto& [label, type] : json.as_object()) config.is_text[label] = type.at("is_text").as_bool();
  });
  return config;
}

FileFeatures extract(const std::string& path, const ModelConfig& config, bool no_dereference) {
  std::error_code error;
  if (no_dereference && fs::is_symlink(path, error)) return {plain("symlink"), {}};
  const fs::file_status status = fs::status(path, error);
  if (error == std::errc::permission_denied) return {Verdict{.error = "permission_error"}, {}};
  if (!fs::exists(status)) return {Verdict{.error = "file_not_found_error"}, {}};
  if (fs::is_directory(status)) return {plain("directory"), {}};
  if (!fs::is_regular_file(status)) return {plain("unknown"), {}};
  if (access(path.c_str(), R_OK) != 0) return {Verdict{.error = "permission_error"}, {}};
  return extract_regular(path, config);
}

Verdict decide(const std::string& model_label, double score, const ModelConfig& config, Mode mode) {
  Verdict verdict{.label = model_label, .score = score, .model_label = model_label};
  if (const auto found = config.overwrite.find(model_label); found != config.overwrite.end())
    verdict.label = found->second;
  if (verdict.label != model_label) verdict.reason = "overwrite_map";
  double threshold = config.medium_threshold;
  const auto own = config.thresholds.find(model_label);
  if (mode == Mode::high_confidence && own != config.thresholds.end()) threshold = own->second;
  if (mode == Mode::best_guess || score >= threshold) return verdict;
  const auto kind = config.is_text.find(verdict.label);
  STAX_CHECK(kind != config.is_text.end(),
             "file types: expected to know whether '{}' is text, got no such content type", verdict.label);
  verdict.label = kind->second ? "txt" : "unknown";
  verdict.reason = verdict.label == model_label ? "none" : "low_confidence";
  return verdict;
}

Verdict decide(std::span<const float> scores, const ModelConfig& config, Mode mode) {
  STAX_CHECK(scores.size() == config.labels.size(), "file types: expected {} scores, one a label, got {}",
             config.labels.size(), scores.size());
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  return decide(config.labels[static_cast<size_t>(best)], static_cast<double>(scores[best]), config, mode);
}

}  // namespace filetype

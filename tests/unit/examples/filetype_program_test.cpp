// The program `filetype` on wrong usage and on paths that are no ordinary files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/file.h"
#include "support/json.h"
#include "support/process.h"

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A model folder whose model is never asked: every file below is decided before.
class FiletypeProgram : public ::testing::Test {
 protected:
  FiletypeProgram() {
    fs::create_directories(model());
    fs::copy_file(STAX_TEST_DATA "/onnx/mlp.onnx", model() + "/model.onnx");
    std::ofstream(model() + "/config.min.json")
        << R"({"beg_size": 4, "mid_size": 0, "end_size": 3, "block_size": 8, "min_file_size_for_dl": 4,
               "padding_token": 256, "use_inputs_at_offsets": false, "medium_confidence_threshold": 0.5,
               "target_labels_space": ["txt"], "thresholds": {}, "overwrite_map": {}})";
    std::ofstream(model() + "/content_types_kb.min.json") << R"({"txt": {"is_text": true}})";
  }
  std::string model() const { return folder_.path() + "/model"; }
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_.path() + "/" + name, std::ios::binary) << bytes;
    return folder_.path() + "/" + name;
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  static stax::ProcessResult run(std::vector<std::string> words) {
    words.insert(words.begin(), STAX_TEST_PROGRAMS "/filetype");
    return stax::run_process(words);
  }
  static void expect_error(const std::vector<std::string>& words, const std::string& text) {
    const stax::ProcessResult result = run(words);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.errors, testing::StartsWith("filetype: error: "));
    EXPECT_THAT(result.errors, HasSubstr(text));
  }

 private:
  stax::TemporaryFolder folder_{stax::temporary_root(), "stax-filetype-"};
};

TEST_F(FiletypeProgram, RefusesWrongUsage) {
  expect_error({}, "there are no files to name the types of; usage: filetype");
  expect_error({"--json", "--model", model()}, "there are no files");
  expect_error({"--repository", "--model", model(), "x"}, "beside --repository");
  expect_error({"--frobnicate"}, "--frobnicate");
  expect_error({"--model"}, "--model takes a folder");
  expect_error({"--model", "/no/such/model", "x"}, "/no/such/model/config.min.json");
  expect_error({"--model", path("model/model.onnx"), "x"}, "config.min.json");
  file("model/model.onnx", "no model");
  expect_error({"--model", model(), "x"}, "expected an ONNX model");
}

TEST_F(FiletypeProgram, NamesWhatIsNoOrdinaryFile) {
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("nowhere", path("dangling"));
  fs::create_symlink("loop", path("loop"));
  fs::create_symlink("folder", path("link"));
  fs::resize_file(file("blanks", std::string(8, ' ')), uint64_t{1} << 40);  // of zeros but for its start
  const std::vector<std::pair<std::string, std::string>> expected = {
      {path("folder"), "directory"},
      {path("link"), "directory"},
      {path("pipe"), "unknown"},
      {"/dev/zero", "unknown"},
      {path("dangling"), "file_not_found_error"},
      {path("loop"), "file_not_found_error"},
      {"", "file_not_found_error"},
      {"-", "file_not_found_error"},
      {file("empty", ""), "empty"},
      {file("short", "ab"), "txt"},
      {file("bytes", "\xff\xfe"), "unknown"},
      {file("new\nline \"quoted\" \\ \t\x01", "ab"), "txt"},
      {path("blanks"), "txt"},
      {file("\xc3\xa9", "ab"), "txt"},
      {std::string(5000, 'x'), "file_not_found_error"},
  };
  std::vector<std::string> words = {"--json", "--model", model()};
  for (const auto& [name, label] : expected) words.push_back(name);
  const stax::ProcessResult result = run(words);
  ASSERT_EQ(result.exit_code, 1) << result.errors;  // some are not found
  const stax::Json list = stax::Json::parse(result.output);
  ASSERT_EQ(list.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const stax::Json& entry = list.as_array()[i];
    EXPECT_EQ(entry.at("path").as_string(), expected[i].first);
    const std::string found =
        entry.find("label") ? entry.at("label").as_string() : entry.at("error").as_string();
    EXPECT_EQ(found, expected[i].second) << expected[i].first;
  }
}

TEST_F(FiletypeProgram, TellsByItsStatusWhetherAllFilesWereRead) {
  const stax::ProcessResult all = run({"--model", model(), file("short", "ab")});
  EXPECT_EQ(all.exit_code, 0) << all.errors;
  EXPECT_THAT(all.output, HasSubstr("\n1 file in "));
  const stax::ProcessResult some = run({"--model", model(), path("short"), path("none")});
  EXPECT_EQ(some.exit_code, 1) << some.errors;
  EXPECT_THAT(some.output, HasSubstr("\n2 files in "));
}

TEST_F(FiletypeProgram, WritesJsonForNamesThatAreNoText) {
  const std::string name = file("bad\xff\xfename", "ab");
  const stax::ProcessResult result = run({"--json", "--model", model(), name});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const stax::Json list = stax::Json::parse(result.output);  // refuses what is not UTF-8
  EXPECT_THAT(list.as_array()[0].at("path").as_string(), HasSubstr("name"));
}

TEST_F(FiletypeProgram, SaysThatTheOutputCannotBeWritten) {
  const stax::ProcessResult result = stax::run_process(
      {"/bin/sh", "-c", STAX_TEST_PROGRAMS "/filetype --json --model " + model() + " x > /dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("No space left"));
}

}  // namespace

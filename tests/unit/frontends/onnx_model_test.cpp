#include "frontends/onnx_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "stax/error.h"

namespace stax::onnx {
namespace {

namespace fs = std::filesystem;

std::string data_path(const std::string& name) {
  return std::string(STAX_TEST_DATA) + "/onnx/" + name;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

Model parse(const std::string& bytes, const std::string& folder = "/nonexistent") {
  return parse_model(std::as_bytes(std::span(bytes)), "MODEL", folder);
}

// The UserError's text, or "" when none was thrown.
std::string error_of(const std::string& bytes, const std::string& folder = "/nonexistent") {
  try {
    parse(bytes, folder);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  const files::ArrayView& view = tensor.view();
  std::vector<T> out(view.nbytes / sizeof(T));
  if (view.nbytes > 0) std::memcpy(out.data(), view.data, view.nbytes);
  return out;
}

const Tensor& initializer(const Model& model, const std::string& name) {
  for (const Tensor& tensor : model.graph.initializers) {
    if (tensor.name == name) return tensor;
  }
  throw std::out_of_range(name);
}

// A hand-written encoder of protobuf's wire format, so that broken models can be spelled.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(int field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string bytes(int field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}

constexpr int kFloat = 1, kInt8 = 3, kExternal = 1;
std::string tensor(int type, const std::vector<uint64_t>& dims, const std::string& rest) {
  std::string out = number(2, type) + bytes(8, "w") + rest;
  for (uint64_t dim : dims) out += number(1, dim);
  return out;
}
std::string pair(const std::string& key, const std::string& value) {
  return bytes(13, bytes(1, key) + bytes(2, value));
}
std::string model(const std::string& graph, const std::string& rest = bytes(8, number(2, 17))) {
  return number(1, 8) + bytes(7, graph) + rest;
}
std::string node(const std::string& op, const std::string& input, const std::string& output,
                 const std::string& rest = "") {
  return bytes(1, bytes(1, input) + bytes(2, output) + bytes(4, op) + rest);
}
std::string value(int field, const std::string& name) {
  return bytes(field, bytes(1, name));
}

TEST(OnnxModel, ReadsTheHeader) {
  const Model model = load_model(data_path("everything.onnx"));
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.producer, "tests");
  EXPECT_EQ(model.opsets, (std::map<std::string, int64_t>{{"", 17}, {"my.domain", 2}}));
  EXPECT_EQ(model.metadata, (std::map<std::string, std::string>{{"author", "némo"}}));
  EXPECT_EQ(model.graph.name, "everything");
}

TEST(OnnxModel, ReadsDeclaredShapes) {
  const Graph graph = load_model(data_path("everything.onnx")).graph;
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.inputs[0].name, "x");
  EXPECT_EQ(graph.inputs[0].dtype, kFloat32);
  const auto& dims = graph.inputs[0].dims.value();
  ASSERT_EQ(dims.size(), 3u);
  EXPECT_EQ(dims[0].symbol, "batch");
  EXPECT_FALSE(dims[0].size.has_value());
  EXPECT_EQ(dims[1].size, 3);
  EXPECT_TRUE(dims[2].symbol.empty());
  EXPECT_FALSE(dims[2].size.has_value());
  EXPECT_FALSE(graph.outputs[1].dims.has_value());
  EXPECT_EQ(graph.outputs[1].dtype, kInt64);
  ASSERT_EQ(graph.value_info.size(), 1u);
  EXPECT_EQ(graph.value_info[0].dims.value()[0].size, 7);
}

TEST(OnnxModel, ReadsEveryAttributeKind) {
  const Graph graph = load_model(data_path("everything.onnx")).graph;
  const Node& odd = graph.nodes.at(0);
  EXPECT_EQ(odd.op_type, "Odd");
  EXPECT_EQ(odd.domain, "my.domain");
  EXPECT_EQ(odd.describe(), "my.domain.Odd 'odd'");
  EXPECT_EQ(odd.inputs, (std::vector<std::string>{"x", "", "scalar"}));
  EXPECT_EQ(odd.outputs, (std::vector<std::string>{"y", "z"}));
  EXPECT_EQ(odd.get_float("a_float", 0), 0.5f);
  EXPECT_EQ(odd.get_int("an_int", 0), -3);
  EXPECT_EQ(odd.get_string("a_string", ""), "sü");
  EXPECT_EQ(odd.get_ints("ints", {}), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(odd.get_int("missing", 5), 5);
  EXPECT_EQ(std::get<std::vector<float>>(odd.find("floats")->value), (std::vector<float>{1, 2.5}));
  EXPECT_EQ(std::get<std::vector<std::string>>(odd.find("strings")->value),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(values<int64_t>(std::get<Tensor>(odd.find("tensor")->value)), std::vector<int64_t>{9});
  EXPECT_THROW(odd.get_int("a_float", 0), UserError);
}

TEST(OnnxModel, ReadsTypedInitializers) {
  const Model model = load_model(data_path("everything.onnx"));
  EXPECT_EQ(values<float>(initializer(model, "typed_FLOAT")), (std::vector<float>{1.5, -2}));
  EXPECT_EQ(values<double>(initializer(model, "typed_DOUBLE")), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(values<int8_t>(initializer(model, "typed_INT8")), (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(values<uint8_t>(initializer(model, "typed_UINT8")), (std::vector<uint8_t>{0, 255}));
  EXPECT_EQ(values<int16_t>(initializer(model, "typed_INT16")), (std::vector<int16_t>{-32768, 3}));
  EXPECT_EQ(values<int32_t>(initializer(model, "typed_INT32")), (std::vector<int32_t>{-5, 6}));
  EXPECT_EQ(values<int64_t>(initializer(model, "typed_INT64")),
            (std::vector<int64_t>{-(int64_t{1} << 62), 7}));
  EXPECT_EQ(values<uint8_t>(initializer(model, "typed_BOOL")), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(values<uint16_t>(initializer(model, "typed_FLOAT16")), (std::vector<uint16_t>{0x3e00, 0xc000}));
  EXPECT_EQ(values<uint16_t>(initializer(model, "typed_BFLOAT16")), (std::vector<uint16_t>{0x3fc0, 0xc000}));
  EXPECT_EQ(initializer(model, "typed_BFLOAT16").dtype, kBFloat16);
  EXPECT_TRUE(initializer(model, "scalar").sizes.empty());
  EXPECT_EQ(values<float>(initializer(model, "scalar")), std::vector<float>{4});
  EXPECT_EQ(initializer(model, "none").sizes, (std::vector<int64_t>{0, 3}));
}

TEST(OnnxModel, ReadsRawInitializers) {
  const Model model = load_model(data_path("everything.onnx"));
  EXPECT_EQ(initializer(model, "raw_float32").sizes, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(values<float>(initializer(model, "raw_float32")), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values<double>(initializer(model, "raw_float64")), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values<uint16_t>(initializer(model, "raw_float16")),
            (std::vector<uint16_t>{0x3c00, 0x4000, 0x4200, 0x4400}));
  EXPECT_EQ(values<int8_t>(initializer(model, "raw_int8")), (std::vector<int8_t>{1, 2, 3, 4}));
  EXPECT_EQ(values<int64_t>(initializer(model, "raw_int64")), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(values<uint8_t>(initializer(model, "raw_bool")), (std::vector<uint8_t>{1, 1, 1, 1}));
  for (const Tensor& tensor : model.graph.initializers) {
    if (tensor.dtype) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.data) % itemsize(*tensor.dtype), 0u) << tensor.name;
    }
  }
}

TEST(OnnxModel, KeepsElementTypesItCannotGiveUntilAsked) {
  const Model model = load_model(data_path("everything.onnx"));
  for (const auto& [name, type] :
       {std::pair("typed_UINT16", "UINT16"), {"typed_UINT64", "UINT64"}, {"text", "STRING"}}) {
    const Tensor& tensor = initializer(model, name);
    EXPECT_FALSE(tensor.dtype.has_value());
    EXPECT_EQ(tensor.type, type);
    try {
      tensor.view();
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(type), std::string::npos);
    }
  }
}

TEST(OnnxModel, ReadsControlFlowAndFunctions) {
  const Model model = load_model(data_path("control.onnx"));
  const Node& branch = model.graph.nodes.at(0);
  const auto& then_branch = *std::get<std::shared_ptr<const Graph>>(branch.find("then_branch")->value);
  EXPECT_EQ(then_branch.nodes.at(0).op_type, "Relu");
  EXPECT_EQ(then_branch.nodes.at(0).inputs, std::vector<std::string>{"x"});  // of the graph around it
  ASSERT_EQ(model.functions.size(), 1u);
  EXPECT_EQ(model.functions[0].name, "Twice");
  EXPECT_EQ(model.functions[0].domain, "f");
  EXPECT_EQ(model.functions[0].inputs, std::vector<std::string>{"a"});
  EXPECT_EQ(model.functions[0].nodes.at(0).op_type, "Add");
}

TEST(OnnxModel, ReadsExternalData) {
  const Model model = load_model(data_path("external.onnx"));
  EXPECT_EQ(values<float>(initializer(model, "w")), (std::vector<float>{0, 1, 2, 3}));
}

TEST(OnnxModel, RefusesExternalDataThatEscapesOrIsShort) {
  const std::string folder = (fs::temp_directory_path() / "stax_onnx_external").string();
  fs::remove_all(folder);
  fs::create_directories(folder + "/model/below");
  std::ofstream(folder + "/secret.bin") << std::string(16, 'x');
  std::ofstream(folder + "/model/below/w.bin") << std::string(16, '\0');
  fs::create_symlink(folder + "/secret.bin", folder + "/model/link.bin");
  fs::create_symlink(folder + "/model/below/w.bin", folder + "/model/inner.bin");
  const auto external = [&](const std::string& location, const std::string& more = "") {
    const std::string w = tensor(kFloat, {2, 2}, pair("location", location) + more + number(14, kExternal));
    return error_of(model(bytes(5, w)), folder + "/model");
  };
  EXPECT_EQ(external("below/w.bin"), "");
  EXPECT_EQ(external("below/../below/w.bin"), "");
  EXPECT_EQ(external("inner.bin"), "");
  EXPECT_NE(external("../secret.bin").find("inside the model's folder"), std::string::npos);
  EXPECT_NE(external("link.bin").find("inside the model's folder"), std::string::npos);
  EXPECT_NE(external(folder + "/secret.bin").find("inside the model's folder"), std::string::npos);
  EXPECT_NE(external(folder + "/model/below/w.bin").find("inside the model's folder"), std::string::npos);
  EXPECT_NE(external("").find("expected the location"), std::string::npos);
  EXPECT_NE(external("missing.bin").find("'missing.bin' beside the model"), std::string::npos);
  EXPECT_NE(external("below").find("got a folder"), std::string::npos);
  EXPECT_NE(external("below/w.bin", pair("offset", "1")).find("got a file of 16 bytes"), std::string::npos);
  EXPECT_NE(external("below/w.bin", pair("offset", "9223372036854775807")).find("got a file of 16 bytes"),
            std::string::npos);
  EXPECT_NE(external("below/w.bin", pair("offset", "-4")).find("as its offset, got '-4'"), std::string::npos);
  EXPECT_NE(external("below/w.bin", pair("offset", "4x")).find("got '4x'"), std::string::npos);
  EXPECT_NE(external("below/w.bin", pair("length", "8")).find("got a length of 8"), std::string::npos);
  fs::remove_all(folder);
}

TEST(OnnxModel, RefusesInconsistentModels) {
  const std::string four(4, '\0');
  const std::string in = value(11, "x"), out = value(12, "y");
  const auto init = [](const std::string& text) { return bytes(5, text); };
  const std::string sparse = bytes(15, bytes(1, bytes(8, "s")));
  const auto attribute = [](const std::string& text) { return bytes(5, text); };
  const std::pair<std::string, const char*> cases[] = {
      {"", "with a version and a graph"},
      {"hello, world", "no valid message"},
      {number(1, 8), "with a version and a graph"},
      {model("", ""), "names its operator sets"},
      {model("", bytes(8, number(2, 17)) + bytes(8, bytes(1, "ai.onnx") + number(2, 16))),
       "once, got it twice"},
      {model("", bytes(8, number(2, 0))), "positive version"},
      {model(in + out), "expected a value that is made before, got 'y'"},
      {model(in + node("Relu", "q", "y") + out), "Relu 'y': expected a value that is made before, got 'q'"},
      {model(in + node("Relu", "y", "y") + out), "got 'y'"},
      {model(in + node("Relu", "x", "x")), "made once, got 'x' again"},
      {model(in + in), "made once, got 'x' again"},
      {model(in + node("", "x", "y")), "name its operator"},
      {model(sparse), "got sparse tensor 's'"},
      {model(init(tensor(kFloat, {1}, bytes(9, four))) + init(tensor(kFloat, {1}, bytes(9, four)))),
       "got 'w' twice"},
      {model(init(tensor(kFloat, {2}, bytes(9, four)))),
       "initializer 'w': expected 8 bytes of raw data for its sizes, got 4"},
      {model(init(tensor(kFloat, {2}, bytes(4, four)))), "expected 2 elements of FLOAT for its sizes, got 1"},
      {model(init(tensor(kFloat, {2}, ""))), "expected 2 elements of FLOAT for its sizes, got 0"},
      {model(init(tensor(kFloat, {uint64_t{1} << 62, 4}, bytes(9, four)))), "63 bits"},
      {model(init(tensor(kFloat, {0, uint64_t{1} << 62, 4}, ""))), "63 bits"},
      {model(init(tensor(kFloat, {~uint64_t{0}}, bytes(9, four)))), "not negative"},
      {model(init(tensor(kInt8, {1}, bytes(5, varint(300))))), "within [-128, 127], got 300"},
      {model(init(tensor(0, {1}, ""))), "an element type, got none"},
      {model(in + node("Relu", "x", "y", attribute(bytes(1, "a") + number(20, 99)))), "got number 99"},
      {model(in + node("Relu", "x", "y", attribute(bytes(1, "a")))), "got number 0"},
      {model(in + node("Relu", "x", "y", attribute(bytes(1, "a") + number(20, 11)))), "got a sparse tensor"},
      {model(in + node("Relu", "x", "y",
                       attribute(bytes(1, "a") + number(3, 1)) + attribute(bytes(1, "a") + number(3, 2)))),
       "'a' once"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(expected), std::string::npos) << expected << " not in: " << error;
    EXPECT_EQ(error.rfind("MODEL: ", 0), 0u) << error;
  }
  EXPECT_EQ(error_of(model(in + node("Relu", "x", "y", attribute(bytes(1, "a") + number(3, 7))) + out)), "");
}

TEST(OnnxModel, RefusesDeepNesting) {
  std::string graph = "";
  for (int i = 0; i < 2000; ++i)
    graph = node("If", "", "y", bytes(5, bytes(1, "b") + bytes(6, graph) + number(20, 5)));
  EXPECT_NE(error_of(model(graph)), "");
}

TEST(OnnxModel, NamesTheFileThatIsNotThere) {
  EXPECT_THROW(load_model("/nonexistent/m.onnx"), UserError);
  EXPECT_THROW(load_model("/tmp"), UserError);
}

// Cut anywhere and changed anywhere: a UserError that names the model, or a model.
TEST(OnnxModel, SurvivesDamage) {
  std::mt19937 random(2026);
  for (const char* file : {"everything.onnx", "control.onnx", "external.onnx"}) {
    const std::string whole = read_bytes(data_path(file));
    int refused = 0;
    for (size_t length = 0; length < whole.size(); ++length) {
      const std::string error = error_of(whole.substr(0, length), data_path(""));
      if (!error.empty()) {
        ASSERT_EQ(error.rfind("MODEL: ", 0), 0u) << error;
      }
      refused += !error.empty();
    }
    EXPECT_GT(refused, static_cast<int>(whole.size() * 8 / 10))
        << file;  // the end of a model is optional fields
    for (int i = 0; i < 20000; ++i) {
      std::string changed = whole;
      for (unsigned k = 1 + random() % 4; k > 0; --k) {
        char& target = changed[random() % changed.size()];
        target = random() % 2 ? static_cast<char>(random()) : static_cast<char>(target ^ (1 << random() % 8));
      }
      const std::string error = error_of(changed, data_path(""));
      if (!error.empty()) {
        ASSERT_EQ(error.rfind("MODEL: ", 0), 0u) << file << " round " << i << " of seed 2026: " << error;
      }
    }
  }
}

}  // namespace
}  // namespace stax::onnx

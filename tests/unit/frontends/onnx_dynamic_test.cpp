// Models whose shapes are symbolic: what computes shapes stays symbolic, and one artifact serves all sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "stax/compile.h"
#include "stax/error.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "stax/io.h"
#include "stax/onnx.h"
#include "stax/operators.h"
#include "unit/frontends/onnx_building.h"

namespace stax::onnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFolder = STAX_TEST_DATA "/onnx/";

/// What make_encoder.py gave ONNX Runtime.
std::vector<Array> encoder_inputs(int64_t rows, int64_t columns) {
  const Array r = arange(rows, kInt64).unsqueeze(1), c = arange(columns, kInt64);
  return {(r * 3 + c * 5).remainder(12), (c < (columns - r.remainder(3)).clamp_min(1)).to(kInt64)};
}

void expect_close(const Array& got, const Array& expected) {
  ASSERT_EQ(got.sizes().values(), expected.sizes().values());
  EXPECT_LT((got - expected).abs().max().item().toDouble(), 1e-5);
}

auto compiled_encoder() {
  const OnnxModel model = OnnxModel::load(kFolder + "encoder.onnx");
  return compile(model, {.dynamic = true, .fullgraph = true, .dynamic_shapes = model.dynamic_shapes()});
}

TEST(OnnxDynamic, OneArtifactServesAnEncoderAtAllSizes) {
  const auto expected = load_npz(kFolder + "encoder_results.npz");
  const auto compiled = compiled_encoder();
  int pairs = 0;
  for (const auto& [name, pooled] : expected) {
    const int64_t rows = std::stoll(name), columns = std::stoll(name.substr(name.find('x') + 1));
    if (rows == 1 || columns == 1) continue;
    SCOPED_TRACE(name);
    const std::vector<Array> out = compiled(encoder_inputs(rows, columns));
    expect_close(out[0], pooled);
    EXPECT_EQ(out[1].item().toLong(), rows * columns);
    ++pairs;
  }
  EXPECT_EQ(pairs, 6);
  EXPECT_EQ(compiled.artifacts().size(), 1u);
}

TEST(OnnxDynamic, BatchesAndLengthsOfOneHaveArtifactsOfTheirOwn) {
  const auto expected = load_npz(kFolder + "encoder_results.npz");
  const auto compiled = compiled_encoder();
  for (const auto& [rows, columns] : {std::pair{1, 6}, {6, 1}}) {
    const std::vector<Array> out = compiled(encoder_inputs(rows, columns));
    expect_close(out[0], expected.at(std::to_string(rows) + "x" + std::to_string(columns)));
  }
  EXPECT_EQ(compiled.artifacts().size(), 2u);
}

TEST(OnnxDynamic, NamesTheModelsDimensions) {
  const auto compiled = compiled_encoder();
  std::vector<Array> inputs = encoder_inputs(3, 5);
  inputs[1] = encoder_inputs(3, 6)[1];
  try {
    compiled(inputs);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("sequence, declared within [0, inf), is 6 in dimension 1 of tensor 1"),
                      HasSubstr("5")));
  }
}

/// The program, compiled for all sizes.
auto compiled(const OnnxProgram& program) {
  return compile([&](const std::vector<Array>& in) { return program(in); },
                 {.dynamic = true, .fullgraph = true});
}

TEST(OnnxDynamic, PadsByWhatSizesLeave) {
  // To a multiple of 4: pads [0, -n mod 4], turned as exporters turn the order of axes.
  Builder b;
  b.input("x")
      .constant("four", {4})
      .constant("none", {0, 0})
      .constant("zero", {0})
      .constant("pairs", {-1, 2});
  b.constant("back", {-1}).constant("least", {INT64_MIN}).constant("flat", {-1});
  b.node("Shape", {"x"}, {"n"}, {attribute("end", int64_t{1})});
  b.node("Neg", {"n"}, {"m"}).node("Mod", {"m", "four"}, {"rest"});
  b.node("Concat", {"none", "zero", "rest"}, {"all"}, {attribute("axis", int64_t{0})});
  b.node("Reshape", {"all", "pairs"}, {"table"});
  b.node("Slice", {"table", "back", "least", "zero", "back"}, {"turned"});
  b.node("Transpose", {"turned"}, {"columns"}).node("Reshape", {"columns", "flat"}, {"pads"});
  b.node("Pad", {"x", "pads"}, {"y"});
  const OnnxProgram program = b.build({"y"});
  const auto f = compiled(program);
  for (const int64_t n : {3, 5, 8, 2}) {
    const Array y = f(std::vector<Array>{ones({n, 2})})[0];
    EXPECT_EQ(y.sizes().values(), (Ints{(n + 3) / 4 * 4, 2}));
    EXPECT_EQ(y.sum().item().toDouble(), 2.0 * static_cast<double>(n));
    EXPECT_EQ(values(y)[0], 1);
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(OnnxDynamic, EdgesRepeatByComputedAmounts) {
  // As many elements before as there are, less one.
  Builder b;
  b.input("x").constant("one", {1}).constant("zero", {0});
  b.node("Shape", {"x"}, {"n"}).node("Sub", {"n", "one"}, {"before"});
  b.node("Concat", {"before", "zero"}, {"pads"}, {attribute("axis", int64_t{0})});
  b.node("Pad", {"x", "pads"}, {"y"}, {attribute("mode", std::string("reflect"))});
  const OnnxProgram program = b.build({"y"});
  const auto f = compiled(program);
  EXPECT_THAT(values(f(std::vector<Array>{arange(3, kFloat)})[0]), ElementsAre(2, 1, 0, 1, 2));
  EXPECT_THAT(values(f(std::vector<Array>{arange(4, kFloat)})[0]), ElementsAre(3, 2, 1, 0, 1, 2, 3));
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(OnnxDynamic, ResizesToComputedSizes) {
  // To twice as many columns, by the nearest and by weights.
  Builder b;
  b.input("x").constant("ones", {1, 2});
  b.node("Shape", {"x"}, {"shape"}).node("Mul", {"shape", "ones"}, {"twice"});
  b.node("Resize", {"x", "", "", "twice"}, {"near"},
         {attribute("coordinate_transformation_mode", std::string("asymmetric")),
          attribute("nearest_mode", std::string("floor"))});
  b.node("Resize", {"x", "", "", "twice"}, {"linear"}, {attribute("mode", std::string("linear"))});
  const OnnxProgram program = b.build({"near", "linear"});
  const auto f = compiled(program);
  for (const int64_t n : {3, 2}) {
    const std::vector<Array> out = f(std::vector<Array>{arange(2 * n, kFloat).reshape({2, n})});
    EXPECT_EQ(out[0].sizes().values(), (Ints{2, 2 * n}));
    const std::vector<double> near = values(out[0]), linear = values(out[1]);
    for (size_t k = 0; k < near.size(); ++k) {
      EXPECT_EQ(near[k], static_cast<double>(k / 2));
      // Half a pixel: a quarter of the way to a neighbour, none beyond the ends of a row.
      const size_t row = static_cast<size_t>(2 * n), column = k % row;
      const double step = column == 0 || column == row - 1 ? 0 : k % 2 == 0 ? -0.25 : 0.25;
      EXPECT_NEAR(linear[k], near[k] + step, 1e-6);
    }
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(OnnxDynamic, ResizesByAnyScale) {
  // 5/3 as float32 is a bit less than 5/3: 3 samples become 4, and 6 become 9.
  const float scale = 5.f / 3.f;
  for (const std::string how : {"half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"}) {
    Builder b;
    b.input("x").constant_floats("scale", {scale});
    b.node("Resize", {"x", "", "scale"}, {"y"},
           {attribute("mode", std::string("linear")), attribute("coordinate_transformation_mode", how)});
    const OnnxProgram program = b.build({"y"});
    const auto f = compiled(program);
    for (const auto& [n, length] : {std::pair<int64_t, int64_t>{3, 4}, {4, 6}, {6, 9}, {5, 8}}) {
      const std::vector<double> y = values(f(std::vector<Array>{arange(n, kFloat)})[0]);
      ASSERT_EQ(y.size(), static_cast<size_t>(length)) << how;
      // The samples are 0, 1, 2, ...: what is read there is the position, within the ends.
      const double wide = static_cast<double>(n) * scale, last = static_cast<double>(n - 1);
      for (size_t k = 0; k < y.size(); ++k) {
        const double i = static_cast<double>(k);
        double at = (i + 0.5) / scale - 0.5;
        if (how == "align_corners") at = i * last / (wide - 1);
        if (how == "asymmetric") at = i / scale;
        if (how == "half_pixel_symmetric") {
          at += static_cast<double>(n) / 2 * (1 - static_cast<double>(length) / wide);
        }
        EXPECT_NEAR(y[k], std::clamp(at, 0.0, last), 1e-5) << how << " " << n << " at " << k;
      }
    }
    EXPECT_EQ(f.artifacts().size(), 1u) << how;
  }
}

TEST(OnnxDynamic, SizesBecomeValues) {
  // x * n + [n * m, max(n, m)][0] as floats, for all n and m.
  Builder b;
  b.input("x").constant("zero", {0}).constant("one", {1}).constant("two", {2});
  b.node("Shape", {"x"}, {"shape"})
      .node("ReduceProd", {"shape"}, {"area"}, {attribute("keepdims", int64_t{1})});
  b.node("Slice", {"shape", "zero", "one"}, {"n"}).node("Slice", {"shape", "one", "two"}, {"m"});
  b.node("Max", {"n", "m"}, {"larger"});
  b.node("Concat", {"area", "larger"}, {"both"}, {attribute("axis", int64_t{0})});
  b.node("Cast", {"both"}, {"floats"}, {attribute("to", int64_t{1})});
  b.node("Cast", {"n"}, {"factor"}, {attribute("to", int64_t{1})});
  b.node("Mul", {"x", "factor"}, {"scaled"}).node("Gather", {"floats", "zero"}, {"first"});
  b.node("Add", {"scaled", "first"}, {"y"});
  const OnnxProgram program = b.build({"y", "floats"});
  const auto f = compiled(program);
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{3, 2}, {2, 5}, {4, 4}}) {
    const std::vector<Array> out = f(std::vector<Array>{ones({n, m})});
    EXPECT_EQ(values(out[0]).back(), static_cast<double>(n + n * m));
    EXPECT_THAT(values(out[1]), ElementsAre(n * m, std::max(n, m)));
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(OnnxDynamic, IfDecidesAboutSizes) {
  // n == 4 ? x + x : -x
  const auto branch = [](const std::string& op, std::vector<std::string> inputs) {
    Graph graph;
    graph.nodes.push_back({"", op, "", "", std::move(inputs), {"r"}, {}});
    graph.outputs.push_back({"r", "", std::nullopt, std::nullopt});
    return std::make_shared<const Graph>(std::move(graph));
  };
  Builder b;
  b.input("x").constant("four", {4}).node("Shape", {"x"}, {"n"}).node("Equal", {"n", "four"}, {"c"});
  b.node(
      "If", {"c"}, {"y"},
      {attribute("then_branch", branch("Add", {"x", "x"})), attribute("else_branch", branch("Neg", {"x"}))});
  const OnnxProgram program = b.build({"y"});
  const auto f = compiled(program);
  for (const int64_t n : {3, 4, 7}) {
    EXPECT_EQ(f(std::vector<Array>{ones({n})})[0].sum().item().toLong(), n == 4 ? 8 : -n);
  }
  EXPECT_EQ(f.artifacts().size(), 2u);
}

TEST(OnnxDynamic, ShapesThatDataDecidesAreRead) {
  Builder b;
  const OnnxProgram program = b.input("x").input("shape").node("Reshape", {"x", "shape"}, {"y"}).build({"y"});
  const auto f = compile([&](const std::vector<Array>& in) { return program(in); }, {.dynamic = true});
  for (const Ints& shape : {Ints{2, 6}, {3, 4}}) {
    const Array y = f(std::vector<Array>{arange(12, kFloat), tensor(shape, kInt64)})[0];
    EXPECT_EQ(y.sizes().values(), shape);
    EXPECT_EQ(values(y).back(), 11);
  }
}

TEST(OnnxDynamic, DimensionsGetTheNamesOfTheModel) {
  ValueInfo a{"a", "FLOAT", std::nullopt,
              std::vector<Dim>{{{}, "past + 1"}, {3, ""}, {{}, "2*past"}, {{}, ""}}};
  ValueInfo b{"b", "FLOAT", std::nullopt,
              std::vector<Dim>{{{}, "batch.size"}, {{}, "batch_size"}, {{}, "0"}}};
  ValueInfo c{"c", "FLOAT", std::nullopt, std::nullopt};
  const DynamicShapes shapes = dynamic_shapes({a, b, c});
  EXPECT_EQ(shapes.at(0).at(0).str(), "past + 1");
  EXPECT_EQ(shapes.at(0).at(1).kind(), stax::Dim::Kind::fixed);
  EXPECT_EQ(shapes.at(0).at(2).str(), "2*past");
  EXPECT_EQ(shapes.at(0).count(3), 0u);
  EXPECT_EQ(shapes.at(1).at(0).str(), "batch_size");
  EXPECT_EQ(shapes.at(1).at(1).str(), "batch_size_2");
  EXPECT_EQ(shapes.at(1).at(2).str(), "_0");
  EXPECT_TRUE(shapes.at(2).empty());
}

}  // namespace
}  // namespace stax::onnx

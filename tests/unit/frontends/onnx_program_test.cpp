// Models as functions over tensors. Expected values are worked out by hand from ONNX's operator texts.
#include "frontends/onnx_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/batch.h"
#include "frontends/onnx_ops.h"
#include "stax/compile.h"
#include "stax/error.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "stax/onnx.h"
#include "unit/frontends/onnx_building.h"

namespace stax::onnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The only output, computed at once and compiled: both agree.
Array run(const OnnxProgram& program, const std::vector<Array>& inputs) {
  const std::vector<Array> at_once = program(inputs);
  EXPECT_EQ(at_once.size(), 1u);
  const auto compiled = compile([&](const std::vector<Array>& in) { return program(in); });
  const std::vector<Array> later = compiled(inputs);
  EXPECT_EQ(later.at(0).dtype(), at_once[0].dtype());
  EXPECT_EQ(later.at(0).sizes().values(), at_once[0].sizes().values());
  EXPECT_EQ(values(later.at(0)), values(at_once[0]));
  return at_once[0];
}

/// One node over float inputs.
Array apply(const std::string& op, const std::vector<Array>& inputs, std::vector<Attribute> attributes = {},
            int64_t opset = 17) {
  Builder builder(opset);
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) names.push_back("in" + std::to_string(i));
  for (const std::string& name : names) builder.input(name);
  return run(builder.node(op, names, {"out"}, std::move(attributes)).build({"out"}), inputs);
}

Array matrix() {
  return tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
}

TEST(OnnxProgram, ReshapesToShapesThatItComputes) {
  // Reshape(x, Concat(Slice(Shape(x), 0:1), [-1]))
  Builder builder;
  builder.input("x").constant("zero", {0}).constant("one", {1}).constant("rest", {-1});
  builder.node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "zero", "one", "zero"}, {"first"})
      .node("Concat", {"first", "rest"}, {"target"}, {attribute("axis", int64_t{0})})
      .node("Reshape", {"x", "target"}, {"y"});
  const OnnxProgram program = builder.build({"y"});
  EXPECT_EQ(run(program, {stax::rand({2, 3, 4})}).sizes().values(), (Ints{2, 12}));
  EXPECT_EQ(run(program, {stax::rand({5, 1, 7})}).sizes().values(), (Ints{5, 7}));
}

TEST(OnnxProgram, ReshapeCopiesLengthsWhereAZeroStands) {
  Builder builder;
  builder.input("x").constant("target", {0, -1, 2}).node("Reshape", {"x", "target"}, {"y"});
  EXPECT_EQ(run(builder.build({"y"}), {stax::rand({3, 8})}).sizes().values(), (Ints{3, 4, 2}));
}

TEST(OnnxProgram, SlicesBackwards) {
  Builder builder;
  builder.input("x")
      .constant("start", {-1})
      .constant("end", {-1000})
      .constant("axis", {1})
      .constant("step", {-2});
  builder.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
  EXPECT_THAT(values(run(builder.build({"y"}), {matrix()})), ElementsAre(3, 1, 6, 4));
}

TEST(OnnxProgram, ExpandsBothWays) {
  Builder builder;
  builder.input("x").constant("target", {2, 1}).node("Expand", {"x", "target"}, {"y"});
  const Array y = run(builder.build({"y"}), {tensor({1.0, 2.0})});
  EXPECT_EQ(y.sizes().values(), (Ints{2, 2}));
  EXPECT_THAT(values(y), ElementsAre(1, 2, 1, 2));
}

TEST(OnnxProgram, SumsOverAxesOfAttributesAndOfInputs) {
  EXPECT_THAT(values(apply("ReduceSum", {matrix()},
                           {attribute("axes", Ints{1}), attribute("keepdims", int64_t{0})}, 11)),
              ElementsAre(6, 15));
  Builder builder;
  builder.input("x").constant("axes", {-2}).node("ReduceSum", {"x", "axes"}, {"y"});
  const Array y = run(builder.build({"y"}), {matrix()});
  EXPECT_EQ(y.sizes().values(), (Ints{1, 3}));
  EXPECT_THAT(values(y), ElementsAre(5, 7, 9));
  EXPECT_THAT(values(apply("ReduceSum", {matrix()}, {attribute("noop_with_empty_axes", int64_t{1})})),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(OnnxProgram, SoftmaxChangedItsAxesInVersion13) {
  const Array zeros = stax::zeros({2, 2, 2});
  EXPECT_THAT(values(apply("Softmax", {zeros}, {}, 13)), testing::Each(0.5));
  EXPECT_THAT(values(apply("Softmax", {zeros}, {}, 11)), testing::Each(0.25));
}

TEST(OnnxProgram, DividesIntegersTowardsZero) {
  EXPECT_THAT(values(apply("Div", {tensor({7, -7}), tensor({2, 2})})), ElementsAre(3, -3));
}

TEST(OnnxProgram, ModuloTakesTheSignOfTheDivisorUnlessAsked) {
  EXPECT_THAT(values(apply("Mod", {tensor({-7, 7}), tensor({3, -3})})), ElementsAre(2, -2));
  EXPECT_THAT(values(apply("Mod", {tensor({-7, 7}), tensor({3, -3})}, {attribute("fmod", int64_t{1})})),
              ElementsAre(-1, 1));
}

TEST(OnnxProgram, GathersFromTheEnd) {
  EXPECT_THAT(values(apply("Gather", {matrix(), tensor({{-1, 0}})}, {attribute("axis", int64_t{1})})),
              ElementsAre(3, 1, 6, 4));
}

TEST(OnnxProgram, GemmTransposesAndScales) {
  // 2 * (A^T B) + 0.5 C with A = B = [[1, 2, 3], [4, 5, 6]]
  const Array y = apply("Gemm", {matrix(), matrix(), tensor({2.0, 4.0, 6.0})},
                        {attribute("transA", int64_t{1}), attribute("alpha", 2.0f), attribute("beta", 0.5f)});
  EXPECT_THAT(values(y), ElementsAre(35, 46, 57, 45, 60, 75, 55, 74, 93));
}

TEST(OnnxProgram, ConvolvesWithPadsThatDiffer) {
  // One row of three ones against [1, 2]: a zero before, none after.
  const Array y =
      apply("Conv", {tensor({{{1.0, 1.0, 1.0}}}), tensor({{{1.0, 2.0}}})}, {attribute("pads", Ints{1, 0})});
  EXPECT_THAT(values(y), ElementsAre(2, 3, 3));
}

TEST(OnnxProgram, NormalizesLayers) {
  const Array y = apply("LayerNormalization", {tensor({{1.0, 3.0}}), tensor({2.0, 2.0}), tensor({0.0, 1.0})},
                        {attribute("epsilon", 0.0f)});
  EXPECT_THAT(values(y), ElementsAre(-2, 3));
}

TEST(OnnxProgram, CallsTheFunctionsOfTheModel) {
  // Twice(a) = a + a, of the model's own domain.
  Builder builder;
  builder.input("x").node("Twice", {"x"}, {"y"});
  builder.model.graph.nodes[0].domain = "f";
  builder.model.opsets["f"] = 1;
  builder.model.functions.push_back(
      {"Twice", "f", "", {"a"}, {"b"}, {}, {}, {{"", "Add", "", "", {"a", "a"}, {"b"}, {}}}, {{"", 17}}});
  EXPECT_THAT(values(run(builder.build({"y"}), {tensor({1.5})})), ElementsAre(3));
}

TEST(OnnxProgram, ListsAllOperatorsThatAreNotMapped) {
  Builder builder;
  builder.input("x").node("Nonsense", {"x"}, {"y"}).node("Gibberish", {"y"}, {"z"});
  try {
    builder.build({"z"});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("Nonsense"), HasSubstr("Gibberish")));
  }
}

TEST(OnnxProgram, NamesTheNodeThatRefuses) {
  Builder builder;
  builder.input("x").input("y").node("MatMul", {"x", "y"}, {"z"});
  builder.model.graph.nodes[0].name = "product";
  const OnnxProgram program = builder.build({"z"});
  try {
    program({stax::rand({2, 3}), stax::rand({2, 3})});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("MatMul 'product'"));
  }
}

// Attributes that no model has: each is one UserError that names the node, and no division by zero, no access
// outside a list and no endless loop.
TEST(OnnxProgram, RefusesHostileAttributes) {
  const int64_t most = INT64_MAX, least = INT64_MIN;
  const auto refused = [](const std::string& op, const std::vector<Ints>& constants, size_t rank,
                          std::vector<Attribute> attributes, size_t outputs = 1, int64_t length = 4) {
    SCOPED_TRACE(op + (attributes.empty() ? "" : " " + attributes[0].name));
    Builder b(18);
    b.input("x");
    std::vector<std::string> inputs{"x"}, names;
    for (const Ints& c : constants) {
      inputs.push_back(std::string("c") + std::to_string(inputs.size()));
      b.constant(inputs.back(), c);
    }
    for (size_t k = 0; k < outputs; ++k) names.push_back("y" + std::to_string(k));
    b.node(op, inputs, names, std::move(attributes));
    const OnnxProgram program = b.build({"y0"});
    const std::vector<int64_t> sizes(rank, length);
    try {
      program({ones(sizes)});
      ADD_FAILURE() << "accepted";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(op));
    } catch (const RuntimeError& error) {
      EXPECT_THAT(error.what(), HasSubstr("memory"));
    }
  };
  for (const int64_t v : {int64_t{0}, int64_t{-1}, most, least}) {
    refused("DepthToSpace", {}, 4, {attribute("blocksize", v)});
    refused("SpaceToDepth", {}, 4, {attribute("blocksize", v)});
    refused("LRN", {}, 4, {attribute("size", v)});
    for (const char* pool : {"MaxPool", "AveragePool"}) {
      refused(pool, {}, 4, {attribute("kernel_shape", Ints{v, 2})});
      refused(pool, {}, 4, {attribute("strides", Ints{v, 1}), attribute("kernel_shape", Ints{2, 2})});
      refused(pool, {}, 4, {attribute("dilations", Ints{v, 1}), attribute("kernel_shape", Ints{2, 2})});
      refused(pool, {}, 4,
              {attribute("strides", Ints{v, 1}), attribute("kernel_shape", Ints{2, 2}),
               attribute("auto_pad", std::string("SAME_UPPER"))});
      refused(pool, {}, 4, {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{1})});
      refused(pool, {}, 3, {attribute("kernel_shape", Ints{2, 2})});
    }
    refused("Split", {}, 1, {attribute("num_outputs", v)}, 2);
    refused("Transpose", {}, 2, {attribute("perm", Ints{0, v == -1 ? 0 : v})});
    refused("Concat", {}, 2, {attribute("axis", v == 0 || v == -1 ? int64_t{7} : v)});
  }
  for (const int64_t v : {most, least}) {
    for (const char* pool : {"MaxPool", "AveragePool"}) {
      refused(pool, {}, 4, {attribute("pads", Ints{v, 0, 0, 0}), attribute("kernel_shape", Ints{2, 2})});
    }
    for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
      refused("Pad", {{v, 0}}, 1, {attribute("mode", std::string(mode))});
    }
  }
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    refused("Pad", {{1, 1}}, 1, {attribute("mode", std::string(mode))}, 1, 0);
  }
  refused("LRN", {}, 0, {attribute("size", int64_t{3})});
  refused("LRN", {}, 1, {attribute("size", int64_t{3})});
  refused("ReduceSum", {{most}}, 2, {});
  refused("TopK", {{}}, 1, {}, 2);
  refused("TopK", {{most}}, 1, {}, 2);
  refused("Reshape", {{most, most}}, 1, {});
  refused("Expand", {{most, most}}, 1, {});
  refused("Tile", {{most}}, 1, {});
}

TEST(OnnxProgram, ChecksItsInputs) {
  Builder builder;
  builder.input("x").node("Relu", {"x"}, {"y"});
  builder.model.graph.inputs[0].dtype = DType::float32;
  builder.model.graph.inputs[0].dims = std::vector<Dim>{{2, ""}, {std::nullopt, "n"}};
  const OnnxProgram program = builder.build({"y"});
  EXPECT_NO_THROW(program({stax::rand({2, 5})}));
  EXPECT_THROW(program({}), UserError);
  EXPECT_THROW(program({stax::rand({3, 5})}), UserError);
  EXPECT_THROW(program({stax::rand({2})}), UserError);
  EXPECT_THROW(program({zeros({2, 5}, kInt64)}), UserError);
}

// Shapes, indices and constants are worked out while the model is traced: what is left depends on the input.
TEST(OnnxProgram, ConstantsAreNoInputsOfWhatIsCompiled) {
  const OnnxProgram program = Builder()
                                  .input("x")
                                  .constant("k", {3, 1, 2})
                                  .constant("two", {2, 2, 2})
                                  .node("Mul", {"k", "two"}, {"doubled"})
                                  .node("Cast", {"doubled"}, {"factors"}, {attribute("to", int64_t{1})})
                                  .node("Mul", {"x", "factors"}, {"y"})
                                  .build({"y"});
  const auto captured = compiler::trace_function([&](const std::vector<Array>& in) { return program(in); },
                                                 {tensor(std::vector<float>{1, 2, 3})});
  EXPECT_EQ(captured.graph.inputs.size(), 1u) << captured.graph.str();
  int calls = 0;
  for (const graph::Node& node : captured.graph.nodes) calls += node.op != nullptr;
  EXPECT_EQ(calls, 1) << captured.graph.str();
  EXPECT_THAT(values(run(program, {tensor(std::vector<float>{1, 2, 3})})), ElementsAre(6, 4, 12));
}

TEST(OnnxProgram, ReturnedConstantsAreCopies) {
  const OnnxProgram program = Builder().input("x").constant("k", {3, 1}).build({"k"});
  const std::vector<Array> x = {tensor(std::vector<float>{0})};
  program(x)[0].add_(5);
  EXPECT_THAT(values(program(x)[0]), ElementsAre(3, 1));
  const auto compiled = compile([&](const std::vector<Array>& in) { return program(in); });
  compiled(x)[0].add_(5);
  EXPECT_THAT(values(compiled(x)[0]), ElementsAre(3, 1));
}

TEST(OnnxModel, IsAFunctionThatCompiles) {
  const OnnxModel model = OnnxModel::load(STAX_TEST_DATA "/onnx/mlp.onnx");
  EXPECT_THAT(model.input_names(), ElementsAre("x"));
  EXPECT_THAT(model.output_names(), ElementsAre("y"));
  const auto compiled = compile(model);
  // relu([14.5, -81, 25])
  EXPECT_THAT(values(compiled(std::vector<Array>{tensor({{2.0, 3.0}})}).at(0)), ElementsAre(14.5, 0, 25));
}

TEST(OnnxOps, RowsHaveOneNameAndVersionEach) {
  std::set<std::pair<std::string_view, int64_t>> seen;
  for (const auto& family : {ops::math_rows(), ops::shape_rows(), ops::index_rows(), ops::reduction_rows(),
                             ops::network_rows(), ops::resize_rows()}) {
    for (const ops::OpRow& row : family) {
      EXPECT_TRUE(seen.emplace(row.name, row.since).second) << row.name;
      EXPECT_NE(row.run, nullptr);
    }
  }
  EXPECT_EQ(ops::find_row("Expand", 7), nullptr);
  EXPECT_NE(ops::find_row("Expand", 8), nullptr);
}

}  // namespace
}  // namespace stax::onnx

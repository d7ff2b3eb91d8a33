// Compiled functions over weights that never change: what becomes a constant of the program, and what a call
// does. Expected values are sums written out.
#include <gtest/gtest.h>

#include "cpu/compile_testing.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

using Values = std::vector<float>;

Tensor constant_of(const Values& values, std::initializer_list<int64_t> sizes) {
  return constant_copy(tensor(values).reshape(std::vector<int64_t>(sizes)));
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(ConstantWeights, AreNoInputsOfTheProgram) {
  const Tensor w = constant_of({1, 2, 3, 4, 5, 6}, {3, 2}), scale = constant_of({0.5f}, {});
  auto f = compile([=](const Tensor& x) { return matmul(x, w) * scale; });
  EXPECT_EQ(values(f(tensor(Values{1, 0, 1, 0, 2, 0}).reshape({2, 3}))), (Values{3, 4, 3, 4}));
  const Artifact artifact = f.artifacts()[0];
  EXPECT_EQ(count(artifact.graph, "= input"), 1) << artifact.graph;
  EXPECT_NE(artifact.kernels.at(0).source.find("0x1p-1f"), std::string::npos) << "the scale is no immediate";
}

TEST(ConstantWeights, TransposedOnesAreConstantsToo) {
  const Tensor w = constant_of({1, 2, 3, 4, 5, 6}, {2, 3});
  auto f = compile([t = w.t()](const Tensor& x) { return matmul(x, t); });
  EXPECT_EQ(values(f(tensor(Values{1, 0, 1, 0, 2, 0}).reshape({2, 3}))), (Values{4, 10, 4, 10}));
  EXPECT_EQ(count(f.artifacts()[0].graph, "= input"), 1) << f.artifacts()[0].graph;
}

TEST(ConstantWeights, AnArgumentIsAnArgument) {
  const Tensor w = constant_of({1, 2}, {2});
  auto f = compile([](const Tensor& x, const Tensor& y) { return x * y; });
  EXPECT_EQ(values(f(tensor(Values{3, 4}), w)), (Values{3, 8}));
  EXPECT_EQ(values(f(tensor(Values{3, 4}), constant_of({5, 6}, {2}))), (Values{15, 24}));
}

TEST(ConstantWeights, RefuseToBeWritten) {
  Tensor w = constant_of({1, 2}, {2});
  EXPECT_THROW(w.add_(1), UserError);
  EXPECT_EQ(values(w), (Values{1, 2}));
}

TEST(ConstantWeights, AReturnedConstantIsACopy) {
  const Tensor w = constant_of({1, 2}, {2});
  auto f = compile([=](const Tensor& x) { return std::vector<Tensor>{x + 1, w.clone()}; });
  f(tensor(Values{0}))[1].add_(5);
  EXPECT_EQ(values(f(tensor(Values{0}))[1]), (Values{1, 2}));
}

TEST(ConstantWeights, ReadingOneHotRowsCallsNoProduct) {
  const Tensor w = constant_of({1, 2, 3, 4, 5, 6}, {3, 2});
  auto f = compile([=](const Tensor& classes) {
    return relu(matmul((classes.unsqueeze(-1) == arange(3)).to(kFloat32), w) - 2);
  });
  EXPECT_EQ(values(f(tensor(std::vector<int64_t>{2, 0, 3}))), (Values{3, 4, 0, 0, 0, 0}));
  const Artifact artifact = f.artifacts()[0];
  EXPECT_EQ(count(artifact.plan, "extern_kernels."), 0) << artifact.plan;
}

// The channels lie innermost between the operators: no kernel only copies, and the returned tensor lies as
// PyTorch's does.
TEST(ConstantWeights, ConvolutionsBetweenPointwiseOperatorsCopyNothing) {
  // A window of ones: each output is the sum of a window over both channels, doubled for channel 1.
  Values ones(2 * 2 * 3, 1);
  std::fill(ones.begin() + 6, ones.end(), 2.0f);
  const Tensor w = constant_of(ones, {2, 2, 3, 1});
  auto f = compile([=](const Tensor& x) { return relu(conv2d(relu(x), w)) + 1; });
  Values in;
  for (int k = 0; k < 2 * 5; ++k) in.push_back(static_cast<float>(k - 2));
  // relu: channel 0 is 0 0 0 1 2, channel 1 is 3 4 5 6 7; windows of three over both: 12, 16, 21.
  const Tensor y = f(tensor(in).reshape({1, 2, 5, 1}));
  EXPECT_EQ(values(y), (Values{13, 17, 22, 25, 33, 43}));
  EXPECT_EQ(y.strides().values(), (std::vector<int64_t>{6, 3, 1, 1}));
  const Artifact artifact = f.artifacts()[0];
  EXPECT_EQ(artifact.kernels.size(), 2u) << artifact.plan;
  EXPECT_EQ(count(artifact.plan, "extern_kernels."), 1) << artifact.plan;
}

TEST(ConstantWeights, ConvolutionsInARowKeepTheirChannelsLast) {
  const Tensor w = constant_of({1, 2, 3, 4}, {2, 2, 1}), v = constant_of({1, 0, 1, 1}, {2, 2, 1});
  auto f = compile([=](const Tensor& x) {
    const Tensor a = conv1d(x, w);
    return std::vector<Tensor>{conv1d(relu(a) + a, v), amax(a, {2}, false)};
  });
  const std::vector<Tensor> y = f(tensor(Values{1, 2, 0, 1, -1, 1}).reshape({1, 2, 3}));
  // a = [[3, 0, 2], [7, 2, 4]]; relu(a) + a = 2 a.
  EXPECT_EQ(values(y[0]), (Values{6, 0, 4, 20, 4, 12}));
  EXPECT_EQ(values(y[1]), (Values{3, 7}));
  const Artifact artifact = f.artifacts()[0];
  EXPECT_EQ(count(artifact.plan, "extern_kernels."), 2) << artifact.plan;
  EXPECT_LE(artifact.kernels.size(), 3u) << artifact.plan;
}

TEST(ConstantWeights, ViewsByStridesSeePlainMemory) {
  const Tensor w = constant_of({1, 2, 3, 4}, {2, 2, 1});
  auto f = compile([=](const Tensor& x) { return as_strided(conv1d(x, w), {6}, {1}) * 2; });
  // conv1d gives [[3, 0, 2], [7, 2, 4]] row by row.
  EXPECT_EQ(values(f(tensor(Values{1, 2, 0, 1, -1, 1}).reshape({1, 2, 3}))), (Values{6, 0, 4, 14, 4, 8}));
}

}  // namespace
}  // namespace stax

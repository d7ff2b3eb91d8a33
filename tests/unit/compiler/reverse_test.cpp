// Gradients of graphs, against differences of the functions themselves in float64.
#include "autograd/reverse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/batch.h"
#include "compiler/constant_evaluator.h"
#include "ops/table.h"
#include "stax/stax.h"

namespace stax::compiler {
namespace {

using Tensors = std::vector<Tensor>;

std::shared_ptr<const std::vector<std::byte>> bytes_of(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const auto size = static_cast<size_t>(dense.numel()) * 8;
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  std::memcpy(bytes->data(), dense.data_ptr(), size);
  return bytes;
}

/// The gradients of the sum of f's result, as the graph of gradients computes them.
std::vector<std::vector<double>> gradients(const TensorFunction& f, const Tensors& inputs) {
  const capture::Captured captured = trace_function(f, inputs);
  const graph::PassContext context{ops::table(), *captured.env, evaluate_constants};
  graph::Graph graph = graph::run_passes(context, autograd::reverse(context, captured.graph));
  Tensors values = {ones_like(f(inputs)[0])};
  values.insert(values.end(), inputs.begin(), inputs.end());
  for (size_t k = 0; k < values.size(); ++k) {
    graph::Node& node = graph.nodes[static_cast<size_t>(graph.inputs[k])];
    node.kind = graph::NodeKind::constant;
    node.input = -1;
    node.data = bytes_of(values[k]);
  }
  graph.inputs.clear();
  std::vector<std::vector<double>> out;
  for (const auto& data : evaluate_constants(context, graph)) {
    out.emplace_back(data->size() / 8);
    std::memcpy(out.back().data(), data->data(), data->size());
  }
  return out;
}

double total(const TensorFunction& f, const Tensors& inputs) {
  return f(inputs)[0].sum().item<double>();
}

/// Central differences of the fourth order.
double difference(const TensorFunction& f, const Tensors& inputs, size_t which, int64_t element) {
  const double h = 1e-3;
  const auto at = [&](double step) {
    Tensors moved;
    for (const Tensor& t : inputs) moved.push_back(t.clone());
    moved[which].mutable_data_ptr<double>()[element] += step;
    return total(f, moved);
  };
  return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

void check(const char* what, const TensorFunction& f, const Tensors& inputs) {
  const auto got = gradients(f, inputs);
  ASSERT_EQ(got.size(), inputs.size()) << what;
  for (size_t k = 0; k < inputs.size(); ++k) {
    ASSERT_EQ(static_cast<int64_t>(got[k].size()), inputs[k].numel()) << what;
    for (size_t i = 0; i < got[k].size(); ++i) {
      const double want = difference(f, inputs, k, static_cast<int64_t>(i));
      EXPECT_NEAR(got[k][i], want, 1e-7 * std::max(1.0, std::abs(want)))
          << what << ": input " << k << ", element " << i;
    }
  }
}

/// Values between 0.3 and 1.7, away from each other and from where functions bend.
Tensor values(std::vector<int64_t> sizes) {
  Tensor t = empty(std::vector<SymInt>(sizes.begin(), sizes.end()), DType::float64);
  double* data = t.mutable_data_ptr<double>();
  for (int64_t i = 0; i < t.numel(); ++i)
    data[i] = 0.3 + 1.4 * static_cast<double>((i * 37 + 11) % 101) / 101;
  return t;
}

#define RETURN(expression) [](const Tensors& v) { return Tensors{expression}; }

TEST(Reverse, FunctionsOfOneVariable) {
  const Tensor x = values({2, 5}), mixed = x - 1.0;
  check("exp", RETURN(exp(v[0])), {mixed});
  check("exp2", RETURN(exp2(v[0])), {mixed});
  check("expm1", RETURN(expm1(v[0])), {mixed});
  check("log", RETURN(log(v[0])), {x});
  check("log2", RETURN(log2(v[0])), {x});
  check("log10", RETURN(log10(v[0])), {x});
  check("log1p", RETURN(log1p(v[0])), {x});
  check("sqrt", RETURN(sqrt(v[0])), {x});
  check("rsqrt", RETURN(rsqrt(v[0])), {x});
  check("reciprocal", RETURN(reciprocal(v[0])), {x});
  check("neg", RETURN(-v[0]), {x});
  check("square", RETURN(square(v[0])), {mixed});
  check("pow", RETURN(pow(v[0], 3.5)), {x});
  check("abs", RETURN(abs(v[0])), {mixed});
  check("sin", RETURN(sin(v[0])), {mixed});
  check("cos", RETURN(cos(v[0])), {mixed});
  check("tan", RETURN(tan(v[0])), {mixed});
  check("tanh", RETURN(tanh(v[0])), {mixed});
  check("sigmoid", RETURN(sigmoid(v[0])), {mixed});
  check("erf", RETURN(erf(v[0])), {mixed});
  check("relu", RETURN(relu(v[0])), {mixed});
  check("gelu", RETURN(gelu(v[0])), {mixed});
  check("gelu, tanh", RETURN(gelu(v[0], "tanh")), {mixed});
  check("silu", RETURN(silu(v[0])), {mixed});
  check("leaky_relu", RETURN(leaky_relu(v[0], 0.1)), {mixed});
}

TEST(Reverse, ArithmeticBroadcasts) {
  const Tensor x = values({3, 4}), row = values({4}) + 0.01, column = values({3, 1}) + 0.02;
  check("add", RETURN(add(v[0], v[1], 2)), {x, row});
  check("sub", RETURN(sub(v[0], v[1], 3)), {column, x});
  check("mul", RETURN(v[0] * v[1]), {x, column});
  check("div", RETURN(v[0] / v[1]), {row, x});
  check("pow", RETURN(pow(v[0], v[1])), {x, row});
  check("numbers", RETURN((2.0 - v[0]) * 3.0 / 1.5 + 1.0), {x});
  check("number by tensor", RETURN(2.0 / v[0]), {x});
  check("power of a number", RETURN(pow(2.0, v[0])), {x});
  check("maximum", RETURN(maximum(v[0], v[1])), {x, row});
  check("minimum", RETURN(minimum(v[0], v[1])), {x, column});
  check("where", RETURN(where(v[0] > 1.0, v[0] * v[1], v[1])), {x, row});
}

TEST(Reverse, ReductionsViewsAndProducts) {
  const Tensor x = values({3, 4}), y = values({4, 2}) + 0.01;
  check("sum", RETURN(v[0].sum() * v[0].sum()), {x});
  check("sum of rows", RETURN(square(v[0].sum(-1))), {x});
  check("mean", RETURN(square(v[0].mean())), {x});
  check("mean of columns", RETURN(square(v[0].mean(0, true))), {x});
  check("amax", RETURN(square(v[0].amax(1))), {x});
  check("softmax", RETURN(square(softmax(v[0], -1))), {x});
  check("log_softmax", RETURN(square(log_softmax(v[0], 0))), {x});
  check("views", RETURN(square(v[0].t().reshape({2, 6}).unsqueeze(0).permute({2, 0, 1})) * 0.5), {x});
  check("slice and select", RETURN(square(v[0].slice(1, 1, 4, 2).select(0, 1))), {x});
  check("diagonal", RETURN(square(v[0].diagonal(1))), {x});
  check("slice_scatter", RETURN(square(v[0].slice_scatter(v[0].slice(1, 0, 2) * 3, 1, 1, 4, 2))), {x});
  check("select_scatter", RETURN(square(v[0].select_scatter(v[0].select(0, 1) * 3, 0, 0))), {x});
  check("diagonal_scatter", RETURN(square(v[0].diagonal_scatter(v[0].diagonal(1) * 3, 0))), {x});
  check("expand", RETURN(square(v[0].select(1, 0).expand({5, 3}))), {x});
  check("matmul", RETURN(square(matmul(v[0], v[1]))), {x, y});
}

TEST(Reverse, NamesTheOperatorWithoutDerivative) {
  try {
    gradients(RETURN(lgamma(v[0])), {values({3})});
    FAIL() << "lgamma has a derivative now: take another operator";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("lgamma has no derivative"));
  }
}

}  // namespace
}  // namespace stax::compiler

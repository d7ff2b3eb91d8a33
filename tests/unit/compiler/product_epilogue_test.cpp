// Which parts of a graph join its products.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "ops/table.h"

namespace stax::compiler {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Var;
using testing::ElementsAre;

/// The operators of a graph that was built over x [4, 8], w [8, 6], a bias [6] and a residual [4, 6], after
/// the pass.
std::vector<std::string> fused(
    DType dtype, const std::function<Var(Builder&, Var x, Var w, Var bias, Var residual)>& build) {
  ShapeEnv env;
  Graph graph;
  Builder b(ops::table(), env, graph);
  const auto input = [&](std::vector<Expr> sizes) {
    const Var v = b.input(graph::dense(dtype, std::move(sizes)));
    graph.inputs.push_back(v.value().node);
    return v;
  };
  const Var x = input({4, 8}), w = input({8, 6}), bias = input({6}), residual = input({4, 6});
  const Var out = build(b, x, w, bias, residual);
  graph.outputs.push_back({out.value(), -1});
  const graph::PassContext context{ops::table(), env, nullptr, /*fuses_products=*/true};
  const Graph after = graph::fuse_products(context, graph);
  graph::verify(after);
  EXPECT_EQ(after.meta(after.outputs[0].value).str(), out.meta().str());
  std::vector<std::string> names;
  for (const graph::Node& node : after.nodes)
    if (node.kind == graph::NodeKind::call) names.push_back(graph::call_text(after, node));
  for (std::string& name : names) name = name.substr(0, name.find('('));
  return names;
}

TEST(ProductEpilogue, TakesBiasActivationAndRounding) {
  EXPECT_THAT(fused(DType::float32,
                    [](Builder& b, Var x, Var w, Var bias, Var) {
                      return b.call("gelu", {b.call("mm", {x, w}) + bias, "tanh"});
                    }),
              ElementsAre("product_epilogue"));
  EXPECT_THAT(fused(DType::bfloat16,
                    [](Builder& b, Var x, Var w, Var bias, Var) {
                      const Var wide = b.call("mm.dtype", {x, w, DType::float32});
                      const Var sum =
                          b.call("to.dtype", {b.call("expand", {bias, wide.sizes()}), DType::float32}) + wide;
                      return b.call("gelu", {b.call("to.dtype", {sum, DType::bfloat16}), "tanh"});
                    }),
              ElementsAre("product_epilogue"));
  // Through a change of shape that keeps the columns, which is made again behind.
  EXPECT_THAT(fused(DType::float32,
                    [](Builder& b, Var x, Var w, Var bias, Var) {
                      return b.call("view", {b.call("mm", {x, w}), std::vector<Expr>{2, 2, 6}}) + bias;
                    }),
              ElementsAre("product_epilogue", "view"));
}

TEST(ProductEpilogue, LeavesWhatTheLibraryDoesNotDo) {
  const auto expect_kept = [](const std::function<Var(Builder&, Var, Var, Var, Var)>& build, size_t calls) {
    const auto names = fused(DType::float32, build);
    EXPECT_EQ(names.size(), calls);
    EXPECT_EQ(std::ranges::count(names, "mm"), 1);
  };
  // A matrix is no bias.
  expect_kept([](Builder& b, Var x, Var w, Var, Var residual) { return b.call("mm", {x, w}) + residual; }, 2);
  // The form of gelu by erf is none of its functions.
  expect_kept(
      [](Builder& b, Var x, Var w, Var, Var) {
        return b.call("gelu", {b.call("mm", {x, w}), "none"});
      },
      2);
  // The product itself has another reader.
  expect_kept(
      [](Builder& b, Var x, Var w, Var bias, Var) {
        const Var y = b.call("mm", {x, w});
        return (y + bias) * y;
      },
      3);
  // The columns become rows.
  expect_kept(
      [](Builder& b, Var x, Var w, Var bias, Var) {
        return b.call("view", {b.call("mm", {x, w}), std::vector<Expr>{6, 4}}) +
               b.call("slice.Tensor", {bias, 0, 0, 4, 1});
      },
      4);
}

TEST(ProductEpilogue, StopsAtTheSecondBiasAndAfterTheActivation) {
  EXPECT_THAT(fused(DType::float32,
                    [](Builder& b, Var x, Var w, Var bias, Var) {
                      return b.call("mm", {x, w}) + bias + bias;
                    }),
              ElementsAre("product_epilogue", "add.Tensor"));
  EXPECT_THAT(fused(DType::float32,
                    [](Builder& b, Var x, Var w, Var bias, Var) {
                      return b.call("gelu", {b.call("mm", {x, w}), "tanh"}) + bias;
                    }),
              ElementsAre("product_epilogue", "add.Tensor"));
  EXPECT_THAT(fused(DType::float32,
                    [](Builder& b, Var x, Var w, Var bias, Var) {
                      return b.call("relu", {b.call("relu", {b.call("mm", {x, w}) + bias})});
                    }),
              ElementsAre("product_epilogue", "relu"));
}

TEST(ProductEpilogue, ThePassRunsWhereTheContextSaysSo) {
  for (const bool fuses : {false, true}) {
    ShapeEnv env;
    Graph graph;
    Builder b(ops::table(), env, graph);
    const Var x = b.input(graph::dense(DType::float32, {4, 4}));
    graph.inputs.push_back(x.value().node);
    graph.outputs.push_back({(b.call("mm", {x, x}) + b.call("select.int", {x, 0, 1})).value(), -1});
    std::vector<std::string> ran;
    const auto after = graph::run_passes(
        {ops::table(), env, nullptr, fuses}, graph,
        [&](const graph::Pass& pass, const Graph&, double) { ran.emplace_back(pass.name); });
    EXPECT_EQ(std::ranges::count(ran, "fuse_products"), fuses ? 1 : 0);
    EXPECT_EQ(after.str().find("product_epilogue") != std::string::npos, fuses) << after.str();
  }
}

// A float32 bias of a product of halves would be rounded before it is added.
TEST(ProductEpilogue, ABiasIsNotMadeNarrower) {
  const auto names = fused(DType::bfloat16, [](Builder& b, Var x, Var w, Var bias, Var) {
    const Var wide = b.call("mm.dtype", {x, w, DType::float32});
    return b.call("to.dtype",
                  {wide + b.call("exp", {b.call("to.dtype", {bias, DType::float32})}), DType::bfloat16});
  });
  EXPECT_EQ(std::ranges::count(names, "mm.dtype"), 1);
}

TEST(ProductEpilogue, EmptySumsAreLeftAlone) {
  const auto names = fused(DType::float32, [](Builder& b, Var x, Var w, Var, Var) {
    return b.call(
        "gelu",
        {b.call("mm", {b.call("slice.Tensor", {x, 1, 0, 0, 1}), b.call("slice.Tensor", {w, 0, 0, 0, 1})}),
         "tanh"});
  });
  EXPECT_EQ(std::ranges::count(names, "mm"), 1);
}

}  // namespace
}  // namespace stax::compiler

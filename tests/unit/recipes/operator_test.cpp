// The recipe "add an operator" of CONTRIBUTING.md, followed.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/builder.h"
#include "graph/pass_table.h"
#include "lowering/lowering.h"
#include "lowering/scalar.h"
#include "ops/table.h"
#include "reference/executor.h"

namespace stax {
namespace {

using graph::pointwise;
using Rule = graph::DTypeRule;

std::vector<graph::Op> rows() {
  std::vector<graph::Op> rows = ops::arithmetic_rows();
  rows.push_back(
      // recipe: operator
      in_place(pointwise(
          "softclip(Tensor self, Scalar limit=1.0) -> Tensor", Rule::self,
          [](const lowering::PointwiseArgs& a) { return tanh(a["self"] / a["limit"]) * a["limit"]; }))
      // end of recipe
  );
  return rows;
}

TEST(Recipe, AddedOperatorLowersAndRuns) {
  const graph::OpTable table(rows());
  ShapeEnv env;
  graph::Graph graph;
  graph::Builder b(table, env, graph);
  const graph::Var x = b.input(graph::dense(kFloat32, {3}));
  graph.outputs.push_back({b.call("softclip", {x, 2.0}).value(), -1});
  const graph::Graph done = graph::run_passes({table, env}, graph);
  const auto lowered = lowering::lower(table, done, env);
  const auto executable = reference::Executable::prepare(lowered.program);

  float in[3] = {-4, 0.5, 100}, out[3] = {};
  void* inputs[] = {in};
  void* outputs[] = {out};
  executable->run({.inputs = inputs, .outputs = outputs});
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(out[k], 2 * std::tanh(in[k] / 2), 1e-6);
}

}  // namespace
}  // namespace stax

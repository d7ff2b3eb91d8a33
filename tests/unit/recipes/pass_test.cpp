// The recipe "add a pass" of CONTRIBUTING.md, followed.
#include <gtest/gtest.h>

#include "graph/rewriter.h"
#include "ops/table.h"

namespace stax {
namespace {

using namespace graph;

// recipe: pass
// Cancels double negations: neg(neg(x)) -> x.
Graph cancel_negations(const PassContext& context, const Graph& graph) {
  Rewriter rewriter(context, graph);
  const auto is_negation = [&](NodeId id) {
    const Op* op = graph.nodes[id].op;
    return op && op->schema.name == "neg";
  };
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (is_negation(id) && is_negation(node.args[0].tensor().node)) {
      const Node& inner = graph.nodes[node.args[0].tensor().node];
      rewriter.replace(id, {rewriter.mapped(inner.args[0].tensor())});
    } else {
      rewriter.keep(id);
    }
  }
  return rewriter.finish();
}
// end of recipe

TEST(Recipe, AddedPassRewritesTheGraph) {
  ShapeEnv env;
  Graph graph;
  Builder b(ops::table(), env, graph);
  const Var x = b.input(dense(kFloat32, {4}), "x");
  graph.outputs.push_back({(-(-(-x))).value(), -1});
  const PassContext context{ops::table(), env};
  const Graph out = cancel_negations(context, graph);
  verify(out);
  // -(-(-x)) is -x: the output is one negation of the input.
  const Node& last = out.nodes[out.outputs[0].value.node];
  ASSERT_NE(last.op, nullptr);
  EXPECT_EQ(last.op->schema.name, "neg");
  EXPECT_EQ(out.nodes[last.args[0].tensor().node].name, "x");
}

}  // namespace
}  // namespace stax

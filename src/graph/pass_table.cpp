#include "graph/pass_table.h"

#include <array>
#include <chrono>

#include "graph/passes/passes.h"

namespace stax::graph {
namespace {

constexpr std::array<Pass, 6> kPasses = {{
    {"decompose", decompose, "", "no composite or decomposed operator is left"},
    {"fold_constants", fold_constants,
     "decompositions done, so that the evaluator can lower what it is given",
     "small values that depend on no input are constants, with the bits that running would give"},
    {"gather_one_hot", gather_one_hot, "constants folded, so that weights are seen to be finite",
     "no product of one-hot rows and finite constant weights is left: their rows are read"},
    {"merge_common", merge_common, "", "no two nodes compute the same value"},
    {"remove_dead", remove_dead, "", "every node is needed by an output or a write-back"},
    {"fuse_products", fuse_products, "nothing is left to remove: whatever reads a product counts",
     "what a library computes with a product is a part of it; every node is needed still",
     &PassContext::fuses_products},
}};

}  // namespace

std::span<const Pass> passes() {
  return kPasses;
}

Graph run_passes(const PassContext& context, Graph graph, const PassObserver& observer) {
  using Clock = std::chrono::steady_clock;
  verify(graph);
  for (const Pass& pass : passes()) {
    if (pass.where != nullptr && !(context.*pass.where)) continue;
    const auto start = Clock::now();
    graph = pass.run(context, graph);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    verify(graph);
    if (observer) observer(pass, graph, seconds);
  }
  return graph;
}

}  // namespace stax::graph

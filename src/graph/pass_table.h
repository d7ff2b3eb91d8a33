// The passes over the operator graph, in their order. A pass is a function from graph to graph; adding one is
// adding a row to the table in pass_table.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace stax::graph {

struct PassContext;

/// Evaluates a graph without inputs: the row-major bytes of each output. A layer further down implements it.
using ConstantEvaluator = std::vector<std::shared_ptr<const std::vector<std::byte>>> (*)(const PassContext&,
                                                                                         const Graph&);

struct PassContext {
  const OpTable& table;
  ShapeEnv& env;
  ConstantEvaluator evaluate = nullptr;  // without one, constants are not folded
  bool fuses_products = false;           // there is a library that computes what follows a product with it
};

struct Pass {
  std::string_view name;
  Graph (*run)(const PassContext& context, const Graph& graph);
  std::string_view needs;              // what holds before it
  std::string_view guarantees;         // what holds after it
  bool PassContext::*where = nullptr;  // the flag of contexts in which it runs; null: it runs in all
};

/// All passes, in the order in which they run.
std::span<const Pass> passes();

/// Called after each pass that runs, with its name, the graph and the seconds it took: for logs and dumps.
using PassObserver = std::function<void(const Pass&, const Graph&, double seconds)>;

/// Runs all passes that the context has use for, and verifies the graph after each.
Graph run_passes(const PassContext& context, Graph graph, const PassObserver& observer = {});

}  // namespace stax::graph

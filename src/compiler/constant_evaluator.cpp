#include "compiler/constant_evaluator.h"

#include "graph/rewriter.h"
#include "lowering/lowering.h"
#include "reference/executor.h"
#include "support/check.h"

namespace stax::compiler {
namespace {

// The graph with a row-major copy of each output as its outputs.
graph::Graph with_dense_outputs(const graph::PassContext& context, const graph::Graph& from) {
  graph::Graph bare = from;
  bare.outputs.clear();
  graph::Rewriter rewriter(context, bare);
  for (size_t id = 0; id < from.nodes.size(); ++id) rewriter.keep(static_cast<graph::NodeId>(id));
  std::vector<graph::Output> outputs;
  for (const graph::Output& o : from.outputs) {
    const graph::Var v = rewriter.mapped(o.value);
    outputs.push_back({rewriter.builder().call("reshape_copy", {v, v.sizes()}).value(), -1});
  }
  graph::Graph out = rewriter.finish();
  out.outputs = std::move(outputs);
  return out;
}

}  // namespace

std::vector<std::shared_ptr<const std::vector<std::byte>>> evaluate_constants(
    const graph::PassContext& context, const graph::Graph& graph) {
  auto lowered = lowering::lower(context.table, with_dense_outputs(context, graph), context.env);
  lowered.program.bindings.clear();  // of the environment's sizes, on which constants do not depend
  const auto executable = reference::Executable::prepare(lowered.program);
  std::vector<std::vector<std::byte>> buffers;
  for (const loops::BufferId id : lowered.program.outputs) {
    const loops::Buffer& buffer = lowered.program.buffers[id];
    const int64_t bytes = product(buffer.sizes).value() * itemsize(buffer.dtype);
    buffers.emplace_back(static_cast<size_t>(bytes));
  }
  std::vector<void*> outputs;
  for (auto& b : buffers) outputs.push_back(b.data());
  executable->run({.outputs = outputs});
  std::vector<std::shared_ptr<const std::vector<std::byte>>> out;
  for (const lowering::ResultView& r : lowered.results) {
    STAX_ASSERT(r.output >= 0, "constant folding: a result is no output");
    out.push_back(std::make_shared<const std::vector<std::byte>>(buffers[r.output]));
  }
  return out;
}

}  // namespace stax::compiler

// Recording a function without compiling it.
#include "stax/make_graph.h"

#include <ostream>

#include "compiler/export_record.h"
#include "compiler/export_state.h"
#include "support/check.h"

namespace stax {

using capture::Captured;
using compiler::ExportContract;

namespace detail {

struct GraphState {
  ExportContract contract;
  Captured captured;
};

std::shared_ptr<const GraphState> record_graph(const Leaves& leaves, FunctionCall& call,
                                               const GraphOptions& options) {
  STAX_CHECK(!is_tracing(), "make_graph is called while a function is traced; call it outside");
  auto state = std::make_shared<GraphState>();
  capture::SymbolOptions symbol_options;
  symbol_options.dynamic = options.tracing == Tracing::symbolic;
  symbol_options.shapes = options.dynamic_shapes;
  STAX_CHECK(symbol_options.dynamic || options.dynamic_shapes.empty(),
             "make_graph: dynamic_shapes are declared, but tracing is concrete");
  Captured captured = compiler::record(call, compiler::ExampleArguments(leaves), symbol_options, {});
  state->contract.inputs = compiler::inputs_of(captured.symbols, options.names);
  state->contract.guards = captured.env->guards();
  for (const Guard& guard : state->contract.guards) {
    state->contract.assertions.push_back(compiler::ordered(guard.condition));
  }
  for (Symbol s{SymbolKind::size, 0}; captured.env->hint(s); ++s.number) {
    state->contract.symbols.push_back(
        {{}, *captured.env->hint(s), Interval::at_least(0), captured.env->ranges().interval(s)});
  }
  compiler::freeze(captured);
  captured.env.reset();
  state->captured = std::move(captured);
  return state;
}

}  // namespace detail

std::string TracedGraph::str() const {
  return state_->captured.graph.str();
}

std::string TracedGraph::text() const {
  return compiler::program_text(state_->contract, state_->captured);
}

std::vector<std::string> TracedGraph::guards() const {
  std::vector<std::string> out;
  for (const Guard& guard : state_->contract.guards) {
    out.push_back(compiler::text_of(guard.condition, [](Symbol s) { return s.str(); }));
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const TracedGraph& graph) {
  return out << graph.str();
}

}  // namespace stax

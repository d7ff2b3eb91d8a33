// The graph of a function, recorded and not compiled.
//
//   auto g = stax::make_graph(f, std::tuple{x, stax::TensorSpec{stax::kFloat32, {64, 128}}},
//                             {.tracing = stax::Tracing::symbolic});
//   std::cout << g;
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "stax/api.h"
#include "stax/export.h"

namespace stax {

enum class Tracing : uint8_t {
  concrete,  ///< sizes are the example's
  symbolic,  ///< sizes of 2 and more are symbols, one for each size that occurs
};

struct GraphOptions {
  Tracing tracing = Tracing::concrete;
  /// With symbolic tracing: what is declared about single dimensions.
  DynamicShapes dynamic_shapes = {};
  /// As ExportOptions::names.
  std::vector<std::string> names = {};
};

/// A recorded graph. A value.
class STAX_API TracedGraph {
 public:
  explicit TracedGraph(std::shared_ptr<const detail::GraphState> state) : state_(std::move(state)) {}
  /// One node a line, with dtypes, sizes and strides of all results.
  std::string str() const;
  /// As ExportedProgram::graph() shows it.
  std::string text() const;
  /// The decisions about sizes under which the graph was recorded: "s0 > 4".
  std::vector<std::string> guards() const;

 private:
  std::shared_ptr<const detail::GraphState> state_;
};
STAX_API std::ostream& operator<<(std::ostream& out, const TracedGraph& graph);

namespace detail {
STAX_API std::shared_ptr<const GraphState> record_graph(const Leaves& leaves, FunctionCall& call,
                                                        const GraphOptions& options);
}

/// Records `function` on arguments like `inputs`, which may be TensorSpecs: nothing is computed. UserError
/// where the function needs the value of an element.
template <class F, class... A>
TracedGraph make_graph(F function, const std::tuple<A...>& inputs, const GraphOptions& options = {}) {
  return TracedGraph(
      detail::with_example(function, inputs, [&](const detail::Leaves& leaves, detail::FunctionCall& call) {
        return detail::record_graph(leaves, call, options);
      }));
}

}  // namespace stax

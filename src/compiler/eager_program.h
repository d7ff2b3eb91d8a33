// One operator lowered for one layout of its arguments.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "capture/dispatch.h"
#include "compiler/call_key.h"
#include "graph/graph.h"
#include "reference/executor.h"

namespace stax::compiler {

struct EagerProgram {
  /// A result: an output of the program, or a view of an argument.
  struct Result {
    int32_t output = -1, input = -1;
    DType dtype = DType::float32;
    Extents extents;
    int64_t offset = 0;  // elements, from element 0 of what it views
    bool whole = false;  // the output itself
  };
  struct Output {
    DType dtype = DType::float32;
    Extents extents;
    int64_t bytes = 0;
  };

  std::shared_ptr<const reference::Executable> executable;
  std::vector<Output> outputs;
  std::vector<Result> results;
  int64_t random_count = 0;           // counters that one run draws; 0 without random numbers
  bool flat = false;                  // results have the sizes of the first tensor with dimensions
  Symbol count{SymbolKind::size, 0};  // of a general program
  /// Where an operator inside has sizes that only data determine: the graph, to be run node by node.
  std::unique_ptr<const graph::Graph> graph;
};

/// Lowers the call. With Layout::flat its tensors count as vectors of `count` elements.
std::shared_ptr<const EagerProgram> make_program(const graph::Op& op, const capture::Arguments& arguments,
                                                 Layout layout, int64_t count);

/// Numbers among the operands of a pointwise call that a general program reads when it runs: their dtype by
/// position of the argument, or nothing where the number is part of the program.
std::optional<DType> run_time_number(const graph::Op& op, const capture::Arguments& arguments,
                                     size_t position);

/// Lowers a pointwise call of Layout::flat once for every count of at least 2 and for all its run-time
/// numbers.
std::shared_ptr<const EagerProgram> make_general_program(const graph::Op& op,
                                                         const capture::Arguments& arguments, int64_t count);
std::vector<Tensor> run_general_program(const EagerProgram& program, const graph::Op& op,
                                        const capture::Arguments& arguments, const StridedImpl& shape);

/// Runs it on the tensors of the call, in the order of the arguments. `shape` is a tensor with the results'
/// sizes where the program is flat.
std::vector<Tensor> run_program(const EagerProgram& program, const std::vector<const StridedImpl*>& inputs,
                                const std::vector<const Tensor*>& handles, const StridedImpl* shape);

/// Runs a graph node by node.
std::vector<Tensor> interpret(const graph::Graph& graph, const std::vector<const Tensor*>& inputs,
                              capture::EagerBackend& backend);

/// What a meta rule is told of a tensor: offset 0, so that results are relative to its element 0.
graph::TensorMeta relative_meta(const StridedImpl& tensor);

/// A view of `base` as a result meta relative to it says; `handle` itself where nothing differs.
Tensor view_of(const Tensor& handle, const StridedImpl& base, DType dtype, const Extents& extents,
               int64_t offset);

Extents extents_of(const graph::TensorMeta& meta);

/// Calls f(tensor) for every tensor of the arguments, in order.
template <class F>
void for_each_tensor(const capture::Arguments& arguments, F&& f) {
  for (const auto& argument : arguments) {
    if (argument.is_tensor()) {
      f(argument.tensor());
    } else if (const auto* list = std::get_if<Argument<Tensor>::Tensors>(&argument.value)) {
      for (const auto& tensor : *list) {
        if (tensor) f(*tensor);
      }
    }
  }
}

}  // namespace stax::compiler

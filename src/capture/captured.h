// What tracing a function gives: its graph, and how the graph's inputs and outputs relate to the tensors of a
// call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capture/input_symbols.h"
#include "graph/graph.h"
#include "stax/tensor.h"

namespace stax::capture {

/// Where the memory of a graph input lies.
struct CapturedInput {
  int32_t argument = -1;  // a tensor argument of the call, or
  int32_t number = -1;    // a number argument of the call, or
  Tensor tensor;          // a tensor that the function captured
  /// True: not that tensor's elements, but a stretch of the storage behind it, from element `start` of the
  /// storage on. Made where several tensors see the same memory and one of them is written.
  bool flat = false;
  int64_t start = 0;
};

/// A tensor that the function returned.
struct CapturedOutput {
  int32_t output = -1;     // lies in the storage of that graph output, or
  int32_t input = -1;      // in the storage of that graph input
  int32_t same_as = -1;    // the very tensor that this earlier result is
  int32_t argument = -1;   // the very tensor that the call gave
  Tensor tensor;           // the very tensor that the function captured
  bool whole = false;      // the graph output itself
  graph::TensorMeta meta;  // offset in elements of meta.dtype from element 0 of the input or the output
};

struct Captured {
  graph::Graph graph;
  std::shared_ptr<ShapeEnv> env;
  std::vector<CapturedInput> inputs;    // parallel to graph.inputs
  std::vector<CapturedOutput> outputs;  // parallel to the results
  Expr random_count;                    // counters that a run draws from the generator
  InputSymbols symbols;                 // what stood for the arguments
  std::vector<Expr> integers;           // what the function returned as sizes
  std::vector<char> used;               // by tensor argument: the graph reads it, or memory that it shares
  std::vector<char> offset_matters;     // by tensor argument: the graph holds for this storage offset only
  std::vector<char> number_matters;     // by number argument: the graph holds for this value only
};

}  // namespace stax::capture

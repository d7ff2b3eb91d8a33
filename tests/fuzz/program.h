// A random program: inputs with their data, calls of operators, results. It can be built as a graph any
// number of times, printed, and written to a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "support/run_ops.h"

namespace stax::fuzz {

using testing::Array;

/// A value of a program: an input, or a result of a step; the results of all steps are numbered on.
struct Ref {
  static constexpr int32_t kFirstResult = 1000;
  int32_t id = -1;
  bool is_input() const { return id < kFirstResult; }
};
using RefArg = Argument<Ref>;

/// One call. Missing trailing arguments take their defaults.
struct Step {
  std::string op;
  std::vector<RefArg> args;
  int32_t results = 1;
  /// Compiled code and the reference executor may differ in the last places: transcendental functions, and
  /// sums of floats, whose order is free.
  bool approximate = false;
  /// The differences come from the order in which the elements of the first argument are combined.
  bool combines = false;
};

struct Program {
  uint64_t seed = 0;
  std::vector<Array> inputs;
  std::vector<Step> steps;
  std::vector<Ref> outputs;
  struct WriteBack {
    int32_t input = -1;
    Ref value;
  };
  std::vector<WriteBack> write_backs;
  bool has_random_numbers = false;  // NumPy draws others
  bool has_bad_index = false;       // an index may be out of range
};

/// The values of a program in one graph.
struct Values {
  std::vector<graph::Var> inputs, results;
  graph::Var at(Ref ref) const;
};

/// The calls, one a line, and the inputs' shapes.
std::string text(const Program& program);

/// The meta of an input.
graph::TensorMeta meta_of(const Array& array);

/// Arguments of a step over the values of a graph under construction.
std::vector<graph::VarArg> bind_args(const Step& step, const Values& values);

/// The program as a graph, with the program's inputs. Where `noise` is given, approximate results are
/// multiplied by further inputs, which it receives: numbers next to 1, one for every element.
struct Noise {
  uint64_t seed = 0;
  std::vector<Array> inputs;
};
graph::Graph build(const Program& program, ShapeEnv& env, Noise* noise = nullptr);

}  // namespace stax::fuzz

// A loop program: buffers, and nodes that compute them. What lowering produces, scheduling orders, and both
// the reference executor and code generation run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loops/body.h"
#include "support/call_stack.h"
#include "symbolic/assertion.h"
#include "tensor/argument.h"

namespace stax::loops {

enum class BufferRole : uint8_t {
  input,         // given by the caller; written only where `mutated`
  output,        // allocated for the caller
  intermediate,  // lives inside one run
  constant,      // data baked into the program
};

struct Buffer {
  std::string name;  // "in0", "out0", "buf0": numbered by first use
  DType dtype = DType::float32;
  std::vector<Expr> sizes, strides;  // in elements; element 0 lies at the data pointer that a run is given
  BufferRole role = BufferRole::intermediate;
  bool mutated = false;                                // an input that some node writes
  std::shared_ptr<const std::vector<std::byte>> data;  // of a constant
};

/// A view of a buffer that an external node reads or writes.
struct Operand {
  BufferId buffer = -1;
  DType dtype = DType::float32;
  std::vector<Expr> sizes, strides;
  Expr offset;
};

enum class NodeKind : uint8_t {
  loops,     // a body over ranges
  external,  // a function of src/kernels, found by its name
};

/// Symbol = size `dim` of an external node's result, or, with dim -1, the value of its only element (int64).
struct ResultBinding {
  Symbol symbol;
  int32_t result = 0, dim = 0;
};

/// One step. Loop variable k of `ranges` is Symbol{index, k}; of `reduction_ranges` Symbol{reduction, k}.
struct Node {
  std::string name;  // "op0", ...
  NodeKind kind = NodeKind::loops;
  std::string origin;  // operators of the graph that it came from, for kernel names and explain()
  CallStack where;     // where in the user's program that operator was called; not part of the text form

  // loops
  std::vector<Expr> ranges, reduction_ranges;
  Body body;

  // external: arguments in the order of the operator's schema; results are written
  std::string function;
  std::vector<Argument<Operand>> arguments;
  std::vector<Operand> results;
  /// True: the function allocates its results, whose sizes (or values) bind symbols without hint.
  bool dynamic = false;
  std::vector<ResultBinding> binds;

  /// Buffers read and written, each once, in order of first use.
  std::vector<BufferId> reads() const;
  std::vector<BufferId> writes() const;
};

/// Where a symbol's value comes from when the program runs.
struct SymbolBinding {
  enum class Part : uint8_t { size, stride, value };  // value: integer argument number `input` of the call
  Symbol symbol;
  Part part = Part::size;
  int32_t input = 0;  // position in Program::inputs
  int32_t dim = 0;
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Node> nodes;        // in an order that respects dependence
  std::vector<BufferId> inputs;   // parameters, in order
  std::vector<BufferId> outputs;  // results, in order; distinct buffers of role output
  std::vector<DType> scalars;     // run-time scalar arguments, in order
  std::vector<SymbolBinding> bindings;
  std::vector<Assertion> assertions;  // checked as soon as their symbols have values

  std::string str() const;
};

/// The instructions of `body`, one a line, each indented by `indent` spaces: what str() prints below a node.
std::string body_text(const Program& program, const Body& body, int indent);

/// Raises InternalError, naming the node and the rule, unless the program is well formed: operands before
/// uses, dtypes as the table of instructions says, symbols bound by ranges, values of reduction space stored
/// only under indices that use reduction variables, every intermediate and output written before it is read,
/// no write to a read-only buffer.
void verify(const Program& program);

}  // namespace stax::loops

// A plan with its expressions numbered and its arguments laid out: what the executor's loop reads.
#pragma once

#include <memory>
#include <vector>

#include "codegen/plan/plan.h"
#include "kernels/dynamic.h"
#include "runtime/plan_executor.h"
#include "symbolic/expr_program.h"
#include "tensor/storage.h"

namespace stax::runtime {

/// Position of an expression's value in the numbers of a call.
using NumberId = int32_t;

/// The distinct expressions of a plan: constant ones have their values from the start, the others are
/// computed once a call.
struct Numbers {
  ExprProgram program;

  NumberId add(Expr e) { return program.add(e); }
  std::vector<NumberId> add(const std::vector<Expr>& list);
};

struct PreparedInput {
  loops::BufferId buffer = -1;
  DType dtype = DType::float32;
  std::vector<NumberId> sizes, strides;
};

struct PreparedOutput {
  loops::BufferId buffer = -1;
  NumberId bytes = 0;
  std::vector<NumberId> sizes, strides;
  std::vector<int64_t> fixed_sizes, fixed_strides;  // where the plan has no symbols
};

struct PreparedSlot {
  loops::BufferId buffer = -1;
  NumberId offset = 0;
};

/// A number that few calls need: evaluated when it is.
struct SeldomNumber {
  int64_t value = 0;  // where the program is empty
  ExprProgram program;
  int32_t at = 0;  // its register
  std::vector<std::pair<NumberId, int32_t>>
      from;  // symbols among the numbers of the call, and their registers
};

struct PreparedPhase {
  NumberId extent = 0, points = 0;
  SeldomNumber grain;
};

struct PreparedKernel {
  codegen::KernelEntry entry = nullptr;
  const codegen::KernelRunner* runner = nullptr;  // instead
  int32_t first_argument = 0, arguments = 0;      // positions in the frame's pointers
  int32_t first_size = 0;                         // position in the frame's sizes
  std::vector<loops::BufferId> buffers;
  std::vector<NumberId> symbols, extents;  // extents follow the symbols in the frame's sizes
  std::vector<PreparedPhase> phases;
  NumberId scratch_bytes = 0;
  struct Asked {
    Relation relation;
    NumberId left, right;
  };
  std::vector<Asked> when;  // unless all hold, the next kernel is launched instead
};

/// What a dynamic call gives: registers of symbols, and the stage of the numbers that are known then.
struct PreparedDynamic {
  kernels::DynamicFunction function = nullptr;
  std::vector<NumberId> binds;   // parallel to PlanExternal::binds
  std::vector<int32_t> outputs;  // by result: position in Plan::outputs, or -1
  int32_t stage = 0;
};

struct PreparedAssertion {
  NumberId left = 0, right = 0;
};

struct Step {
  enum class Kind : uint8_t {
    check_input,
    arena,
    slot,
    output,
    late,  // memory of its own; index: buffer
    launch,
    external,
    dynamic,  // index: external
    assertion,
    release,  // of memory of its own; index: buffer
  };
  Kind kind = Kind::launch;
  int32_t index = 0;
};

struct PreparedPlan {
  codegen::Plan plan;
  Machine machine;
  Numbers numbers;
  std::vector<loops::SymbolBinding> bindings;
  std::vector<PreparedInput> inputs;
  std::vector<PreparedOutput> outputs;
  std::vector<PreparedSlot> slots;
  std::vector<PreparedKernel> kernels;
  std::vector<kernels::ExternalFunction> externals;
  std::vector<std::vector<NumberId>> external_numbers;  // parallel to externals: of ExternalViews::changing()
  std::vector<PreparedDynamic> dynamics;                // parallel to externals
  std::vector<PreparedAssertion> assertions;
  std::vector<NumberId> late_bytes;  // by buffer; where it has memory of its own
  std::vector<std::unique_ptr<const kernels::PreparedExternal>> ready;  // parallel to externals; may be null
  std::vector<Step> steps;
  std::vector<std::pair<loops::BufferId, void*>> constants;
  std::vector<StoragePtr> constant_memory;  // on a device
  NumberId arena_bytes = 0;
  int32_t pointers = 0, sizes = 0;  // lengths of the frame's arrays
  int32_t late_symbols = 0;         // symbols without hint: one more than the highest number
  bool dynamic = false;             // has dynamic calls

  bool fixed() const { return numbers.program.symbols().empty() && bindings.empty() && !dynamic; }
};

/// Numbers the expressions of `plan` and resolves its functions.
PreparedPlan prepare(codegen::Plan plan, const Machine& machine);

}  // namespace stax::runtime

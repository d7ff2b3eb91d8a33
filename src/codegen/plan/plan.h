// A compiled artifact: a flat list of typed instructions that a small loop executes.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "codegen/kernel_info.h"
#include "device/target.h"
#include "kernels/external.h"
#include "loops/program.h"
#include "schedule/schedule.h"

namespace stax::codegen {

/// Gives a size symbol its value.
struct BindSymbol {
  loops::SymbolBinding binding;
};
/// Refuses an input whose dtype, sizes or strides are not those that the plan was made for. Strides of
/// dimensions of size 1 do not matter.
struct CheckInput {
  int32_t input = 0;  // position in Plan::inputs
};
/// Takes Plan::arena_bytes for the intermediates of this call; once, before the first AllocateSlot.
struct AllocateArena {};
/// An intermediate begins to live at its place in the arena.
struct AllocateSlot {
  int32_t slot = 0;  // position in Plan::slots
};
/// Memory for a result, which the caller keeps.
struct AllocateOutput {
  loops::BufferId buffer = -1;
};
struct Launch {
  int32_t kernel = 0;  // position in Plan::kernels, of the first of those for a group
};
struct CallExternal {
  int32_t call = 0;  // position in Plan::externals
};
/// Memory of its own for an intermediate whose size only data determines.
struct AllocateLate {
  loops::BufferId buffer = -1;
};
/// Raises UserError unless the condition holds. All its symbols have values by now.
struct CheckAssertion {
  int32_t assertion = 0;  // position in Plan::assertions
};
/// The last use of an intermediate or an argument lies behind.
struct Free {
  loops::BufferId buffer = -1;
};
struct Return {};

using Instruction = std::variant<BindSymbol, CheckInput, AllocateArena, AllocateSlot, AllocateOutput, Launch,
                                 CallExternal, AllocateLate, CheckAssertion, Free, Return>;

/// A kernel of the plan; one of the two is set once the source is compiled and loaded.
struct PlanKernel {
  KernelInfo info;
  KernelEntry entry = nullptr;
  /// Otherwise the next kernel of the plan is launched instead where info.when does not hold.
  bool last = true;
  std::shared_ptr<const KernelRunner> runner = nullptr;
};

/// A call of a function of src/kernels.
struct PlanExternal {
  std::string name, function;
  std::vector<Argument<loops::Operand>> arguments;
  std::vector<loops::Operand> results;
  /// The function allocates its results, which give `binds` their values.
  bool dynamic = false;
  std::vector<loops::ResultBinding> binds;
  /// Instead of the function, where a device does it: works on the memory of the plan's buffers.
  std::shared_ptr<const kernels::PreparedExternal> runner = nullptr;
};

struct Plan {
  Target::Kind device = Target::Kind::cpu;  // where kernels run and memory lies
  std::vector<loops::Buffer> buffers;       // those of the program, by BufferId
  std::vector<loops::BufferId> inputs, outputs;
  std::vector<DType> scalars;
  std::vector<std::string> origins;  // by node: what a failed index check names,
  std::vector<CallStack> places;     // and where that was called
  std::vector<schedule::Slot> slots;
  Expr arena_bytes;
  std::vector<PlanKernel> kernels;  // in the order of their launches
  std::vector<PlanExternal> externals;
  std::vector<Assertion> assertions;
  std::vector<Instruction> instructions;
  std::shared_ptr<const void> module;  // keeps the code behind the entries loaded

  /// A Python-like listing: the kernels' names, then the instructions in order.
  std::string str() const;
};

/// The plan of a scheduled program. `kernels` describes the groups that are not external, in execution
/// order, each by all its kernels; an internal error if they are not as many.
Plan make_plan(const loops::Program& program, const schedule::Schedule& schedule,
               std::vector<KernelInfo> kernels);

}  // namespace stax::codegen

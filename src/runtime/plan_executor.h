// Runs plans on the CPU, and launches them on a GPU.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.h"
#include "device/allocator.h"
#include "device/thread_pool.h"
#include "kernels/external.h"

namespace stax::runtime {

/// What a plan runs on. Where `device` is a GPU, `allocator` gives its memory, all kernels have runners, and
/// external functions that have none, which are CPU code, work on copies in host memory. `find_external` is
/// kernels::find_external but in tests; without `find_prepare` calls are not made ready for their constants.
struct Machine {
  device::ThreadPool* pool = nullptr;
  device::Allocator* allocator = nullptr;
  kernels::ExternalFunction (*find_external)(std::string_view name) = nullptr;
  kernels::PrepareExternal (*find_prepare)(std::string_view name) = nullptr;
  Device device = {};
};

/// A tensor as the caller has it; sizes and strides in elements.
struct InputTensor {
  void* data = nullptr;  // element 0
  DType dtype = DType::float32;
  std::span<const int64_t> sizes, strides;
};

/// What a call gives a plan.
struct RunInputs {
  std::span<const InputTensor> tensors;      // parallel to Plan::inputs
  std::span<const loops::Constant> scalars;  // parallel to Plan::scalars
  std::span<const int64_t> integers = {};    // for SymbolBinding::Part::value
  /// Values of the size symbols, by their numbers: where given, the caller has checked the inputs, whose
  /// sizes and strides are not looked at, and knows the sizes and strides of the outputs, which are not
  /// given.
  std::span<const int64_t> symbols = {};
};

/// A result. The block belongs to the caller, who gives it back to the machine's allocator with its bytes.
struct OutputTensor {
  void* data = nullptr;
  int64_t bytes = 0;
  std::span<const int64_t> sizes, strides;
};

/// What a call gets back. Where sizes are fixed the spans of `tensors` point into the executor, otherwise
/// into `numbers`; both have to outlive their use.
struct RunOutputs {
  std::span<OutputTensor> tensors;  // given by the caller, parallel to Plan::outputs
  std::vector<int64_t> numbers;
  std::vector<int64_t> late;  // values of the symbols that only data determines, by their numbers
};

struct PreparedPlan;

/// A plan, prepared: every expression that is a number is one already, arguments lie ready, so that a call
/// allocates nothing but its results and the arena. Thread-safe; calls at the same time use separate frames.
class PlanExecutor {
 public:
  /// The kernels of `plan` have their entries. Raises InternalError for a kernel that has none or that takes
  /// a buffer which has no memory.
  PlanExecutor(codegen::Plan plan, const Machine& machine);
  ~PlanExecutor();
  PlanExecutor(const PlanExecutor&) = delete;
  PlanExecutor& operator=(const PlanExecutor&) = delete;

  /// Runs the plan. Raises UserError for an input of other dtype, sizes or strides than the plan's and, at
  /// the end, for an index out of range; no result is kept then. Inputs that the plan mutates may have been
  /// written.
  void run(const RunInputs& inputs, RunOutputs& outputs) const;

  const codegen::Plan& plan() const;

 private:
  struct Frame;
  struct Frames;
  class Run;
  std::unique_ptr<const PreparedPlan> prepared_;
  std::unique_ptr<Frames> frames_;
};

}  // namespace stax::runtime

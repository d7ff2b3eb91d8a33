// Eager evaluation on a GPU: each operator is a compiled function of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "capture/dispatch.h"
#include "capture/functional_trace.h"
#include "compiler/call_key.h"
#include "compiler/guards.h"
#include "compiler/program.h"

namespace stax::compiler {

/// Thread-safe. One program serves all sizes for which the operator takes the same decisions; numbers among
/// the operands of pointwise operators are its inputs.
class EagerGpu {
 public:
  /// The GPU that tensors among the arguments lie on; nothing where there is none. UserError naming both
  /// where they lie on several devices.
  static std::optional<Device> device_of(const graph::Op& op, const capture::Arguments& arguments);

  /// Any operator that is not a view. Dynamic ones, and external ones that are not lowered for GPUs, run as
  /// CPU code on copies of their arguments.
  std::vector<Tensor> call(const graph::Op& op, const capture::Arguments& arguments, Device device,
                           capture::EagerBackend& on_cpu);

  /// An operator without tensors among its arguments, with results on `device`.
  std::vector<Tensor> call_without_tensors(const graph::Op& op, const capture::Arguments& arguments,
                                           Device device, capture::EagerBackend& on_cpu);

  /// Copies within a GPU, as copy_by_kernel() does.
  bool copy(const TensorView& source, const TensorView& target);

  size_t cached_programs() const;

 private:
  struct Program {
    Guards guards;
    std::shared_ptr<const CompiledProgram> program;  // null: cannot be compiled
  };
  struct Bound;
  /// Calls operators on what stands for tensors and integers, and returns the results.
  using Record =
      std::function<std::vector<Tensor>(capture::FunctionalTrace& trace, const std::vector<Tensor>& tensors,
                                        const std::vector<Expr>& integers)>;
  std::shared_ptr<const Program> find(const std::vector<uint64_t>& key, const Bound& bound,
                                      std::vector<int64_t>& symbols) const;
  std::shared_ptr<const Program> make(Device device, const Bound& bound, bool dynamic,
                                      const Record& record) const;
  /// By the program for `key`, which `record` makes where there is none; nothing where it cannot be compiled.
  std::optional<std::vector<Tensor>> run(const std::vector<uint64_t>& key, std::string_view name,
                                         Device device, const Bound& bound, const Record& record);

  mutable std::mutex mutex_;
  std::map<std::vector<uint64_t>, std::vector<std::shared_ptr<const Program>>> programs_;
};

}  // namespace stax::compiler

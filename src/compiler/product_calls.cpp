#include "compiler/product_calls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "graph/activation.h"
#include "graph/builder.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/log.h"
#include "tuning/tuned_kernel.h"
#include "tuning/tuned_product.h"

namespace stax::compiler {
namespace {

using graph::ProductKind;

ProductKind product_kind(const codegen::PlanExternal& call) {
  const graph::Op* op = ops::table().find(call.function);
  return op != nullptr ? op->product : ProductKind::none;
}

/// A generated kernel over one matrix, which it changes in place.
class EpilogueKernel final : public tuning::ProductEpilogue {
 public:
  EpilogueKernel(const tuning::EpilogueShape& shape, Device device, const PipelineOptions& options);
  ~EpilogueKernel() override { delete block_.load(); }

  void run(void* result, const void* bias) const override {
    std::array<void*, kMostRoles> buffers{};
    for (size_t k = 0; k < roles_.size(); ++k)
      buffers[k] = roles_[k] == Role::bias ? const_cast<void*>(bias) : result;
    codegen::KernelStatus status;
    std::unique_ptr<codegen::LaunchBlock> block(block_.exchange(nullptr));
    const auto number = [](Expr e) { return e.value(); };
    kernel_->run({{buffers.data(), roles_.size()}, {}, &status, {}, extents_, number, &block});
    delete block_.exchange(block.release());
  }

 private:
  enum class Role : uint8_t { matrix, bias };
  static constexpr size_t kMostRoles = 3;  // the matrix as it was, the bias, and the matrix as it becomes
  std::shared_ptr<tuning::TunedKernel> kernel_;
  std::vector<Role> roles_;  // of the kernel's buffers
  std::vector<long> extents_;
  mutable std::atomic<codegen::LaunchBlock*> block_ = nullptr;  // of the last launch; null while one uses it
};

graph::Graph epilogue_graph(const tuning::EpilogueShape& shape, Device device, ShapeEnv& env) {
  graph::Graph graph;
  graph::Builder b(ops::table(), env, graph);
  b.set_device(device);
  graph::Var value = b.input(graph::dense(shape.dtype, {shape.rows, shape.columns}, device));
  graph.inputs = {value.value().node};
  if (shape.bias) {
    const graph::Var bias = b.input(graph::dense(shape.dtype, {shape.columns}, device));
    graph.inputs.push_back(bias.value().node);
    value = value + bias;
  }
  const graph::ActivationRow& row = graph::row_of(shape.activation);
  if (!row.op.empty()) {
    std::vector<graph::VarArg> arguments = {value};
    if (!row.mode.empty()) arguments.emplace_back(std::string(row.mode));
    value = b.call_all(row.op, std::move(arguments))[0];
  }
  graph.outputs = {{value.value(), -1}};
  return graph;
}

EpilogueKernel::EpilogueKernel(const tuning::EpilogueShape& shape, Device device,
                               const PipelineOptions& options) {
  ShapeEnv env;
  const Stages stages = run_stages(epilogue_graph(shape, device, env), env, options);
  const codegen::Plan plan = plan_of(stages);
  STAX_ASSERT(plan.kernels.size() == 1 && plan.externals.empty(), "[product] an epilogue of {} kernels",
              plan.kernels.size());
  kernel_ = kernels_on_gpu(stages, plan, options.tuning)[0];
  for (const loops::BufferId id : plan.kernels[0].info.buffers) {
    const bool bias = shape.bias && id == plan.inputs[1];
    STAX_ASSERT(bias || id == plan.inputs[0] || id == plan.outputs[0], "[product] an epilogue reads more");
    roles_.push_back(bias ? Role::bias : Role::matrix);
  }
  STAX_ASSERT(roles_.size() <= kMostRoles, "[product] an epilogue of {} buffers", roles_.size());
  for (const Expr e : plan.kernels[0].info.extents) extents_.push_back(e.value());
}

bool is_fixed(const codegen::PlanExternal& call) {
  const auto fixed = [](const loops::Operand& o) {
    return std::ranges::all_of(o.sizes, &Expr::is_constant) &&
           std::ranges::all_of(o.strides, &Expr::is_constant);
  };
  return fixed(call.arguments[0].tensor()) && fixed(call.arguments[1].tensor());
}

}  // namespace

void set_products(codegen::Plan& plan, Device device, const PipelineOptions& options) {
  const auto is_product = [](const auto& call) { return product_kind(call) != ProductKind::none; };
  if (std::ranges::none_of(plan.externals, is_product)) return;
  if (const std::string problem = kernels::cublas_lt_problem(device.index); !problem.empty()) {
    static std::once_flag warned;
    std::call_once(warned, [&] {
      log::warn(fmt::format("products of matrices on a GPU run on the CPU, on copies: {}", problem));
    });
    return;
  }
  for (codegen::PlanExternal& call : plan.externals) {
    const ProductKind kind = product_kind(call);
    if (kind == ProductKind::none) continue;
    tuning::TunedProductOptions how{.strategy = options.tuning};
    how.changes = !is_fixed(call);
    how.product.tf32 = options.tf32;
    how.batch_invariant = options.batch_invariant;
    if (kind == ProductKind::joined) {
      how.product.activation = graph::activation_named(call.arguments[3].string());
      how.make_epilogue = [device, options](const tuning::EpilogueShape& shape) {
        return std::make_shared<const EpilogueKernel>(shape, device, options);
      };
    }
    call.runner =
        std::make_shared<tuning::TunedProduct>(triton_compiler().cache(), device.index, std::move(how));
  }
}

}  // namespace stax::compiler

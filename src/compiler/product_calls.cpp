#include "compiler/product_calls.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "graph/builder.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/log.h"
#include "tuning/tuned_kernel.h"
#include "tuning/tuned_product.h"

namespace stax::compiler {
namespace {

using kernels::Activation;

constexpr std::string_view kFused = "product_epilogue";

bool is_product(std::string_view function) {
  constexpr std::array<std::string_view, 5> kProducts = {"mm", "mm.dtype", "bmm", "bmm.dtype", kFused};
  return std::ranges::find(kProducts, function) != kProducts.end();
}

Activation activation_named(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, Activation>, 3> kNames = {
      {{"none", Activation::none}, {"relu", Activation::relu}, {"gelu_tanh", Activation::gelu_tanh}}};
  const auto at = std::ranges::find(kNames, name, &std::pair<std::string_view, Activation>::first);
  STAX_ASSERT(at != kNames.end(), "[product] no activation is called '{}'", name);
  return at->second;
}

/// A generated kernel over one matrix, which it changes in place.
class EpilogueKernel final : public tuning::ProductEpilogue {
 public:
  EpilogueKernel(const tuning::EpilogueShape& shape, Device device, const PipelineOptions& options);

  void run(void* result, const void* bias) const override {
    std::vector<void*> buffers;
    for (const Role role : roles_) buffers.push_back(role == Role::bias ? const_cast<void*>(bias) : result);
    codegen::KernelStatus status;
    kernel_->run({buffers, {}, &status, {}, extents_, [](Expr e) { return e.value(); }});
  }

 private:
  enum class Role : uint8_t { matrix, bias };
  std::shared_ptr<tuning::TunedKernel> kernel_;
  std::vector<Role> roles_;  // of the kernel's buffers
  std::vector<long> extents_;
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
  if (shape.activation == Activation::relu) value = b.call("relu", {value});
  if (shape.activation == Activation::gelu_tanh) value = b.call("gelu", {value, "tanh"});
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
  if (std::ranges::none_of(plan.externals, [](const auto& call) { return is_product(call.function); }))
    return;
  if (const std::string problem = kernels::cublas_lt_problem(device.index); !problem.empty()) {
    static std::once_flag warned;
    std::call_once(warned, [&] {
      log::warn(fmt::format("products of matrices on a GPU run on the CPU, on copies: {}", problem));
    });
    return;
  }
  for (codegen::PlanExternal& call : plan.externals) {
    if (!is_product(call.function)) continue;
    tuning::TunedProductOptions how{.strategy = options.tuning};
    how.changes = !is_fixed(call);
    how.product.tf32 = options.tf32;
    if (call.function == kFused) {
      how.product.activation = activation_named(call.arguments[3].string());
      how.make_epilogue = [device, options](const tuning::EpilogueShape& shape) {
        return std::make_shared<const EpilogueKernel>(shape, device, options);
      };
    }
    call.runner =
        std::make_shared<tuning::TunedProduct>(triton_compiler().cache(), device.index, std::move(how));
  }
}

}  // namespace stax::compiler

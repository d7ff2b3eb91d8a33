#include "runtime/prepared_plan.h"

#include "runtime/external_call.h"
#include "schedule/memory_plan.h"
#include "support/check.h"

namespace stax::runtime {

std::vector<NumberId> Numbers::add(const std::vector<Expr>& list) {
  std::vector<NumberId> out;
  for (Expr e : list) out.push_back(add(e));
  return out;
}

namespace {

using loops::BufferRole;

std::vector<int64_t> constants(const std::vector<Expr>& list) {
  std::vector<int64_t> out;
  for (Expr e : list) out.push_back(e.constant().value_or(0));
  return out;
}

/// True for buffers that have memory while the plan runs.
std::vector<bool> with_memory(const codegen::Plan& plan) {
  std::vector<bool> out;
  for (const loops::Buffer& b : plan.buffers) out.push_back(b.role != BufferRole::intermediate);
  for (const schedule::Slot& s : plan.slots) out[s.buffer] = true;
  return out;
}

void prepare_kernels(PreparedPlan& p) {
  const std::vector<bool> has_memory = with_memory(p.plan);
  for (const codegen::PlanKernel& k : p.plan.kernels) {
    STAX_ASSERT(k.entry != nullptr, "[plan] kernel {} is not loaded", k.info.name);
    PreparedKernel out{k.entry, p.pointers, static_cast<int32_t>(k.info.buffers.size()), p.sizes};
    for (loops::BufferId b : k.info.buffers) {
      STAX_ASSERT(has_memory[b], "[plan] kernel {} takes {}, which has no memory", k.info.name,
                  p.plan.buffers[b].name);
    }
    out.buffers = k.info.buffers;
    for (Symbol s : k.info.symbols) out.symbols.push_back(p.numbers.add(Expr(s)));
    out.phases.push_back({p.numbers.add(k.info.parallel_extent), p.numbers.add(k.info.grain)});
    for (const codegen::KernelPhase& phase : k.info.later) {
      out.phases.push_back({p.numbers.add(phase.extent), p.numbers.add(phase.grain)});
    }
    out.scratch_bytes = k.info.scratch_bytes;
    p.pointers += out.arguments;
    p.sizes += static_cast<int32_t>(out.symbols.size());
    p.kernels.push_back(std::move(out));
  }
}

/// Lets the external functions look at their constant arguments, where all sizes are known.
void prepare_externals(PreparedPlan& p) {
  p.ready.resize(p.plan.externals.size());
  if (p.machine.find_prepare == nullptr || !p.fixed()) return;
  std::vector<void*> base(p.plan.buffers.size(), nullptr);
  for (const auto& [buffer, data] : p.constants) base[buffer] = data;
  for (size_t k = 0; k < p.ready.size(); ++k) {
    const kernels::PrepareExternal prepare = p.machine.find_prepare(p.plan.externals[k].function);
    if (prepare == nullptr) continue;
    ExternalViews views(p.plan.externals[k], [](Expr e) { return e.value(); });
    views.point_at(base);
    p.ready[k] = prepare(views.arguments(), views.results());
  }
}

struct StepOf {
  std::vector<loops::SymbolBinding>& bindings;
  const std::vector<PreparedOutput>& outputs;
  std::vector<Step>& steps;

  void operator()(const codegen::BindSymbol& i) { bindings.push_back(i.binding); }
  void operator()(const codegen::CheckInput& i) { steps.push_back({Step::Kind::check_input, i.input}); }
  void operator()(const codegen::AllocateArena&) { steps.push_back({Step::Kind::arena, 0}); }
  void operator()(const codegen::AllocateSlot& i) { steps.push_back({Step::Kind::slot, i.slot}); }
  void operator()(const codegen::AllocateOutput& i) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].buffer == i.buffer) steps.push_back({Step::Kind::output, static_cast<int32_t>(k)});
    }
  }
  void operator()(const codegen::Launch& i) { steps.push_back({Step::Kind::launch, i.kernel}); }
  void operator()(const codegen::CallExternal& i) { steps.push_back({Step::Kind::external, i.call}); }
  void operator()(const codegen::Free&) {}  // the arena's layout has taken it into account
  void operator()(const codegen::Return&) {}
};

}  // namespace

PreparedPlan prepare(codegen::Plan plan, const Machine& machine) {
  PreparedPlan p;
  p.plan = std::move(plan);
  p.machine = machine;
  for (loops::BufferId b : p.plan.inputs) {
    const loops::Buffer& buffer = p.plan.buffers[b];
    p.inputs.push_back({b, buffer.dtype, p.numbers.add(buffer.sizes), p.numbers.add(buffer.strides)});
  }
  for (loops::BufferId b : p.plan.outputs) {
    const loops::Buffer& buffer = p.plan.buffers[b];
    p.outputs.push_back({b, p.numbers.add(schedule::storage_bytes(buffer)), p.numbers.add(buffer.sizes),
                         p.numbers.add(buffer.strides), constants(buffer.sizes), constants(buffer.strides)});
  }
  for (const schedule::Slot& s : p.plan.slots) p.slots.push_back({s.buffer, p.numbers.add(s.offset)});
  p.arena_bytes = p.numbers.add(p.plan.arena_bytes);
  prepare_kernels(p);
  for (const codegen::PlanExternal& call : p.plan.externals) {
    p.externals.push_back(p.machine.find_external(call.function));
  }
  for (size_t b = 0; b < p.plan.buffers.size(); ++b) {
    const auto& data = p.plan.buffers[b].data;
    if (!data) continue;
    // Kernels only read it: the verifier of loop programs refuses stores to constants.
    p.constants.emplace_back(static_cast<loops::BufferId>(b),
                             const_cast<void*>(static_cast<const void*>(data->data())));
  }
  StepOf step{p.bindings, p.outputs, p.steps};
  for (const codegen::Instruction& i : p.plan.instructions) std::visit(step, i);
  prepare_externals(p);
  return p;
}

}  // namespace stax::runtime

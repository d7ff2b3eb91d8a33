#include "runtime/prepared_plan.h"

#include <algorithm>

#include "device/cuda_device.h"
#include "kernels/dynamic.h"
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
  for (const codegen::Instruction& i : plan.instructions) {
    if (const auto* late = std::get_if<codegen::AllocateLate>(&i)) out[late->buffer] = true;
  }
  for (const codegen::PlanExternal& call : plan.externals) {
    if (!call.dynamic) continue;
    for (const loops::Operand& o : call.results) out[o.buffer] = true;
  }
  return out;
}

SeldomNumber seldom(PreparedPlan& p, Expr e) {
  SeldomNumber out;
  if (e.is_constant()) {
    out.value = e.value();
    return out;
  }
  out.at = out.program.add(e);
  for (const auto& [symbol, at] : out.program.symbols())
    out.from.emplace_back(p.numbers.add(Expr(symbol)), at);
  return out;
}

void prepare_kernels(PreparedPlan& p) {
  const std::vector<bool> has_memory = with_memory(p.plan);
  for (const codegen::PlanKernel& k : p.plan.kernels) {
    STAX_ASSERT(k.entry != nullptr || k.runner, "[plan] kernel {} is not loaded", k.info.name);
    PreparedKernel out{k.entry, k.runner.get(), p.pointers, static_cast<int32_t>(k.info.buffers.size()),
                       p.sizes};
    for (loops::BufferId b : k.info.buffers) {
      STAX_ASSERT(has_memory[b], "[plan] kernel {} takes {}, which has no memory", k.info.name,
                  p.plan.buffers[b].name);
    }
    out.buffers = k.info.buffers;
    for (Symbol s : k.info.symbols) out.symbols.push_back(p.numbers.add(Expr(s)));
    for (Expr e : k.info.extents) out.extents.push_back(p.numbers.add(e));
    const auto add_phase = [&](Expr extent, Expr points, Expr grain) {
      out.phases.push_back({p.numbers.add(extent), p.numbers.add(points), seldom(p, grain)});
    };
    add_phase(k.info.parallel_extent, k.info.points, k.info.grain);
    for (const codegen::KernelPhase& phase : k.info.later) add_phase(phase.extent, phase.points, phase.grain);
    out.scratch_bytes = p.numbers.add(k.info.scratch_bytes);
    for (const Condition& c : k.info.when) {
      out.when.push_back({c.relation, p.numbers.add(c.left), p.numbers.add(c.right)});
    }
    p.pointers += out.arguments;
    p.sizes += static_cast<int32_t>(out.symbols.size() + out.extents.size());
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
    ExternalViews views(p.plan.externals[k]);
    views.point_at(base);
    p.ready[k] = prepare(views.arguments(), views.results());
  }
}

/// In which order symbols without hint get their values; before any expression is numbered.
void set_stages(PreparedPlan& p) {
  p.dynamics.resize(p.plan.externals.size());
  p.late_bytes.assign(p.plan.buffers.size(), -1);
  int32_t stage = 0;
  for (const codegen::Instruction& i : p.plan.instructions) {
    const auto* call = std::get_if<codegen::CallExternal>(&i);
    if (call == nullptr || !p.plan.externals[call->call].dynamic) continue;
    p.dynamic = true;
    p.dynamics[call->call].stage = ++stage;
    for (const loops::ResultBinding& b : p.plan.externals[call->call].binds) {
      p.numbers.program.set_stage(b.symbol, stage);
      p.late_symbols = std::max(p.late_symbols, b.symbol.number + 1);
    }
  }
}

void prepare_dynamics(PreparedPlan& p) {
  for (size_t k = 0; k < p.dynamics.size(); ++k) {
    const codegen::PlanExternal& call = p.plan.externals[k];
    if (!call.dynamic) continue;
    p.dynamics[k].function = kernels::find_dynamic(call.function);
    for (const loops::ResultBinding& b : call.binds)
      p.dynamics[k].binds.push_back(p.numbers.add(Expr(b.symbol)));
    for (const loops::Operand& o : call.results) {
      const auto at = std::ranges::find(p.plan.outputs, o.buffer);
      p.dynamics[k].outputs.push_back(
          at == p.plan.outputs.end() ? -1 : static_cast<int32_t>(at - p.plan.outputs.begin()));
    }
  }
  for (const Assertion& a : p.plan.assertions) {
    p.assertions.push_back({p.numbers.add(a.condition.left), p.numbers.add(a.condition.right)});
  }
  for (const codegen::Instruction& i : p.plan.instructions) {
    const auto* late = std::get_if<codegen::AllocateLate>(&i);
    if (late == nullptr) continue;
    p.late_bytes[late->buffer] = p.numbers.add(schedule::storage_bytes(p.plan.buffers[late->buffer]));
  }
}

struct StepOf {
  const PreparedPlan& plan;
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
  void operator()(const codegen::CallExternal& i) {
    const bool dynamic = plan.plan.externals[i.call].dynamic;
    steps.push_back({dynamic ? Step::Kind::dynamic : Step::Kind::external, i.call});
  }
  void operator()(const codegen::AllocateLate& i) { steps.push_back({Step::Kind::late, i.buffer}); }
  void operator()(const codegen::CheckAssertion& i) { steps.push_back({Step::Kind::assertion, i.assertion}); }
  void operator()(const codegen::Free& i) {  // the arena's layout has taken it into account
    if (plan.dynamic) steps.push_back({Step::Kind::release, i.buffer});
  }
  void operator()(const codegen::Return&) {}
};

}  // namespace

namespace {

/// A copy on the machine's device that lives as long as the plan.
void* upload(PreparedPlan& p, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  const StoragePtr& memory = p.constant_memory.emplace_back(Storage::allocate(size, p.machine.device));
  device::copy_to_device(memory->data(), bytes.data(), size, p.machine.device.index);
  return memory->data();
}

}  // namespace

PreparedPlan prepare(codegen::Plan plan, const Machine& machine) {
  PreparedPlan p;
  p.plan = std::move(plan);
  p.machine = machine;
  set_stages(p);
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
  prepare_dynamics(p);
  for (const codegen::PlanExternal& call : p.plan.externals) {
    p.external_numbers.push_back(p.numbers.add(ExternalViews(call).changing()));
    p.externals.push_back(call.dynamic || call.runner ? nullptr : p.machine.find_external(call.function));
  }
  for (size_t b = 0; b < p.plan.buffers.size(); ++b) {
    const auto& data = p.plan.buffers[b].data;
    if (!data) continue;
    // Kernels only read it: the verifier of loop programs refuses stores to constants.
    void* memory = const_cast<void*>(static_cast<const void*>(data->data()));
    if (machine.device != kCPU) memory = upload(p, *data);
    p.constants.emplace_back(static_cast<loops::BufferId>(b), memory);
  }
  // Calls may use other streams than this one.
  if (!p.constant_memory.empty()) device::synchronize(device::current_cuda_stream(machine.device.index));
  StepOf step{p, p.bindings, p.outputs, p.steps};
  for (const codegen::Instruction& i : p.plan.instructions) std::visit(step, i);
  prepare_externals(p);
  return p;
}

}  // namespace stax::runtime

#include <algorithm>
#include <set>

#include "codegen/plan/plan.h"
#include "schedule/memory_plan.h"
#include "support/check.h"

namespace stax::codegen {

using loops::BufferId;
using loops::BufferRole;

namespace {

/// Writes the instructions of one plan.
class PlanBuilder {
 public:
  PlanBuilder(const loops::Program& program, const schedule::Schedule& schedule,
              std::vector<KernelInfo> kernels)
      : program_(program), schedule_(schedule), kernels_(std::move(kernels)) {}

  Plan build() {
    plan_.buffers = program_.buffers;
    plan_.inputs = program_.inputs;
    plan_.outputs = program_.outputs;
    plan_.scalars = program_.scalars;
    for (const loops::Node& n : program_.nodes) {
      plan_.origins.push_back(n.origin.empty() ? n.name : n.origin);
      plan_.places.push_back(n.where);
    }
    plan_.slots = schedule_.slots;
    plan_.arena_bytes = schedule_.arena_bytes;
    for (const loops::SymbolBinding& b : program_.bindings) plan_.instructions.push_back(BindSymbol{b});
    for (size_t k = 0; k < program_.inputs.size(); ++k) {
      plan_.instructions.push_back(CheckInput{static_cast<int32_t>(k)});
    }
    plan_.assertions = program_.assertions;
    late_ = schedule::late_buffers(program_);
    checked_.assign(plan_.assertions.size(), 0);
    for (const loops::Node& n : program_.nodes) {
      for (const loops::ResultBinding& b : n.binds) waiting_.insert(b.symbol);
    }
    check_assertions();
    if (!schedule_.slots.empty()) plan_.instructions.push_back(AllocateArena{});
    find_last_uses();
    for (size_t g = 0; g < schedule_.groups.size(); ++g) add_group(static_cast<int32_t>(g));
    STAX_ASSERT(next_kernel_ == kernels_.size(), "[plan] {} kernels for {} groups", kernels_.size(),
                next_kernel_);
    for (BufferId b : program_.outputs) allocate_output(b);  // those of no elements have no writer
    plan_.instructions.push_back(Return{});
    return std::move(plan_);
  }

 private:
  std::vector<BufferId> touched(const schedule::Group& group) const {
    return schedule::touched_buffers(program_, group);
  }

  void find_last_uses() {
    last_use_.assign(program_.buffers.size(), -1);
    for (size_t g = 0; g < schedule_.groups.size(); ++g) {
      for (BufferId b : touched(schedule_.groups[g])) last_use_[b] = static_cast<int32_t>(g);
    }
  }

  void allocate_output(BufferId b) {
    if (allocated_.insert(b).second) plan_.instructions.push_back(AllocateOutput{b});
  }

  /// Those whose symbols have values by now.
  void check_assertions() {
    for (size_t k = 0; k < checked_.size(); ++k) {
      const Condition& c = plan_.assertions[k].condition;
      const auto waits = [&](Expr e) {
        return std::ranges::any_of(e.symbols(), [&](Symbol s) { return waiting_.contains(s); });
      };
      if (checked_[k] || waits(c.left) || waits(c.right)) continue;
      checked_[k] = 1;
      plan_.instructions.push_back(CheckAssertion{static_cast<int32_t>(k)});
    }
  }

  void call_external(const std::string& name, const loops::Node& n) {
    if (n.dynamic) {
      for (const loops::Operand& o : n.results) allocated_.insert(o.buffer);
    }
    plan_.instructions.push_back(CallExternal{static_cast<int32_t>(plan_.externals.size())});
    plan_.externals.push_back({name, n.function, n.arguments, n.results, n.dynamic, n.binds, nullptr});
    for (const loops::ResultBinding& b : n.binds) waiting_.erase(b.symbol);
    if (!n.binds.empty()) check_assertions();
  }

  void add_group(int32_t number) {
    const schedule::Group& group = schedule_.groups[number];
    for (size_t s = 0; s < schedule_.slots.size(); ++s) {
      if (schedule_.slots[s].first == number) {
        plan_.instructions.push_back(AllocateSlot{static_cast<int32_t>(s)});
      }
    }
    const std::vector<BufferId> used = touched(group);
    const loops::Node* external = group.external ? &program_.nodes[group.members[0].node] : nullptr;
    for (BufferId b : used) {
      const bool own = external != nullptr && external->dynamic &&
                       std::ranges::any_of(external->results, [&](const auto& o) { return o.buffer == b; });
      if (own) continue;
      if (program_.buffers[b].role == BufferRole::output) allocate_output(b);
      if (program_.buffers[b].role == BufferRole::intermediate && late_[b] && allocated_.insert(b).second) {
        plan_.instructions.push_back(AllocateLate{b});
      }
    }
    if (external != nullptr) {
      call_external(group.name, *external);
    } else {
      STAX_ASSERT(next_kernel_ < kernels_.size(), "[plan] no kernel for group {}", group.name);
      plan_.instructions.push_back(Launch{static_cast<int32_t>(plan_.kernels.size())});
      for (bool last = false; !last;) {
        STAX_ASSERT(next_kernel_ < kernels_.size(), "[plan] group {} has no kernel for all sizes",
                    group.name);
        KernelInfo& info = kernels_[next_kernel_++];
        last = info.when.empty();
        plan_.kernels.push_back({std::move(info), nullptr, last});
      }
    }
    for (BufferId b : used) {
      const BufferRole role = program_.buffers[b].role;
      const bool kept = role == BufferRole::output || role == BufferRole::constant;
      if (!kept && last_use_[b] == number) plan_.instructions.push_back(Free{b});
    }
  }

  const loops::Program& program_;
  const schedule::Schedule& schedule_;
  std::vector<KernelInfo> kernels_;
  size_t next_kernel_ = 0;
  std::vector<int32_t> last_use_;  // by buffer: the last group that touches it
  std::set<BufferId> allocated_;
  std::vector<char> late_, checked_;  // by buffer; by assertion
  std::set<Symbol> waiting_;          // for a result that gives it its value
  Plan plan_;
};

}  // namespace

Plan make_plan(const loops::Program& program, const schedule::Schedule& schedule,
               std::vector<KernelInfo> kernels) {
  return PlanBuilder(program, schedule, std::move(kernels)).build();
}

}  // namespace stax::codegen

#include "schedule/verify.h"

#include "schedule/dependence.h"
#include "schedule/memory_plan.h"
#include "support/check.h"

namespace stax::schedule {

namespace {

void check_order(const Schedule& schedule, const loops::Program& program) {
  std::vector<int32_t> position(program.nodes.size(), -1);
  int32_t now = 0;
  for (const Group& g : schedule.groups) {
    for_each_member(g, [&](const Member& m) {
      STAX_ASSERT(m.node >= 0 && m.node < static_cast<int32_t>(position.size()),
                  "[schedule] group {}: node {} does not exist", g.name, m.node);
      STAX_ASSERT(position[m.node] < 0, "[schedule] group {}: {} is scheduled twice", g.name,
                  program.nodes[m.node].name);
      position[m.node] = now++;
    });
  }
  const auto before = dependences(program);
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    STAX_ASSERT(position[n] >= 0, "[schedule] {} is in no group", program.nodes[n].name);
    for (int32_t d : before[n]) {
      STAX_ASSERT(position[d] < position[n], "[schedule] {} runs before {}, which it depends on",
                  program.nodes[n].name, program.nodes[d].name);
    }
  }
}

void check_variables(const Group& g) {
  for (const Group& later : g.later) {
    STAX_ASSERT(!g.external && !later.external && later.later.empty(),
                "[schedule] group {}: its later loop nests are no plain ones", g.name);
    check_variables(later);
  }
  for (const Member& m : g.members) {
    for (const loops::Inst& inst : m.body) {
      for (Symbol s : inst.index.symbols()) {
        const bool bound =
            (s.kind != SymbolKind::index || s.number < static_cast<int32_t>(g.ranges.size())) &&
            (s.kind != SymbolKind::reduction || s.number < static_cast<int32_t>(g.reduction_ranges.size())) &&
            s.kind != SymbolKind::block;
        STAX_ASSERT(bound, "[schedule] group {}: {} is no variable of the group", g.name, s.str());
      }
    }
  }
}

void check_slots(const Schedule& schedule, const loops::Program& program) {
  const std::vector<Slot>& slots = schedule.slots;
  for (size_t a = 0; a < slots.size(); ++a) {
    if (!slots[a].offset.is_constant() || !slots[a].size.is_constant()) continue;
    const int64_t from = slots[a].offset.value(), to = from + slots[a].size.value();
    STAX_ASSERT(from % kSlotAlignment == 0,
                "[schedule] slot of {} starts at byte {}, not at a multiple of {}",
                program.buffers[slots[a].buffer].name, from, kSlotAlignment);
    STAX_ASSERT(!schedule.arena_bytes.is_constant() || to <= schedule.arena_bytes.value(),
                "[schedule] slot of {} ends at byte {}, past the arena",
                program.buffers[slots[a].buffer].name, to);
    for (size_t b = a + 1; b < slots.size(); ++b) {
      if (!slots[b].offset.is_constant() || !slots[b].size.is_constant()) continue;
      if (slots[a].last < slots[b].first || slots[b].last < slots[a].first) continue;
      const int64_t other = slots[b].offset.value(), other_end = other + slots[b].size.value();
      STAX_ASSERT(to <= other || other_end <= from, "[schedule] slots of {} and {} overlap",
                  program.buffers[slots[a].buffer].name, program.buffers[slots[b].buffer].name);
    }
  }
}

}  // namespace

void verify(const Schedule& schedule, const loops::Program& program) {
  check_order(schedule, program);
  for (const Group& g : schedule.groups) check_variables(g);
  check_slots(schedule, program);
}

}  // namespace stax::schedule

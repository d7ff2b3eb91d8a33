// Where the values of a planned node lie: in place of what is stored, or in the workspace.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "device/cpu_info.h"
#include "reference/plan_stages.h"

namespace stax::reference {

using loops::BufferId;
using loops::BufferRole;
using loops::Inst;
using loops::OpCode;

namespace {

/// How often an element of the phase is computed: the points of the space that it runs in.
int64_t points_of(const NodePlan& plan, Phase phase) {
  const bool both = phase == Phase::during || phase == Phase::tail;
  return plan.iteration.size * plan.iteration_points *
         (both ? plan.reduction.size * plan.reduction_points : 1);
}

/// The stores that a body has into each buffer.
std::map<BufferId, int32_t> count_stores(const loops::Body& body) {
  std::map<BufferId, int32_t> stores;
  for (const Inst& inst : body) {
    if (is_store(inst.op)) ++stores[inst.buffer];
  }
  return stores;
}

bool loads_from(const loops::Body& body, BufferId buffer) {
  return std::any_of(body.begin(), body.end(),
                     [&](const Inst& inst) { return inst.op == OpCode::load && inst.buffer == buffer; });
}

bool writes_dense_block(const Step& s) {
  const Access& a = s.access;
  return s.kind == StepKind::store && s.c < 0 && !is_half(s.dtype) && !s.uniform && a.linear &&
         a.stride == 1 && a.offsets < 0 && a.offset < 0;
}

/// Hands out places in the workspace.
class RegisterPlaces {
 public:
  explicit RegisterPlaces(NodePlan& plan) : plan_(plan), uses_(plan.registers.size()) {}

  void place() {
    find_uses();
    for (const Phase phase : kPhases) {
      const std::vector<Step>& steps = steps_of(plan_, phase);
      for (size_t i = 0; i < steps.size(); ++i) {
        place_results(steps[i], phase);
        release_unused(steps[i], {phase, i});
      }
    }
    for (Register& reg : plan_.registers) {
      if (reg.kind == Register::Kind::scalar) reg.offset = take_bytes(8);
    }
    for (auto* list : {&plan_.reductions, &plan_.scans}) {
      for (Collective& c : *list) {
        const int64_t lanes = plan_.mode == Mode::outer ? plan_.block : kLanes;
        c.offset = take_bytes(lanes * std::max(c.reduce.bytes_per_lane, c.scan.bytes_per_lane) + 64);
      }
    }
  }

 private:
  using Moment = std::pair<Phase, size_t>;  // step number `second` of a phase
  struct Use {
    Phase defined = Phase::before;
    Moment last{Phase::before, 0};
  };

  static std::array<int32_t, 7> registers_of(const Step& s) {
    return {s.a, s.b, s.c, s.access.offset, s.access.offsets, s.out, s.out2};
  }

  void find_uses() {
    for (const Phase phase : kPhases) {
      const std::vector<Step>& steps = steps_of(plan_, phase);
      for (size_t i = 0; i < steps.size(); ++i) {
        for (const int32_t r : registers_of(steps[i])) {
          if (r >= 0) uses_[r].last = {phase, i};
        }
        for (const int32_t r : {steps[i].out, steps[i].out2}) {
          if (r >= 0) uses_[r].defined = phase;
        }
      }
    }
  }

  int64_t take_bytes(int64_t bytes) {
    const int64_t at = plan_.workspace;
    plan_.workspace += (bytes + 63) / 64 * 64 + 64;
    return at;
  }

  void place_results(const Step& s, Phase phase) {
    for (const int32_t r : {s.out, s.out2}) {
      if (r < 0 || (r == s.out && s.direct)) continue;
      Register& reg = plan_.registers[r];
      if (reg.uniform) {
        reg.offset = take_bytes(8);
      } else if (!free_.empty()) {
        reg.offset = free_.back();
        free_.pop_back();
      } else {
        reg.offset = take_bytes(8 * std::min(plan_.block, domain_of(plan_, phase).size));
      }
    }
  }

  void release_unused(const Step& s, Moment now) {
    std::vector<int32_t> done;
    for (const int32_t r : registers_of(s)) {
      if (r < 0 || std::find(done.begin(), done.end(), r) != done.end()) continue;
      done.push_back(r);
      const Register& reg = plan_.registers[r];
      if (reg.uniform || reg.kind != Register::Kind::slot || reg.offset < 0) continue;
      if (uses_[r].defined == now.first && uses_[r].last == now) free_.push_back(reg.offset);
    }
  }

  NodePlan& plan_;
  std::vector<Use> uses_;      // by register
  std::vector<int64_t> free_;  // places of vectors that are no longer used
};

}  // namespace

std::vector<Step>& steps_of(NodePlan& plan, Phase phase) {
  std::vector<Step>* lists[] = {&plan.before, &plan.during, &plan.after, &plan.tail};
  return *lists[static_cast<int>(phase)];
}

bool may_overwrite_loads(const loops::Program& program, const loops::Body& body) {
  const std::map<BufferId, int32_t> stores = count_stores(body);
  for (size_t i = 0; i < body.size(); ++i) {
    const Inst& inst = body[i];
    if (inst.op == OpCode::load && stores.count(inst.buffer)) return true;
    const bool writes_input = is_store(inst.op) && program.buffers[inst.buffer].role == BufferRole::input;
    if (writes_input && i + 1 < body.size()) return true;
  }
  return false;
}

void store_in_place(const loops::Program& program, const loops::Body& body, NodePlan& plan) {
  const std::map<BufferId, int32_t> stores = count_stores(body);
  for (const Phase phase : kPhases) {
    std::vector<Step>& steps = steps_of(plan, phase);
    for (size_t i = steps.size(); i-- > 0;) {
      const Step& s = steps[i];
      if (!writes_dense_block(s)) continue;
      const BufferId target = s.access.buffer;
      if (stores.at(target) != 1 || loads_from(body, target)) continue;
      if (program.buffers[target].role == BufferRole::input) continue;
      if (points_of(plan, phase) * itemsize(s.dtype) > device::last_level_cache_bytes()) {
        steps[i].stream = plan.streams = true;
        continue;
      }
      const auto store = steps.begin() + static_cast<int64_t>(i);
      const auto producer = std::find_if(steps.begin(), store, [&](const Step& p) { return p.out == s.a; });
      if (producer == store || producer->kind != StepKind::elementwise || producer->direct ||
          producer->uniform) {
        continue;
      }
      producer->direct = true;
      producer->access = s.access;
      steps.erase(store);
    }
  }
}

void place_registers(NodePlan& plan) {
  RegisterPlaces(plan).place();
}

}  // namespace stax::reference

#include "schedule/memory_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::schedule {

using loops::BufferId;
using loops::BufferRole;

Expr storage_bytes(const loops::Buffer& buffer) {
  Expr elements = 1;
  for (size_t d = 0; d < buffer.sizes.size(); ++d) {
    if (buffer.sizes[d].is(0)) return 0;
    elements += (buffer.sizes[d] - 1) * buffer.strides[d];
  }
  return elements * itemsize(buffer.dtype);
}

std::vector<char> late_buffers(const loops::Program& program) {
  std::vector<char> late(program.buffers.size(), 0);
  for (size_t b = 0; b < late.size(); ++b) {
    late[b] = storage_bytes(program.buffers[b]).contains(SymbolKind::unbacked);
  }
  for (const loops::Node& n : program.nodes) {
    if (!n.dynamic) continue;
    for (const loops::Operand& o : n.results) late[o.buffer] = 1;
  }
  return late;
}

std::vector<std::vector<int32_t>> group_dependences(const std::vector<Group>& groups,
                                                    const std::vector<std::vector<int32_t>>& dependences) {
  std::vector<int32_t> group_of(dependences.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const Member& m : groups[g].members) group_of[m.node] = static_cast<int32_t>(g);
  }
  std::vector<std::vector<int32_t>> out(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    std::set<int32_t> before;
    for (const Member& m : groups[g].members) {
      for (int32_t d : dependences[m.node]) before.insert(group_of[d]);
    }
    before.erase(static_cast<int32_t>(g));
    out[g].assign(before.begin(), before.end());
  }
  return out;
}

namespace {

/// Intermediates that a group touches, and how many bytes each takes (by the hints where symbolic).
class Liveness {
 public:
  Liveness(const loops::Program& program, const std::vector<Group>& groups, const Sizes& sizes) {
    for (const Group& g : groups) {
      const std::vector<BufferId> all = touched_buffers(program, g);
      std::set<BufferId> touched(all.begin(), all.end());
      std::erase_if(touched, [&](BufferId b) { return program.buffers[b].role != BufferRole::intermediate; });
      for (BufferId b : touched) {
        ++users_[b];
        bytes_[b] = sizes.likely(storage_bytes(program.buffers[b]));
      }
      touched_.push_back(std::move(touched));
    }
  }

  struct Change {
    int64_t allocated = 0, freed = 0;
  };
  Change change(int32_t group) const {
    Change c;
    for (BufferId b : touched_[group]) {
      if (!live_.count(b)) c.allocated += bytes_.at(b);
      if (users_.at(b) == 1) c.freed += bytes_.at(b);
    }
    return c;
  }
  void run(int32_t group) {
    const Change c = change(group);
    now_ += c.allocated;
    peak_ = std::max(peak_, now_);
    now_ -= c.freed;
    for (BufferId b : touched_[group]) {
      live_.insert(b);
      --users_[b];
    }
  }
  int64_t peak() const { return peak_; }

 private:
  std::vector<std::set<BufferId>> touched_;
  std::map<BufferId, int32_t> users_;
  std::map<BufferId, int64_t> bytes_;
  std::set<BufferId> live_;
  int64_t now_ = 0, peak_ = 0;
};

struct Order {
  std::vector<int32_t> groups;
  int64_t peak = 0;
};

/// Runs ready groups one by one: the one that adds least live memory, or simply the first.
Order list_order(Liveness liveness, const std::vector<std::vector<int32_t>>& before, bool greedy) {
  const int32_t count = static_cast<int32_t>(before.size());
  std::vector<std::vector<int32_t>> after(count);
  std::vector<size_t> waiting(count);
  std::set<int32_t> ready;
  for (int32_t g = 0; g < count; ++g) {
    waiting[g] = before[g].size();
    for (int32_t b : before[g]) after[b].push_back(g);
    if (waiting[g] == 0) ready.insert(g);
  }
  Order out;
  while (!ready.empty()) {
    int32_t best = *ready.begin();
    if (greedy) {
      const auto growth = [&](int32_t g) {
        const Liveness::Change c = liveness.change(g);
        return c.allocated - c.freed;
      };
      best = *std::min_element(ready.begin(), ready.end(),
                               [&](int32_t a, int32_t b) { return growth(a) < growth(b); });
    }
    ready.erase(best);
    liveness.run(best);
    out.groups.push_back(best);
    for (int32_t g : after[best]) {
      if (--waiting[g] == 0) ready.insert(g);
    }
  }
  STAX_ASSERT(out.groups.size() == before.size(), "[schedule] groups depend on each other in a cycle");
  out.peak = liveness.peak();
  return out;
}

int64_t aligned(int64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

std::vector<Slot> lifetimes(const loops::Program& program, const Schedule& schedule) {
  std::vector<Slot> out;
  std::map<BufferId, size_t> at;
  const std::vector<char> late = late_buffers(program);
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    for (BufferId b : touched_buffers(program, schedule.groups[g])) {
      if (program.buffers[b].role != BufferRole::intermediate || late[b]) continue;
      const auto [found, added] = at.emplace(b, out.size());
      const int32_t now = static_cast<int32_t>(g);
      if (added) out.push_back({b, 0, storage_bytes(program.buffers[b]), now, now});
      out[found->second].last = now;
    }
  }
  return out;
}

bool alive_together(const Slot& a, const Slot& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The offset of the smallest gap between `placed` (what lives at the same time) that holds `size` bytes.
int64_t best_gap(std::vector<std::pair<int64_t, int64_t>> placed, int64_t size) {
  std::sort(placed.begin(), placed.end());
  int64_t end = 0, best = -1, best_size = 0;
  for (const auto& [from, to] : placed) {
    const int64_t gap = from - end;
    if (gap >= size && (best < 0 || gap < best_size)) best = end, best_size = gap;
    end = std::max(end, to);
  }
  return best >= 0 ? best : end;
}

Expr place_fixed(std::vector<Slot>& slots) {
  std::vector<size_t> order(slots.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return slots[a].size.value() > slots[b].size.value(); });
  int64_t total = 0;
  for (size_t n = 0; n < order.size(); ++n) {
    Slot& slot = slots[order[n]];
    std::vector<std::pair<int64_t, int64_t>> placed;
    for (size_t m = 0; m < n; ++m) {
      const Slot& other = slots[order[m]];
      const int64_t offset = other.offset.value();
      if (alive_together(slot, other)) placed.emplace_back(offset, offset + aligned(other.size.value()));
    }
    const int64_t size = aligned(slot.size.value()), offset = best_gap(placed, size);
    slot.offset = offset;
    total = std::max(total, offset + size);
  }
  return total;
}

Expr place_symbolic(std::vector<Slot>& slots, const Sizes& sizes) {
  struct Shelf {
    Expr size;
    std::vector<size_t> slots;
  };
  Ranges ranges = sizes.ranges();
  for (const Slot& s : slots) {
    for (Symbol symbol : s.size.symbols()) {
      ranges.set(symbol, intersect(ranges.interval(symbol), Interval::at_least(0)));
    }
  }
  std::vector<size_t> order(slots.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t k) { return sizes.likely(slots[k].size); });
  const auto fits = [&](Expr size, Expr into) { return decide(le(size, into), ranges).value_or(false); };
  std::vector<Shelf> shelves;
  for (const size_t k : order) {
    // Where a slot provably fits, a shelf never grows for it; elsewhere it does so at other sizes than the
    // hints only.
    Shelf* best = nullptr;
    for (Shelf& shelf : shelves) {
      if (std::ranges::any_of(shelf.slots, [&](size_t o) { return alive_together(slots[o], slots[k]); }))
        continue;
      if (best == nullptr || (!fits(slots[k].size, best->size) && fits(slots[k].size, shelf.size)))
        best = &shelf;
    }
    if (best == nullptr) best = &shelves.emplace_back();
    if (!fits(slots[k].size, best->size)) best->size = max(best->size, slots[k].size);
    best->slots.push_back(k);
  }
  Expr total = 0;
  for (const Shelf& shelf : shelves) {
    for (const size_t k : shelf.slots) slots[k].offset = total;
    total += ceil_div(max(shelf.size, 0), kSlotAlignment) * kSlotAlignment;
  }
  return total;
}

}  // namespace

std::vector<int32_t> execution_order(const loops::Program& program, const std::vector<Group>& groups,
                                     const std::vector<std::vector<int32_t>>& before, const Sizes& sizes) {
  const Liveness liveness(program, groups, sizes);
  Order plain = list_order(liveness, before, false);
  Order greedy = list_order(liveness, before, true);
  return greedy.peak < plain.peak ? std::move(greedy.groups) : std::move(plain.groups);
}

void plan_memory(const loops::Program& program, Schedule& schedule, const Sizes& sizes) {
  schedule.slots = lifetimes(program, schedule);
  const bool fixed = std::all_of(schedule.slots.begin(), schedule.slots.end(),
                                 [](const Slot& s) { return s.size.is_constant(); });
  schedule.arena_bytes = fixed ? place_fixed(schedule.slots) : place_symbolic(schedule.slots, sizes);
}

}  // namespace stax::schedule

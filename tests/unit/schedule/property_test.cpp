// Random programs: a schedule, executed point by point in a shuffled order with its intermediates in the
// arena, leaves what the program leaves when its nodes run one after the other.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "loops/parse.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace stax::schedule {
namespace {

using loops::BufferId;
using loops::BufferRole;
using loops::Inst;
using loops::OpCode;
using loops::Program;

/// Everything is int64, so that results do not depend on the order of sums.
using Memory = std::vector<int64_t*>;  // by buffer: element 0

/// The position in ranges ++ reduction ranges.
struct Point {
  std::vector<int64_t> index, reduction;
};

int64_t value_at(Expr e, const Point& p) {
  return evaluate(e, [&](Symbol s) {
    return s.kind == SymbolKind::index ? p.index.at(s.number) : p.reduction.at(s.number);
  });
}

/// Calls f for every point of `extents`, in row-major order.
template <class F>
void for_each_point(const std::vector<Expr>& extents, F&& f) {
  int64_t count = 1;
  for (Expr e : extents) count *= e.value();
  for (int64_t k = 0; k < count; ++k) {
    std::vector<int64_t> at(extents.size());
    int64_t rest = k;
    for (size_t d = extents.size(); d-- > 0;) {
      at[d] = rest % extents[d].value();
      rest /= extents[d].value();
    }
    f(at);
  }
}

bool is_store(const Inst& inst) {
  return loops::info(inst.op).kind == loops::OpKind::store;
}

/// One body at one point of the ranges: loops over the reduction where `over` says so.
class PointRun {
 public:
  PointRun(const loops::Body& body, const Memory& memory)
      : body_(body), memory_(memory), values_(body.size()) {}

  void run(const std::vector<int64_t>& index, const std::vector<Expr>& reduction_ranges, bool over) {
    for (size_t k = 0; k < body_.size(); ++k) {
      if (body_[k].op == OpCode::reduce_sum) values_[k] = 0;
    }
    // First the reductions, then the stores of their results.
    const bool reduces =
        std::any_of(body_.begin(), body_.end(), [](const Inst& i) { return i.op == OpCode::reduce_sum; });
    for_each_point(over ? reduction_ranges : std::vector<Expr>{}, [&](const std::vector<int64_t>& r) {
      step({index, r}, true, !reduces);
    });
    if (reduces) step({index, {}}, false, true);
  }

 private:
  void step(const Point& p, bool accumulate, bool store) {
    for (size_t k = 0; k < body_.size(); ++k) {
      const Inst& inst = body_[k];
      if (inst.op == OpCode::load) {
        if (!accumulate) continue;
        values_[k] = memory_[inst.buffer][value_at(inst.index, p)];
      } else if (inst.op == OpCode::add) {
        if (accumulate) values_[k] = values_[inst.args[0]] + values_[inst.args[1]];
      } else if (inst.op == OpCode::mul) {
        if (accumulate) values_[k] = (values_[inst.args[0]] * values_[inst.args[1]]) % 1000003;
      } else if (inst.op == OpCode::reduce_sum) {
        if (accumulate) values_[k] += values_[inst.args[0]];
      } else if (is_store(inst) && store) {
        memory_[inst.buffer][value_at(inst.index, p)] = values_[inst.args[0]];
      }
    }
  }

  const loops::Body& body_;
  const Memory& memory_;
  std::vector<int64_t> values_;
};

/// A random program over matrices of 6 x 4 and its relatives.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Program make() {
    text_ = "buffer in0 int64 [6, 4] input mutated\nbuffer in1 int64 [6, 4] input mutated\n";
    buffers_ = {{"in0", false}, {"in1", false}};
    const int nodes = pick(3, 9);
    std::string body;
    for (int k = 0; k < nodes; ++k) body += node(k, k + 1 == nodes);
    return loops::parse_program(text_ + body);
  }

 private:
  struct Made {
    std::string name;
    bool row;  // six elements instead of 6 x 4
  };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::string new_buffer(bool row, bool output) {
    const std::string name = fmt::format("{}{}", output ? "out" : "buf", buffers_.size());
    text_ += fmt::format("buffer {} int64 {} {}\n", name, row ? "[6]" : "[6, 4]",
                         output ? "output" : "intermediate");
    return name;
  }

  /// An index of a random shape into `from`; `x` and `y` are the row and the column.
  std::string index(const Made& from, const std::string& x, const std::string& y) {
    if (from.row) return pick(0, 4) == 0 ? "5 - " + x : x;
    switch (pick(0, 6)) {
      case 0:
        return fmt::format("20 - 4*{} + {}", x, y);
      case 1:
        return fmt::format("4*{} + 3 - {}", x, y);
      default:
        return fmt::format("4*{} + {}", x, y);
    }
  }

  std::string node(int number, bool last) {
    const bool reduce = pick(0, 2) == 0;
    const bool flat = !reduce && pick(0, 3) == 0;  // runs over [24] instead of [6, 4]
    const bool swapped = !reduce && !flat && pick(0, 3) == 0;
    std::string ranges = reduce ? "[i0 < 6] [r0 < 4]" : flat ? "[i0 < 24]" : "[i0 < 6, i1 < 4]";
    std::string x = "i0", y = reduce ? "r0" : "i1";
    if (swapped) ranges = "[i0 < 4, i1 < 6]", x = "i1", y = "i0";
    std::string loads;
    for (int k = 0; k < 2; ++k) {
      Made from = buffers_[pick(0, static_cast<int>(buffers_.size()) - 1)];
      while (flat && from.row) from = buffers_[pick(0, static_cast<int>(buffers_.size()) - 1)];
      const std::string at = flat ? (pick(0, 4) == 0 ? "23 - i0" : "i0") : index(from, x, y);
      loads += fmt::format("  v{} = load int64 {}[{}]\n", k, from.name, at);
    }
    std::string out = fmt::format("node op{} \"op{}\" {}\n{}", number, number, ranges, loads);
    out += fmt::format("  v2 = {} int64 v0 v1\n", pick(0, 1) ? "add" : "mul");
    if (reduce) out += "  v3 = reduce_sum int64 v2\n";
    // A pointwise node may overwrite an input that it does not read itself.
    const std::string target = pick(0, 4) == 0 ? fmt::format("in{}", pick(0, 1)) : "";
    if (!reduce && !last && !target.empty() && loads.find(target) == std::string::npos) {
      out += fmt::format("  store {}[{}] v2\n", target, flat ? "i0" : fmt::format("4*{} + {}", x, y));
      return out;
    }
    const std::string to = new_buffer(reduce, last || pick(0, 3) == 0);
    out += fmt::format("  store {}[{}] v{}\n", to,
                       reduce ? "i0"
                       : flat ? "i0"
                              : fmt::format("4*{} + {}", x, y),
                       reduce ? 3 : 2);
    buffers_.push_back({to, reduce});
    return out;
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Made> buffers_;
};

int64_t elements(const loops::Buffer& b) {
  int64_t n = 1;
  for (Expr e : b.sizes) n *= e.value();
  return n;
}

/// Storage of every buffer; intermediates lie in the arena where a schedule is given.
struct Storage {
  std::vector<std::vector<int64_t>> own;
  std::vector<int64_t> arena;
  Memory memory;

  Storage(const Program& p, const Schedule* s) {
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      own.emplace_back(elements(p.buffers[b]), -77);
      if (p.buffers[b].role == BufferRole::input) {
        std::iota(own.back().begin(), own.back().end(), static_cast<int64_t>(3 * b + 1));
      }
    }
    for (auto& v : own) memory.push_back(v.data());
    if (!s) return;
    arena.assign(s->arena_bytes.value() / 8, -99);
    for (const Slot& slot : s->slots) memory[slot.buffer] = arena.data() + slot.offset.value() / 8;
  }
};

void run_in_order(const Program& p, const Memory& memory) {
  for (const loops::Node& n : p.nodes) {
    for_each_point(n.ranges, [&](const std::vector<int64_t>& at) {
      PointRun(n.body, memory).run(at, n.reduction_ranges, !n.reduction_ranges.empty());
    });
  }
}

void run_group(const Group& g, const Memory& memory, std::mt19937& random) {
  std::vector<std::vector<int64_t>> at;
  for_each_point(g.ranges, [&](const std::vector<int64_t>& p) { at.push_back(p); });
  std::shuffle(at.begin(), at.end(), random);
  for (const auto& p : at) {
    for (const Member& m : g.members) PointRun(m.body, memory).run(p, g.reduction_ranges, m.over_reduction);
  }
  for (const Group& later : g.later) run_group(later, memory, random);
}

void run_schedule(const Schedule& s, const Memory& memory, std::mt19937& random) {
  for (const Group& g : s.groups) run_group(g, memory, random);
}

TEST(ScheduleProperty, KeepsWhatProgramsCompute) {
  constexpr uint32_t kPrograms = 1500;
  size_t nodes = 0, groups = 0, later = 0, mutations = 0;
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    const Program p = Generator(seed).make();
    ASSERT_NO_THROW(loops::verify(p)) << "seed " << seed << "\n" << p.str();
    const Schedule s = make_schedule(p, Target{.phases = seed % 2 == 0 ? 1 : 4});
    ASSERT_NO_THROW(verify(s, p)) << "seed " << seed << "\n" << s.str(p);
    Storage expected(p, nullptr), got(p, &s);
    run_in_order(p, expected.memory);
    std::mt19937 random(seed);
    run_schedule(s, got.memory, random);
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      if (p.buffers[b].role == BufferRole::intermediate) continue;
      ASSERT_EQ(got.own[b], expected.own[b]) << "seed " << seed << ", buffer " << p.buffers[b].name << "\n"
                                             << p.str() << s.str(p);
      mutations += p.buffers[b].role == BufferRole::input && expected.own[b][1] != expected.own[b][0] + 1;
    }
    nodes += p.nodes.size();
    groups += s.groups.size();
    for (const Group& g : s.groups) later += g.later.size();
  }
  // The programs exercise what they are meant to: much fuses, not all does, and inputs are written.
  EXPECT_LT(groups, nodes * 3 / 4);
  EXPECT_GT(groups, kPrograms);
  EXPECT_GT(later, kPrograms / 4);
  EXPECT_GT(mutations, 100u);
}

}  // namespace
}  // namespace stax::schedule

#include "schedule/fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "loops/fold.h"
#include "support/check.h"

namespace stax::schedule {

using loops::BufferId;
using loops::BufferRole;
using loops::NodeKind;

int64_t footprint(Expr index, const Space& space, DType dtype, const Target& target, const Sizes& sizes) {
  constexpr double kMost = 1e18;
  double bytes = static_cast<double>(itemsize(dtype));
  for (size_t k = 0; k < space.axes.size(); ++k) {
    if (!index.contains(axis_symbol(k))) continue;
    if (target.batch_invariant && !space.axes[k].reduction) continue;
    bytes *= static_cast<double>(sizes.likely(space.axes[k].extent));
  }
  return static_cast<int64_t>(std::min(bytes, kMost));
}

namespace {

/// Words for what depends on the size `e`.
const char* by_hint(Expr e) {
  return e.is_constant() ? "" : " by the hint";
}

constexpr const char* kCycle = "fusing them would make a cycle of dependences";

bool order_matters(loops::OpCode op) {
  return is_scan(op) || loops::finds_position(op);
}

FusionGroup single(const loops::Program& program, int32_t node) {
  const loops::Node& n = program.nodes[node];
  FusionGroup g;
  FusedNode member{node, {}, {}, !n.reduction_ranges.empty()};
  if (n.kind == NodeKind::external) {
    g.external = true;
    g.nodes.push_back(member);
    return g;
  }
  g.space.reduces = member.over_reduction;
  const auto add_axes = [&](const std::vector<Expr>& extents, bool reduction, std::vector<Expr>& map) {
    for (Expr extent : extents) {
      if (extent.is(1)) {
        map.push_back(0);
        continue;
      }
      map.push_back(axis_symbol(g.space.axes.size()));
      g.space.axes.push_back({extent, reduction});
    }
  };
  add_axes(n.ranges, false, member.ranges);
  add_axes(n.reduction_ranges, true, member.reduction_ranges);
  for (const loops::Inst& inst : n.body) g.space.ordered |= order_matters(inst.op);
  const Ranges ranges = axis_ranges(g.space);
  g.accesses = accesses_of(program, node);
  for (Access& a : g.accesses) {
    a.index = simplify(substitute(a.index,
                                  [&](Symbol s) -> std::optional<Expr> {
                                    if (s.kind == SymbolKind::index) return member.ranges[s.number];
                                    if (s.kind == SymbolKind::reduction) {
                                      return member.reduction_ranges[s.number];
                                    }
                                    return std::nullopt;
                                  }),
                       ranges);
  }
  g.nodes.push_back(std::move(member));
  return g;
}

/// A group renamed into the common space.
FusionGroup moved(const FusionGroup& g, const Space& space, const std::vector<Expr>& map,
                  bool over_reduction) {
  FusionGroup out = g;
  out.space = space;
  const Ranges ranges = axis_ranges(space);
  for (Access& a : out.accesses) a.index = rename(a.index, map, ranges);
  for (FusedNode& n : out.nodes) {
    for (Expr& e : n.ranges) e = rename(e, map, ranges);
    for (Expr& e : n.reduction_ranges) e = rename(e, map, ranges);
    n.over_reduction |= over_reduction;
  }
  return out;
}

/// Appends the nodes of `b`, which lies in the same space.
void append(FusionGroup& a, FusionGroup b) {
  for (FusedNode& n : b.nodes) a.nodes.push_back(std::move(n));
  for (Access& access : b.accesses) a.accesses.push_back(access);
  std::stable_sort(a.nodes.begin(), a.nodes.end(),
                   [](const FusedNode& x, const FusedNode& y) { return x.node < y.node; });
  std::stable_sort(a.accesses.begin(), a.accesses.end(),
                   [](const Access& x, const Access& y) { return x.node < y.node; });
}

/// False where the sizes alone rule out that two spaces become one: a cheap test before unify().
bool sizes_match(const Space& a, const Space& b) {
  const Expr rows_a = points(a, false), rows_b = points(b, false);
  const Expr all_a = points(a, true), all_b = points(b, true);
  return rows_a == rows_b || rows_a == all_b || all_a == rows_b || all_a == all_b ||
         !(all_a.is_constant() && all_b.is_constant());
}

/// Which groups run before which, at one moment.
class Ancestors {
 public:
  Ancestors(const std::vector<FusionGroup>& groups, const std::vector<int32_t>& group_of,
            const std::vector<std::vector<int32_t>>& dependences)
      : direct_(groups.size()), all_(groups.size()) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const FusedNode& n : groups[g].nodes) {
        for (int32_t d : dependences[n.node]) direct_[g].insert(group_of[d]);
      }
      direct_[g].erase(static_cast<int32_t>(g));
    }
    for (size_t g = 0; g < groups.size(); ++g) visit(static_cast<int32_t>(g));
  }

  /// True if a path leads from group `from` to group `to` through a third group.
  bool path_around(int32_t from, int32_t to) const {
    return std::any_of(direct_[to].begin(), direct_[to].end(),
                       [&](int32_t g) { return g != from && all_[g][from]; });
  }

 private:
  void visit(int32_t start) {
    std::vector<int32_t> stack{start};  // no recursion: chains of groups are long
    while (!stack.empty()) {
      const int32_t g = stack.back();
      const auto open =
          std::find_if(direct_[g].begin(), direct_[g].end(), [&](int32_t d) { return all_[d].empty(); });
      if (all_[g].empty() && open != direct_[g].end()) {
        stack.push_back(*open);
        continue;
      }
      stack.pop_back();
      if (!all_[g].empty()) continue;
      all_[g].assign(direct_.size(), false);
      for (int32_t d : direct_[g]) {
        all_[g][d] = true;
        for (size_t k = 0; k < all_[d].size(); ++k) {
          if (all_[d][k]) all_[g][k] = true;
        }
      }
    }
  }

  std::vector<std::set<int32_t>> direct_;
  std::vector<std::vector<bool>> all_;
};

bool loads_by_data(const FusionGroup& g) {
  return std::ranges::any_of(g.accesses, [](const Access& a) { return !a.store && !a.plain; });
}

/// What fusing two groups would give.
struct Candidate {
  std::optional<FusionGroup> group;  // nothing: not possible
  int64_t bytes = 0;
  std::string why;
};

class Fuser {
 public:
  Fuser(const loops::Program& program, const Target& target, const Sizes& sizes,
        const std::vector<std::vector<int32_t>>& dependences, std::vector<Decision>& decisions)
      : program_(program), target_(target), sizes_(sizes), dependences_(dependences), decisions_(decisions) {
    for (int32_t n = 0; n < static_cast<int32_t>(program.nodes.size()); ++n) {
      groups_.push_back(single(program, n));
      group_of_.push_back(n);
    }
    for (int32_t n = 0; n < static_cast<int32_t>(program.nodes.size()); ++n) {
      for (BufferId b : program.nodes[n].reads()) touched_by_[b].insert(n);
      for (BufferId b : program.nodes[n].writes()) touched_by_[b].insert(n);
    }
  }

  std::vector<FusionGroup> run() {
    while (round()) {
    }
    record_rejections();
    std::vector<FusionGroup> out;
    for (FusionGroup& g : groups_) {
      if (!g.nodes.empty()) out.push_back(std::move(g));
    }
    std::stable_sort(out.begin(), out.end(), [](const FusionGroup& a, const FusionGroup& b) {
      return a.nodes[0].node < b.nodes[0].node;
    });
    return out;
  }

 private:
  using Key = std::pair<int32_t, int32_t>;  // groups, the one with the earlier first node first

  std::set<Key> pairs() const;
  const Candidate& candidate(Key key, const Ancestors& ancestors);
  Candidate evaluate(const FusionGroup& a, const FusionGroup& b) const;
  std::string conflict(const FusionGroup& a, const FusionGroup& b) const;
  std::string overwrites_early(const FusionGroup& g) const;
  std::string loses_parallelism(const Unified& u, const FusionGroup& a, const FusionGroup& b) const;
  int64_t saving(const FusionGroup& a, const FusionGroup& b) const;
  bool becomes_local(BufferId buffer, const FusionGroup& a, const FusionGroup& b) const;
  bool makes_cycle(Key key) const;
  bool reaches(int32_t from, int32_t to) const;
  bool round();
  void record_rejections();
  std::string describe(const FusionGroup& g) const;

  const loops::Program& program_;
  const Target& target_;
  const Sizes& sizes_;
  const std::vector<std::vector<int32_t>>& dependences_;
  std::vector<Decision>& decisions_;
  std::vector<FusionGroup> groups_;                   // emptied when fused; a fused group is a new entry
  std::vector<int32_t> group_of_;                     // of each node
  std::map<BufferId, std::set<int32_t>> touched_by_;  // nodes
  std::map<Key, Candidate> cache_;
};

/// Groups that touch one buffer. Of a buffer that very many groups touch, only those that come soon after
/// each other are paired, and each with the one before all: every pair would take quadratic time and memory.
std::set<Fuser::Key> Fuser::pairs() const {
  constexpr size_t kVeryMany = 64, kNear = 8;
  std::set<Key> out;
  for (const auto& [buffer, nodes] : touched_by_) {
    std::vector<int32_t> groups;  // in the order of their first nodes
    for (int32_t n : nodes) {
      if (!groups_[group_of_[n]].external) groups.push_back(group_of_[n]);
    }
    const auto first_node = [&](int32_t g) { return groups_[g].nodes[0].node; };
    std::sort(groups.begin(), groups.end(),
              [&](int32_t a, int32_t b) { return first_node(a) < first_node(b); });
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    for (size_t a = 0; a < groups.size(); ++a) {
      const bool all = a == 0 || groups.size() <= kVeryMany;
      const size_t end = all ? groups.size() : std::min(groups.size(), a + 1 + kNear);
      for (size_t b = a + 1; b < end; ++b) out.insert({groups[a], groups[b]});
    }
  }
  return out;
}

const Candidate& Fuser::candidate(Key key, const Ancestors& ancestors) {
  const auto found = cache_.find(key);
  if (found != cache_.end()) return found->second;
  // A path around stays while the two groups stay, whatever else fuses.
  if (ancestors.path_around(key.first, key.second) || ancestors.path_around(key.second, key.first)) {
    return cache_.emplace(key, Candidate{std::nullopt, 0, kCycle}).first->second;
  }
  return cache_.emplace(key, evaluate(groups_[key.first], groups_[key.second])).first->second;
}

Candidate Fuser::evaluate(const FusionGroup& a, const FusionGroup& b) const {
  Candidate out;
  if (a.nodes.size() + b.nodes.size() > kMaxNodesPerGroup) {
    out.why = fmt::format("a group has at most {} nodes", kMaxNodesPerGroup);
    return out;
  }
  if (!sizes_match(a.space, b.space)) {
    out.why = "they run over different iterations";
    return out;
  }
  std::vector<AccessPair> shared;
  for (const Access& x : a.accesses) {
    for (const Access& y : b.accesses) {
      if (x.buffer == y.buffer) shared.push_back({x.index, y.index, x.store || y.store});
    }
  }
  const std::optional<Unified> u = unify(a.space, b.space, shared, out.why);
  if (!u) return out;
  FusionGroup first = moved(a, u->space, u->first, u->first_over_reduction);
  FusionGroup second = moved(b, u->space, u->second, u->second_over_reduction);
  out.why = conflict(first, second);
  if (out.why.empty()) out.why = loses_parallelism(*u, a, b);
  if (!out.why.empty()) return out;
  out.bytes = saving(first, second);
  if (out.bytes == 0) {
    out.why = "no memory traffic is saved";
    return out;
  }
  append(first, std::move(second));
  out.why = overwrites_early(first);
  if (out.why.empty()) out.group = std::move(first);
  return out;
}

/// A dependence between two groups in one space that a point-by-point execution would break, in words.
std::string Fuser::conflict(const FusionGroup& a, const FusionGroup& b) const {
  const Ranges ranges = axis_ranges(a.space);
  for (const Access& x : a.accesses) {
    for (const Access& y : b.accesses) {
      if (x.buffer != y.buffer || (!x.store && !y.store)) continue;
      // Plain stores hit every element once (otherwise their own node would race), so equal expressions
      // meet only at one and the same point. A masked load is not the stored value.
      const bool forwarded = x.plain && y.plain && !x.masked && !y.masked;
      const bool same_point = forwarded && x.index == y.index && x.store != y.store;
      if (same_point) continue;
      if (apart(x.index, ranges, y.index, ranges)) continue;
      const std::string& buffer = program_.buffers[x.buffer].name;
      if (x.store && y.store) return fmt::format("both write {}", buffer);
      return fmt::format("{} is written and read at different indices", buffer);
    }
  }
  return {};
}

/// A kernel over a reduction may read its inputs once per pass over the reduction, to recompute values. So
/// the member that overwrites what another one reads has to come in the last pass.
std::string Fuser::overwrites_early(const FusionGroup& g) const {
  if (!g.space.reduces) return {};
  for (const Access& write : g.accesses) {
    if (!write.store) continue;
    const bool read_before = std::any_of(g.accesses.begin(), g.accesses.end(), [&](const Access& a) {
      return !a.store && a.buffer == write.buffer && a.node <= write.node;
    });
    if (!read_before) continue;
    for (const FusedNode& later : g.nodes) {
      if (later.node > write.node && later.over_reduction) {
        return fmt::format("{} would be overwritten before the last pass over it",
                           program_.buffers[write.buffer].name);
      }
    }
  }
  return {};
}

/// A pointwise group that joins a reduction is executed in parallel over the reduction's results only.
std::string Fuser::loses_parallelism(const Unified& u, const FusionGroup& a, const FusionGroup& b) const {
  // Points that one thread, or one instance of a GPU's kernel, handles in little more time than a launch;
  // fewer of those that load from where data says.
  const bool gathers = target_.kind == Target::Kind::cuda && ((u.first_over_reduction && loads_by_data(a)) ||
                                                              (u.second_over_reduction && loads_by_data(b)));
  const int64_t small = gathers ? 1 << 9 : 1 << 16;
  if (!u.first_over_reduction && !u.second_over_reduction) return {};
  if (target_.batch_invariant) return {};
  const Expr rows = points(u.space, false), all = points(u.space, true);
  const std::optional<int64_t> likely_rows = sizes_.hint(rows), likely_all = sizes_.hint(all);
  if (!likely_rows || !likely_all || *likely_rows >= target_.processors || *likely_all <= small) return {};
  return fmt::format("only {} rows would run in parallel{}", *likely_rows, by_hint(rows));
}

bool Fuser::becomes_local(BufferId buffer, const FusionGroup& a, const FusionGroup& b) const {
  if (program_.buffers[buffer].role != BufferRole::intermediate) return false;
  const auto inside = [](const FusionGroup& g, int32_t node) {
    return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const FusedNode& n) { return n.node == node; });
  };
  const std::set<int32_t>& nodes = touched_by_.at(buffer);
  return std::all_of(nodes.begin(), nodes.end(), [&](int32_t n) { return inside(a, n) || inside(b, n); });
}

int64_t Fuser::saving(const FusionGroup& a, const FusionGroup& b) const {
  int64_t bytes = 0;
  std::set<std::pair<BufferId, const void*>> counted;
  std::set<BufferId> local;
  for (const Access& y : b.accesses) {
    if (y.store || !y.plain) continue;
    for (const Access& x : a.accesses) {
      if (x.buffer != y.buffer || !x.plain || !(x.index == y.index)) continue;
      if (!counted.insert({y.buffer, y.index.node()}).second) continue;
      const int64_t size = footprint(y.index, a.space, program_.buffers[y.buffer].dtype, target_, sizes_);
      bytes += size;
      if (x.store && local.insert(y.buffer).second && becomes_local(y.buffer, a, b)) bytes += size;
    }
  }
  // A later node of the first group may read what the second computes, and nobody else does.
  for (const Access& x : a.accesses) {
    if (x.store || !x.plain) continue;
    for (const Access& y : b.accesses) {
      if (x.buffer != y.buffer || !y.plain || !y.store || !(x.index == y.index)) continue;
      if (y.node > x.node || !becomes_local(x.buffer, a, b)) continue;
      if (!counted.insert({x.buffer, x.index.node()}).second) continue;
      const int64_t size = footprint(x.index, a.space, program_.buffers[x.buffer].dtype, target_, sizes_);
      bytes += 2 * size;
    }
  }
  return bytes;
}

/// True if a path leads from group `from` to group `to` through a third group.
bool Fuser::reaches(int32_t from, int32_t to) const {
  // Walks backwards from `to`: dependences are listed by their later end.
  std::vector<int32_t> stack{to};
  std::vector<char> seen(groups_.size(), 0);
  seen[to] = 1;
  while (!stack.empty()) {
    const int32_t g = stack.back();
    stack.pop_back();
    for (const FusedNode& n : groups_[g].nodes) {
      for (int32_t d : dependences_[n.node]) {
        const int32_t before = group_of_[d];
        if (before == from && g != to) return true;
        if (before == from) continue;
        if (!std::exchange(seen[before], 1)) stack.push_back(before);
      }
    }
  }
  return false;
}

bool Fuser::makes_cycle(Key key) const {
  return reaches(key.first, key.second) || reaches(key.second, key.first);
}

bool Fuser::round() {
  struct Scored {
    int64_t bytes;
    Key key;
  };
  std::vector<Scored> scored;
  const Ancestors ancestors(groups_, group_of_, dependences_);
  for (const Key& key : pairs()) {
    const Candidate& c = candidate(key, ancestors);
    if (c.group) scored.push_back({c.bytes, key});
  }
  std::stable_sort(scored.begin(), scored.end(), [&](const Scored& a, const Scored& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    const auto position = [&](const Scored& s) {
      return std::pair(groups_[s.key.first].nodes[0].node, groups_[s.key.second].nodes[0].node);
    };
    return position(a) < position(b);
  });
  std::set<int32_t> changed;
  for (const Scored& s : scored) {
    const auto [a, b] = s.key;
    if (changed.count(a) || changed.count(b) || makes_cycle(s.key)) continue;
    decisions_.push_back({describe(groups_[a]), describe(groups_[b]),
                          fmt::format("fused: saves {} bytes of memory traffic{}", s.bytes,
                                      by_hint(points(groups_[a].space, true))),
                          true, s.bytes});
    const int32_t fused = static_cast<int32_t>(groups_.size());
    groups_.push_back(*cache_.at(s.key).group);
    for (const FusedNode& n : groups_[fused].nodes) group_of_[n.node] = fused;
    groups_[a].nodes.clear();
    groups_[b].nodes.clear();
    changed.insert({a, b});
  }
  return !changed.empty();
}

void Fuser::record_rejections() {
  constexpr size_t kMostWords = 256;  // groups that share an input with many others say nothing new
  const Ancestors ancestors(groups_, group_of_, dependences_);
  const size_t fused = decisions_.size();
  for (const Key& key : pairs()) {
    if (decisions_.size() == fused + kMostWords) break;
    const Candidate& c = candidate(key, ancestors);
    decisions_.push_back({describe(groups_[key.first]), describe(groups_[key.second]),
                          std::string("kept apart: ") + (c.group ? kCycle : c.why), false, 0});
  }
}

std::string Fuser::describe(const FusionGroup& g) const {
  std::string out;
  for (const FusedNode& n : g.nodes) {
    if (!out.empty()) out += " + ";
    out += program_.nodes[n.node].name;
  }
  return out;
}

}  // namespace

std::vector<FusionGroup> fuse(const loops::Program& program, const Target& target, const Sizes& sizes,
                              const std::vector<std::vector<int32_t>>& dependences,
                              std::vector<Decision>& decisions) {
  return Fuser(program, target, sizes, dependences, decisions).run();
}

}  // namespace stax::schedule

#include "schedule/phases.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "schedule/fusion.h"

namespace stax::schedule {

using loops::BufferId;

namespace {

/// Points of a loop nest that follow any other without more ado: one thread computes them in no more time
/// than it takes to wake others.
constexpr int64_t kFew = 32768;
/// Beyond, a follower has at most this part of the points: it ends what a reduction began.
constexpr int64_t kPart = 4;

/// Points of ranges and reduction ranges.
Expr points_of(const Group& g) {
  return product(g.ranges) * product(g.reduction_ranges);
}

size_t member_count(const Group& g) {
  size_t count = 0;
  for_each_member(g, [&](const Member&) { ++count; });
  return count;
}

std::string describe(const loops::Program& program, const Group& group) {
  std::string out;
  for_each_member(group, [&](const Member& m) {
    if (!out.empty()) out += " + ";
    out += program.nodes[m.node].name;
  });
  return out;
}

class Joiner {
 public:
  Joiner(const loops::Program& program, const Target& target, const Sizes& sizes,
         std::vector<Decision>& decisions)
      : program_(program), target_(target), sizes_(sizes), decisions_(decisions) {}

  std::vector<Group> run(const std::vector<std::vector<int32_t>>& before, std::vector<Group> groups) {
    std::vector<int32_t> position(program_.nodes.size(), -1);  // of each node's group in out_
    for (Group& group : groups) {
      // Whatever else it waits for runs before the last that it waits for, so no third group stands between.
      int32_t last = -1;
      for (const Member& m : group.members) {
        for (int32_t d : before[m.node]) last = std::max(last, position[d]);
      }
      int32_t at = static_cast<int32_t>(out_.size());
      if (last >= 0 && joins(out_[last], group)) {
        decide(out_[last], group);
        at = last;
      }
      for (const Member& m : group.members) position[m.node] = at;
      if (at == last) {
        out_[last].later.push_back(std::move(group));
      } else {
        out_.push_back(std::move(group));
      }
    }
    return std::move(out_);
  }

 private:
  bool joins(const Group& first, const Group& follower) const {
    if (first.external || follower.external) return false;
    if (static_cast<int32_t>(first.later.size()) + 1 >= target_.phases) return false;
    if (member_count(first) + follower.members.size() > kMaxNodesPerGroup) return false;
    const std::optional<int64_t> all = sizes_.hint(points_of(first)), more = sizes_.hint(points_of(follower));
    if (!all || !more || !reads_result_of(first, follower)) return false;
    return *more <= (*more <= kFew ? std::max<int64_t>(*all, 1) : *all / kPart);
  }

  bool reads_result_of(const Group& first, const Group& follower) const {
    std::set<BufferId> written;
    for_each_member(first, [&](const Member& m) {
      for (BufferId b : program_.nodes[m.node].writes()) written.insert(b);
    });
    return std::any_of(follower.members.begin(), follower.members.end(), [&](const Member& m) {
      const auto reads = program_.nodes[m.node].reads();
      return std::any_of(reads.begin(), reads.end(), [&](BufferId b) { return written.count(b) > 0; });
    });
  }

  void decide(const Group& first, const Group& follower) {
    const bool fixed = points_of(first).is_constant() && points_of(follower).is_constant();
    decisions_.push_back({describe(program_, first), describe(program_, follower),
                          std::string("one kernel, the second once the first is done: saves a launch") +
                              (fixed ? "" : ", and has few points by the hint"),
                          true, 0});
  }

  const loops::Program& program_;
  const Target& target_;
  const Sizes& sizes_;
  std::vector<Decision>& decisions_;
  std::vector<Group> out_;
};

}  // namespace

std::vector<Group> join_phases(const loops::Program& program, const Target& target, const Sizes& sizes,
                               const std::vector<std::vector<int32_t>>& before, std::vector<Group> groups,
                               std::vector<Decision>& decisions) {
  if (target.phases <= 1) return groups;
  return Joiner(program, target, sizes, decisions).run(before, std::move(groups));
}

}  // namespace stax::schedule

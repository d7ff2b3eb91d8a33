#include "schedule/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "schedule/dependence.h"
#include "schedule/fusion.h"
#include "schedule/group.h"
#include "schedule/memory_plan.h"
#include "schedule/phases.h"

namespace stax::schedule {

using loops::BufferId;

namespace {

/// Adds the operator names in `origin` that `words` lacks, without their overloads: "sum.dim" is "sum".
void add_words(const std::string& origin, std::vector<std::string>& words) {
  std::string word;
  bool overload = false;
  for (size_t k = 0; k <= origin.size(); ++k) {
    const char c = k < origin.size() ? origin[k] : ' ';
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (letter && !overload) {
      word += c;
    } else if (c == '.') {
      overload = true;
    } else if (!letter) {
      if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
      word.clear();
      overload = false;
    }
  }
}

std::string group_name(const loops::Program& program, const Group& group, size_t number) {
  constexpr size_t kLongest = 80;  // enough to recognise a kernel, short enough for a file name
  std::vector<std::string> words;
  if (group.external) {
    add_words(program.nodes[group.members[0].node].function, words);
  } else {
    for_each_member(group, [&](const Member& m) { add_words(program.nodes[m.node].origin, words); });
  }
  std::string name = group.external ? "external" : "fused";
  for (const std::string& word : words) {
    if (name.size() + word.size() > kLongest) break;
    name += "_" + word;
  }
  return fmt::format("{}_{}", name, number);
}

/// True if every load of `buffer` in the group takes what a store of it left at the same point. Loads whose
/// mask is never true may lie anywhere.
bool all_loads_forwarded(const Group& group, BufferId buffer) {
  const auto accesses = [&](bool store, auto&& accept) {
    for (const Member& m : group.members) {
      for (const loops::Inst& inst : m.body) {
        const bool stores = is_store(inst.op);
        if (inst.buffer != buffer || stores != store || !(stores || inst.op == loops::OpCode::load)) continue;
        if (!accept(inst)) return false;
      }
    }
    return true;
  };
  return accesses(false, [&](const loops::Inst& load) {
    return load.args.empty() && load.indirect.empty() &&
           !accesses(true, [&](const loops::Inst& store) { return !(store.index == load.index); });
  });
}

/// Intermediates that only `group` touches, and that need no memory in it.
std::vector<BufferId> local_buffers(const loops::Program& program, const Group& group) {
  if (group.external) return {};
  std::set<int32_t> members;
  for (const Member& m : group.members) members.insert(m.node);
  std::set<BufferId> local;
  for (const Member& m : group.members) {
    for (BufferId b : program.nodes[m.node].writes()) {
      if (program.buffers[b].role == loops::BufferRole::intermediate) local.insert(b);
    }
  }
  for (size_t n = 0; n < program.nodes.size() && !local.empty(); ++n) {
    if (members.count(static_cast<int32_t>(n))) continue;
    for (BufferId b : program.nodes[n].reads()) local.erase(b);
    for (BufferId b : program.nodes[n].writes()) local.erase(b);
  }
  std::erase_if(local, [&](BufferId b) { return !all_loads_forwarded(group, b); });
  return {local.begin(), local.end()};
}

std::string ranges_text(const std::vector<Expr>& ranges, char letter) {
  std::string out = "[";
  for (size_t k = 0; k < ranges.size(); ++k) {
    out += fmt::format("{}{}{} < {}", k ? ", " : "", letter, k, ranges[k].str());
  }
  return out + "]";
}

std::string group_text(const loops::Program& program, const Group& group) {
  std::string out = group.external       ? fmt::format("external {}", group.name)
                    : group.name.empty() ? "  then"
                                         : fmt::format("group {}", group.name);
  if (!group.external) {
    out += " " + ranges_text(group.ranges, 'i');
    if (!group.reduction_ranges.empty()) out += " " + ranges_text(group.reduction_ranges, 'r');
  }
  if (!group.local.empty()) {
    out += " local";
    for (BufferId b : group.local) out += " " + program.buffers[b].name;
  }
  out += "\n";
  for (const Member& m : group.members) {
    out += fmt::format("  {}{}\n", program.nodes[m.node].name, m.over_reduction ? " over reduction" : "");
    out += loops::body_text(program, m.body, 4);
  }
  for (const Group& later : group.later) out += group_text(program, later);
  return out;
}

}  // namespace

std::vector<BufferId> touched_buffers(const loops::Program& program, const Group& group) {
  std::vector<BufferId> out;
  const auto add = [&](const Group& g, BufferId b) {
    const bool local = std::find(g.local.begin(), g.local.end(), b) != g.local.end();
    if (!local && std::find(out.begin(), out.end(), b) == out.end()) out.push_back(b);
  };
  const auto add_nest = [&](const Group& g) {
    for (const Member& m : g.members) {
      for (BufferId b : program.nodes[m.node].reads()) add(g, b);
      for (BufferId b : program.nodes[m.node].writes()) add(g, b);
    }
  };
  add_nest(group);
  for (const Group& g : group.later) add_nest(g);
  return out;
}

Schedule make_schedule(const loops::Program& program, const Target& target, const Sizes& sizes) {
  Schedule out;
  Chooser chooser(sizes);
  const auto before = dependences(program);
  std::vector<Group> groups;
  for (const FusionGroup& fused : fuse(program, target, sizes, before, out.decisions)) {
    groups.push_back(make_group(program, fused, target, chooser));
    groups.back().local = local_buffers(program, groups.back());
  }
  std::vector<Group> ordered;
  for (int32_t g : execution_order(program, groups, group_dependences(groups, before), sizes)) {
    ordered.push_back(std::move(groups[g]));
  }
  out.groups = join_phases(program, target, sizes, before, std::move(ordered), out.decisions);
  for (size_t g = 0; g < out.groups.size(); ++g) out.groups[g].name = group_name(program, out.groups[g], g);
  plan_memory(program, out, sizes);
  out.choices = chooser.choices();
  return out;
}

std::string Schedule::str(const loops::Program& program) const {
  std::string out;
  for (const Group& g : groups) out += group_text(program, g);
  out += fmt::format("arena {} bytes\n", arena_bytes.str());
  for (const Slot& s : slots) {
    out += fmt::format("  {} at {} size {} groups {} to {}\n", program.buffers[s.buffer].name, s.offset.str(),
                       s.size.str(), s.first, s.last);
  }
  for (const Decision& d : decisions) out += fmt::format("# {} and {}: {}\n", d.first, d.second, d.reason);
  return out;
}

}  // namespace stax::schedule

#include "schedule/dependence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace stax::schedule {

using loops::NodeKind;
using loops::OpCode;

std::vector<Access> accesses_of(const loops::Program& program, int32_t node) {
  std::vector<Access> out;
  const loops::Node& n = program.nodes[node];
  if (n.kind == NodeKind::external) return out;
  for (const loops::Inst& inst : n.body) {
    const bool load = inst.op == OpCode::load;
    const bool store = is_store(inst.op);
    if (!load && !store) continue;
    const bool masked_store = store && inst.args.size() > 1;
    out.push_back({node, inst.buffer, inst.index, store,
                   inst.indirect.empty() && inst.op != OpCode::atomic_add && !masked_store,
                   load && !inst.args.empty()});
  }
  return out;
}

Ranges loop_ranges(const loops::Node& node) {
  Ranges ranges;
  for (size_t k = 0; k < node.ranges.size(); ++k) {
    ranges.set_extent({SymbolKind::index, static_cast<int32_t>(k)}, node.ranges[k]);
  }
  for (size_t k = 0; k < node.reduction_ranges.size(); ++k) {
    ranges.set_extent({SymbolKind::reduction, static_cast<int32_t>(k)}, node.reduction_ranges[k]);
  }
  return ranges;
}

namespace {

/// Values of a linear access: `lowest` + the sum of strides[k] * (0 .. extents[k] - 1), strides positive.
struct Reach {
  int64_t lowest = 0;
  std::vector<int64_t> strides, extents;

  /// Distance from lowest to highest value where only strides that are no multiple of `modulus` count.
  int64_t length(int64_t modulus) const {
    int64_t out = 0;
    for (size_t k = 0; k < strides.size(); ++k) {
      if (modulus == 0 || strides[k] % modulus != 0) out += strides[k] * (extents[k] - 1);
    }
    return out;
  }
};

std::optional<Reach> reach(Expr index, const Ranges& ranges) {
  Reach out;
  Expr rest = index;
  for (Symbol s : index.symbols()) {
    const std::optional<Expr> extent = ranges.extent(s), stride = stride_of(index, s);
    if (!extent || !extent->is_constant() || !stride || !stride->is_constant()) return std::nullopt;
    const int64_t size = extent->value(), step = stride->value();
    if (size <= 0) return std::nullopt;
    rest = substitute(rest, s, step < 0 ? Expr(size - 1) : Expr(0));
    out.strides.push_back(step < 0 ? -step : step);
    out.extents.push_back(size);
  }
  if (!rest.is_constant()) return std::nullopt;
  out.lowest = rest.value();
  return out;
}

/// True if the residues of the two sets never meet modulo `modulus` (0: the values themselves).
bool apart_modulo(const Reach& a, const Reach& b, int64_t modulus) {
  const int64_t gap = b.lowest - a.lowest;
  if (modulus == 0) return gap > a.length(0) || -gap > b.length(0);
  const int64_t ahead = ((gap % modulus) + modulus) % modulus;
  return ahead > a.length(modulus) && ahead + b.length(modulus) < modulus;
}

/// What one node does to one buffer; an external node or an indirect access may touch anything.
struct Use {
  int32_t node;
  std::vector<Access> accesses;  // empty: all of the buffer
  bool writes = false;
};

bool conflict(const Use& first, const Ranges& first_ranges, const Use& second, const Ranges& second_ranges) {
  if (!first.writes && !second.writes) return false;
  if (first.accesses.empty() || second.accesses.empty()) return true;
  for (const Access& a : first.accesses) {
    for (const Access& b : second.accesses) {
      if ((a.store || b.store) && !apart(a.index, first_ranges, b.index, second_ranges)) return true;
    }
  }
  return false;
}

std::vector<std::pair<loops::BufferId, Use>> uses_of(const loops::Program& program, int32_t node) {
  const loops::Node& n = program.nodes[node];
  std::vector<std::pair<loops::BufferId, Use>> out;
  const auto use = [&](loops::BufferId buffer) -> Use& {
    for (auto& [b, u] : out) {
      if (b == buffer) return u;
    }
    return out.emplace_back(buffer, Use{node, {}, false}).second;
  };
  if (n.kind == NodeKind::external) {
    for (loops::BufferId b : n.reads()) use(b);
    for (loops::BufferId b : n.writes()) use(b).writes = true;
    return out;
  }
  for (const Access& a : accesses_of(program, node)) {
    Use& u = use(a.buffer);
    u.accesses.push_back(a);
    u.writes |= a.store;
  }
  return out;
}

/// Symbols without hint that the node needs to be known: in its ranges and indices, in the sizes of what it
/// touches, in its arguments.
std::set<Symbol> late_symbols(const loops::Program& program, const loops::Node& n) {
  std::set<Symbol> out;
  const auto use = [&](Expr e) {
    if (!e.contains(SymbolKind::unbacked)) return;
    for (const Symbol s : e.symbols()) {
      if (s.kind == SymbolKind::unbacked) out.insert(s);
    }
  };
  const auto use_all = [&](const std::vector<Expr>& list) { std::ranges::for_each(list, use); };
  use_all(n.ranges);
  use_all(n.reduction_ranges);
  for (const loops::Inst& inst : n.body) use(inst.index);
  const auto use_operand = [&](const loops::Operand& o) {
    use_all(o.sizes);
    use_all(o.strides);
    use(o.offset);
  };
  for (const auto& argument : n.arguments) {
    if (argument.is_tensor()) use_operand(argument.tensor());
    if (argument.is_number()) use(argument.number().integer);
    if (const auto* list = std::get_if<std::vector<Expr>>(&argument.value)) use_all(*list);
    if (const auto* list = std::get_if<Argument<loops::Operand>::Tensors>(&argument.value)) {
      for (const auto& o : *list) {
        if (o) use_operand(*o);
      }
    }
  }
  if (n.dynamic) return out;
  for (const loops::Operand& o : n.results) use_operand(o);
  for (const loops::BufferId b : n.writes()) {
    use_all(program.buffers[b].sizes);
    use_all(program.buffers[b].strides);
  }
  return out;
}

}  // namespace

bool apart(Expr a, const Ranges& a_ranges, Expr b, const Ranges& b_ranges) {
  const std::optional<Reach> x = reach(a, a_ranges), y = reach(b, b_ranges);
  if (!x || !y) return false;
  if (apart_modulo(*x, *y, 0)) return true;
  for (const Reach* r : {&*x, &*y}) {
    for (int64_t stride : r->strides) {
      if (stride > 1 && apart_modulo(*x, *y, stride)) return true;
    }
  }
  return false;
}

std::vector<std::vector<int32_t>> dependences(const loops::Program& program) {
  std::vector<std::vector<int32_t>> out(program.nodes.size());
  std::vector<std::vector<Use>> uses(program.buffers.size());
  std::vector<Ranges> ranges;
  for (const loops::Node& n : program.nodes) ranges.push_back(loop_ranges(n));
  std::map<Symbol, int32_t> binders;
  for (int32_t node = 0; node < static_cast<int32_t>(program.nodes.size()); ++node) {
    if (!binders.empty()) {
      for (const Symbol s : late_symbols(program, program.nodes[node])) {
        if (const auto binder = binders.find(s); binder != binders.end()) out[node].push_back(binder->second);
      }
    }
    for (const loops::ResultBinding& b : program.nodes[node].binds) binders[b.symbol] = node;
    for (auto& [buffer, use] : uses_of(program, node)) {
      for (const Use& earlier : uses[buffer]) {
        if (conflict(earlier, ranges[earlier.node], use, ranges[node])) out[node].push_back(earlier.node);
      }
      uses[buffer].push_back(std::move(use));
    }
    std::sort(out[node].begin(), out[node].end());
    out[node].erase(std::unique(out[node].begin(), out[node].end()), out[node].end());
  }
  return out;
}

}  // namespace stax::schedule

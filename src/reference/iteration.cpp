#include "reference/iteration.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "loops/fold.h"

namespace stax::reference {

using loops::Inst;

int32_t Iteration::dim_of(Symbol variable) const {
  for (size_t d = 0; d < variables.size(); ++d) {
    if (variables[d] == variable) return static_cast<int32_t>(d);
  }
  return -1;
}

namespace {

/// Adds factor * e to `form` where e is linear; what is not goes to the rest.
void split_into(const Iteration& it, Expr e, int64_t factor, IndexForm& form) {
  if (const auto value = e.constant()) {
    form.base += factor * *value;
    return;
  }
  if (e.kind() == ExprKind::symbol) {
    if (const int32_t d = it.dim_of(e.symbol()); d >= 0) {
      form.strides[d] += factor;
      return;
    }
  }
  if (e.kind() == ExprKind::add) {
    for (Expr term : e.args()) split_into(it, term, factor, form);
    return;
  }
  if (e.kind() == ExprKind::mul && e.args()[0].is_constant()) {
    Expr others = 1;
    for (Expr f : e.args().subspan(1)) others *= f;
    return split_into(it, others, factor * e.args()[0].value(), form);
  }
  form.rest += Expr(factor) * e;
}

void permute(Iteration& it, const std::vector<int32_t>& order) {
  const auto pick = [&](auto& list) {
    auto old = list;
    for (size_t d = 0; d < order.size(); ++d) list[d] = old[order[d]];
  };
  pick(it.extents);
  pick(it.variables);
  for (IndexForm& f : it.indices) pick(f.strides);
}

/// Orders the dimensions [first, last) so that the strides of stores, then of loads, fall.
void order_dims(Iteration& it, const loops::Body& body, int32_t first, int32_t last) {
  std::vector<int32_t> order(it.extents.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int32_t d) {
    std::pair<int64_t, int64_t> k{0, 0};
    for (size_t i = 0; i < body.size(); ++i) {
      const int64_t stride = std::abs(it.indices[i].strides[d]);
      if (is_store(body[i].op)) k.first += stride;
      if (body[i].op == loops::OpCode::load) k.second += stride;
    }
    return k;
  };
  std::stable_sort(order.begin() + first, order.begin() + last,
                   [&](int32_t a, int32_t b) { return key(a) > key(b); });
  permute(it, order);
}

bool can_merge(const Iteration& it, const std::vector<bool>& fixed, size_t d) {
  if (fixed[d] || fixed[d + 1] || d + 1 == static_cast<size_t>(it.iteration_dims)) return false;
  return std::all_of(it.indices.begin(), it.indices.end(), [&](const IndexForm& f) {
    return f.strides[d] == f.strides[d + 1] * it.extents[d + 1];
  });
}

void erase_dim(Iteration& it, size_t d) {
  const auto erase = [d](auto& list) { list.erase(list.begin() + static_cast<int64_t>(d)); };
  erase(it.extents);
  erase(it.variables);
  for (IndexForm& f : it.indices) erase(f.strides);
  if (static_cast<int32_t>(d) < it.iteration_dims) --it.iteration_dims;
}

void merge_dims(Iteration& it) {
  std::vector<bool> fixed(it.extents.size());
  for (size_t d = 0; d < it.extents.size(); ++d) {
    for (const IndexForm& f : it.indices) fixed[d] = fixed[d] || f.rest.contains(it.variables[d]);
  }
  for (size_t d = 0; d + 1 < it.extents.size();) {
    if (!can_merge(it, fixed, d)) {
      ++d;
      continue;
    }
    it.extents[d + 1] *= it.extents[d];
    erase_dim(it, d);
    fixed.erase(fixed.begin() + static_cast<int64_t>(d));
  }
}

}  // namespace

IndexForm Iteration::split(Expr e) const {
  IndexForm form;
  form.strides.resize(extents.size());
  split_into(*this, e, 1, form);
  return form;
}

Iteration make_iteration(const loops::Program&, const loops::Node& node,
                         const std::function<int64_t(Symbol)>& value_of) {
  Iteration it;
  bool ordered = false;  // positions in the reduction matter
  for (const Inst& inst : node.body) {
    it.collective = it.collective || is_reduction(inst.op) || is_scan(inst.op);
    ordered = ordered || is_scan(inst.op) || loops::finds_position(inst.op);
  }
  std::vector<Symbol> single;  // variables of dimensions of one element
  const auto add_dims = [&](const std::vector<Expr>& ranges, SymbolKind kind) {
    for (size_t k = 0; k < ranges.size(); ++k) {
      const Symbol variable{kind, static_cast<int32_t>(k)};
      const int64_t extent = evaluate(ranges[k], value_of);
      if (kind == SymbolKind::reduction && extent == 0) it.empty_reduction = true;
      if (extent == 1) {
        single.push_back(variable);
      } else {
        it.extents.push_back(extent);
        it.variables.push_back(variable);
      }
    }
  };
  add_dims(node.ranges, SymbolKind::index);
  it.iteration_dims = static_cast<int32_t>(it.extents.size());
  add_dims(node.reduction_ranges, SymbolKind::reduction);
  if (!it.collective) it.iteration_dims = static_cast<int32_t>(it.extents.size());

  const auto substitution = [&](Symbol s) -> std::optional<Expr> {
    if (s.kind == SymbolKind::size || s.kind == SymbolKind::unbacked) return Expr(value_of(s));
    return std::find(single.begin(), single.end(), s) != single.end() ? std::optional<Expr>(Expr(0))
                                                                      : std::nullopt;
  };
  for (const Inst& inst : node.body) it.indices.push_back(it.split(substitute(inst.index, substitution)));
  order_dims(it, node.body, 0, it.iteration_dims);
  if (!ordered) order_dims(it, node.body, it.iteration_dims, static_cast<int32_t>(it.extents.size()));
  merge_dims(it);
  return it;
}

}  // namespace stax::reference

#include "schedule/iteration_space.h"

#include <algorithm>
#include <unordered_map>

namespace stax::schedule {

Ranges axis_ranges(const Space& space, Ranges known) {
  for (size_t k = 0; k < space.axes.size(); ++k) known.set_extent(axis_symbol(k), space.axes[k].extent);
  return known;
}

Expr points(const Space& space, bool with_reduction) {
  Expr n = 1;
  for (const Axis& axis : space.axes) {
    if (with_reduction || !axis.reduction) n *= axis.extent;
  }
  return n;
}

Expr rename(Expr e, const std::vector<Expr>& map, const Ranges& ranges) {
  const Expr renamed = substitute(e, [&](Symbol s) -> std::optional<Expr> {
    if (s.kind != SymbolKind::block) return std::nullopt;
    return map[s.number];
  });
  return simplify(renamed, ranges);
}

std::optional<Expr> exact_quotient(Expr a, Expr b) {
  if (a == b) return Expr(1);
  if (b.is(1)) return a;
  if (a.is(0) || b.is(0)) return std::nullopt;
  if (a.is_constant() && b.is_constant()) {
    if (a.value() % b.value() != 0) return std::nullopt;
    return Expr(a.value() / b.value());
  }
  const Expr quotient = simplify(floor_div(a, b), Ranges());
  if (quotient.kind() == ExprKind::floor_div || !(quotient * b == a)) return std::nullopt;
  return quotient;
}

namespace {

/// An access as a linear function of the axes: offset + sum of strides[k] * axis k.
struct Linear {
  std::vector<Expr> strides;
  Expr offset;
};

std::optional<Linear> linear(Expr index, const Space& space) {
  Linear out;
  if (index.contains(SymbolKind::indirect)) return std::nullopt;
  for (size_t k = 0; k < space.axes.size(); ++k) {
    const std::optional<Expr> stride = stride_of(index, axis_symbol(k));
    if (!stride || stride->contains(SymbolKind::block)) return std::nullopt;
    out.strides.push_back(*stride);
  }
  out.offset = substitute(index, [](Symbol s) -> std::optional<Expr> {
    if (s.kind == SymbolKind::block) return Expr(0);
    return std::nullopt;
  });
  return out;
}

/// The part of an axis that has no partner yet: the axis is (paired pieces) + multiple * rest.
struct Rest {
  Expr multiple = 1, extent;
  bool open() const { return !extent.is(1); }
};

/// A piece of an axis of the first space, of the second, or one of both.
struct Piece {
  Expr extent;
  int32_t axis[2] = {-1, -1};
  Expr multiple[2];
};

class Unifier {
 public:
  Unifier(const Space& first, const Space& second) : spaces_{&first, &second} {
    for (int side : {0, 1}) {
      for (const Axis& axis : spaces_[side]->axes) rest_[side].push_back({1, axis.extent});
    }
  }

  /// Pairs axes so that both accesses become one expression; false, with nothing changed, if none do.
  bool match(const std::optional<Linear>& a, const std::optional<Linear>& b) {
    if (!a || !b || !(a->offset == b->offset)) return false;
    for (const Piece& p : pieces_) {
      if (!(a->strides[p.axis[0]] * p.multiple[0] == b->strides[p.axis[1]] * p.multiple[1])) return false;
    }
    const Unifier before = *this;
    if (match_strides(a->strides, b->strides)) return true;
    *this = before;
    return false;
  }

  /// Whether every axis has its partner, so that no access changes anything any more.
  bool complete() const { return open(0, true).empty() && open(1, true).empty(); }

  /// Pairs what is left by position, innermost first. Reduction axes of one side may stay without partner.
  bool match_rest() {
    const bool empty[2] = {open(0, true).empty(), open(1, true).empty()};
    if (empty[0] || empty[1]) return true;
    return try_in_order(open(0, true), open(1, true)) || try_in_order(open(0, false), open(1, true)) ||
           try_in_order(open(0, true), open(1, false));
  }

  std::optional<Unified> finish(std::string& why) const;

 private:
  std::vector<int32_t> open(int side, bool with_reduction) const {
    std::vector<int32_t> out;
    for (int32_t k = 0; k < static_cast<int32_t>(rest_[side].size()); ++k) {
      if (rest_[side][k].open() && (with_reduction || !spaces_[side]->axes[k].reduction)) out.push_back(k);
    }
    return out;
  }

  /// Pairs axis i with axis j as far as the shorter one reaches.
  bool pair(int32_t i, int32_t j) {
    Rest &a = rest_[0][i], &b = rest_[1][j];
    Expr extent = a.extent;
    std::optional<Expr> left_a = Expr(1), left_b = exact_quotient(b.extent, a.extent);
    if (!left_b) {
      extent = b.extent;
      left_b = Expr(1);
      left_a = exact_quotient(a.extent, b.extent);
      if (!left_a) return false;
    }
    pieces_.push_back({extent, {i, j}, {a.multiple, b.multiple}});
    a = {a.multiple * extent, *left_a};
    b = {b.multiple * extent, *left_b};
    return true;
  }

  bool match_strides(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    for (int32_t i = 0; i < static_cast<int32_t>(a.size()); ++i) {
      while (rest_[0][i].open() && !a[i].is(0)) {
        const Expr stride = a[i] * rest_[0][i].multiple;
        int32_t partner = -1;
        for (int32_t j = 0; j < static_cast<int32_t>(b.size()) && partner < 0; ++j) {
          if (rest_[1][j].open() && b[j] * rest_[1][j].multiple == stride) partner = j;
        }
        if (partner < 0 || !pair(i, partner)) return false;
      }
    }
    for (int32_t j = 0; j < static_cast<int32_t>(b.size()); ++j) {
      if (rest_[1][j].open() && !b[j].is(0)) return false;
    }
    return true;
  }

  bool try_in_order(std::vector<int32_t> a, std::vector<int32_t> b) {
    const Unifier before = *this;
    while (!a.empty() && !b.empty()) {
      const int32_t i = a.back(), j = b.back();
      if (!pair(i, j)) break;
      if (!rest_[0][i].open()) a.pop_back();
      if (!rest_[1][j].open()) b.pop_back();
    }
    if (a.empty() && b.empty()) return true;
    *this = before;
    return false;
  }

  std::vector<Piece> all_pieces() const;
  bool check(const std::vector<Piece>& pieces, Unified& out, std::string& why) const;

  bool reduction(const Piece& p, int side) const {
    return p.axis[side] >= 0 && spaces_[side]->axes[p.axis[side]].reduction;
  }
  bool reduction(const Piece& p) const { return reduction(p, 0) || reduction(p, 1); }

  const Space* spaces_[2];
  std::vector<Rest> rest_[2];
  std::vector<Piece> pieces_;  // pieces of one axis come innermost first
};

std::vector<Piece> Unifier::all_pieces() const {
  std::vector<Piece> out = pieces_;
  for (int side : {0, 1}) {
    for (int32_t k = 0; k < static_cast<int32_t>(rest_[side].size()); ++k) {
      if (!rest_[side][k].open()) continue;
      Piece p{rest_[side][k].extent, {-1, -1}, {}};
      p.axis[side] = k;
      p.multiple[side] = rest_[side][k].multiple;
      out.push_back(p);
    }
  }
  std::reverse(out.begin(), out.end());  // outermost first within an axis
  // Iteration axes lead, in the order of the first space; reduction axes keep the order of the side that
  // reduces.
  const int leader = spaces_[0]->reduces ? 0 : 1;
  std::stable_sort(out.begin(), out.end(), [&](const Piece& a, const Piece& b) {
    if (reduction(a) != reduction(b)) return reduction(b);
    const int side = reduction(a) ? leader : 0;
    return a.axis[side] < b.axis[side];
  });
  return out;
}

bool Unifier::check(const std::vector<Piece>& pieces, Unified& out, std::string& why) const {
  for (int side : {0, 1}) {
    size_t present = 0, absent = 0, own = 0;
    int32_t last = -1;
    bool in_order = true;
    for (const Piece& p : pieces) {
      const bool here = p.axis[side] >= 0;
      if (!reduction(p)) {
        if (!here) return why = "they run over different iterations", false;
        continue;
      }
      ++(here ? present : absent);
      own += reduction(p, side);
      if (here) in_order &= p.axis[side] >= last, last = p.axis[side];
    }
    if (present > 0 && absent > 0) return why = "one runs over a part of the other's reduction", false;
    if (spaces_[side]->reduces && (own != present || absent > 0)) {
      return why = "they reduce over different dimensions", false;
    }
    if (spaces_[side]->ordered && !in_order) {
      return why = "the order of the reduction matters and differs", false;
    }
    const bool over = !spaces_[side]->reduces && present > 0;
    (side == 0 ? out.first_over_reduction : out.second_over_reduction) = over;
  }
  return true;
}

std::optional<Unified> Unifier::finish(std::string& why) const {
  const std::vector<Piece> pieces = all_pieces();
  Unified out;
  if (!check(pieces, out, why)) return std::nullopt;
  out.space.reduces = spaces_[0]->reduces || spaces_[1]->reduces;
  out.space.ordered = spaces_[0]->ordered || spaces_[1]->ordered;
  out.first.assign(spaces_[0]->axes.size(), Expr(0));
  out.second.assign(spaces_[1]->axes.size(), Expr(0));
  for (size_t k = 0; k < pieces.size(); ++k) {
    const Piece& p = pieces[k];
    out.space.axes.push_back({p.extent, reduction(p)});
    if (p.axis[0] >= 0) out.first[p.axis[0]] += p.multiple[0] * Expr(axis_symbol(k));
    if (p.axis[1] >= 0) out.second[p.axis[1]] += p.multiple[1] * Expr(axis_symbol(k));
  }
  return out;
}

}  // namespace

std::optional<Unified> unify(const Space& first, const Space& second, const std::vector<AccessPair>& pairs,
                             std::string& why) {
  Unifier unifier(first, second);
  std::unordered_map<const void*, std::optional<Linear>> known[2];  // an access comes in many pairs
  const auto linear_of = [&](int side, Expr index) -> const std::optional<Linear>& {
    const auto [at, added] = known[side].try_emplace(index.node());
    if (added) at->second = linear(index, side == 0 ? first : second);
    return at->second;
  };
  for (const bool required : {true, false}) {
    for (const AccessPair& pair : pairs) {
      if (unifier.complete()) break;
      if (pair.required == required) unifier.match(linear_of(0, pair.first), linear_of(1, pair.second));
    }
  }
  if (!unifier.match_rest()) {
    why = "they run over different iterations";
    return std::nullopt;
  }
  return unifier.finish(why);
}

}  // namespace stax::schedule

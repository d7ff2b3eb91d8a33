// Random expressions together with an independent evaluation of how they were built.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "symbolic/shape_env.h"

namespace stax::testing {

/// How an expression was built, kept apart from Expr so that its value does not pass through the code under
/// test.
struct Tree {
  ExprKind kind;
  int64_t value = 0;
  Symbol symbol;
  std::vector<Tree> args;
};

using Values = std::map<Symbol, int64_t>;

inline int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

/// Nothing where a divisor is zero. Values stay small enough for int64.
inline std::optional<int64_t> value_of(const Tree& t, const Values& values) {
  if (t.kind == ExprKind::constant) return t.value;
  if (t.kind == ExprKind::symbol) return values.at(t.symbol);
  std::optional<int64_t> a = value_of(t.args[0], values), b = value_of(t.args[1], values);
  if (!a || !b) return std::nullopt;
  switch (t.kind) {
    case ExprKind::add:
      return *a + *b;
    case ExprKind::mul:
      return *a * *b;
    case ExprKind::min:
      return std::min(*a, *b);
    case ExprKind::max:
      return std::max(*a, *b);
    case ExprKind::floor_div:
      return *b == 0 ? std::nullopt : std::optional(floor_quotient(*a, *b));
    case ExprKind::mod:
      return *b == 0 ? std::nullopt : std::optional(*a - *b * floor_quotient(*a, *b));
    case ExprKind::constant:
    case ExprKind::symbol:
      break;
  }
  return std::nullopt;
}

inline Expr build(const Tree& t) {
  if (t.kind == ExprKind::constant) return t.value;
  if (t.kind == ExprKind::symbol) return t.symbol;
  Expr a = build(t.args[0]), b = build(t.args[1]);
  switch (t.kind) {
    case ExprKind::add:
      return a + b;
    case ExprKind::mul:
      return a * b;
    case ExprKind::min:
      return min(a, b);
    case ExprKind::max:
      return max(a, b);
    case ExprKind::floor_div:
      return floor_div(a, b);
    case ExprKind::mod:
      return mod(a, b);
    case ExprKind::constant:
    case ExprKind::symbol:
      break;
  }
  return 0;
}

/// Draws trees over two sizes and two or three loop variables whose extents are constants, sizes or products
/// of sizes.
class RandomExprs {
 public:
  explicit RandomExprs(uint64_t seed) : random_(seed) {
    for (int k = 0; k < 2; ++k) {
      int64_t lower = draw(0, 2), upper = lower + draw(0, 6);
      sizes_.push_back({SymbolKind::size, k});
      bounds_.push_back({lower, upper});
      bool open = draw(0, 1) == 1;
      ranges_.set(sizes_.back(), open ? Interval::at_least(lower) : Interval::of(lower, upper));
    }
    for (int k = 0; k < 3; ++k) {
      Symbol loop{SymbolKind::index, k};
      Expr extent = draw(0, 2) == 0 ? Expr(draw(1, 12)) : Expr(sizes_[draw(0, 1)]);
      if (draw(0, 5) == 0) extent = Expr(sizes_[0]) * Expr(sizes_[1]);
      ranges_.set_extent(loop, extent);
      loops_.push_back(loop);
    }
  }

  const Ranges& ranges() const { return ranges_; }

  Tree tree(int depth) {
    if (depth == 0 || draw(0, 7) == 0) return leaf();
    constexpr ExprKind kKinds[] = {ExprKind::add, ExprKind::add, ExprKind::add,       ExprKind::mul,
                                   ExprKind::mul, ExprKind::min, ExprKind::floor_div, ExprKind::floor_div,
                                   ExprKind::mod, ExprKind::mod, ExprKind::max};
    ExprKind kind = kKinds[draw(0, 10)];
    Tree t{kind, 0, {}, {}};
    t.args.push_back(tree(depth - 1));
    bool division = kind == ExprKind::floor_div || kind == ExprKind::mod;
    t.args.push_back(division && draw(0, 3) != 0 ? divisor() : tree(depth - 1));
    return t;
  }

  /// Values within the ranges; nothing where a loop does not run.
  std::optional<Values> values() {
    Values v;
    for (size_t k = 0; k < sizes_.size(); ++k) v[sizes_[k]] = draw(bounds_[k].first, bounds_[k].second);
    for (Symbol loop : loops_) {
      int64_t extent = evaluate(*ranges_.extent(loop), [&](Symbol s) { return v.at(s); });
      if (extent < 1) return std::nullopt;
      // Both ends more often than what lies between.
      int64_t at = draw(-2, extent + 1);
      v[loop] = std::clamp<int64_t>(at, 0, extent - 1);
    }
    return v;
  }

  int64_t draw(int64_t lower, int64_t upper) {
    return std::uniform_int_distribution<int64_t>(lower, upper)(random_);
  }

 private:
  Tree constant() {
    constexpr int64_t kConstants[] = {0, 1, 1, 2, 2, 3, 4, 6, 8, 12, 24, -1, -2, -3, -4};
    return {ExprKind::constant, kConstants[draw(0, 14)], {}, {}};
  }
  Tree symbol(Symbol s) { return {ExprKind::symbol, 0, s, {}}; }
  Tree leaf() {
    int64_t choice = draw(0, 9);
    if (choice < 3) return constant();
    if (choice < 5) return symbol(sizes_[draw(0, 1)]);
    return symbol(loops_[draw(0, 2)]);
  }
  Tree divisor() {
    if (draw(0, 1) == 0) return constant();
    Tree s = symbol(sizes_[draw(0, 1)]);
    if (draw(0, 1) == 0) return s;
    return {ExprKind::mul, 0, {}, {s, draw(0, 1) == 0 ? constant() : symbol(sizes_[draw(0, 1)])}};
  }

  std::mt19937_64 random_;
  std::vector<Symbol> sizes_, loops_;
  std::vector<std::pair<int64_t, int64_t>> bounds_;
  Ranges ranges_;
};

}  // namespace stax::testing

// Proofs by an SMT solver that rewrites hold for all integers, not only for those that were tried. Built
// where Z3 is installed.
#include <gtest/gtest.h>
#include <z3++.h>

#include <array>
#include <map>
#include <random>

#include "unit/symbolic/random_expr.h"
#include "unit/symbolic/symbols.h"

namespace stax {
namespace {

using namespace testing;

/// Translates trees and expressions to integers of the solver. Each division a // b, a % b becomes the q and
/// r of a == b*q + r with 0 <= r < b or b < r <= 0.
class Solver {
 public:
  Solver() : solver_(context_) {
    z3::params parameters(context_);
    parameters.set("rlimit", 100000000u);  // steps rather than seconds: the same everywhere
    solver_.set(parameters);
  }

  z3::expr translate(const Tree& t) {
    if (t.kind == ExprKind::constant) return context_.int_val(t.value);
    if (t.kind == ExprKind::symbol) return constant(t.symbol);
    return apply(t.kind, translate(t.args[0]), translate(t.args[1]));
  }

  z3::expr translate(Expr e) {
    if (e.is_constant()) return context_.int_val(e.value());
    if (e.kind() == ExprKind::symbol) return constant(e.symbol());
    z3::expr result = translate(e.args()[0]);
    for (Expr arg : e.args().subspan(1)) result = apply(e.kind(), result, translate(arg));
    return result;
  }

  /// Gives `symbol` one value: with fixed divisors everything is linear, and the solver decides it.
  void fix(Symbol symbol, int64_t value) { fixed_[symbol] = value; }
  /// 0 <= symbol < extent
  void assume_loop(Symbol symbol, Expr extent) {
    solver_.add(constant(symbol) >= 0);
    solver_.add(constant(symbol) < translate(extent));
  }
  void assume_at_least(Symbol symbol, int64_t lower) {
    solver_.add(constant(symbol) >= context_.int_val(lower));
  }

  /// No values make the two differ.
  ::testing::AssertionResult equal(const z3::expr& a, const z3::expr& b) {
    solver_.add(a != b);
    z3::check_result result = solver_.check();
    if (result == z3::unsat) return ::testing::AssertionSuccess();
    auto failure = ::testing::AssertionFailure();
    if (result == z3::unknown) return failure << "no proof: " << solver_.reason_unknown();
    return failure << "they differ at " << Z3_model_to_string(context_, solver_.get_model());
  }

 private:
  z3::expr constant(Symbol symbol) {
    auto found = fixed_.find(symbol);
    return found == fixed_.end() ? context_.int_const(symbol.str().c_str()) : context_.int_val(found->second);
  }

  z3::expr apply(ExprKind kind, const z3::expr& a, const z3::expr& b) {
    switch (kind) {
      case ExprKind::add:
        return a + b;
      case ExprKind::mul:
        return a * b;
      case ExprKind::min:
        return z3::ite(a < b, a, b);
      case ExprKind::max:
        return z3::ite(a < b, b, a);
      case ExprKind::floor_div:
        return divide(a, b).first;
      case ExprKind::mod:
        return divide(a, b).second;
      case ExprKind::constant:
      case ExprKind::symbol:
        break;
    }
    return a;
  }

  std::pair<z3::expr, z3::expr> divide(const z3::expr& a, const z3::expr& b) {
    auto key = std::pair(a.id(), b.id());
    if (auto found = divisions_.find(key); found != divisions_.end()) return found->second;
    std::string number = std::to_string(divisions_.size());
    z3::expr q = context_.int_const(("q" + number).c_str()), r = context_.int_const(("m" + number).c_str());
    solver_.add(a == b * q + r);
    solver_.add((b > 0 && r >= 0 && r < b) || (b < 0 && r <= 0 && r > b));
    divisions_.emplace(key, std::pair(q, r));
    kept_.push_back(a);
    kept_.push_back(b);
    return {q, r};
  }

  std::map<Symbol, int64_t> fixed_;
  z3::context context_;
  z3::solver solver_;
  std::map<std::pair<unsigned, unsigned>, std::pair<z3::expr, z3::expr>> divisions_;
  std::vector<z3::expr> kept_;  // so that no other expression gets their ids
};

Tree leaf(Expr e) {
  return e.is_constant() ? Tree{ExprKind::constant, e.value(), {}, {}}
                         : Tree{ExprKind::symbol, 0, e.symbol(), {}};
}
Tree node(ExprKind kind, Tree a, Tree b) {
  return {kind, 0, {}, {std::move(a), std::move(b)}};
}
Tree operator+(Tree a, Tree b) {
  return node(ExprKind::add, std::move(a), std::move(b));
}
Tree operator*(Tree a, Tree b) {
  return node(ExprKind::mul, std::move(a), std::move(b));
}
Tree operator/(Tree a, Tree b) {
  return node(ExprKind::floor_div, std::move(a), std::move(b));
}
Tree operator%(Tree a, Tree b) {
  return node(ExprKind::mod, std::move(a), std::move(b));
}

const Tree S0 = leaf(s0), S1 = leaf(s1), I0 = leaf(i0), I1 = leaf(i1), U = leaf(u0);
Tree number(int64_t value) {
  return leaf(value);
}

struct Rule {
  const char* name;
  Tree tree;
  Expr result;          // worked out by hand
  bool general = true;  // the solver proves it for symbolic divisors too
};

/// 0 <= i0 < s0 and 1 <= s0, s1; i1 is any divisor.
const Rule kRules[] = {
    {"pull out multiples", (S0 * U + I0) / S0, u0},
    {"drop multiples", (S0 * U + I0) % S0, i0, false},
    {"pull out multiples of any divisor", (I1 * U + S1) / I1, u0 + floor_div(s1, i1)},
    {"drop multiples of any divisor", (I1 * U + S1) % I1, mod(s1, i1), false},
    {"cancel", (S0 * U) / (S0 * S1), floor_div(u0, s1)},
    {"cancel in mod", (S0 * U) % (S0 * S1), s0* mod(u0, s1), false},
    {"nested division", (U / S0) / number(8), floor_div(u0, 8 * s0)},
    {"nested division by symbols", (U / S0) / S1, floor_div(u0, s0* s1)},
    {"nested mod", (U % (S0 * S1)) % S0, mod(u0, s0), false},
    {"division of mod", (U % (S0 * number(4))) / S0, mod(floor_div(u0, s0), 4), false},
    {"divide constants out", (number(6) * U + number(5)) / number(9), floor_div(2 * u0 + 1, 3)},
    {"divide constants out of mod", (number(6) * U + number(5)) % number(9), 3 * mod(2 * u0 + 1, 3) + 2},
    {"negative divisor", U / (number(-1) * S0), floor_div(-u0, s0)},
    {"negative divisor of mod", U % (number(-1) * S0), -mod(-u0, s0), false},
    {"join", S0*(U / S0) + U % S0, u0},
    {"join mods", number(8) * ((U / number(8)) % number(4)) + U % number(8), mod(u0, 32)},
    {"rounding twice", ((U + number(3)) / number(4) + number(7)) / number(8), floor_div(u0 + 31, 32)},
    {"keep a needed division", (((U % number(24)) / number(3)) * number(3)) % number(6),
     3 * mod(floor_div(u0, 3), 2)},
};

TEST(Proof, DivisionRules) {
  Ranges ranges;
  for (auto [index, size] : {std::pair(i0, s0), std::pair(i1, s1)}) {
    ranges.set(size.symbol(), Interval::at_least(1));
    ranges.set_extent(index.symbol(), size);
  }
  for (const Rule& rule : kRules) {
    SCOPED_TRACE(rule.name);
    EXPECT_EQ(simplify(build(rule.tree), ranges), rule.result) << simplify(build(rule.tree), ranges).str();
  }
}

TEST(Proof, DivisionRulesForAllDividends) {
  for (const Rule& rule : kRules) {
    SCOPED_TRACE(rule.name);
    for (auto [a, b, c] : {std::array{1, 3, -3}, {2, 1, 1}, {3, 4, -1}, {7, 5, 4}, {6, 2, 9}}) {
      Solver solver;
      solver.fix(s0.symbol(), a);
      solver.fix(s1.symbol(), b);
      solver.fix(i1.symbol(), c);
      solver.assume_loop(i0.symbol(), s0);
      EXPECT_TRUE(solver.equal(solver.translate(rule.tree), solver.translate(rule.result)));
    }
  }
}

TEST(Proof, DivisionRulesForAllDivisors) {
  for (const Rule& rule : kRules) {
    if (!rule.general) continue;
    SCOPED_TRACE(rule.name);
    Solver solver;
    solver.assume_at_least(s0.symbol(), 1);
    solver.assume_at_least(s1.symbol(), 1);
    solver.assume_loop(i0.symbol(), s0);
    EXPECT_TRUE(solver.equal(solver.translate(rule.tree), solver.translate(rule.result)));
  }
}

/// A random tree over loops i0 < 12, i1 < 5 and any u0 that stays linear: products and divisors have a
/// constant side.
Tree linear_tree(std::mt19937_64& random, int depth) {
  auto draw = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  constexpr int64_t kNumbers[] = {1, 2, 3, 4, 6, 8, 12, -1, -2, -3};
  if (depth == 0) {
    const Tree leaves[] = {I0, I1, U, number(kNumbers[draw(10)])};
    return leaves[draw(4)];
  }
  constexpr ExprKind kKinds[] = {ExprKind::add, ExprKind::add,       ExprKind::mul,
                                 ExprKind::mod, ExprKind::floor_div, ExprKind::min};
  ExprKind kind = kKinds[draw(6)];
  Tree a = linear_tree(random, depth - 1);
  bool both = kind == ExprKind::add || kind == ExprKind::min;
  return node(kind, std::move(a), both ? linear_tree(random, depth - 1) : number(kNumbers[draw(10)]));
}

TEST(Proof, RandomLinearExpressions) {
  Ranges ranges;
  ranges.set_extent(i0.symbol(), 12);
  ranges.set_extent(i1.symbol(), 5);
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  for (int k = 0; k < 60; ++k) {
    Tree tree = linear_tree(random, 2 + k % 2);
    Expr simple = simplify(build(tree), ranges);
    Solver solver;
    solver.assume_loop(i0.symbol(), 12);
    solver.assume_loop(i1.symbol(), 5);
    EXPECT_TRUE(solver.equal(solver.translate(tree), solver.translate(simple)))
        << "expression " << k << ": " << build(tree).str() << " -> " << simple.str();
  }
}

}  // namespace
}  // namespace stax

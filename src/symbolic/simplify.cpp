// Applies the rewrites bottom-up until none applies.
#include "symbolic/simplify.h"

#include <unordered_map>

#include "support/check.h"
#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace {

class Simplifier {
 public:
  explicit Simplifier(const Ranges& ranges) : ranges_(ranges), prover_(ranges) {}

  Expr run(Expr e) {
    // Each round makes the expression cheaper; the limit only keeps a fault in a rule from hanging.
    constexpr int kMaxRounds = 16;
    for (int round = 0; round < kMaxRounds; ++round) {
      Expr next = visit(e);
      if (next == e) return e;
      e = next;
    }
    return e;
  }

 private:
  Expr visit(Expr e) {
    if (e.node()->symbols == 0) return e;
    if (e.kind() == ExprKind::symbol) return visit_symbol(e);
    bool memoised = !e.node()->polynomial;
    if (memoised) {
      if (auto found = done_.find(e); found != done_.end()) return found->second;
    }
    ShortList<Expr> args;
    bool changed = false;
    for (Expr arg : e.args()) {
      Expr simplified = visit(arg);
      changed = changed || simplified != arg;
      args.push_back(simplified);
    }
    Expr result = changed ? rebuild(e.kind(), args.span()) : e;
    if (result.kind() == e.kind() && !result.node()->polynomial) {
      result = unless_overflow([&] { return rewrite(result); }).value_or(result);
    }
    if (memoised) done_.emplace(e, result);
    return result;
  }

  /// A symbol that can take one value only.
  Expr visit_symbol(Expr e) const {
    Interval interval = ranges_.interval(e);
    return interval.lower && interval.lower == interval.upper ? Expr(*interval.lower) : e;
  }

  Expr rewrite(Expr e) const {
    std::span<const Expr> args = e.args();
    switch (e.kind()) {
      case ExprKind::add:
        return simplify_sum(args, prover_);
      case ExprKind::floor_div:
        return simplify_floor_div(args[0], args[1], prover_);
      case ExprKind::mod:
        return simplify_mod(args[0], args[1], prover_);
      case ExprKind::min:
      case ExprKind::max:
        return simplify_extremum(e.kind(), args, prover_);
      case ExprKind::constant:
      case ExprKind::symbol:
      case ExprKind::mul:
        break;
    }
    return e;
  }

  const Ranges& ranges_;
  Prover prover_;
  std::unordered_map<Expr, Expr> done_;
};

}  // namespace

Expr simplify(Expr e, const Ranges& ranges) {
  if (e.is_constant()) return e;
  return Simplifier(ranges).run(e);
}

}  // namespace stax

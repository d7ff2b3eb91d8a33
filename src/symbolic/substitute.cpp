// Substitution, evaluation and strides.
#include <unordered_map>

#include "support/check.h"
#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace symbolic {

Expr rebuild(ExprKind kind, std::span<const Expr> args) {
  switch (kind) {
    case ExprKind::add:
      return sum(args);
    case ExprKind::mul:
      return product(args);
    case ExprKind::floor_div:
      return floor_div(args[0], args[1]);
    case ExprKind::mod:
      return mod(args[0], args[1]);
    case ExprKind::min:
    case ExprKind::max: {
      Expr result = args[0];
      for (Expr arg : args.subspan(1)) result = kind == ExprKind::min ? min(result, arg) : max(result, arg);
      return result;
    }
    case ExprKind::constant:
    case ExprKind::symbol:
      break;
  }
  STAX_ASSERT(false, "rebuild of a leaf, expected a node with operands");
  return 0;
}

}  // namespace symbolic

namespace {

using SymbolMap = std::function<std::optional<Expr>(Symbol)>;

class Substitution {
 public:
  explicit Substitution(const SymbolMap& map) : map_(map) {}

  Expr run(Expr e) {
    if (e.node()->symbols == 0) return e;
    if (e.kind() == ExprKind::symbol) return map_(e.symbol()).value_or(e);
    bool memoised = !e.node()->polynomial;
    if (memoised) {
      if (auto found = done_.find(e); found != done_.end()) return found->second;
    }
    ShortList<Expr> args;
    bool changed = false;
    for (Expr arg : e.args()) {
      Expr replaced = run(arg);
      changed = changed || replaced != arg;
      args.push_back(replaced);
    }
    Expr result = changed ? rebuild(e.kind(), args.span()) : e;
    if (memoised) done_.emplace(e, result);
    return result;
  }

 private:
  const SymbolMap& map_;
  std::unordered_map<Expr, Expr> done_;
};

using Wide = __int128;

/// Evaluates in 128 bits, so that only a result (or a part of it) that is really too large is refused.
class Evaluation {
 public:
  Evaluation(Expr whole, const std::function<int64_t(Symbol)>& value_of)
      : whole_(whole), value_of_(value_of) {}

  int64_t run() {
    Wide value = visit(whole_);
    if (value < INT64_MIN || value > INT64_MAX) overflow();
    return static_cast<int64_t>(value);
  }

 private:
  [[noreturn]] void overflow() const {
    throw_user_error(fmt::format(
        "integer overflow: the value of {} does not fit in 64 bits; use smaller sizes", whole_.str()));
  }

  Wide visit(Expr e) {
    std::span<const Expr> args = e.args();
    switch (e.kind()) {
      case ExprKind::constant:
        return e.value();
      case ExprKind::symbol:
        return value_of_(e.symbol());
      case ExprKind::add: {
        Wide total = 0;
        for (Expr arg : args) {
          if (__builtin_add_overflow(total, visit(arg), &total)) overflow();
        }
        return total;
      }
      case ExprKind::mul: {
        Wide total = 1;
        for (Expr arg : args) {
          if (__builtin_mul_overflow(total, visit(arg), &total)) overflow();
        }
        return total;
      }
      case ExprKind::floor_div:
        return divide(e).first;
      case ExprKind::mod:
        return divide(e).second;
      case ExprKind::min:
      case ExprKind::max: {
        Wide best = visit(args[0]);
        for (Expr arg : args.subspan(1)) {
          Wide value = visit(arg);
          if (e.kind() == ExprKind::min ? value < best : value > best) best = value;
        }
        return best;
      }
    }
    return 0;
  }

  std::pair<Wide, Wide> divide(Expr e) {
    Wide a = visit(e.args()[0]), b = visit(e.args()[1]);
    STAX_CHECK(b != 0, "division by zero: the divisor {} of {} is 0", e.args()[1].str(), e.str());
    if (static_cast<int64_t>(a) == a && static_cast<int64_t>(b) == b && b != -1) {
      int64_t x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
      return {floor_div_int(x, y), floor_mod_int(x, y)};
    }
    constexpr Wide kSmallest = Wide{1} << 126;
    if (b == -1 && a < -kSmallest) overflow();
    Wide q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) --q, r += b;
    return {q, r};
  }

  Expr whole_;
  const std::function<int64_t(Symbol)>& value_of_;
};

}  // namespace

Expr substitute(Expr e, const SymbolMap& map) {
  return Substitution(map).run(e);
}

Expr substitute(Expr e, Symbol symbol, Expr value) {
  if (!e.contains(symbol)) return e;
  return substitute(e, [&](Symbol s) { return s == symbol ? std::optional(value) : std::nullopt; });
}

int64_t evaluate(Expr e, const std::function<int64_t(Symbol)>& value_of) {
  if (e.is_constant()) return e.value();
  return Evaluation(e, value_of).run();
}

std::optional<Expr> stride_of(Expr e, Symbol symbol) {
  if (!e.contains(symbol)) return Expr(0);
  Expr difference = substitute(e, symbol, Expr(symbol) + 1) - e;
  if (difference.contains(symbol)) return std::nullopt;
  return difference;
}

}  // namespace stax

// The text of expressions.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "support/check.h"
#include "symbolic/node.h"

namespace stax {

using namespace symbolic;

namespace {

/// How tightly the outermost operator of a text binds.
enum class Binding : uint8_t { sum, term, quotient, atom };

struct Text {
  std::string text;
  Binding binding;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Compares names such that x2 comes before x10.
bool name_before(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      uint64_t x = 0, y = 0;
      i = static_cast<size_t>(std::from_chars(a.data() + i, a.data() + a.size(), x).ptr - a.data());
      j = static_cast<size_t>(std::from_chars(b.data() + j, b.data() + b.size(), y).ptr - b.data());
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

class Printer {
 public:
  /// Without names, canonical order is the order of the names.
  explicit Printer(const std::function<std::string(Symbol)>* name) : name_(name) {}

  Text print(Expr e) {
    switch (e.kind()) {
      case ExprKind::constant:
        return {std::to_string(e.value()), e.value() < 0 ? Binding::sum : Binding::atom};
      case ExprKind::symbol:
        return {name_of(e.symbol()), Binding::atom};
      case ExprKind::add:
        return print_sum(e);
      case ExprKind::mul:
        return print_term(e, coefficient_of(e));
      case ExprKind::floor_div:
        return {operand(e.args()[0]) + "//" + operand(e.args()[1]), Binding::quotient};
      case ExprKind::mod:
        return {operand(e.args()[0]) + " % " + operand(e.args()[1]), Binding::quotient};
      case ExprKind::min:
        return {"min(" + list(e.args()) + ")", Binding::atom};
      case ExprKind::max:
        return {"max(" + list(e.args()) + ")", Binding::atom};
    }
    return {};
  }

 private:
  std::string name_of(Symbol symbol) const { return name_ ? (*name_)(symbol) : symbol.str(); }

  std::string operand(Expr e) {
    Text text = print(e);
    return text.binding == Binding::atom ? text.text : "(" + text.text + ")";
  }

  std::string list(std::span<const Expr> args) {
    std::string text;
    for (Expr arg : args) text += (text.empty() ? "" : ", ") + print(arg).text;
    return text;
  }

  bool factor_before(Expr a, Expr b) {
    if (!name_) return false;
    bool x = a.kind() == ExprKind::symbol, y = b.kind() == ExprKind::symbol;
    if (x && y) return name_before(name_of(a.symbol()), name_of(b.symbol()));
    if (x != y) return x;
    return a.kind() == b.kind() && name_before(print(a).text, print(b).text);
  }

  std::vector<Expr> sorted_factors(Expr e) {
    std::span<const Expr> factors = factors_of(e);
    std::vector<Expr> sorted(factors.begin(), factors.end());
    std::ranges::stable_sort(sorted, [&](Expr a, Expr b) { return factor_before(a, b); });
    return sorted;
  }

  std::vector<Expr> sorted_terms(Expr e) {
    std::vector<Expr> terms(e.args().begin(), e.args().end());
    if (!name_) return terms;
    std::ranges::stable_sort(terms, [&](Expr a, Expr b) {
      if (a.is_constant() || b.is_constant()) return !a.is_constant();
      std::vector<Expr> x = sorted_factors(a), y = sorted_factors(b);
      return std::ranges::lexicographical_compare(x, y, [&](Expr l, Expr r) { return factor_before(l, r); });
    });
    return terms;
  }

  /// coefficient * factors of e
  Text print_term(Expr e, int64_t coefficient) {
    if (e.is_constant()) return {std::to_string(coefficient), Binding::atom};
    std::vector<Expr> factors = sorted_factors(e);
    if (coefficient == 1 && factors.size() == 1) return print(factors[0]);
    std::string text = coefficient == 1 ? "" : coefficient == -1 ? "-" : std::to_string(coefficient) + "*";
    for (size_t i = 0; i < factors.size(); ++i) text += (i ? "*" : "") + operand(factors[i]);
    return {text, coefficient < 0 ? Binding::sum : Binding::term};
  }

  Text print_sum(Expr e) {
    std::vector<Expr> terms = sorted_terms(e);
    // 4 - s0 rather than -s0 + 4
    if (coefficient_of(terms[0]) < 0 && terms.back().is_constant() && terms.back().value() > 0) {
      std::ranges::rotate(terms, terms.end() - 1);
    }
    std::string text = print(terms[0]).text;
    for (Expr term : std::span(terms).subspan(1)) {
      int64_t c = coefficient_of(term);
      bool minus = c < 0 && c != INT64_MIN;
      text += (minus ? " - " : " + ") + print_term(term, minus ? -c : c).text;
    }
    return {text, Binding::sum};
  }

  const std::function<std::string(Symbol)>* name_;
};

}  // namespace

std::string Expr::str() const {
  return Printer(nullptr).print(*this).text;
}

std::string to_string(Expr e, const std::function<std::string(Symbol)>& name) {
  return Printer(&name).print(e).text;
}

}  // namespace stax

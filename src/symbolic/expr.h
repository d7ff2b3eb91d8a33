// Integer expressions: interned, canonical, exact. Every size, stride and index in Stax is one.
//
// Semantics: mathematical integers. floor_div rounds towards minus infinity, mod has the sign of the divisor
// (a == floor_div(a, b) * b + mod(a, b)); a zero divisor is an error when evaluated, so rewrites keep the
// value only where the original is defined (s0//s0 is 1). Arithmetic on constants that leaves int64 raises
// stax::UserError; nothing wraps.
//
// Canonical form: a sum of products with integer coefficients over symbols and the other node kinds, ordered
// by compare(). Two expressions with the same canonical form are the same pointer, so == is a pointer
// comparison; two expressions that are equal only for a range of their symbols are related by simplify()
// (symbolic/shape_env.h).
//
// Nodes are interned in one process-wide table and never freed. Symbols are identified by kind and number, so
// that the table of a long-lived process saturates.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stax {

enum class SymbolKind : uint8_t {
  size,       // s0: a size or stride of an input, with a hint
  unbacked,   // u0: a size that only data determines
  index,      // i0: an iteration variable of a loop node
  reduction,  // r0: a reduction or scan variable of a loop node
  indirect,   // t0: an index that was computed; local to one instruction of a body
  block,      // x0: a variable of a kernel, after tiling
};

struct Symbol {
  SymbolKind kind = SymbolKind::size;
  int32_t number = 0;
  friend bool operator==(Symbol, Symbol) = default;
  friend auto operator<=>(Symbol, Symbol) = default;
  std::string str() const;  // "s0", "i1", ...
};

enum class ExprKind : uint8_t { constant, symbol, add, mul, floor_div, mod, min, max };

struct ExprNode;

class Expr {
 public:
  Expr() : Expr(int64_t{0}) {}
  Expr(int64_t value);  // NOLINT: sizes mix with numbers everywhere
  Expr(int value) : Expr(int64_t{value}) {}
  Expr(Symbol symbol);  // NOLINT

  ExprKind kind() const;
  bool is_constant() const { return kind() == ExprKind::constant; }
  bool is(int64_t value) const;  // the constant `value`
  /// The constant's value; an internal error for other kinds.
  int64_t value() const;
  std::optional<int64_t> constant() const;
  /// The symbol; an internal error for other kinds.
  Symbol symbol() const;
  /// Operands: terms of a sum (a constant comes last), factors of a product (a constant comes first),
  /// (dividend, divisor), the two or more operands of min and max. Empty for constants and symbols.
  std::span<const Expr> args() const;
  bool contains(Symbol symbol) const;
  bool contains(SymbolKind kind) const;
  /// Distinct symbols in canonical order.
  std::vector<Symbol> symbols() const;

  std::string str() const;  // "128*i0 + r0", "(s0 + 3)//4", "s0 % 8", "max(s0, 2)"
  size_t hash() const { return std::hash<const void*>()(node_); }
  friend bool operator==(Expr a, Expr b) { return a.node_ == b.node_; }

  const ExprNode* node() const { return node_; }
  explicit Expr(const ExprNode* node) : node_(node) {}

 private:
  const ExprNode* node_;
};

/// The text of `e` with other names for its symbols; terms and factors are ordered by these names, digits by
/// value: "r0_1 + 128*x0".
std::string to_string(Expr e, const std::function<std::string(Symbol)>& name);

/// Canonical total order: -1, 0 or 1. Independent of addresses, so printed text is deterministic.
int compare(Expr a, Expr b);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator-(Expr a);
inline Expr& operator+=(Expr& a, Expr b) {
  return a = a + b;
}
inline Expr& operator-=(Expr& a, Expr b) {
  return a = a - b;
}
inline Expr& operator*=(Expr& a, Expr b) {
  return a = a * b;
}
Expr floor_div(Expr a, Expr b);
Expr mod(Expr a, Expr b);
Expr ceil_div(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr sum(std::span<const Expr> terms);
inline Expr sum(const std::vector<Expr>& terms) {
  return sum(std::span<const Expr>(terms));
}
Expr product(std::span<const Expr> factors);
inline Expr product(const std::vector<Expr>& factors) {
  return product(std::span<const Expr>(factors));
}

/// Replaces symbols for which `map` has an answer, all at once.
Expr substitute(Expr e, const std::function<std::optional<Expr>(Symbol)>& map);
Expr substitute(Expr e, Symbol symbol, Expr value);

/// The expression's value; `value_of` is asked for each symbol. Overflow and a zero divisor raise UserError.
int64_t evaluate(Expr e, const std::function<int64_t(Symbol)>& value_of);

/// e[symbol + 1] - e[symbol] if that is free of `symbol` (the stride of an access along a loop), else
/// nothing.
std::optional<Expr> stride_of(Expr e, Symbol symbol);

}  // namespace stax

template <>
struct std::hash<stax::Expr> {
  size_t operator()(stax::Expr e) const { return e.hash(); }
};
template <>
struct std::hash<stax::Symbol> {
  size_t operator()(stax::Symbol s) const {
    return static_cast<size_t>(s.kind) << 32 ^ static_cast<uint32_t>(s.number);
  }
};

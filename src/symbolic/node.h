// The nodes behind Expr and the helpers that the rule files share. Internal to src/symbolic.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "stax/error.h"
#include "symbolic/expr.h"

namespace stax {

struct ExprNode {
  ExprKind kind;
  uint8_t symbol_kinds;  // a bit for each SymbolKind that occurs
  bool polynomial;       // no //, %, min or max inside
  uint32_t count;
  int64_t value;     // of a constant; kind and number of a symbol
  uint64_t hash;     // structural, the same in every process
  uint64_t symbols;  // a Bloom filter of the symbols inside
  Expr self;
  const Expr* args;
};

namespace symbolic {

/// The one node with this content. `args` must be canonical.
Expr intern(ExprKind kind, int64_t value, std::span<const Expr> args);

/// A list that lives on the stack while it is short.
template <typename T, size_t kInline = 16>
class ShortList {
 public:
  ShortList() { items_.reserve(kInline); }
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;
  void push_back(T item) { items_.push_back(item); }
  std::pmr::vector<T>& operator*() { return items_; }
  std::span<const T> span() const { return items_; }
  size_t size() const { return items_.size(); }

 private:
  alignas(T) std::byte buffer_[kInline * sizeof(T) + 16];
  std::pmr::monotonic_buffer_resource memory_{buffer_, sizeof(buffer_)};
  std::pmr::vector<T> items_{&memory_};
};

// A term is coefficient * factors. A constant has no factors; every other node than a product is its own
// factor.
std::span<const Expr> factors_of(Expr e);
int64_t coefficient_of(Expr e);
Expr make_term(int64_t coefficient, std::span<const Expr> factors);
/// The terms of a sum, or the one term that `e` is.
std::span<const Expr> terms_of(Expr e);
/// The constant term, and the rest.
int64_t offset_of(Expr e);
Expr without_offset(Expr e);

int compare_symbols(Symbol a, Symbol b);
/// Lexicographic; the empty list is last.
int compare_factors(std::span<const Expr> a, std::span<const Expr> b);

/// e * k.
Expr scale(Expr e, int64_t k);

// Exact integer arithmetic; leaving int64 is a UserError that shows what was computed.
int64_t checked_mul(int64_t a, int64_t b);
int64_t floor_div_int(int64_t a, int64_t b);
int64_t floor_mod_int(int64_t a, int64_t b);
/// The greatest common divisor as a positive number; 0 for (0, 0), 1 where the divisor is 2^63.
int64_t gcd_int(int64_t a, int64_t b);

/// e / divisor where that is a polynomial, otherwise nothing.
std::optional<Expr> divide_exactly(Expr e, Expr divisor);
/// Greatest common divisor of the coefficients of all terms, of all but the constant term, respectively.
int64_t content_of(Expr e);
int64_t content_without_offset(Expr e);
/// The product of the factors that every term of `a` and of `b` has; 1 where there are none.
Expr common_factors(Expr a, Expr b);

/// The rewritten expression, or nothing where a constant on the way leaves int64: then the rule does not
/// apply.
template <typename Rewrite>
std::optional<Expr> unless_overflow(Rewrite rewrite) {
  try {
    return rewrite();
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// The node rebuilt with other operands.
Expr rebuild(ExprKind kind, std::span<const Expr> args);

/// Terms of a sum that are divisible by `divisor` (already divided), and the others.
struct Multiples {
  Expr quotient;
  Expr rest;
};
Multiples split_multiples(Expr e, Expr divisor);

}  // namespace symbolic
}  // namespace stax

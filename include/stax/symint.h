// Sizes. Outside tracing a SymInt is a plain number; while a function is traced it may stand for a size that
// later calls choose.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stax/api.h"

namespace stax {

struct ExprNode;
class SymBool;
class SymInt;

namespace detail {

enum class SymOp : uint8_t { add, sub, mul, div, mod, min, max };
enum class SymRelation : uint8_t { eq, ne, lt, le };

STAX_API int64_t encode_large(int64_t value);
STAX_API int64_t sym_value(const SymInt& value);
STAX_API SymInt sym_binary(SymOp op, const SymInt& a, const SymInt& b);
STAX_API bool sym_decide(const SymBool& condition);

}  // namespace detail

/// An integer of 8 bytes: a number, or a symbolic expression while tracing.
///
/// It converts to int64_t. While tracing, that conversion fixes the value: the compiled program is then valid
/// for this value only (a guard). Arithmetic with numbers stays symbolic; as in C++, division truncates.
class SymInt {
 public:
  constexpr SymInt() = default;
  template <std::integral T>
  constexpr SymInt(T value) : bits_(encode(static_cast<int64_t>(value))) {}  // NOLINT: sizes mix with numbers
  /// From an interned expression; `node` is not null.
  static SymInt from_node(const ExprNode* node) {
    SymInt result;
    result.bits_ = static_cast<int64_t>(reinterpret_cast<uint64_t>(node) | kTag);
    return result;
  }

  /// True for a number that needs no lookup. Numbers below -2^62 and symbolic values are nodes.
  constexpr bool is_plain() const { return bits_ >= kSmallest; }
  /// True where the value is known without a guard.
  STAX_API bool is_constant() const;
  bool is_symbolic() const { return !is_plain() && !is_constant(); }
  const ExprNode* node() const {
    return is_plain() ? nullptr : reinterpret_cast<const ExprNode*>(static_cast<uint64_t>(bits_) & ~kTag);
  }

  operator int64_t() const { return is_plain() ? bits_ : detail::sym_value(*this); }  // NOLINT
  /// The value, with a guard while tracing.
  int64_t value() const { return *this; }
  /// "12", or the expression.
  STAX_API std::string str() const;

  SymInt& operator+=(const SymInt& other);
  SymInt& operator-=(const SymInt& other);
  SymInt& operator*=(const SymInt& other);
  SymInt& operator/=(const SymInt& other);
  SymInt& operator%=(const SymInt& other);
  SymInt& operator++() { return *this += SymInt(1); }
  SymInt& operator--() { return *this -= SymInt(1); }
  SymInt operator++(int) {
    SymInt old = *this;
    ++*this;
    return old;
  }
  SymInt operator--(int) {
    SymInt old = *this;
    --*this;
    return old;
  }

 private:
  static constexpr int64_t kSmallest = -(int64_t{1} << 62);
  static constexpr uint64_t kTag = uint64_t{1} << 63;  // addresses of user space leave the two top bits clear
  static constexpr int64_t encode(int64_t value) {
    return value >= kSmallest ? value : detail::encode_large(value);
  }

  int64_t bits_ = 0;
};

static_assert(sizeof(SymInt) == 8);

/// The outcome of comparing sizes. Converts to bool; while tracing, that conversion records a guard.
class SymBool {
 public:
  constexpr SymBool(bool value) : value_(value) {}  // NOLINT
  SymBool(detail::SymRelation relation, const SymInt& left, const SymInt& right)
      : symbolic_(true), relation_(relation), left_(left), right_(right) {}

  bool is_symbolic() const { return symbolic_; }
  detail::SymRelation relation() const { return relation_; }
  const SymInt& left() const { return left_; }
  const SymInt& right() const { return right_; }

  operator bool() const { return symbolic_ ? detail::sym_decide(*this) : value_; }  // NOLINT
  /// "True", "False" or the comparison.
  STAX_API std::string str() const;

 private:
  bool value_ = false;
  bool symbolic_ = false;
  detail::SymRelation relation_ = detail::SymRelation::eq;
  SymInt left_, right_;
};

/// Conditions of which all have to hold: a & b. Nothing is decided before it is used as a bool; then one
/// after another, up to the first that does not hold. `a && b` asks for both as bools at once.
class SymConjunction {
 public:
  explicit SymConjunction(std::vector<SymBool> parts) : parts_(std::move(parts)) {}
  const std::vector<SymBool>& parts() const { return parts_; }
  operator bool() const {  // NOLINT
    for (const SymBool& part : parts_) {
      if (!bool(part)) return false;
    }
    return true;
  }

 private:
  std::vector<SymBool> parts_;
};

inline SymConjunction operator&(const SymBool& a, const SymBool& b) {
  return SymConjunction({a, b});
}
inline SymConjunction operator&(const SymConjunction& a, const SymBool& b) {
  std::vector<SymBool> parts = a.parts();
  parts.push_back(b);
  return SymConjunction(std::move(parts));
}
template <std::same_as<bool> T>
SymConjunction operator&(const SymBool& a, T b) {
  return SymConjunction({a, SymBool(b)});
}
template <std::same_as<bool> T>
SymConjunction operator&(T a, const SymBool& b) {
  return SymConjunction({SymBool(a), b});
}

namespace detail {

/// Comparison of plain numbers at once, of others through the trace.
STAX_API SymBool sym_compare(SymRelation relation, const SymInt& a, const SymInt& b);

template <class T>
concept Integer = std::integral<T>;
template <class T>
concept Floating = std::floating_point<T>;

}  // namespace detail

// Every operator exists for (SymInt, SymInt) and, as an exact match, for each arithmetic type on either side:
// no call is ambiguous between converting one operand or the other. With a floating operand the size is read.
#define STAX_SYM_ARITHMETIC(symbol, name)                                 \
  inline SymInt operator symbol(const SymInt& a, const SymInt& b) {       \
    return detail::sym_binary(detail::SymOp::name, a, b);                 \
  }                                                                       \
  template <detail::Integer T>                                            \
  SymInt operator symbol(const SymInt& a, T b) {                          \
    return detail::sym_binary(detail::SymOp::name, a, SymInt(b));         \
  }                                                                       \
  template <detail::Integer T>                                            \
  SymInt operator symbol(T a, const SymInt& b) {                          \
    return detail::sym_binary(detail::SymOp::name, SymInt(a), b);         \
  }                                                                       \
  inline SymInt& SymInt::operator symbol##=(const SymInt& other) {        \
    return *this = detail::sym_binary(detail::SymOp::name, *this, other); \
  }
STAX_SYM_ARITHMETIC(+, add)
STAX_SYM_ARITHMETIC(-, sub)
STAX_SYM_ARITHMETIC(*, mul)
STAX_SYM_ARITHMETIC(/, div)
STAX_SYM_ARITHMETIC(%, mod)
#undef STAX_SYM_ARITHMETIC

#define STAX_SYM_FLOATING(symbol)                            \
  template <detail::Floating T>                              \
  T operator symbol(const SymInt& a, T b) {                  \
    return static_cast<T>(static_cast<int64_t>(a)) symbol b; \
  }                                                          \
  template <detail::Floating T>                              \
  T operator symbol(T a, const SymInt& b) {                  \
    return a symbol static_cast<T>(static_cast<int64_t>(b)); \
  }
STAX_SYM_FLOATING(+)
STAX_SYM_FLOATING(-)
STAX_SYM_FLOATING(*)
STAX_SYM_FLOATING(/)
#undef STAX_SYM_FLOATING

inline SymInt operator-(const SymInt& a) {
  return detail::sym_binary(detail::SymOp::sub, SymInt(0), a);
}
inline SymInt operator+(const SymInt& a) {
  return a;
}

// name(left, right) spells each comparison through eq, ne, lt and le.
#define STAX_SYM_COMPARISON(symbol, relation, left, right)                  \
  inline SymBool operator symbol(const SymInt& a, const SymInt& b) {        \
    return detail::sym_compare(detail::SymRelation::relation, left, right); \
  }                                                                         \
  template <detail::Integer T>                                              \
  SymBool operator symbol(const SymInt& a, T number) {                      \
    SymInt b(number);                                                       \
    return detail::sym_compare(detail::SymRelation::relation, left, right); \
  }                                                                         \
  template <detail::Integer T>                                              \
  SymBool operator symbol(T number, const SymInt& b) {                      \
    SymInt a(number);                                                       \
    return detail::sym_compare(detail::SymRelation::relation, left, right); \
  }                                                                         \
  template <detail::Floating T>                                             \
  bool operator symbol(const SymInt& a, T b) {                              \
    return static_cast<T>(static_cast<int64_t>(a)) symbol b;                \
  }                                                                         \
  template <detail::Floating T>                                             \
  bool operator symbol(T a, const SymInt& b) {                              \
    return a symbol static_cast<T>(static_cast<int64_t>(b));                \
  }
STAX_SYM_COMPARISON(==, eq, a, b)
STAX_SYM_COMPARISON(!=, ne, a, b)
STAX_SYM_COMPARISON(<, lt, a, b)
STAX_SYM_COMPARISON(<=, le, a, b)
STAX_SYM_COMPARISON(>, lt, b, a)
STAX_SYM_COMPARISON(>=, le, b, a)
#undef STAX_SYM_COMPARISON

/// Maximum and minimum of sizes: symbolic where an operand is.
inline SymInt max(const SymInt& a, const SymInt& b) {
  return detail::sym_binary(detail::SymOp::max, a, b);
}
inline SymInt min(const SymInt& a, const SymInt& b) {
  return detail::sym_binary(detail::SymOp::min, a, b);
}
/// `a` where the condition holds, else `b`, without deciding it: no guard.
STAX_API SymInt sym_ite(const SymBool& condition, const SymInt& a, const SymInt& b);

STAX_API std::ostream& operator<<(std::ostream& out, const SymInt& value);
STAX_API std::ostream& operator<<(std::ostream& out, const SymBool& value);

}  // namespace stax

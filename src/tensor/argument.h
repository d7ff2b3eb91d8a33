// The arguments of one operator call, bound through the operator's schema. T stands for whatever a tensor is
// at that level: a Tensor while capturing, a graph value, an operand of an external node, a raw view inside a
// kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "stax/dtype.h"
#include "support/check.h"
#include "symbolic/expr.h"

namespace stax {

/// A number written by the user: keeps bool, integer and float apart, as dtype promotion does.
struct Number {
  enum class Kind : uint8_t { boolean, integer, floating };
  Kind kind = Kind::integer;
  Expr integer;         // boolean (0 or 1) and integer; may be symbolic
  double floating = 0;  // floating
  static Number of(bool value) { return {Kind::boolean, Expr(int64_t{value}), 0}; }
  static Number of(int64_t value) { return {Kind::integer, Expr(value), 0}; }
  static Number of(double value) { return {Kind::floating, Expr(), value}; }
  bool is_float() const { return kind == Kind::floating; }
  double as_double() const { return is_float() ? floating : static_cast<double>(integer.value()); }
  friend bool operator==(const Number&, const Number&) = default;
};

struct NoneType {
  friend bool operator==(NoneType, NoneType) = default;
};

template <class T>
struct Argument {
  using Tensors = std::vector<std::optional<T>>;  // entries may be missing: indexing with None
  std::variant<NoneType, T, Tensors, Number, std::vector<Expr>, std::vector<double>, DType, std::string>
      value;

  Argument() = default;
  template <class V, class = std::enable_if_t<!std::is_same_v<std::decay_t<V>, Argument>>>
  Argument(V&& v) : value(wrap(std::forward<V>(v))) {}  // NOLINT: arguments are written as plain values

  bool is_none() const { return std::holds_alternative<NoneType>(value); }
  bool is_tensor() const { return std::holds_alternative<T>(value); }
  bool is_number() const { return std::holds_alternative<Number>(value); }
  /// UserError where it is none: calls by name may put numbers there.
  const T& tensor() const {
    if (!is_tensor()) throw_user_error("expected a tensor as an argument, got a number or nothing");
    return std::get<T>(value);
  }
  const Tensors& tensors() const { return std::get<Tensors>(value); }
  const Number& number() const { return std::get<Number>(value); }
  bool boolean() const { return number().is_float() ? number().floating != 0 : !number().integer.is(0); }
  Expr integer() const { return number().integer; }
  double floating() const { return number().as_double(); }
  const std::vector<Expr>& integers() const { return std::get<std::vector<Expr>>(value); }
  const std::vector<double>& floats() const { return std::get<std::vector<double>>(value); }
  DType dtype() const { return std::get<DType>(value); }
  const std::string& string() const { return std::get<std::string>(value); }

 private:
  // Plain numbers and text become what the variant holds.
  template <class V>
  static decltype(auto) wrap(V&& v) {
    using D = std::decay_t<V>;
    if constexpr (std::is_same_v<D, bool>) {
      return Number::of(v);
    } else if constexpr (std::is_integral_v<D>) {
      return Number::of(static_cast<int64_t>(v));
    } else if constexpr (std::is_floating_point_v<D>) {
      return Number::of(static_cast<double>(v));
    } else if constexpr (std::is_same_v<D, Expr>) {
      return Number{Number::Kind::integer, v, 0};
    } else if constexpr (std::is_convertible_v<D, const char*>) {
      return std::string(v);
    } else {
      return std::forward<V>(v);
    }
  }
};

/// Converts the tensors of an argument with `convert` (T -> U), and keeps everything else.
template <class U, class T, class F>
Argument<U> map_tensors(const Argument<T>& argument, F&& convert) {
  return std::visit(
      [&](const auto& v) -> Argument<U> {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, T>) {
          return Argument<U>(convert(v));
        } else if constexpr (std::is_same_v<V, typename Argument<T>::Tensors>) {
          typename Argument<U>::Tensors out;
          for (const auto& t : v) out.push_back(t ? std::optional<U>(convert(*t)) : std::nullopt);
          return Argument<U>(std::move(out));
        } else {
          return Argument<U>(v);
        }
      },
      argument.value);
}

}  // namespace stax

// A number as an operator's argument.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>

#include "stax/api.h"
#include "stax/dtype.h"
#include "stax/impl_ptr.h"
#include "stax/symint.h"

namespace stax {

/// A bool, an integer or a floating-point number. The three stay apart, because dtype promotion tells them
/// apart. While tracing, an integer may be symbolic, and any kind may stand for a value that the compiled
/// program reads when it runs.
class STAX_API Scalar {
 public:
  enum class Kind : uint8_t { boolean, integer, floating };

  Scalar() : Scalar(0) {}
  template <std::same_as<bool> T>
  Scalar(T value) : kind_(Kind::boolean), integer_(value ? 1 : 0) {}  // NOLINT: numbers are written plainly
  template <std::integral T>
  requires(!std::same_as<T, bool>) Scalar(T value) : kind_(Kind::integer), integer_(value) {}  // NOLINT
  template <std::floating_point T>
  Scalar(T value) : kind_(Kind::floating), floating_(value) {}            // NOLINT
  Scalar(const SymInt& value) : kind_(Kind::integer), integer_(value) {}  // NOLINT
  /// A value of that kind which a trace gives: `traced` is a zero-dim tensor of it.
  Scalar(Kind kind, detail::ImplPtr traced) : kind_(kind), traced_(std::move(traced)) {}

  Kind kind() const { return kind_; }
  bool is_boolean() const { return kind_ == Kind::boolean; }
  bool is_integral() const { return kind_ == Kind::integer; }
  bool is_floating_point() const { return kind_ == Kind::floating; }
  /// True where only a run of the compiled program gives the value.
  bool is_symbolic() const { return static_cast<bool>(traced_) || integer_.is_symbolic(); }
  const detail::ImplPtr& traced() const { return traced_; }
  /// The integer (0 or 1 for a bool) as it stands, maybe symbolic; meaningless for floating kinds.
  const SymInt& integer() const { return integer_; }
  double floating() const { return floating_; }

  /// The number as T, as a C++ conversion gives it. While tracing, reading a symbolic value ends the trace.
  template <class T>
  T to() const {
    Scalar plain = traced_ ? read() : *this;
    if (plain.kind_ == Kind::floating) return static_cast<T>(plain.floating_);
    return static_cast<T>(static_cast<int64_t>(plain.integer_));
  }
  explicit operator double() const { return to<double>(); }
  explicit operator int64_t() const { return to<int64_t>(); }
  double toDouble() const { return to<double>(); }  // NOLINT: libtorch's names
  int64_t toLong() const { return to<int64_t>(); }  // NOLINT
  bool toBool() const { return to<bool>(); }        // NOLINT
  /// The integer as a size. While tracing, the value of a tensor (item()) becomes a size that only data
  /// determines: nothing is read, and every call of the compiled program has its own.
  SymInt toSymInt() const;  // NOLINT

  /// dtype that this number has by itself: bool, int64 or float64.
  DType dtype() const {
    return kind_ == Kind::boolean ? DType::boolean : kind_ == Kind::integer ? DType::int64 : DType::float64;
  }
  /// As it would be written: "True", "3", "0.5".
  std::string str() const;

 private:
  Scalar read() const;

  Kind kind_;
  SymInt integer_;
  double floating_ = 0;
  detail::ImplPtr traced_;
};

STAX_API std::ostream& operator<<(std::ostream& out, const Scalar& value);

/// A number or nothing, but no bool: for a parameter that another overload takes as a bool.
class OptionalNumber {
 public:
  OptionalNumber(std::nullopt_t = std::nullopt) {}                       // NOLINT
  OptionalNumber(const Scalar& value) : value_(value) {}                 // NOLINT
  OptionalNumber(const SymInt& value) : value_(Scalar(value)) {}         // NOLINT
  OptionalNumber(const std::optional<Scalar>& value) : value_(value) {}  // NOLINT
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) OptionalNumber(T value)
      : value_(Scalar(value)) {}  // NOLINT
  const std::optional<Scalar>& value() const { return value_; }

 private:
  std::optional<Scalar> value_;
};

}  // namespace stax

// A JSON value. Everything that reads or writes JSON goes through it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stax {

/// A JSON value with value semantics. Integers and other numbers are kept apart: `1` is an integer, `1.0` is
/// not, and both survive parse and dump. Object members keep their order. The accessors throw UserError,
/// naming the kind they wanted and the kind they found.
class Json {
 public:
  enum class Kind : uint8_t { null, boolean, integer, number, string, array, object };
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  struct ParseOptions {
    std::string_view what = "JSON text";  ///< names the text in errors, for example a file's path
    int max_depth = 200;                  ///< arrays and objects within each other, at most
  };

  Json() = default;
  Json(std::nullptr_t) {}                                   // NOLINT: conversions are the builder's syntax
  Json(bool value) : value_(value) {}                       // NOLINT
  Json(int value) : value_(static_cast<int64_t>(value)) {}  // NOLINT
  Json(int64_t value) : value_(value) {}                    // NOLINT
  Json(double value) : value_(value) {}                     // NOLINT
  Json(const char* value) : value_(std::string(value)) {}   // NOLINT
  Json(std::string value) : value_(std::move(value)) {}     // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(Array value) : value_(std::move(value)) {}               // NOLINT
  static Json array() { return Json(Array()); }
  static Json object();

  /// Reads one JSON value (RFC 8259). Throws UserError with the byte offset for malformed text, text after
  /// the value, a member named twice, nesting beyond max_depth, and integers outside [-2^63, 2^63).
  static Json parse(std::string_view text, const ParseOptions& options);
  static Json parse(std::string_view text) { return parse(text, ParseOptions()); }

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  /// True for integers and for other numbers.
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::number; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  bool as_bool() const;
  int64_t as_int() const;    ///< an integer; 1.0 is refused
  double as_double() const;  ///< any number; an integer beyond 2^53 is rounded
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;

  /// Number of elements or members; arrays and objects only.
  size_t size() const;
  const Json& at(size_t index) const;
  /// The member of that name; throws UserError, listing the names there are, when it is missing.
  const Json& at(std::string_view key) const;
  /// The member of that name, or null when this object has none.
  const Json* find(std::string_view key) const;

  /// Appends to an array; a null becomes an array first.
  Json& push_back(Json value);
  /// Sets a member of an object, replacing one of that name; a null becomes an object first.
  Json& set(std::string_view key, Json value);

  /// The text: on one line when indent is negative, else with that many spaces a level. Bytes that are not
  /// UTF-8 become U+FFFD. Throws UserError for NaN and infinities, which JSON cannot say.
  std::string dump(int indent = -1) const;

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

/// "null", "boolean", "integer", "number", "string", "array" or "object".
std::string_view name(Json::Kind kind);

}  // namespace stax

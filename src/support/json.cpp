#include "support/json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "support/check.h"

namespace stax {
namespace {

constexpr std::string_view kKindNames[] = {"null",   "boolean", "integer", "number",
                                           "string", "array",   "object"};

// Walks the text and leaves the furthest position reached where the handler can see it, for errors of its
// own.
struct TrackedIterator {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* position = nullptr;
  const char** reached = nullptr;

  const char& operator*() const { return *position; }
  TrackedIterator& operator++() {
    *reached = ++position;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const TrackedIterator& other) const { return position == other.position; }
  bool operator!=(const TrackedIterator& other) const { return position != other.position; }
};

// Builds a Json from the parser's events.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, const Json::ParseOptions& options)
      : text_(text), options_(options), reached_(text.data()) {}

  const char** reached() { return &reached_; }
  Json take() { return std::move(root_); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(int64_t value) override { return add(Json(value)); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX)) fail_large(fmt::format("{}", value));
    return add(Json(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string& spelling) override {
    if (spelling.find_first_of(".eE") == std::string::npos) fail_large(spelling);
    return add(Json(value));
  }
  bool string(std::string& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& value) override {
    if (!open_.back().names.insert(value).second)
      fail(fmt::format("member \"{}\" stands twice in one object", value));
    open_.back().key = std::move(value);
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const nlohmann::json::exception&) override {
    const size_t offset = position == 0 ? 0 : position - 1;
    if (offset >= text_.size()) fail_at(text_.size(), "the text ends too early");
    fail_at(offset, fmt::format("malformed at '{}'", printable(token)));
  }

 private:
  struct Open {
    Json value;
    std::string key;
    std::unordered_set<std::string> names;
  };

  static std::string printable(const std::string& token) {
    std::string out;
    for (unsigned char c : token.substr(0, 40)) {
      if (c >= 0x20 && c < 0x7f) {
        out += static_cast<char>(c);
      } else {
        out += fmt::format("\\x{:02x}", c);
      }
    }
    return out;
  }

  [[noreturn]] void fail_at(size_t offset, std::string_view problem) const {
    throw_user_error(fmt::format("{}: expected valid JSON, got an error at byte {} of {}: {}", options_.what,
                                 offset, text_.size(), problem));
  }
  [[noreturn]] void fail(std::string_view problem) const {
    fail_at(static_cast<size_t>(reached_ - text_.data()), problem);
  }
  [[noreturn]] void fail_large(std::string_view spelling) const {
    fail(fmt::format("integer {} does not fit in 64 signed bits", spelling.substr(0, 60)));
  }

  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      attach(open_.back(), std::move(value));
    }
    return true;
  }
  // Names are unique already, so members are appended without the search that set() makes.
  void attach(Open& parent, Json value) {
    if (parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else {
      auto& members = const_cast<Json::Object&>(parent.value.as_object());
      members.emplace_back(std::move(parent.key), std::move(value));
    }
  }
  bool open(Json value) {
    if (static_cast<int>(open_.size()) >= options_.max_depth) {
      fail(fmt::format("more than {} arrays and objects within each other", options_.max_depth));
    }
    open_.push_back({std::move(value), {}, {}});
    return true;
  }
  bool close() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(done));
  }

  std::string_view text_;
  const Json::ParseOptions& options_;
  const char* reached_;
  std::vector<Open> open_;
  Json root_;
};

void write_string(const std::string& value, std::string& out) {
  out += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write_number(double value, std::string& out) {
  STAX_CHECK(std::isfinite(value), "JSON: expected a finite number, got {}; write it as a string", value);
  const std::string digits = fmt::format("{}", value);
  out += digits;
  // The point keeps the kind: 1.0 stays a number, not an integer.
  if (digits.find_first_of(".e") == std::string::npos) out += ".0";
}

void new_line(int indent, int level, std::string& out) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * level, ' ');
}

void write(const Json& value, int indent, int level, std::string& out) {
  switch (value.kind()) {
    case Json::Kind::null:
      out += "null";
      return;
    case Json::Kind::boolean:
      out += value.as_bool() ? "true" : "false";
      return;
    case Json::Kind::integer:
      out += fmt::format("{}", value.as_int());
      return;
    case Json::Kind::number:
      return write_number(value.as_double(), out);
    case Json::Kind::string:
      return write_string(value.as_string(), out);
    case Json::Kind::array:
    case Json::Kind::object:
      break;
  }
  const bool is_array = value.is_array();
  out += is_array ? '[' : '{';
  for (size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out += indent < 0 ? ", " : ",";
    new_line(indent, level + 1, out);
    if (is_array) {
      write(value.at(i), indent, level + 1, out);
    } else {
      const auto& [key, member] = value.as_object()[i];
      write_string(key, out);
      out += ": ";
      write(member, indent, level + 1, out);
    }
  }
  if (value.size() > 0) new_line(indent, level, out);
  out += is_array ? ']' : '}';
}

[[noreturn]] void fail_kind(std::string_view wanted, Json::Kind found) {
  throw_user_error(fmt::format("JSON: expected {}, got {}", wanted, name(found)));
}

}  // namespace

std::string_view name(Json::Kind kind) {
  return kKindNames[static_cast<int>(kind)];
}

Json Json::object() {
  Json out;
  out.value_ = Object();
  return out;
}

Json Json::parse(std::string_view text, const ParseOptions& options) {
  Builder builder(text, options);
  TrackedIterator first{text.data(), builder.reached()};
  TrackedIterator last{text.data() + text.size(), builder.reached()};
  const bool done = nlohmann::json::sax_parse(first, last, &builder);
  STAX_ASSERT(done, "the JSON parser stopped without an error in {}", options.what);
  return builder.take();
}

bool Json::as_bool() const {
  if (const auto* value = std::get_if<bool>(&value_)) return *value;
  fail_kind("a boolean", kind());
}

int64_t Json::as_int() const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return *value;
  fail_kind("an integer", kind());
}

double Json::as_double() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  fail_kind("a number", kind());
}

const std::string& Json::as_string() const {
  if (const auto* value = std::get_if<std::string>(&value_)) return *value;
  fail_kind("a string", kind());
}

const Json::Array& Json::as_array() const {
  if (const auto* value = std::get_if<Array>(&value_)) return *value;
  fail_kind("an array", kind());
}

const Json::Object& Json::as_object() const {
  if (const auto* value = std::get_if<Object>(&value_)) return *value;
  fail_kind("an object", kind());
}

size_t Json::size() const {
  if (is_array()) return as_array().size();
  if (is_object()) return as_object().size();
  fail_kind("an array or an object", kind());
}

const Json& Json::at(size_t index) const {
  const Array& elements = as_array();
  STAX_CHECK(index < elements.size(), "JSON: expected an index below {}, got {}", elements.size(), index);
  return elements[index];
}

const Json& Json::at(std::string_view key) const {
  if (const Json* value = find(key)) return *value;
  std::string names;
  for (const Member& member : as_object()) {
    if (names.size() > 200) {
      names += ", ...";
      break;
    }
    if (!names.empty()) names += ", ";
    names += member.first;
  }
  throw_user_error(fmt::format("JSON: expected a member \"{}\", got an object with [{}]", key, names));
}

const Json* Json::find(std::string_view key) const {
  for (const Member& member : as_object()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json& Json::push_back(Json value) {
  if (is_null()) value_ = Array();
  if (!is_array()) fail_kind("an array", kind());
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object();
  if (!is_object()) fail_kind("an object", kind());
  auto& members = std::get<Object>(value_);
  for (Member& member : members) {
    if (member.first == key) {
      member.second = std::move(value);
      return *this;
    }
  }
  members.emplace_back(std::string(key), std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  std::string out;
  write(*this, indent, 0, out);
  return out;
}

}  // namespace stax

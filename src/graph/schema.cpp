#include "graph/schema.h"

#include <array>
#include <charconv>

#include "support/check.h"

namespace stax::graph {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at commas outside of brackets.
std::vector<std::string_view> split_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const auto part = trim(text.substr(start, i - start)); !part.empty()) parts.push_back(part);
      start = i + 1;
    } else if (text[i] == '[' || text[i] == '(') {
      ++depth;
    } else if (text[i] == ']' || text[i] == ')') {
      --depth;
    }
  }
  return parts;
}

struct TypeName {
  std::string_view text;
  ParamType scalar, list;
};

constexpr std::array<TypeName, 7> kTypes = {{
    {"Tensor", ParamType::tensor, ParamType::tensors},
    {"Scalar", ParamType::scalar, ParamType::scalar},
    {"int", ParamType::integer, ParamType::integers},
    {"float", ParamType::floating, ParamType::floats},
    {"bool", ParamType::boolean, ParamType::boolean},
    {"str", ParamType::string, ParamType::string},
    {"ScalarType", ParamType::dtype, ParamType::dtype},
}};

int64_t parse_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  STAX_ASSERT(error == std::errc() && end == text.data() + text.size(), "schema: '{}' is no integer", text);
  return value;
}

void parse_type(std::string_view type, Param& param) {
  std::string_view rest = type;
  if (rest.ends_with('?')) {
    param.optional = true;
    rest.remove_suffix(1);
  }
  bool list = false;
  if (rest.ends_with(']')) {
    list = true;
    const size_t open = rest.rfind('[');
    const auto count = rest.substr(open + 1, rest.size() - open - 2);
    if (!count.empty()) param.repeat = static_cast<int32_t>(parse_int(count));
    rest = rest.substr(0, open);
    if (rest.ends_with('?')) {
      param.optional_elements = true;
      rest.remove_suffix(1);
    }
  }
  for (const TypeName& known : kTypes) {
    if (known.text == rest) {
      param.type = list ? known.list : known.scalar;
      return;
    }
  }
  STAX_ASSERT(false, "schema: unknown type '{}'", type);
}

Param parse_param(std::string_view text) {
  Param param;
  if (const size_t equals = text.find('='); equals != std::string_view::npos) {
    param.has_default = true;
    param.default_text = trim(text.substr(equals + 1));
    text = trim(text.substr(0, equals));
  }
  const size_t space = text.rfind(' ');
  STAX_ASSERT(space != std::string_view::npos, "schema: '{}' needs a type and a name", text);
  param.name = text.substr(space + 1);
  parse_type(trim(text.substr(0, space)), param);
  if (param.type == ParamType::string && param.default_text.size() >= 2 &&
      param.default_text.front() == '\'') {
    param.default_text = param.default_text.substr(1, param.default_text.size() - 2);
  }
  return param;
}

std::vector<std::string_view> list_items(const std::string& text) {
  STAX_ASSERT(text.size() >= 2 && text.front() == '[' && text.back() == ']', "schema: '{}' is no list", text);
  return split_commas(std::string_view(text).substr(1, text.size() - 2));
}

}  // namespace

int32_t Schema::position(std::string_view param) const {
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].name == param) return static_cast<int32_t>(i);
  }
  return -1;
}

Schema parse_schema(std::string_view text) {
  Schema schema;
  const size_t open = text.find('(');
  const size_t close = text.rfind(") ->");
  STAX_ASSERT(open != std::string_view::npos && close != std::string_view::npos,
              "schema '{}' has no parameter list", text);
  const std::string_view full = trim(text.substr(0, open));
  const size_t dot = full.find('.');
  schema.name = full.substr(0, dot);
  if (dot != std::string_view::npos) schema.overload = full.substr(dot + 1);
  bool keyword_only = false;
  for (const std::string_view part : split_commas(text.substr(open + 1, close - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Param param = parse_param(part);
    param.keyword_only = keyword_only;
    schema.params.push_back(std::move(param));
  }
  std::string_view returns = trim(text.substr(close + 4));
  if (returns.starts_with('(')) returns = returns.substr(1, returns.size() - 2);
  for (const std::string_view r : split_commas(returns)) schema.returns.emplace_back(r);
  return schema;
}

Number DefaultText::number(const std::string& text) {
  if (text == "True" || text == "False") return Number::of(text == "True");
  if (text.find_first_of(".einf") != std::string::npos) return Number::of(std::stod(text));
  return Number::of(parse_int(text));
}

std::vector<Expr> DefaultText::integers(const std::string& text) {
  if (text.front() != '[') return {Expr(parse_int(text))};
  std::vector<Expr> values;
  for (const auto item : list_items(text)) values.emplace_back(parse_int(item));
  return values;
}

std::vector<double> DefaultText::floats(const std::string& text) {
  std::vector<double> values;
  for (const auto item : list_items(text)) values.push_back(std::stod(std::string(item)));
  return values;
}

DType DefaultText::dtype(const std::string& text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  }
  STAX_ASSERT(false, "schema: unknown dtype '{}'", text);
  return DType::float32;
}

const char* describe(ParamType type) {
  static constexpr std::array<const char*, 10> kWords = {
      "a tensor", "a list of tensors", "a number", "an integer", "a list of integers",
      "a float",  "a list of floats",  "a bool",   "a string",   "a dtype"};
  return kWords[static_cast<size_t>(type)];
}

void refuse_number(const Schema& schema, size_t position) {
  throw_user_error(fmt::format("{}: expected a tensor as '{}', got a number or nothing", schema.name,
                               schema.params[position].name));
}

}  // namespace stax::graph

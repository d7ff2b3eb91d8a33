// Templates of schema.h.
#pragma once

#include <fmt/core.h>

#include <optional>

namespace stax::graph {

/// A default as text, read as the parameter's type.
struct DefaultText {
  static Number number(const std::string& text);
  static std::vector<Expr> integers(const std::string& text);
  static std::vector<double> floats(const std::string& text);
  static DType dtype(const std::string& text);
};
const char* describe(ParamType type);

template <class T>
Argument<T> default_value(const Param& param) {
  if (param.default_text == "None") return {};
  switch (param.type) {
    case ParamType::scalar:
    case ParamType::integer:
    case ParamType::floating:
    case ParamType::boolean:
      return DefaultText::number(param.default_text);
    case ParamType::integers:
      return DefaultText::integers(param.default_text);
    case ParamType::floats:
      return DefaultText::floats(param.default_text);
    case ParamType::string:
      return param.default_text;
    case ParamType::dtype:
      return DefaultText::dtype(param.default_text);
    case ParamType::tensor:
    case ParamType::tensors:
      break;
  }
  return {};
}

/// The argument as the parameter's type, or nothing when it does not fit.
template <class T>
std::optional<Argument<T>> convert(const Param& param, Argument<T> a) {
  using Tensors = typename Argument<T>::Tensors;
  if (a.is_none()) return param.optional ? std::optional(std::move(a)) : std::nullopt;
  const auto* ints = std::get_if<std::vector<Expr>>(&a.value);
  const auto* floats = std::get_if<std::vector<double>>(&a.value);
  const auto* tensors = std::get_if<Tensors>(&a.value);
  const bool empty = (ints && ints->empty()) || (floats && floats->empty()) || (tensors && tensors->empty());
  const Number* number = std::get_if<Number>(&a.value);
  const bool accept = [&] {
    switch (param.type) {
      case ParamType::tensor:
        return a.is_tensor() || number != nullptr;
      case ParamType::tensors:
        if (empty) a = Argument<T>(Tensors{});
        if (tensors && !param.optional_elements) {
          for (const auto& t : *tensors) {
            if (!t) return false;
          }
        }
        return empty || tensors != nullptr;
      case ParamType::scalar:
      case ParamType::floating:
        return number != nullptr;
      case ParamType::integer:
        return number && number->kind == Number::Kind::integer;
      case ParamType::boolean:
        return number && number->kind == Number::Kind::boolean;
      case ParamType::integers:
        if (empty) a = Argument<T>(std::vector<Expr>{});
        if (number && number->kind == Number::Kind::integer && param.repeat > 0) {
          a = Argument<T>(std::vector<Expr>(param.repeat, Expr(number->integer)));
          return true;
        }
        return empty || ints != nullptr;
      case ParamType::floats:
        if (empty) a = Argument<T>(std::vector<double>{});
        if (ints && !ints->empty()) {
          std::vector<double> values;
          for (Expr e : *ints) {
            if (!e.is_constant()) return false;
            values.push_back(static_cast<double>(e.value()));
          }
          a = Argument<T>(std::move(values));
          return true;
        }
        return empty || floats != nullptr;
      case ParamType::string:
        return std::holds_alternative<std::string>(a.value);
      case ParamType::dtype:
        return std::holds_alternative<DType>(a.value);
    }
    return false;
  }();
  return accept ? std::optional(std::move(a)) : std::nullopt;
}

template <class T>
std::optional<std::vector<Argument<T>>> bind(const Schema& schema, std::vector<Argument<T>> positional,
                                             std::vector<std::pair<std::string, Argument<T>>> named,
                                             std::string* why) {
  const auto fail = [&](std::string reason) -> std::optional<std::vector<Argument<T>>> {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  const auto& params = schema.params;
  std::vector<std::optional<Argument<T>>> given(params.size());
  size_t allowed = 0;
  while (allowed < params.size() && !params[allowed].keyword_only) ++allowed;
  // A trailing list parameter takes loose integers: x.permute(1, 0), x.view(2, 3).
  const bool loose =
      positional.size() > allowed && allowed > 0 && params[allowed - 1].type == ParamType::integers;
  if (loose) {
    std::vector<Expr> list;
    for (size_t i = allowed - 1; i < positional.size(); ++i) {
      const Number* n = std::get_if<Number>(&positional[i].value);
      if (!n || n->is_float()) return fail(fmt::format("takes at most {} positional arguments", allowed));
      list.push_back(n->integer);
    }
    positional.resize(allowed - 1);
    positional.push_back(Argument<T>(std::move(list)));
  }
  if (positional.size() > allowed) {
    return fail(fmt::format("takes at most {} positional arguments, got {}", allowed, positional.size()));
  }
  for (size_t i = 0; i < positional.size(); ++i) given[i] = std::move(positional[i]);
  for (auto& [name, value] : named) {
    const int32_t at = schema.position(name);
    if (at < 0) return fail(fmt::format("has no parameter '{}'", name));
    if (given[at]) return fail(fmt::format("got two values for '{}'", name));
    given[at] = std::move(value);
  }
  std::vector<Argument<T>> out;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!given[i]) {
      if (!params[i].has_default) return fail(fmt::format("misses '{}'", params[i].name));
      out.push_back(default_value<T>(params[i]));
      continue;
    }
    // A lone integer stands for a list of one wherever a list of sizes is the only parameter left: x.view(6).
    if (params[i].type == ParamType::integers && params[i].repeat == 0 && i + 1 == allowed &&
        given[i]->is_number() && given[i]->number().kind == Number::Kind::integer) {
      given[i] = Argument<T>(std::vector<Expr>{given[i]->integer()});
    }
    auto converted = convert<T>(params[i], std::move(*given[i]));
    if (!converted) return fail(fmt::format("expects {} for '{}'", describe(params[i].type), params[i].name));
    out.push_back(std::move(*converted));
  }
  return out;
}

}  // namespace stax::graph

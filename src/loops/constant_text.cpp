#include "loops/constant_text.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

namespace stax::loops {

std::string constant_text(DType dtype, Constant constant) {
  if (!is_floating_point(dtype)) return fmt::format("{}", constant.as_int());
  const double value = constant.as_double();
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  // A float constant is always recognisable as one.
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::optional<Constant> parse_constant(DType dtype, std::string_view text) {
  const char* first = text.data();
  const char* last = first + text.size();
  if (is_floating_point(dtype)) {
    double value = 0;
    const auto [end, error] = std::from_chars(first, last, value);
    if (error != std::errc() || end != last) return std::nullopt;
    return Constant::of(value);
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return Constant::of(value);
}

std::string_view sign_of(Relation relation) {
  constexpr std::string_view signs[] = {"==", "!=", "<", "<="};
  return signs[static_cast<size_t>(relation)];
}

std::optional<Relation> relation_of(std::string_view sign) {
  for (const Relation r : {Relation::eq, Relation::ne, Relation::lt, Relation::le}) {
    if (sign_of(r) == sign) return r;
  }
  return std::nullopt;
}

}  // namespace stax::loops

// The symbolic dimensions of a model's inputs as declarations of the compiler.
#include <fmt/core.h>

#include <cctype>
#include <charconv>

#include "frontends/onnx_program.h"

namespace stax::onnx {
namespace {

/// scale * name + offset, as exporters write dimensions that follow from others: "past + 1", "2*n".
struct Linear {
  int64_t scale = 1, offset = 0;
  std::string name;
};

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

std::optional<int64_t> integer(std::string_view text) {
  const std::string digits = trimmed(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Linear linear_of(const std::string& symbol) {
  Linear result{1, 0, trimmed(symbol)};
  const size_t sum = result.name.find_last_of("+-");
  if (sum != std::string::npos && sum > 0) {
    if (const auto offset = integer(result.name.substr(sum + 1)); offset && *offset >= 0) {
      result.offset = result.name[sum] == '-' ? -*offset : *offset;
      result.name = trimmed(result.name.substr(0, sum));
    }
  }
  if (const size_t star = result.name.find('*'); star != std::string::npos) {
    const std::string left = result.name.substr(0, star), right = result.name.substr(star + 1);
    if (const auto scale = integer(left); scale && *scale > 0) {
      result.scale = *scale;
      result.name = trimmed(right);
    } else if (const auto other = integer(right); other && *other > 0) {
      result.scale = *other;
      result.name = trimmed(left);
    }
  }
  return result;
}

/// Models name dimensions by any text; declarations by identifiers.
std::string identifier(const std::string& text) {
  std::string name;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || is_digit(text[0])) name += '_';
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class Names {
 public:
  /// One name for each text, another for each other one.
  std::string of(const std::string& text) {
    const std::string wanted = identifier(text);
    std::string name = wanted;
    for (int k = 2;; ++k) {
      const auto [at, fresh] = taken_.emplace(name, text);
      if (fresh || at->second == text) return name;
      name = fmt::format("{}_{}", wanted, k);
    }
  }

 private:
  std::map<std::string, std::string> taken_;
};

}  // namespace

DynamicShapes dynamic_shapes(const std::vector<ValueInfo>& inputs) {
  Names names;
  DynamicShapes shapes;
  for (const ValueInfo& input : inputs) {
    std::map<int64_t, stax::Dim>& dims = shapes.emplace_back();
    if (!input.dims) continue;
    for (size_t d = 0; d < input.dims->size(); ++d) {
      const Dim& dim = (*input.dims)[d];
      const auto at = static_cast<int64_t>(d);
      if (dim.size) {
        dims.emplace(at, stax::Dim::fixed());
      } else if (!dim.symbol.empty()) {
        const Linear linear = linear_of(dim.symbol);
        dims.emplace(at, linear.scale * stax::Dim(names.of(linear.name)) + linear.offset);
      }
    }
  }
  return shapes;
}

}  // namespace stax::onnx

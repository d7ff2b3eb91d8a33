// Declarations about sizes.
#include "stax/dim.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "support/check.h"

namespace stax {
namespace {

bool is_identifier(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

Dim::Dim(std::string name, DimOptions options) : name_(std::move(name)), options_(std::move(options)) {
  STAX_CHECK(is_identifier(name_), "Dim: the name '{}' is no identifier; use letters, digits and _", name_);
  STAX_CHECK(options_.min >= 0 && options_.min <= options_.max,
             "Dim '{}': expected 0 <= min <= max, got min {} and max {}", name_, options_.min, options_.max);
  const std::vector<int64_t>& edges = options_.buckets;
  STAX_CHECK(std::is_sorted(edges.begin(), edges.end(), std::less_equal<>()),
             "Dim '{}': the edges of buckets have to ascend", name_);
}

Dim::Dim(int64_t size) : kind_(Kind::fixed), size_(size) {
  STAX_CHECK(size >= 0, "Dim: expected a size of 0 or more, got {}", size);
}

Dim operator*(int64_t scale, const Dim& dim) {
  STAX_CHECK(dim.kind_ == Dim::Kind::named, "Dim: only named dimensions have multiples, not {}", dim.str());
  STAX_CHECK(scale > 0, "Dim '{}': expected a positive multiple, got {}", dim.name_, scale);
  Dim out = dim;
  const bool overflows = __builtin_mul_overflow(dim.scale_, scale, &out.scale_) ||
                         __builtin_mul_overflow(dim.offset_, scale, &out.offset_);
  STAX_CHECK(!overflows, "Dim '{}': the multiple {} leaves 64 bits", dim.name_, scale);
  return out;
}

Dim operator+(const Dim& dim, int64_t offset) {
  STAX_CHECK(dim.kind_ == Dim::Kind::named, "Dim: only named dimensions have sums, not {}", dim.str());
  Dim out = dim;
  STAX_CHECK(!__builtin_add_overflow(dim.offset_, offset, &out.offset_),
             "Dim '{}': the offset {} leaves 64 bits", dim.name_, offset);
  return out;
}

std::string Dim::str() const {
  switch (kind_) {
    case Kind::automatic:
      return "automatic";
    case Kind::fixed:
      return size_ < 0 ? "fixed" : fmt::format("{}", size_);
    case Kind::named:
      break;
  }
  std::string text = scale_ == 1 ? name_ : fmt::format("{}*{}", scale_, name_);
  if (offset_ != 0) text += fmt::format(" {} {}", offset_ < 0 ? '-' : '+', std::abs(offset_));
  return text;
}

}  // namespace stax

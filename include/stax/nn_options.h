// What the option structs of nn::functional are made of.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "stax/lists.h"

namespace stax {

/// How a loss joins its elements: .reduction(kMean).
inline constexpr std::string_view kMean = "mean", kSum = "sum", kNone = "none", kBatchMean = "batchmean";
/// What surrounds a padded tensor: .mode(kReflect).
inline constexpr std::string_view kConstant = "constant", kReflect = "reflect", kReplicate = "replicate",
                                  kCircular = "circular";
/// How interpolate finds values between samples.
inline constexpr std::string_view kNearest = "nearest", kNearestExact = "nearest-exact", kLinear = "linear",
                                  kBilinear = "bilinear", kBicubic = "bicubic", kTrilinear = "trilinear",
                                  kArea = "area";
/// Paddings of convolutions: .padding(kSame).
inline constexpr std::string_view kSame = "same", kValid = "valid";

namespace nn::functional {

/// Sizes that an option struct keeps: from one number, {1, 2} or a vector.
class Sizes {
 public:
  Sizes() = default;
  template <std::integral T>
  requires(!std::same_as<T, bool>) Sizes(T value) : values_{SymInt(value)} {}  // NOLINT: written plainly
  Sizes(const SymInt& value) : values_{value} {}                               // NOLINT
  Sizes(std::initializer_list<SymInt> values) : values_(values) {}             // NOLINT
  Sizes(const std::vector<int64_t>& values) : values_(values.begin(), values.end()) {}  // NOLINT
  Sizes(std::vector<SymInt> values) : values_(std::move(values)) {}                     // NOLINT
  Sizes(const SizeList& values) : values_(values.vec()) {}                              // NOLINT

  bool empty() const { return values_.empty(); }
  operator IntList() const { return std::span<const SymInt>(values_); }  // NOLINT
  /// Nothing where no size was given.
  OptionalIntList optional() const {
    return empty() ? OptionalIntList() : OptionalIntList(IntList(std::span<const SymInt>(values_)));
  }

 private:
  std::vector<SymInt> values_;
};

}  // namespace nn::functional
}  // namespace stax

// name(): the value; name(v): sets it.
#define STAX_OPTION(Class, Type, name, ...) \
 public:                                    \
  Class& name(Type value) {                 \
    name##_ = std::move(value);             \
    return *this;                           \
  }                                         \
  const Type& name() const {                \
    return name##_;                         \
  }                                         \
                                            \
 private:                                   \
  Type name##_ __VA_ARGS__

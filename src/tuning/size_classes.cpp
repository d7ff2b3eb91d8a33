#include "tuning/size_classes.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace stax::tuning {
namespace {

constexpr int32_t kPowers[] = {0, 1, 2, -1, -2};  // of 8, by step
constexpr int64_t kLongest = int64_t{1} << 40;    // hint

/// log2 of a length, rounded up.
int32_t log2_of(int64_t length) {
  return length <= 1 ? 0 : static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(length - 1)));
}

}  // namespace

SizeClasses::SizeClasses(const codegen::TileKernel& kernel) {
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    const codegen::TileAxis& axis = kernel.axes[k];
    if (axis.numel.is_constant() || axis.block > 0) continue;
    axes_.push_back({k, log2_of(axis.size_hint), std::string(codegen::facts_of(axis.kind).name)});
    count_ *= kSteps;
  }
}

size_t SizeClasses::step(const Axis& axis, long length) {
  const int32_t over = log2_of(length) - axis.hint;
  if (over < -1) return over < -4 ? 4 : 3;
  return over <= 1 ? 0 : over <= 4 ? 1 : 2;
}

std::vector<int32_t> SizeClasses::powers(size_t number) const {
  std::vector<int32_t> powers(axes_.size());
  for (size_t k = axes_.size(); k-- > 0; number /= kSteps) powers[k] = kPowers[number % kSteps];
  return powers;
}

codegen::TileKernel SizeClasses::hinted(codegen::TileKernel kernel, size_t number) const {
  const std::vector<int32_t> by = powers(number);
  for (size_t k = 0; k < axes_.size(); ++k) {
    int64_t& hint = kernel.axes[axes_[k].at].size_hint;
    hint = by[k] >= 0 ? std::min(hint << 3 * by[k], std::max(hint, kLongest))
                      : std::max<int64_t>(hint >> -3 * by[k], 1);
  }
  return kernel;
}

std::string SizeClasses::words(size_t number) const {
  const std::vector<int32_t> by = powers(number);
  std::string text;
  for (size_t k = 0; k < axes_.size(); ++k) {
    if (by[k] == 0) continue;
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", axes_[k].name, by[k] > 0 ? '*' : '/',
                        1 << 3 * std::abs(by[k]));
  }
  return text;
}

}  // namespace stax::tuning

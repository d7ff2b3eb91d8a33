#include "tuning/launch_config.h"

#include <algorithm>

namespace stax::tuning {
namespace {

using codegen::ReductionHint;
using codegen::TileAxis;
using codegen::TileAxisKind;
using codegen::TileForm;
using codegen::TileKernel;

/// Elements of a block of a pointwise kernel, and of a reduction.
constexpr int64_t kPointwise = 1024, kReduction = 4096;

struct Wanted {
  int64_t z = 1, y = 1, x = 1, r0 = 1;
};

Wanted wanted_blocks(const TileKernel& kernel) {
  const auto hint = [&](TileAxisKind kind) {
    const TileAxis* axis = kernel.axis(kind);
    return axis == nullptr ? int64_t{1} : axis->size_hint;
  };
  const int64_t r0 = hint(TileAxisKind::r0);
  switch (kernel.form) {
    case TileForm::pointwise:
      if (kernel.axes.size() == 1) return {.x = kPointwise};
      if (kernel.axes.size() == 2) return {.y = 32, .x = 32};
      return {.z = 16, .y = 16, .x = 16};
    case TileForm::persistent:
      return {.x = std::clamp<int64_t>(kReduction / r0, 1, 8)};
    case TileForm::looped:
      if (kernel.hint == ReductionHint::inner) return {.x = 1, .r0 = 2048};
      return {.x = 64, .r0 = 64};
  }
  return {};
}

}  // namespace

codegen::LaunchConfig default_config(const TileKernel& kernel) {
  const Wanted wanted = wanted_blocks(kernel);
  codegen::LaunchConfig config;
  for (const TileAxis& axis : kernel.axes) {
    if (axis.block > 0) continue;
    constexpr const char* kNames[] = {"ZBLOCK", "YBLOCK", "XBLOCK", "R0_BLOCK"};
    const int64_t sizes[] = {wanted.z, wanted.y, wanted.x, wanted.r0};
    const auto kind = static_cast<size_t>(axis.kind);
    config.blocks.emplace_back(kNames[kind], std::min(sizes[kind], axis.size_hint));
  }
  return config;
}

}  // namespace stax::tuning

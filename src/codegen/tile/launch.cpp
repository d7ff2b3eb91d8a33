#include "codegen/tile/launch.h"

#include <algorithm>

#include "codegen/tile/tile_kernel.h"
#include "support/check.h"

namespace stax::codegen {
namespace {

int64_t block_size(const TileAxis& axis, const LaunchConfig& config) {
  if (axis.block > 0) return axis.block;
  const TileAxisFacts& facts = facts_of(axis.kind);
  for (const auto& [name, size] : config.blocks)
    if (name == facts.block) return size;
  STAX_ASSERT(false, "no block size for axis {}", facts.name);
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> LaunchConfig::constants() const {
  auto all = blocks;
  if (kept > 0) all.emplace_back(kKeptBlocks, kept);
  return all;
}

TileGrid::TileGrid(const TileKernel& kernel, const LaunchConfig& config) {
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    const int dimension = facts_of(kernel.axes[k].kind).grid_dimension;
    if (dimension < 0) continue;
    dimensions_[static_cast<size_t>(dimension)] = {static_cast<int32_t>(k),
                                                   block_size(kernel.axes[k], config)};
  }
}

std::array<int64_t, 3> TileGrid::blocks(std::span<const long> extents) const {
  std::array<int64_t, 3> out = {1, 1, 1};
  for (size_t d = 0; d < out.size(); ++d) {
    const auto [axis, size] = dimensions_[d];
    if (axis >= 0) out[d] = (int64_t{extents[static_cast<size_t>(axis)]} + size - 1) / size;
  }
  return out;
}

bool TileGrid::folds(std::span<const long> extents, std::span<const int64_t, 3> most) const {
  const std::array<int64_t, 3> along = blocks(extents);
  return along[1] > most[1] || along[2] > most[2];
}

bool may_fold(const TileKernel& kernel) {
  return std::ranges::any_of(kernel.axes,
                             [](const TileAxis& axis) { return facts_of(axis.kind).grid_dimension > 0; });
}

}  // namespace stax::codegen

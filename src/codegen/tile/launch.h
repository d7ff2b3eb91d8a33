// Launches of GPU kernels: the sizes of blocks, the grid that follows from them, and what a variant of a
// kernel may count on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stax::codegen {

struct TileKernel;

/// How a kernel is launched: the sizes of its blocks, the warps that an instance has, for how many steps of a
/// staged loop there are blocks at a time (1: none is loaded ahead), how many blocks of a row stay in
/// registers for later passes (TileKernel::keeps), and how many registers a thread has at most (0: as many as
/// its code takes), which decides how many instances a processor holds.
struct LaunchConfig {
  std::vector<std::pair<std::string, int64_t>> blocks;  // TileAxisFacts::block and size, in order
  int32_t warps = 4, stages = 1, kept = 0, registers = 0;

  /// Values of the kernel's parameters that machine code is made for.
  std::vector<std::pair<std::string, int64_t>> constants() const;
};

/// The parameter of kernels for LaunchConfig::kept, and Triton's name of LaunchConfig::registers.
constexpr std::string_view kKeptBlocks = "R0_KEPT", kMostRegisters = "maxnreg";

/// What is known of the arguments of a launch.
enum class Alignment : uint8_t {
  even,     // pointers and sizes are multiples of 16
  aligned,  // pointers are
  general,
};

/// What the machine code of a kernel in one configuration is made for. Of the alignments that fit a launch
/// the first is the fastest. `folded`: all instances lie along the first dimension of the grid, x innermost,
/// since GPUs take 65,535 blocks at most along another.
struct LaunchVariant {
  Alignment alignment = Alignment::general;
  bool folded = false;

  static constexpr size_t kCount = 6;
  constexpr size_t number() const { return 2 * static_cast<size_t>(alignment) + (folded ? 1 : 0); }
  bool operator==(const LaunchVariant&) const = default;
};

/// The grid of a kernel in one configuration.
class TileGrid {
 public:
  TileGrid(const TileKernel& kernel, const LaunchConfig& config);

  /// Blocks along x, y and z for the extents of the kernel's axes.
  std::array<int64_t, 3> blocks(std::span<const long> extents) const;
  /// Whether a launch needs a folded variant on a GPU that takes `most` blocks along x, y and z.
  bool folds(std::span<const long> extents, std::span<const int64_t, 3> most) const;

 private:
  struct Dimension {
    int32_t axis = -1;  // position among the kernel's axes; -1: none
    int64_t block = 1;
  };
  std::array<Dimension, 3> dimensions_;
};

/// Whether a kernel may be launched in a folded grid: it has another dimension than the first.
bool may_fold(const TileKernel& kernel);

}  // namespace stax::codegen

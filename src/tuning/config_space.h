// The launch configurations that a kernel may take: Definition 9.2 of the specification, and the small set of
// candidates that heuristics pick from them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "codegen/tile/tile_kernel.h"

namespace stax::tuning {

/// A block size, the number of warps, of pipeline stages, of blocks kept or of registers at most, and the
/// values it may take, ascending.
struct Parameter {
  std::string name;  // TileAxisFacts::block, "num_warps", "num_stages", kKeptBlocks or kMostRegisters
  std::vector<int64_t> values;
};

/// The product of the parameters' values, without configurations whose blocks hold more values than Triton
/// allows.
class ConfigSpace {
 public:
  explicit ConfigSpace(const codegen::TileKernel& kernel);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  bool contains(const codegen::LaunchConfig& config) const;
  /// `config` with parameter `i` one step up or down; nothing where that leaves the space.
  std::optional<codegen::LaunchConfig> neighbour(const codegen::LaunchConfig& config, size_t i,
                                                 bool up) const;
  /// A configuration, each as likely as any other.
  codegen::LaunchConfig draw(std::mt19937_64& random) const;
  /// Number of configurations.
  int64_t size() const;

 private:
  int64_t value(const codegen::LaunchConfig& config, size_t i) const;
  codegen::LaunchConfig with(codegen::LaunchConfig config, size_t i, int64_t value) const;
  bool fits(const codegen::LaunchConfig& config) const;

  size_t block_count() const;

  std::vector<Parameter> parameters_;  // blocks in the kernel's order, then the settings
  int64_t fixed_ = 1;                  // product of the blocks that are no parameters
};

/// One to six configurations of the space, default_config() first, by the kernel's form, its size hints and
/// the direction of its reductions.
std::vector<codegen::LaunchConfig> candidates(const codegen::TileKernel& kernel);

/// "XBLOCK=8 num_warps=4 num_stages=1", and " R0_KEPT=2" where blocks are kept, " maxnreg=64" where registers
/// are limited.
std::string to_string(const codegen::LaunchConfig& config);

}  // namespace stax::tuning

// Algorithm 9.1 with its records: a kernel is measured once on a kind of GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tuning/records.h"
#include "tuning/search.h"

namespace stax::tuning {

/// What a record depends on beside the candidates.
struct TuningKey {
  std::string source;      ///< the generated file: sizes and hints are part of it
  std::string gpu;         ///< model: "NVIDIA H200"
  std::string triton;      ///< version
  std::string strategy;    ///< name of a Strategy
  std::string sizes = {};  ///< their class, in words (SizeClasses)
};

/// The recorded configuration of a kernel; nothing where it is outside the kernel's space.
std::optional<codegen::LaunchConfig> recorded_config(const TuningRecords& records, const TuningKey& key,
                                                     const ConfigSpace& space,
                                                     std::span<const codegen::LaunchConfig> candidates);
void record_config(const TuningRecords& records, const TuningKey& key,
                   std::span<const codegen::LaunchConfig> candidates, const codegen::LaunchConfig& config);

/// The configuration for `kernel`: recorded, or found by key.strategy with `bench` and recorded. A single
/// candidate is taken unmeasured where the strategy looks at no other. STAX_LOG=autotune shows the trials.
/// RuntimeError where no configuration can be launched.
codegen::LaunchConfig tune(const codegen::TileKernel& kernel, const TuningKey& key, Bench& bench,
                           const TuningRecords& records, const SearchOptions& options);

}  // namespace stax::tuning

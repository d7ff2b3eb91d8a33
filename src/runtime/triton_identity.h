// Which Triton compiles, known without starting Python where it was asked before.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/code_cache.h"
#include "support/json.h"

namespace stax::runtime {

struct TritonIdentity {
  std::string version;
  std::string
      text;  ///< what determines its results: version, files, the package stax_triton, the environment
};

/// The version that tests and measurements use.
inline constexpr std::string_view kPinnedTriton = "3.6.0";

/// Why this version of Triton is not used; empty where it is.
std::string triton_version_problem(const std::string& version);

/// Of a worker's answer to hello. UserError where it is none.
TritonIdentity triton_identity(const Json& hello);

/// The record in `cache` of the Triton of `python`, whose files are as they were then; the package is taken
/// as it lies in `package_folder` now.
std::optional<TritonIdentity> recorded_triton(const CodeCache& cache, const std::string& python,
                                              const std::string& package_folder);
/// Keeps what a worker of `python` answered. RuntimeError where it cannot be written.
void record_triton(const CodeCache& cache, const std::string& python, const Json& hello);

}  // namespace stax::runtime

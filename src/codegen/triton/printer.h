// Prints tile kernels as Triton source.
#pragma once

#include <string>
#include <string_view>

#include "codegen/tile/tile_kernel.h"

namespace stax::codegen {

/// One Python file: the kernel under its decorator, with what it imports. `folded` as LaunchVariant::folded;
/// `facts`: further arguments of the decorator, each after ", ".
std::string print_triton(const TileKernel& kernel, bool folded = false, std::string_view facts = {});

/// What the variants of a kernel are compiled from.
struct TritonSources {
  std::string plain;
  std::string folded;  ///< of folded variants; empty where no launch needs one

  /// Asserts that there is one.
  const std::string& of(LaunchVariant variant) const;
};
TritonSources print_sources(const TileKernel& kernel);

}  // namespace stax::codegen

// Spells CPU kernels as C++ over the prelude. Decides nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace stax::codegen {

/// The kernel's function. It needs the prelude of its lanes, and the helpers of printer_helpers.h that it
/// names.
KernelSource print_kernel(const Kernel& kernel);

/// Source that compiles by itself: kernels, and what they need, for one host compiler call. Kernels of
/// different numbers of lanes live in namespaces of their own; exported names are KernelInfo::name.
struct Module {
  std::string source;
  std::vector<KernelInfo> kernels;  // parallel to the kernels printed
};
Module print_module(std::span<const Kernel> kernels);

/// make_kernel and print_module for groups of loop nodes. Names of groups must differ.
Module emit_module(const loops::Program& program, std::span<const schedule::Group> groups,
                   const schedule::Target& target);

}  // namespace stax::codegen

// Spells CPU kernels as C++ over the prelude. Decides nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace stax::codegen {

/// Source that compiles by itself: kernels, and what they need, for one host compiler call. Kernels of
/// different numbers of lanes live in namespaces of their own; exported names are KernelInfo::name. A kernel
/// of several loop nests has a function for each, and an exported one that knows which of them a call is for.
struct Module {
  std::string source;
  std::vector<KernelInfo> kernels;  // parallel to the kernels printed
};
Module print_module(std::span<const Kernel> kernels);

/// make_kernel and print_module for groups of loop nodes. Names of groups must differ.
Module emit_module(const loops::Program& program, std::span<const schedule::Group> groups,
                   const schedule::Target& target);

}  // namespace stax::codegen

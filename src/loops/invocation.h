// What one run of a program is given.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "loops/body.h"

namespace stax::loops {

/// Pointers and values for one run. Pointers are to element 0 of each buffer of Program::inputs and
/// Program::outputs.
struct Invocation {
  std::span<void* const> inputs;
  std::span<void* const> outputs;
  std::span<const Constant> scalars;  // parallel to Program::scalars
  const std::unordered_map<Symbol, int64_t>* symbols =
      nullptr;  // values of size symbols; null where there are none
};

}  // namespace stax::loops

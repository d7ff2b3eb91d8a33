// What `stax show --stage triton` prints: a file that runs by itself.
#pragma once

#include <map>
#include <string>

#include "loops/program.h"
#include "symbolic/sizes.h"

namespace stax::compiler {

struct Stages;

/// One Python file with all kernels for a GPU. When it is run, it checks them against plain evaluations of
/// what they were made from, which it holds, too, and measures them.
std::string standalone_file(const Stages& stages);

/// The values that size symbols of the program have in the example.
std::map<Symbol, int64_t> example_sizes(const loops::Program& program, const Sizes& sizes);

}  // namespace stax::compiler

// Prints loop nests as plain NumPy: what a GPU kernel has to compute, told without blocks, masks and passes,
// so that its numbers can be compared with something that was made otherwise.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "loops/program.h"
#include "schedule/schedule.h"

namespace stax::codegen {

/// A buffer of a program, as an argument of a kernel.
struct PlainArgument {
  loops::BufferId buffer = -1;
  std::string name;  // "in_ptr0"
};

/// A Python function `name` of flat arrays, one for each of `arguments` (annotated with the buffer's name),
/// the run-time scalars that are used ("scalar0") and the size symbols ("s0", with the value of `example` as
/// the default). It evaluates the members of `group` one after another as the loop program has them, each
/// over all points at a time: index variables are open grids of NumPy, loads gather from flat arrays, folds
/// go over whole axes. Arrays of half types come, and are written, as float32. Functions that NumPy lacks are
/// those of stax_triton/plain.py.
std::string print_plain(const loops::Program& program, const schedule::Group& group, std::string_view name,
                        const std::vector<PlainArgument>& arguments,
                        const std::function<int64_t(Symbol)>& example);

}  // namespace stax::codegen

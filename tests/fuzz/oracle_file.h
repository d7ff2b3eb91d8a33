// Programs and their results as the NumPy oracle reads them.
#pragma once

#include <string>

#include "fuzz/execute.h"

namespace stax::fuzz {

/// One line of JSON: {"seed", "first_result", "inputs": [{"dtype", "sizes", "data"}], "steps": [{"op",
/// "args", "results": [[dtype, sizes]]}], "outputs": [{"value", "dtype", "sizes", "data"}]}. Data are the
/// elements' bytes in row-major order as hexadecimal digits; an argument is null, a number, or [kind,
/// content]. Outputs include the inputs that are written back.
std::string oracle_line(const Program& program, const Outcome& outcome);

}  // namespace stax::fuzz

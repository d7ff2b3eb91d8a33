// Whether compiled code and the reference executor agree.
#pragma once

#include <string>

#include "fuzz/execute.h"

namespace stax::fuzz {

/// Describes the first difference that the order of sums and the last places of transcendental functions do
/// not explain; empty when there is none. How far those carry is measured: the reference executor runs the
/// program again with noise in the results of such steps.
std::string difference(const Program& program, const Outcome& expected, const Outcome& actual);

}  // namespace stax::fuzz

// Makes random programs.
#pragma once

#include "fuzz/program.h"

namespace stax::fuzz {

/// The program of `seed`: the same on every machine.
Program generate(uint64_t seed);

}  // namespace stax::fuzz

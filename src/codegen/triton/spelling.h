// Triton's spelling of the instructions of loop bodies.
#pragma once

#include <string>
#include <vector>

#include "loops/body.h"

namespace stax::codegen {

/// "tl.float32"; bool is "tl.int1".
std::string triton_dtype(DType dtype);

/// A constant as Python: 2.0, float("-inf"), 7, True.
std::string triton_constant(DType dtype, loops::Constant constant);

/// The expression that computes a pointwise instruction; `from` is the dtype of the operands. A `relaxed` one
/// is off, relatively, by at most a small part of float16's rounding.
std::string spell_triton(loops::OpCode op, DType dtype, DType from, const std::vector<std::string>& args,
                         bool relaxed = false);

/// How a reduction is spelled; $0, $1, ... are blocks or accumulators.
struct TritonFold {
  loops::OpCode op;
  const char* combine;  // accumulators $A, $B, $C and values $0, $1, ... at position $p to new accumulators
  const char* reduce;   // blocks $0, $1, ... along dimension $d
  const char* rows = nullptr;  // accumulators of rows, and a block $0 where the mask $m holds, to new ones
};
const TritonFold& triton_fold(loops::OpCode op);

/// Where a fold runs: the dimension of blocks, the name of the position along it, and the mask or "None".
struct FoldAlong {
  int dimension = 0;
  std::string_view position, mask;
};

/// One of the two, filled in.
std::string spell_fold(const char* pattern, const std::vector<std::string>& args,
                       const std::vector<std::string>& carried, FoldAlong along);

}  // namespace stax::codegen

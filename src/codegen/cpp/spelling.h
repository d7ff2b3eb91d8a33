// How each instruction is spelled with functions of the prelude and of printer_helpers. Internal to
// codegen/cpp.
#pragma once

#include <string>
#include <vector>

#include "loops/body.h"

namespace stax::codegen {

/// `op` on operands of `dtype` (of the result for where), `args` being their spellings. For cast and bitcast
/// `from` is the operand's dtype. Raises an internal error for instructions that do not exist for the dtype.
std::string spell(loops::OpCode op, DType dtype, DType from, const std::vector<std::string>& args);

/// A constant of the dtype as a C++ expression of its scalar type.
/// The prelude's functions along the lanes of one vector, without the token of the dtype.
struct LaneSpelling {
  loops::OpCode op;
  const char* merged = nullptr;  // a reduction's lanes to one value
  const char* merged_bools = nullptr;
  const char* positions = nullptr;  // of lanes that have positions: that of the extremum
  const char* prefix = nullptr;     // a scan through the lanes
};
const LaneSpelling& lane_spelling(loops::OpCode op);

std::string spell_constant(DType dtype, loops::Constant constant);

/// An integer expression as a C++ expression of type long.
std::string spell(Expr e);
std::string spell(Symbol symbol);

/// Text of the helper functions (k_...) whose names occur in `text`.
std::string helpers_for(std::string_view text);

}  // namespace stax::codegen

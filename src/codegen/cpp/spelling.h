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
std::string spell_constant(DType dtype, loops::Constant constant);

/// An integer expression as a C++ expression of type long.
std::string spell(Expr e);
std::string spell(Symbol symbol);

/// Text of the helper functions (k_...) whose names occur in `text`.
std::string helpers_for(std::string_view text);

}  // namespace stax::codegen

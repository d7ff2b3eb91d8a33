// NumPy's spelling of the instructions of loop bodies.
#pragma once

#include <string>
#include <vector>

#include "loops/body.h"

namespace stax::codegen {

/// "np.float32"; bool is "np.bool_".
std::string numpy_dtype(DType dtype);

/// A constant as a Python literal: 2.0, -np.inf, 7, True. `typed`: as a number of NumPy, np.float32(2.0).
std::string numpy_constant(DType dtype, loops::Constant constant, bool typed);

/// The expression that computes a pointwise instruction over arrays; `from` is the dtype of the operands.
std::string spell_numpy(loops::OpCode op, DType dtype, DType from, const std::vector<std::string>& args);

/// The function of stax_triton/plain.py that folds or scans the last axes of an array.
std::string_view numpy_fold(loops::OpCode op);

}  // namespace stax::codegen

// Writes the public operator functions and methods from the rows of the op table.
#pragma once

#include <string>
#include <vector>

#include "graph/op.h"

namespace stax::opgen {

struct Generated {
  std::string functions;             // functions.h: one declaration an operator
  std::string methods;               // tensor_methods.inc: the methods of class Tensor
  std::vector<std::string> sources;  // bodies, in shards that compile side by side
};

/// Rows become functions of their name; rows whose first parameter is `Tensor self` become methods too; rows
/// with an in-place variant give `name_`. Names that start with `_` are internal and left out.
Generated generate(const std::vector<graph::Op>& rows, int shards);

}  // namespace stax::opgen

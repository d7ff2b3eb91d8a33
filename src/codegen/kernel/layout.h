// Which loop is which: order of the dimensions, the one that vectors run along, what threads share, blocks.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel/flat.h"
#include "symbolic/sizes.h"

namespace stax::codegen {

enum class VectorAlong : uint8_t { nothing, iteration, reduction };

struct Layout {
  VectorAlong along = VectorAlong::nothing;
  Symbol vector;  // its loop variable, unless along nothing
  int lanes = 16;
  std::vector<int32_t> order;  // iteration dimensions, outermost first; a vector dimension comes last
  std::vector<int32_t> reduction_order;
  int32_t domain = 0;          // leading dimensions of `order` that threads share
  bool shares_vector = false;  // ... all of them, the vector dimension included
  int32_t tile = 0;            // vector dimension cut in tiles outside the dimension before it; 0: not
  int64_t block = 0;           // iterations whose accumulators live in arrays; 0: in registers
  Expr block_step;             // as many of them are done together
  bool one_vector = false;     // the vector dimension, along a reduction, has no more elements than a vector
  bool stream = false;         // results are too large for the caches
  bool serial = false;         // one thread only
};

/// By instruction: whether its value may differ between the lanes of a vector.
std::vector<bool> varying(const FlatGroup& flat, const Layout& layout);

Layout make_layout(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
                   const schedule::Target& target, Chooser& chooser);

}  // namespace stax::codegen

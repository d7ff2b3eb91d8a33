#include "ops/table.h"

namespace stax::ops {

std::vector<graph::Op> loss_rows() {
  return {};
}

}  // namespace stax::ops

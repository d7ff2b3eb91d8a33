// Tensors seen as another dtype: the bits of each element, cut or joined.
#pragma once

#include "graph/meta.h"
#include "lowering/lowering.h"

namespace stax::lowering {

/// `in` with the dtype and sizes of `to`; its last dimension is dense. Half types are an internal error:
/// their bits are not at hand in a loop body.
Lazy view_as_dtype(Lowering& lowering, const Lazy& in, const graph::TensorMeta& to);

}  // namespace stax::lowering

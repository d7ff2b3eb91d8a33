// Tensors seen as another dtype: the bits of each element, cut or joined.
#pragma once

#include "graph/meta.h"
#include "lowering/lowering.h"

namespace stax::lowering {

/// `in` with the dtype and sizes of `to`; its last dimension is dense. Of a NaN of a half type only that it
/// is one is sure to be kept, since loops compute in float32.
Lazy view_as_dtype(Lowering& lowering, const Lazy& in, const graph::TensorMeta& to);

}  // namespace stax::lowering

// Orders of rows for a GPU, by ranks: the place of an element in the sorted row is the number of elements
// that come before it. That takes the square of a row's length, by loops that fuse and need no exchange
// between threads; rows that are too long for it are sorted by the functions of src/kernels, like those on a
// CPU.
#pragma once

#include "ops/loop_vocabulary.h"

namespace stax::ops {

/// Whether rows of this length are ordered by ranks. For sizes that change it becomes a guard.
bool sorts_by_ranks(ShapeEnv& env, Expr length);

// Of sort.stable, topk, kthvalue and the medians along a dimension. NaN comes after all numbers, equal
// elements keep their order. Nothing where the function has to do it.
Lazies lower_sort(Lowering& lowering, const LazyArgs& args);
Lazies lower_topk(Lowering& lowering, const LazyArgs& args);
Lazies lower_kthvalue(Lowering& lowering, const LazyArgs& args);
Lazies lower_median(Lowering& lowering, const LazyArgs& args);
Lazies lower_nanmedian(Lowering& lowering, const LazyArgs& args);

}  // namespace stax::ops

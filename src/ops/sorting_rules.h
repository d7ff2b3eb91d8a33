// Orders of rows for a GPU. Rows that one block covers are sorted there, each element as a number that holds
// its key and its position. Longer ones, and those of 64-bit dtypes, are ordered by ranks: the place of an
// element in the sorted row is the number of elements that come before it. That takes the square of a row's
// length, by loops that fuse and need no exchange between threads. Rows that are too long for it are sorted
// by the functions of src/kernels, like those on a CPU.
#pragma once

#include "ops/loop_vocabulary.h"

namespace stax::ops {

/// Decides which of these ways rows of this length go. For sizes that change it becomes a guard.
void settle_order_of_rows(ShapeEnv& env, DType dtype, Expr length);

// Of sort.stable, topk, kthvalue and the medians along a dimension. NaN comes after all numbers, equal
// elements keep their order. Nothing where the function has to do it.
Lazies lower_sort(Lowering& lowering, const LazyArgs& args);
Lazies lower_topk(Lowering& lowering, const LazyArgs& args);
Lazies lower_kthvalue(Lowering& lowering, const LazyArgs& args);
Lazies lower_median(Lowering& lowering, const LazyArgs& args);
Lazies lower_nanmedian(Lowering& lowering, const LazyArgs& args);

}  // namespace stax::ops

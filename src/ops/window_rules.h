// What pools, convolutions and sliding windows as columns share: how windows lie on the last dimensions of a
// tensor.
#pragma once

#include <string_view>
#include <vector>

#include "ops/loop_vocabulary.h"

namespace stax::ops {

/// The list argument `param` with one entry for each of `count` spatial dimensions; one entry stands for all;
/// None, or an empty list, for `absent`. UserError for a list of another length.
template <class T>
Exprs spatial(const graph::Bound<T>& args, std::string_view param, size_t count, const Exprs& absent = {});

/// `sizes` with the last ones replaced by `spatial`.
Exprs with_spatial(const Exprs& sizes, const Exprs& spatial);

/// How the windows of a call lie on the last dimensions of its input.
struct Windows {
  Exprs size, stride, padding, dilation;
  Exprs in, out;        // sizes of the input and of the result
  bool beyond = false;  // some window may reach out of the input

  /// The element of the input, along dimension d, on which position r of window i lies.
  Expr position(size_t d, Expr i, Expr r) const { return i * stride[d] - padding[d] + r * dilation[d]; }
};

/// The arguments kernel_size, stride (the window where absent), padding, dilation and ceil_mode of a call on
/// a tensor of `sizes`.
template <class T>
Windows windows_of(const graph::Bound<T>& args, const Exprs& sizes, size_t count);

/// UserError unless windows, strides and dilations are positive, padding is not negative, and a window fits.
void check_windows(ShapeEnv& env, const MetaArgs& args, const Windows& w);

/// UserError unless the input is [batch, channels, spatial...] or the same without a batch, with no empty
/// dimension but the batch.
void check_pool_input(ShapeEnv& env, const MetaArgs& args, size_t count);

/// Meta of a pool's result: of the input's dtype, one element a window. UserError as the checks above, and
/// for padding of more than half a window.
TensorMeta pool_meta(ShapeEnv& env, const MetaArgs& args, size_t count);

/// `b`, and also `a` where there is one.
V all_of(V a, V b);

/// The element of x at position r of the window at i, or `other` where the window reaches out of x.
V load_window(Lowering& lowering, const Lazy& x, const Windows& w, const Index& i, const Index& r, V other);

/// Windows that follow from the size of the result: window i of `out` windows over `in` elements is
/// [floor(i * in / out), ceil((i + 1) * in / out)).
struct AdaptiveWindows {
  Exprs in, out;
  Exprs longest;           // windows are at most that long
  std::vector<char> even;  // all windows are that long

  AdaptiveWindows(const ShapeEnv& env, const Exprs& sizes, Exprs result);
  Expr begin(size_t d, Expr i) const { return floor_div(i * in[d], out[d]); }
  Expr end(size_t d, Expr i) const { return ceil_div((i + 1) * in[d], out[d]); }
};

}  // namespace stax::ops

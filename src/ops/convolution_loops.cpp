#include "graph/meta.h"
#include "ops/convolution_rules.h"
#include "ops/matmul_rules.h"
#include "ops/window_rules.h"

namespace stax::ops {
namespace {

/// A call, with its input as a batch.
struct Convolution {
  Convolution(Lowering& lowering, const LazyArgs& args, bool transposed);

  bool batched;
  Lazy x, weight;
  const Lazy* bias = nullptr;
  Expr groups, in, out;  // channels, in all groups
  Exprs window, stride, padding, dilation, in_sizes, out_sizes;
  DType dtype, wide;  // of the tensors, and what is added up in

  size_t count() const { return window.size(); }
  /// As a library's product of matrices; otherwise sums are generated.
  bool as_product() const { return groups.is(1) && is_floating_point(dtype); }
  Exprs result_sizes() const {
    Exprs sizes = {x.sizes[0], out};
    sizes.insert(sizes.end(), out_sizes.begin(), out_sizes.end());
    return sizes;
  }
  /// The result without the dimension that was added.
  Lazy finished(Lowering& lowering, Lazy y) const {
    if (batched) return y;
    if (!y.stored()) {
      return lowering.pointwise(y.dtype, Exprs(y.sizes.begin() + 1, y.sizes.end()), [&](const Index& i) {
        Index at = {Expr(0)};
        at.insert(at.end(), i.begin(), i.end());
        return lowering.load(y, at);
      });
    }
    y.sizes.erase(y.sizes.begin());
    y.strides.erase(y.strides.begin());
    return y;
  }
};

Lazy with_batch(Lowering& lowering, const Lazy& x) {
  Lazy out = lowering.realize(x);
  out.sizes.insert(out.sizes.begin(), Expr(1));
  out.strides.insert(out.strides.begin(), Expr(0));
  return out;
}

DType added_in(DType dtype) {
  if (is_floating_point(dtype)) return compute_dtype(dtype);
  return itemsize(dtype) == 8 ? dtype : DType::int32;
}

Convolution::Convolution(Lowering& lowering, const LazyArgs& args, bool transposed)
    : weight(args.tensor(1)), dtype(args.tensor(0).dtype), wide(added_in(dtype)) {
  const size_t n = weight.sizes.size() - 2;
  batched = args.tensor(0).sizes.size() == n + 2;
  x = batched ? args.tensor(0) : with_batch(lowering, args.tensor(0));
  if (args["bias"].is_tensor()) bias = &args["bias"].tensor();
  groups = args["groups"].integer();
  window.assign(weight.sizes.begin() + 2, weight.sizes.end());
  stride = spatial(args, "stride", n), padding = spatial(args, "padding", n);
  dilation = spatial(args, "dilation", n);
  in = x.sizes[1];
  out = transposed ? weight.sizes[1] * groups : weight.sizes[0];
  in_sizes.assign(x.sizes.begin() + 2, x.sizes.end());
  const Exprs more = transposed ? spatial(args, "output_padding", n) : Exprs(n, Expr(0));
  for (size_t d = 0; d < n; ++d) {
    const Expr reach = dilation[d] * (window[d] - 1) + 1;
    out_sizes.push_back(transposed ? (in_sizes[d] - 1) * stride[d] - 2 * padding[d] + reach + more[d]
                                   : floor_div(in_sizes[d] + 2 * padding[d] - reach, stride[d]) + 1);
  }
}

/// The element of x under position `r` of the window at `o`, 0 beside x.
V under_window(Lowering& lowering, const Convolution& c, Expr batch, Expr channel, const Expr* o,
               const Expr* r) {
  Index at = {batch, channel};
  V inside;
  for (size_t d = 0; d < c.count(); ++d) {
    at.push_back(o[d] * c.stride[d] - c.padding[d] + r[d] * c.dilation[d]);
    if (c.padding[d].is(0)) continue;
    const V position = lowering.index_value(at.back());
    inside =
        all_of(inside, bitwise_and(ge(position, 0.0), lt(position, lowering.index_value(c.in_sizes[d]))));
  }
  if (inside.id < 0) return lowering.load(c.x, at);
  return lowering.masked_load(c.x, at, inside, lowering.constant(compute_dtype(c.dtype), int64_t{0}));
}

/// The element of `values` (an index before the spatial dimensions in `at`) whose product with position `r`
/// of the window falls on `o`, 0 where there is none.
V over_window(Lowering& lowering, const Convolution& c, const Lazy& values, Index at, const Expr* o,
              const Expr* r) {
  V inside;
  for (size_t d = 0; d < c.count(); ++d) {
    const Expr shifted = o[d] + c.padding[d] - r[d] * c.dilation[d];
    at.push_back(floor_div(shifted, c.stride[d]));
    const V position = lowering.index_value(shifted);
    inside = all_of(inside, bitwise_and(ge(position, 0.0),
                                        lt(position, lowering.index_value(c.in_sizes[d] * c.stride[d]))));
    if (!c.stride[d].is(1)) inside = all_of(inside, eq(lowering.index_value(mod(shifted, c.stride[d])), 0.0));
  }
  return lowering.masked_load(values, at, inside, lowering.constant(compute_dtype(values.dtype), int64_t{0}));
}

/// Sums over `reduced` of value(i, r), and the bias; i indexes the result.
Lazy sum_up(Lowering& lowering, const Convolution& c, Exprs reduced,
            const std::function<V(const Index& i, const Index& r)>& value) {
  Lowering::Reduction loops{.op = OpCode::reduce_sum, .accumulate = c.wide};
  loops.sizes = c.result_sizes();
  loops.reduced = std::move(reduced);
  Index at;
  loops.value = [&](const Index& i, const Index& r) -> std::vector<V> {
    at = i;
    return {cast(value(i, r), c.wide)};
  };
  loops.dtypes = {c.bias != nullptr ? c.wide : c.dtype};
  Lazy sums = lowering.reduce(loops)[0];
  if (c.bias == nullptr) return sums;
  return lowering.pointwise(c.dtype, sums.sizes, [&](const Index& i) {
    return cast(lowering.load(sums, i) + cast(lowering.load(*c.bias, {i[1]}), c.wide),
                compute_dtype(c.dtype));
  });
}

/// [window..., more...], row-major: how a reduction over a window is counted.
Exprs joined(const Exprs& a, const Exprs& b) {
  Exprs out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

/// A dense buffer seen with other sizes.
Lazy reshaped(Lazy dense, Exprs sizes) {
  dense.strides = graph::contiguous_strides(sizes);
  dense.sizes = std::move(sizes);
  return dense;
}

Lazy dense_copy(Lowering& lowering, const Lazy& t) {
  const Exprs strides = graph::contiguous_strides(t.sizes);
  return t.stored() && t.strides == strides ? t : lowering.copy(t, strides);
}

/// The weight, [rows, columns] once its dimensions after the first are joined, for every element of a batch;
/// with `turned` its transpose.
Lazy weights_of(Lowering& lowering, const Convolution& c, bool turned) {
  const Lazy dense = dense_copy(lowering, c.weight);
  const Expr rows = c.weight.sizes[0], columns = c.weight.sizes[1] * product(c.window);
  Lazy out = dense;
  out.sizes = {c.x.sizes[0], turned ? columns : rows, turned ? rows : columns};
  out.strides = {Expr(0), turned ? Expr(1) : columns, turned ? columns : Expr(1)};
  return out;
}

/// [batch, channels, positions]: as it lies where the spatial dimensions follow each other, otherwise copied.
Lazy as_matrices(Lowering& lowering, const Lazy& x) {
  const Exprs spatial(x.sizes.begin() + 2, x.sizes.end());
  bool joins = x.stored();
  for (size_t d = 2; joins && d + 1 < x.sizes.size(); ++d)
    joins = lowering.env().proves(eq(x.strides[d], x.strides[d + 1] * x.sizes[d + 1]));
  Lazy out = joins ? x : lowering.copy(x, graph::contiguous_strides(x.sizes));
  const Expr last = out.strides.back();
  out.strides = {out.strides[0], out.strides[1], last};
  out.sizes = {x.sizes[0], x.sizes[1], product(spatial)};
  return out;
}

/// Sums of a product: rounded at once where nothing is added to them.
DType product_dtype(const Convolution& c, bool last) {
  return last ? c.dtype : c.wide;
}

Lazy convolution_by_product(Lowering& lowering, const Convolution& c) {
  const size_t n = c.count();
  bool pointwise = true;
  for (size_t d = 0; d < n; ++d) pointwise &= c.window[d].is(1) && c.stride[d].is(1) && c.padding[d].is(0);
  Lazy columns;
  if (pointwise) {
    columns = as_matrices(lowering, c.x);
  } else {
    const Exprs sizes = joined(joined({c.x.sizes[0], c.in}, c.window), c.out_sizes);
    const Lazy gathered = lowering.pointwise(c.dtype, sizes, [&](const Index& i) {
      return under_window(lowering, c, i[0], i[1], i.data() + 2 + n, i.data() + 2);
    });
    columns = reshaped(dense_copy(lowering, gathered),
                       {c.x.sizes[0], c.in * product(c.window), product(c.out_sizes)});
  }
  const Lazy y = reshaped(
      multiply_on_gpu(lowering, weights_of(lowering, c, false), columns, product_dtype(c, c.bias == nullptr)),
      c.result_sizes());
  if (c.bias == nullptr) return y;
  return lowering.pointwise(c.dtype, y.sizes, [&](const Index& i) {
    return cast(lowering.load(y, i) + cast(lowering.load(*c.bias, {i[1]}), c.wide), compute_dtype(c.dtype));
  });
}

}  // namespace

Lazies lower_convolution(Lowering& lowering, const LazyArgs& args) {
  const Convolution c(lowering, args, false);
  if (c.as_product()) return {c.finished(lowering, convolution_by_product(lowering, c))};
  const Expr in = floor_div(c.in, c.groups), out = floor_div(c.out, c.groups);
  const Lazy y = sum_up(lowering, c, joined({in}, c.window), [&](const Index& i, const Index& r) {
    const Expr channel = floor_div(i[1], out) * in + r[0];
    const V value = under_window(lowering, c, i[0], channel, i.data() + 2, r.data() + 1);
    return cast(value, c.wide) * cast(lowering.load(c.weight, joined({i[1]}, r)), c.wide);
  });
  return {c.finished(lowering, y)};
}

Lazies lower_transposed_convolution(Lowering& lowering, const LazyArgs& args) {
  const Convolution c(lowering, args, true);
  const Expr in = floor_div(c.in, c.groups), out = floor_div(c.out, c.groups);
  if (!c.as_product()) {
    const Lazy y = sum_up(lowering, c, joined({in}, c.window), [&](const Index& i, const Index& r) {
      const Expr group = floor_div(i[1], out), channel = group * in + r[0];
      Index at = {channel, i[1] - group * out};
      at.insert(at.end(), r.begin() + 1, r.end());
      const V value = over_window(lowering, c, c.x, {i[0], channel}, i.data() + 2, r.data() + 1);
      return cast(value, c.wide) * cast(lowering.load(c.weight, at), c.wide);
    });
    return {c.finished(lowering, y)};
  }
  const Lazy products = reshaped(multiply_on_gpu(lowering, weights_of(lowering, c, true),
                                                 as_matrices(lowering, c.x), product_dtype(c, false)),
                                 joined(joined({c.x.sizes[0], c.out}, c.window), c.in_sizes));
  const Lazy y = sum_up(lowering, c, c.window, [&](const Index& i, const Index& r) {
    return over_window(lowering, c, products, joined({i[0], i[1]}, r), i.data() + 2, r.data());
  });
  return {c.finished(lowering, y)};
}

}  // namespace stax::ops

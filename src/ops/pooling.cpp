// Pools, their inverses, and sliding windows as columns. Windows are reduction ranges; what lies outside of
// the tensor is a masked load.
#include <algorithm>

#include "graph/broadcast.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/window_rules.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// ---- maxima ----

template <size_t Count>
Metas max_pool_meta(ShapeEnv& env, const MetaArgs& args) {
  STAX_CHECK(args.tensor(0).dtype != DType::boolean, "{}: expected numbers, got bool", args.schema().name);
  return {pool_meta(env, args, Count)};
}

template <size_t Count>
Metas max_pool_with_indices_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta m = max_pool_meta<Count>(env, args)[0];
  return {m, graph::dense(DType::int64, m.sizes, m.device)};
}

template <size_t Count>
Lazies lower_max_pool(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Windows w = windows_of(args, x.sizes, Count);
  Lowering::Reduction loops{.op = OpCode::reduce_max, .accumulate = compute_dtype(x.dtype)};
  loops.sizes = with_spatial(x.sizes, w.out);
  loops.reduced = w.size;
  loops.value = [&](const Index& i, const Index& r) {
    return std::vector<V>{load_window(lowering, x, w, i, r, lowering.identity(OpCode::reduce_max, x.dtype))};
  };
  loops.dtypes = {x.dtype};
  return lowering.reduce(loops);
}

// Maxima with the positions that they have in their plane. `element(d, i, r)` is where position r of window i
// lies, always inside of the input: padding repeats an element of the window, which changes no maximum, and
// the first of equal ones wins.
Lazies lower_max_with_indices(Lowering& lowering, const Lazy& x, const Exprs& out, const Exprs& window,
                              const std::function<Expr(size_t d, Expr i, Expr r)>& element) {
  const size_t lead = x.sizes.size() - window.size();
  Index at_i;
  Lowering::Reduction loops{.op = OpCode::reduce_argmax, .accumulate = compute_dtype(x.dtype)};
  loops.sizes = with_spatial(x.sizes, out);
  loops.reduced = window;
  loops.value = [&](const Index& i, const Index& r) {
    at_i = i;
    Index at = i;
    for (size_t d = 0; d < r.size(); ++d) at[lead + d] = element(d, i[lead + d], r[d]);
    return std::vector<V>{lowering.load(x, at)};
  };
  loops.results = 2;
  loops.dtypes = {x.dtype, DType::int64};
  loops.finish = [&](const std::vector<V>& results) {
    Expr rest = lowering.indirect(results[0]), step = 1, index = 0;
    for (size_t d = window.size(); d-- > 0;) {
      index += element(d, at_i[lead + d], mod(rest, window[d])) * step;
      rest = floor_div(rest, window[d]);
      step *= x.sizes[lead + d];
    }
    return std::vector{results[1], lowering.index_value(index)};
  };
  return lowering.reduce(loops);
}

template <size_t Count>
Lazies lower_max_pool_with_indices(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Windows w = windows_of(args, x.sizes, Count);
  return lower_max_with_indices(lowering, x, w.out, w.size, [&](size_t d, Expr i, Expr r) {
    const Expr at = w.position(d, i, r);
    if (!w.beyond) return at;
    // The first and the last element of the window inside of the input bound it.
    const Expr last = w.in[d] - 1;
    return max(min(at, last - mod(last - at, w.dilation[d])), mod(at, w.dilation[d]));
  });
}

Metas max_pool_backward_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &grad = args.tensor(0), &x = args.tensor(1), &indices = args.tensor(7);
  STAX_CHECK(indices.dtype == DType::int64 && graph::same_sizes(env, grad.sizes, indices.sizes),
             "{}: expected int64 indices of the gradient's shape {}, got {}", args.schema().name,
             shape_text(grad.sizes), indices.str());
  const bool ranks = (x.dim() == 3 || x.dim() == 4) && grad.dim() == x.dim();
  STAX_CHECK(ranks && std::equal(x.sizes.begin(), x.sizes.end() - 2, grad.sizes.begin()),
             "{}: a gradient of shape {} does not fit an input of shape {}", args.schema().name,
             shape_text(grad.sizes), shape_text(x.sizes));
  STAX_CHECK(grad.dtype == x.dtype, "{}: expected a gradient of the input's dtype {}, got {}",
             args.schema().name, name(x.dtype), name(grad.dtype));
  return {graph::dense(x.dtype, x.sizes, x.device)};
}

// Values stored at (or added to) positions in planes of `sizes`, zero elsewhere.
Lazy to_planes(Lowering& lowering, const Lazy& values, const Lazy& indices, const Exprs& sizes, size_t count,
               bool accumulate) {
  const size_t lead = sizes.size() - count;
  const Lazy zero = lowering.pointwise(
      values.dtype, sizes, [&](const Index&) { return lowering.constant(values.dtype, int64_t{0}); });
  Expr plane = 1;
  for (size_t d = 0; d < count; ++d) plane *= sizes[lead + d];
  const auto target = [&](const Index& i) {
    Expr rest = lowering.checked(lowering.load(indices, i), plane, false);
    Index at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(lead));
    at.resize(sizes.size());
    for (size_t d = sizes.size(); d-- > lead;) {
      at[d] = d == lead ? rest : mod(rest, sizes[d]);
      rest = floor_div(rest, sizes[d]);
    }
    return at;
  };
  return lowering.scatter(
      zero, values.sizes, target, [&](const Index& i) { return lowering.load(values, i); }, accumulate);
}

Lazies lower_max_pool_backward(Lowering& lowering, const LazyArgs& args) {
  return {to_planes(lowering, args.tensor(0), args.tensor(7), args.tensor(1).sizes, 2, true)};
}

Metas max_unpool_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta &x = args.tensor(0), &indices = args.tensor(1);
  const Exprs& sizes = args[2].integers();
  STAX_CHECK(indices.dtype == DType::int64, "max_unpool: expected int64 indices, got {}",
             name(indices.dtype));
  STAX_CHECK(graph::same_sizes(env, indices.sizes, x.sizes),
             "max_unpool: expected indices of the input's shape {}, got {}", shape_text(x.sizes),
             shape_text(indices.sizes));
  STAX_CHECK(!sizes.empty() && x.dim() > static_cast<int64_t>(sizes.size()),
             "max_unpool: an input of shape {} has too few dimensions for {} output sizes",
             shape_text(x.sizes), sizes.size());
  for (const Expr s : sizes)
    STAX_CHECK(env.expect(gt(s, 0)), "max_unpool: expected a positive output size, got {}",
               shape_text(sizes));
  return {graph::dense(x.dtype, with_spatial(x.sizes, sizes), x.device)};
}

Lazies lower_max_unpool(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Exprs& sizes = args[2].integers();
  return {to_planes(lowering, x, args.tensor(1), with_spatial(x.sizes, sizes), sizes.size(), false)};
}

template <size_t Count>
Vars max_unpool(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const std::string& op = a.schema().name;
  const auto rank = static_cast<int64_t>(Count) + 2;
  STAX_CHECK(x.dim() == rank || x.dim() == rank - 1,
             "{}: expected an input of {}, or {} without a batch, got shape {}", op,
             counted(rank, "dimension"), rank - 1, shape_text(x.sizes()));
  const Exprs window = spatial(a, "kernel_size", Count), stride = spatial(a, "stride", Count, window),
              padding = spatial(a, "padding", Count);
  Exprs sizes;
  for (size_t d = 0; d < Count; ++d) {
    const Expr in = x.size(x.dim() - static_cast<int64_t>(Count - d));
    sizes.push_back((in - 1) * stride[d] + window[d] - 2 * padding[d]);
  }
  if (!a["output_size"].is_none()) {
    Exprs wanted = a["output_size"].integers();
    if (wanted.size() == Count + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
    STAX_CHECK(wanted.size() == Count, "{}: expected an output size of {} or {}, got {}", op, Count,
               counted(Count + 2, "entry", "entries"), shape_text(a["output_size"].integers()));
    for (size_t d = 0; d < Count; ++d) {
      STAX_CHECK(b.env().expect(lt(sizes[d] - stride[d], wanted[d])) &&
                     b.env().expect(lt(wanted[d], sizes[d] + stride[d])),
                 "{}: expected an output size within a stride of {}, got {}", op, shape_text(sizes),
                 shape_text(wanted));
    }
    sizes = wanted;
  }
  return {b.call("_max_unpool", {x, a[1], sizes})};
}

// ---- averages ----

// The sum of a window over its number of elements; what is outside of the input adds nothing.
V quotient(Lowering& lowering, V sum, Expr count, DType dtype) {
  const V divisor = lowering.number(num(count), sum.dtype());
  return is_floating_point(dtype) ? sum / divisor : trunc_div(sum, divisor);
}

// Whole numbers are summed in int64.
DType sum_dtype(DType dtype) {
  return is_floating_point(dtype) ? compute_dtype(dtype) : DType::int64;
}

Expr divisor_override(const auto& args) {
  if (args.schema().position("divisor_override") < 0 || args["divisor_override"].is_none()) return 0;
  return args["divisor_override"].integer();
}

template <size_t Count>
Metas avg_pool_meta(ShapeEnv& env, const MetaArgs& args) {
  STAX_CHECK(args.tensor(0).dtype != DType::boolean, "{}: expected numbers, got bool", args.schema().name);
  const bool has = args.schema().position("divisor_override") >= 0;
  STAX_CHECK(!has || args["divisor_override"].is_none() || !args["divisor_override"].integer().is(0),
             "{}: expected a divisor other than 0", args.schema().name);
  return {pool_meta(env, args, Count)};
}

// How many elements a window averages over.
Expr averaged(const Windows& w, const Index& i, size_t lead, bool include_padding) {
  Expr count = 1;
  for (size_t d = 0; d < w.size.size(); ++d) {
    if (!w.beyond) {
      count *= w.size[d];
      continue;
    }
    const Expr begin = w.position(d, i[lead + d], Expr(0));
    const Expr end = min(begin + w.size[d], w.in[d] + w.padding[d]);
    count *= include_padding ? end - begin : max(min(end, w.in[d]) - max(begin, 0), 1);
  }
  return count;
}

template <size_t Count>
Lazies lower_avg_pool(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Windows w = windows_of(args, x.sizes, Count);
  const DType dtype = sum_dtype(x.dtype);
  const Expr divisor = divisor_override(args);
  const bool include_padding = args["count_include_pad"].boolean();
  Index at_i;
  Lowering::Reduction loops{.op = OpCode::reduce_sum, .accumulate = dtype};
  loops.sizes = with_spatial(x.sizes, w.out);
  loops.reduced = w.size;
  loops.value = [&](const Index& i, const Index& r) {
    at_i = i;
    return std::vector<V>{load_window(lowering, x, w, i, r, lowering.constant(x.dtype, int64_t{0}))};
  };
  loops.dtypes = {x.dtype};
  loops.finish = [&](const std::vector<V>& results) {
    const Expr count = divisor.is(0) ? averaged(w, at_i, at_i.size() - Count, include_padding) : divisor;
    return std::vector{quotient(lowering, results[0], count, x.dtype)};
  };
  return lowering.reduce(loops);
}

// ---- windows that follow from the size of the result ----

template <size_t Count>
Metas adaptive_meta(ShapeEnv& env, const MetaArgs& args) {
  check_pool_input(env, args, Count);
  const TensorMeta& x = args.tensor(0);
  const Exprs out = spatial(args, "output_size", Count);
  for (const Expr s : out) {
    STAX_CHECK(env.expect(ge(s, 0)), "{}: expected an output size of at least 0, got {}", args.schema().name,
               shape_text(out));
  }
  return {graph::dense(x.dtype, with_spatial(x.sizes, out), x.device)};
}

template <size_t Count>
Metas adaptive_avg_meta(ShapeEnv& env, const MetaArgs& args) {
  STAX_CHECK(is_floating_point(args.tensor(0).dtype), "{}: expected a floating dtype, got {}",
             args.schema().name, name(args.tensor(0).dtype));
  return adaptive_meta<Count>(env, args);
}

template <size_t Count>
Metas adaptive_max_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta m = adaptive_meta<Count>(env, args)[0];
  STAX_CHECK(m.dtype != DType::boolean, "{}: expected numbers, got bool", args.schema().name);
  return {m, graph::dense(DType::int64, m.sizes, m.device)};
}

template <size_t Count>
Lazies lower_adaptive_max(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Exprs out = spatial(args, "output_size", Count);
  const AdaptiveWindows w(lowering.env(), x.sizes, out);
  return lower_max_with_indices(lowering, x, out, w.longest, [&](size_t d, Expr i, Expr r) {
    const Expr at = w.begin(d, i) + r;
    return w.even[d] ? at : min(at, w.end(d, i) - 1);
  });
}

template <size_t Count>
Lazies lower_adaptive_avg(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Exprs out = spatial(args, "output_size", Count);
  const AdaptiveWindows w(lowering.env(), x.sizes, out);
  Index at_i;
  Lowering::Reduction loops{.op = OpCode::reduce_sum, .accumulate = sum_dtype(x.dtype)};
  loops.sizes = with_spatial(x.sizes, out);
  loops.reduced = w.longest;
  const size_t lead = x.sizes.size() - Count;
  loops.value = [&](const Index& i, const Index& r) {
    at_i = i;
    Index at = i;
    V inside;
    for (size_t d = 0; d < Count; ++d) {
      at[lead + d] = w.begin(d, i[lead + d]) + r[d];
      if (w.even[d]) continue;
      inside =
          all_of(inside, lt(lowering.index_value(at[lead + d]), lowering.index_value(w.end(d, i[lead + d]))));
    }
    const V zero = lowering.constant(x.dtype, int64_t{0});
    return std::vector<V>{inside.id < 0 ? lowering.load(x, at) : lowering.masked_load(x, at, inside, zero)};
  };
  loops.dtypes = {x.dtype};
  loops.finish = [&](const std::vector<V>& results) {
    Expr count = 1;
    for (size_t d = 0; d < Count; ++d) {
      const Expr i = at_i[lead + d];
      count *= w.even[d] ? w.longest[d] : w.end(d, i) - w.begin(d, i);
    }
    return std::vector{quotient(lowering, results[0], count, x.dtype)};
  };
  return lowering.reduce(loops);
}

// ---- norms of windows ----

// (sum of x^p)^(1/p) over each window, by way of its average.
template <size_t Count>
Vars lp_pool(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const double p = a["norm_type"].floating();
  STAX_CHECK(p != 0, "{}: expected a norm other than 0", a.schema().name);
  const Exprs window = spatial(a, "kernel_size", Count);
  const VarArg stride = a["stride"];
  const Var mean = b.call(Count == 1   ? "avg_pool1d"
                          : Count == 2 ? "avg_pool2d"
                                       : "avg_pool3d",
                          {b.call("pow.Tensor_Scalar", {x, p}), window, stride, 0, a["ceil_mode"]});
  const Var sum = b.call("relu", {b.call("abs", {mean})}) * num(product(window));
  return {b.call("pow.Tensor_Scalar", {b.call("sign", {mean}) * sum, 1 / p})};
}

// ---- columns ----

// Dimensions: batch (where there is one), channel and place in the window, number of the window.
Metas im2col_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  STAX_CHECK(x.dim() == 4 || x.dim() == 3,
             "im2col: expected 4 dimensions, or 3 without a batch, got shape {}", shape_text(x.sizes));
  const Windows w = windows_of(args, x.sizes, 2);
  check_windows(env, args, w);
  Exprs sizes(x.sizes.begin(), x.sizes.end() - 3);
  sizes.push_back(x.sizes[x.sizes.size() - 3] * product(w.size));
  sizes.push_back(product(w.out));
  return {graph::dense(x.dtype, sizes, x.device)};
}

Lazies lower_im2col(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Windows w = windows_of(args, x.sizes, 2);
  Exprs sizes(x.sizes.begin(), x.sizes.end() - 3);
  sizes.push_back(x.sizes[x.sizes.size() - 3] * product(w.size));
  sizes.push_back(product(w.out));
  return {lowering.pointwise(x.dtype, sizes, [&](const Index& i) {
    const Expr row = i[i.size() - 2], column = i.back();
    Index at(i.begin(), i.end() - 2);
    at.push_back(floor_div(row, product(w.size)));
    at.push_back(floor_div(column, w.out[1]));
    at.push_back(mod(column, w.out[1]));
    const Index r = {mod(floor_div(row, w.size[1]), w.size[0]), mod(row, w.size[1])};
    return load_window(lowering, x, w, at, r, lowering.constant(x.dtype, int64_t{0}));
  })};
}

}  // namespace

Ops pooling_rows() {
  return {
#define MAX_POOL(N)                                                                                  \
  lowered("max_pool" #N "d(Tensor input, int[" #N "] kernel_size, int[" #N "]? stride=None, int[" #N \
          "] padding=0, int[" #N "] dilation=1, bool ceil_mode=False) -> Tensor",                    \
          max_pool_meta<N>, lower_max_pool<N>),                                                      \
      lowered("max_pool" #N "d_with_indices(Tensor input, int[" #N "] kernel_size, int[" #N          \
              "]? stride=None, int[" #N "] padding=0, int[" #N                                       \
              "] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",                             \
              max_pool_with_indices_meta<N>, lower_max_pool_with_indices<N>),                        \
      composite("max_unpool" #N "d(Tensor input, Tensor indices, int[" #N "] kernel_size, int[" #N   \
                "]? stride=None, int[" #N "] padding=0, int[]? output_size=None) -> Tensor",         \
                max_unpool<N>),                                                                      \
      lowered("adaptive_avg_pool" #N "d(Tensor input, int[" #N "] output_size) -> Tensor",           \
              adaptive_avg_meta<N>, lower_adaptive_avg<N>),                                          \
      lowered("adaptive_max_pool" #N "d(Tensor input, int[" #N "] output_size) -> (Tensor, Tensor)", \
              adaptive_max_meta<N>, lower_adaptive_max<N>),                                          \
      composite("lp_pool" #N "d(Tensor input, float norm_type, int[" #N "] kernel_size, int[" #N     \
                "]? stride=None, bool ceil_mode=False) -> Tensor",                                   \
                lp_pool<N>)
      MAX_POOL(1),
      MAX_POOL(2),
      MAX_POOL(3),
#undef MAX_POOL
      lowered("max_pool2d_with_indices_backward(Tensor grad_output, Tensor input, int[2] kernel_size, int[2] "
              "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
              max_pool_backward_meta, lower_max_pool_backward),
      graph::internal(lowered("_max_unpool(Tensor input, Tensor indices, int[] sizes) -> Tensor",
                              max_unpool_meta, lower_max_unpool)),
      lowered("avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool "
              "ceil_mode=False, bool count_include_pad=True) -> Tensor",
              avg_pool_meta<1>, lower_avg_pool<1>),
      lowered("avg_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, bool "
              "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
              avg_pool_meta<2>, lower_avg_pool<2>),
      lowered("avg_pool3d(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, bool "
              "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
              avg_pool_meta<3>, lower_avg_pool<3>),
      lowered(
          "im2col(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) "
          "-> Tensor",
          im2col_meta, lower_im2col),
  };
}

}  // namespace stax::ops

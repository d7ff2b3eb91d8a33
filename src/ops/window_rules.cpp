#include "ops/window_rules.h"

#include <algorithm>

#include "ops/shape_rules.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {

template <class T>
Exprs spatial(const graph::Bound<T>& args, std::string_view param, size_t count, const Exprs& absent) {
  if (args.schema().position(param) < 0 || args[param].is_none()) return absent;
  Exprs values = args[param].integers();
  if (values.empty() && !absent.empty()) return absent;
  if (values.size() == 1) values.resize(count, values[0]);
  STAX_CHECK(values.size() == count, "{}: expected {} to have {}, got {}", args.schema().name, param,
             counted(count, "entry", "entries"), values.size());
  return values;
}

template Exprs spatial(const MetaArgs&, std::string_view, size_t, const Exprs&);
template Exprs spatial(const LazyArgs&, std::string_view, size_t, const Exprs&);
template Exprs spatial(const VarArgs&, std::string_view, size_t, const Exprs&);

Exprs with_spatial(const Exprs& sizes, const Exprs& spatial) {
  Exprs out(sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(spatial.size()));
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

template <class T>
Windows windows_of(const graph::Bound<T>& args, const Exprs& sizes, size_t count) {
  Windows w;
  w.size = spatial(args, "kernel_size", count);
  w.stride = spatial(args, "stride", count, w.size);
  w.padding = spatial(args, "padding", count, Exprs(count, Expr(0)));
  w.dilation = spatial(args, "dilation", count, Exprs(count, Expr(1)));
  const bool ceil_mode = args.schema().position("ceil_mode") >= 0 && args["ceil_mode"].boolean();
  w.beyond = ceil_mode;
  for (size_t d = 0; d < count; ++d) {
    const Expr in = sizes[sizes.size() - count + d], p = w.padding[d], step = max(w.stride[d], 1);
    const Expr room = in + 2 * p - w.dilation[d] * (w.size[d] - 1) - 1;
    Expr out = floor_div(room, step) + 1;
    // Rounded up, but no window starts behind the input and the padding before it.
    if (ceil_mode) out = min(ceil_div(room, step) + 1, floor_div(in + p - 1, step) + 1);
    w.in.push_back(in);
    w.out.push_back(out);
    w.beyond |= !p.is(0);
  }
  return w;
}

template Windows windows_of(const MetaArgs&, const Exprs&, size_t);
template Windows windows_of(const LazyArgs&, const Exprs&, size_t);

void check_windows(ShapeEnv& env, const MetaArgs& args, const Windows& w) {
  const std::string& op = args.schema().name;
  for (size_t d = 0; d < w.size.size(); ++d) {
    STAX_CHECK(
        env.expect(gt(w.size[d], 0)) && env.expect(gt(w.stride[d], 0)) && env.expect(gt(w.dilation[d], 0)),
        "{}: expected positive window sizes, strides and dilations, got {}, {} and {}", op,
        shape_text(w.size), shape_text(w.stride), shape_text(w.dilation));
    STAX_CHECK(env.expect(ge(w.padding[d], 0)), "{}: expected padding of at least 0, got {}", op,
               shape_text(w.padding));
    STAX_CHECK(env.expect(gt(w.out[d], 0)),
               "{}: the result would be of shape {}: the windows {} do not fit {}", op, shape_text(w.out),
               shape_text(w.size), shape_text(w.in));
  }
}

void check_pool_input(ShapeEnv& env, const MetaArgs& args, size_t count) {
  const TensorMeta& x = args.tensor(0);
  const auto rank = static_cast<int64_t>(count) + 2;
  STAX_CHECK(x.dim() == rank || x.dim() == rank - 1,
             "{}: expected an input of {}, or {} without a batch, got shape {}", args.schema().name,
             counted(rank, "dimension"), rank - 1, shape_text(x.sizes));
  for (size_t d = x.dim() == rank ? 1 : 0; d < x.sizes.size(); ++d) {
    STAX_CHECK(env.expect(gt(x.sizes[d], 0)),
               "{}: expected an input with no empty dimension but the batch, got shape {}",
               args.schema().name, shape_text(x.sizes));
  }
}

namespace {

void check_padding(ShapeEnv& env, const MetaArgs& args, const Windows& w) {
  for (size_t d = 0; d < w.size.size(); ++d) {
    STAX_CHECK(env.expect(le(2 * w.padding[d], w.dilation[d] * (w.size[d] - 1) + 1)),
               "{}: expected padding of at most half a window, got {} for windows of {}", args.schema().name,
               shape_text(w.padding), shape_text(w.size));
  }
}

// Whether begin <= at < end.
V between(Lowering& lowering, Expr at, Expr begin, Expr end) {
  const V v = lowering.index_value(at);
  return bitwise_and(ge(v, lowering.index_value(begin)), lt(v, lowering.index_value(end)));
}

}  // namespace

TensorMeta pool_meta(ShapeEnv& env, const MetaArgs& args, size_t count) {
  check_pool_input(env, args, count);
  const TensorMeta& x = args.tensor(0);
  const Windows w = windows_of(args, x.sizes, count);
  check_windows(env, args, w);
  check_padding(env, args, w);
  return graph::dense(x.dtype, with_spatial(x.sizes, w.out), x.device);
}

V all_of(V a, V b) {
  return a.id < 0 ? b : bitwise_and(a, b);
}

V load_window(Lowering& lowering, const Lazy& x, const Windows& w, const Index& i, const Index& r, V other) {
  Index at = i;
  const size_t lead = i.size() - r.size();
  V inside;
  for (size_t d = 0; d < r.size(); ++d) {
    at[lead + d] = w.position(d, i[lead + d], r[d]);
    if (w.beyond) inside = all_of(inside, between(lowering, at[lead + d], Expr(0), w.in[d]));
  }
  return w.beyond ? lowering.masked_load(x, at, inside, other) : lowering.load(x, at);
}

AdaptiveWindows::AdaptiveWindows(const ShapeEnv& env, const Exprs& sizes, Exprs result)
    : out(std::move(result)) {
  for (size_t d = 0; d < out.size(); ++d) {
    in.push_back(sizes[sizes.size() - out.size() + d]);
    out[d] = max(out[d], 1);  // windows of an empty result are never visited
    even.push_back(env.proves(eq(mod(in[d], out[d]), 0)));
    longest.push_back(even[d] ? floor_div(in[d], out[d]) : ceil_div(in[d], out[d]) + 1);
    if (const auto n = in[d].constant(), m = out[d].constant(); n && m && !even[d]) {
      int64_t most = 1;
      for (int64_t i = 0; i < *m; ++i) most = std::max(most, ((i + 1) * *n + *m - 1) / *m - i * *n / *m);
      longest[d] = Expr(most);
    }
  }
}

}  // namespace stax::ops

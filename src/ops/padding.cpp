// Padding with a value, and with values of the tensor itself.
#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

Exprs padded_sizes(ShapeEnv& env, const Exprs& sizes, const Exprs& pad, const char* op) {
  STAX_CHECK(pad.size() % 2 == 0 && pad.size() / 2 <= sizes.size(), "{}: {} for a tensor of {}", op,
             counted(pad.size(), "pad"), counted(sizes.size(), "dimension"));
  Exprs out = sizes;
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    Expr& size = out[out.size() - 1 - k];
    size = size + pad[2 * k] + pad[2 * k + 1];
    STAX_CHECK(env.expect(ge(size, 0)), "{}: dimension {} would have size {}", op, out.size() - 1 - k,
               size.str());
  }
  return out;
}

Metas constant_pad_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  return {
      graph::dense(x.dtype, padded_sizes(env, x.sizes, args["pad"].integers(), "constant_pad_nd"), x.device)};
}

Lazies lower_constant_pad(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Exprs& pad = args["pad"].integers();
  return {lowering.pointwise(
      x.dtype, padded_sizes(lowering.env(), x.sizes, pad, "constant_pad_nd"), [&](const Index& i) {
        Index at = i;
        V inside;
        const auto require = [&](V condition) {
          inside = inside.id < 0 ? condition : bitwise_and(inside, condition);
        };
        for (size_t k = 0; k < pad.size() / 2; ++k) {
          const size_t d = x.sizes.size() - 1 - k;
          at[d] = i[d] - pad[2 * k];
          const V position = lowering.index_value(at[d]);
          if (!pad[2 * k].is(0)) require(ge(position, 0.0));
          if (!pad[2 * k + 1].is(0)) require(lt(position, lowering.index_value(x.sizes[d])));
        }
        if (inside.id < 0) return lowering.load(x, at);
        return lowering.masked_load(x, at, inside,
                                    round_to(lowering.number(args["value"].number(), x.dtype), x.dtype));
      })};
}

enum class PadMode { reflect, replicate, circular };

PadMode pad_mode(const std::string& text) {
  if (text == "reflect") return PadMode::reflect;
  if (text == "replicate") return PadMode::replicate;
  STAX_CHECK(text == "circular",
             "pad: expected mode 'constant', 'reflect', 'replicate' or 'circular', got '{}'", text);
  return PadMode::circular;
}

Metas pad_index_meta(ShapeEnv& env, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  const Exprs& pad = args["pad"].integers();
  const PadMode mode = pad_mode(args["mode"].string());
  const Exprs sizes = padded_sizes(env, x.sizes, pad, "pad");
  for (size_t k = 0; k < pad.size(); ++k) {
    const Expr size = x.sizes[x.sizes.size() - 1 - k / 2];
    const Expr limit = mode == PadMode::reflect ? size - 1 : size;
    STAX_CHECK(mode == PadMode::replicate || env.expect(le(pad[k], limit)),
               "pad: {} padding of {} is too large for size {}", args["mode"].string(), pad[k].str(),
               size.str());
    STAX_CHECK(mode != PadMode::replicate || maybe_positive(env, size) || env.decide(le(pad[k], 0)),
               "pad: an empty dimension cannot be replicated");
  }
  return {graph::dense(x.dtype, sizes, x.device)};
}

Lazies lower_pad_index(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const Exprs& pad = args["pad"].integers();
  const PadMode mode = pad_mode(args["mode"].string());
  return {lowering.pointwise(x.dtype, padded_sizes(lowering.env(), x.sizes, pad, "pad"), [&](const Index& i) {
    Index at = i;
    for (size_t k = 0; k < pad.size() / 2; ++k) {
      const size_t d = x.sizes.size() - 1 - k;
      const Expr last = x.sizes[d] - 1, p = i[d] - pad[2 * k];
      switch (mode) {
        case PadMode::reflect: {
          const Expr folded = max(p, -p);  // |p|
          at[d] = last - max(last - folded, folded - last);
          break;
        }
        case PadMode::replicate:
          at[d] = max(min(p, last), 0);
          break;
        case PadMode::circular: {
          // Negative pads crop first; what is left is repeated.
          const Expr first = max(-pad[2 * k], 0), left = max(pad[2 * k], 0);
          const Expr size = x.sizes[d] - first - max(-pad[2 * k + 1], 0);
          at[d] = first + mod(i[d] - left, max(size, 1));
          break;
        }
      }
    }
    return lowering.load(x, at);
  })};
}

Vars pad(Builder& b, const VarArgs& a) {
  const std::string& mode = a[2].string();
  if (mode == "constant") {
    return {b.call("constant_pad_nd", {a[0], a[1], a[3].is_none() ? VarArg(0) : a[3]})};
  }
  STAX_CHECK(a[3].is_none() || a[3].number() == Number::of(0.0) || a[3].number() == Number::of(int64_t{0}),
             "pad: mode '{}' takes no value", mode);
  return {b.call("pad_index", {a[0], a[1], mode})};
}

}  // namespace

Ops padding_rows() {
  return {
      lowered("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", constant_pad_meta,
              lower_constant_pad),
      internal(
          lowered("pad_index(Tensor self, int[] pad, str mode) -> Tensor", pad_index_meta, lower_pad_index)),
      composite("pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor", pad),
  };
}

}  // namespace stax::ops

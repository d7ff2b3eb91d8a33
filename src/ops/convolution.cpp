// Convolutions: external calls, with padding given by name brought to numbers first; for GPUs as
// ops/convolution_rules.h says.
#include "ops/convolution_rules.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "ops/window_rules.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

void require_all(ShapeEnv& env, const MetaArgs& args, std::string_view param, const Exprs& values,
                 int64_t least) {
  for (const Expr v : values) {
    STAX_CHECK(env.expect(ge(v, least)), "{}: expected {} of at least {}, got {}", args.schema().name, param,
               least, shape_text(values));
  }
}

// What both directions demand of input, weight and bias. Weights are [out, in / groups, window...] or,
// transposed, [in, out / groups, window...].
void check_operands(ShapeEnv& env, const MetaArgs& args, size_t count, bool transposed) {
  const TensorMeta &x = args.tensor(0), &w = args.tensor(1);
  const std::string& op = args.schema().name;
  const auto rank = static_cast<int64_t>(count) + 2;
  const bool batched = x.dim() == rank;
  STAX_CHECK(w.dim() == rank, "{}: expected a weight of {}, got shape {}", op, counted(rank, "dimension"),
             shape_text(w.sizes));
  STAX_CHECK(batched || x.dim() == rank - 1,
             "{}: expected an input of {}, or {} without a batch, got shape {}", op,
             counted(rank, "dimension"), rank - 1, shape_text(x.sizes));
  STAX_CHECK(x.dtype == w.dtype, "{}: expected input and weight of one dtype, got {} and {}", op,
             name(x.dtype), name(w.dtype));
  const Expr groups = args["groups"].integer(), channels = x.sizes[batched ? 1 : 0];
  STAX_CHECK(env.expect(gt(groups, 0)), "{}: expected a positive number of groups, got {}", op, groups.str());
  STAX_CHECK(env.expect(ge(w.sizes[0], groups)) && env.expect(eq(mod(w.sizes[0], groups), 0)),
             "{}: a weight of shape {} does not divide into {} groups", op, shape_text(w.sizes),
             groups.str());
  const Expr expected = transposed ? w.sizes[0] : w.sizes[1] * groups;
  STAX_CHECK(env.expect(eq(channels, expected)),
             "{}: expected an input of {} channels for a weight of shape {} and {} groups, got shape {}", op,
             expected.str(), shape_text(w.sizes), groups.str(), shape_text(x.sizes));
  if (args["bias"].is_none()) return;
  const TensorMeta& bias = args["bias"].tensor();
  const Expr outputs = transposed ? w.sizes[1] * groups : w.sizes[0];
  STAX_CHECK(bias.dtype == x.dtype, "{}: expected a bias of dtype {}, got {}", op, name(x.dtype),
             name(bias.dtype));
  STAX_CHECK(bias.dim() == 1 && env.expect(eq(bias.sizes[0], outputs)),
             "{}: expected a bias of shape [{}], got {}", op, outputs.str(), shape_text(bias.sizes));
}

TensorMeta result_meta(ShapeEnv& env, const MetaArgs& args, Expr channels, const Exprs& sizes) {
  const TensorMeta& x = args.tensor(0);
  Exprs all;
  if (x.sizes.size() == sizes.size() + 2) all.push_back(x.sizes[0]);
  all.push_back(channels);
  all.insert(all.end(), sizes.begin(), sizes.end());
  for (const Expr s : sizes) {
    STAX_CHECK(env.expect(gt(s, 0)),
               "{}: the result of shape {} would be empty: the window does not fit the input of shape {}",
               args.schema().name, shape_text(all), shape_text(x.sizes));
  }
  return graph::dense(x.dtype, all, x.device);
}

template <size_t Count>
Metas conv_meta(ShapeEnv& env, const MetaArgs& args) {
  const Exprs stride = spatial(args, "stride", Count), padding = spatial(args, "padding", Count),
              dilation = spatial(args, "dilation", Count);
  require_all(env, args, "stride", stride, 1);
  require_all(env, args, "padding", padding, 0);
  require_all(env, args, "dilation", dilation, 1);
  check_operands(env, args, Count, false);
  const TensorMeta &x = args.tensor(0), &w = args.tensor(1);
  const size_t lead = x.sizes.size() - Count;
  Exprs sizes;
  for (size_t d = 0; d < Count; ++d) {
    const Expr reach = dilation[d] * (w.sizes[d + 2] - 1) + 1;
    const Expr room = x.sizes[lead + d] + 2 * padding[d] - reach;
    STAX_CHECK(env.expect(ge(room, 0)), "{}: a window of {} is larger than the padded input {}",
               args.schema().name, reach.str(), (room + reach).str());
    sizes.push_back(floor_div(room, stride[d]) + 1);
  }
  return {result_meta(env, args, w.sizes[0], sizes)};
}

template <size_t Count>
Metas conv_transpose_meta(ShapeEnv& env, const MetaArgs& args) {
  const Exprs stride = spatial(args, "stride", Count), padding = spatial(args, "padding", Count),
              output_padding = spatial(args, "output_padding", Count),
              dilation = spatial(args, "dilation", Count);
  require_all(env, args, "stride", stride, 1);
  require_all(env, args, "padding", padding, 0);
  require_all(env, args, "output_padding", output_padding, 0);
  require_all(env, args, "dilation", dilation, 1);
  check_operands(env, args, Count, true);
  const TensorMeta &x = args.tensor(0), &w = args.tensor(1);
  const size_t lead = x.sizes.size() - Count;
  Exprs sizes;
  for (size_t d = 0; d < Count; ++d) {
    STAX_CHECK(env.expect(lt(output_padding[d], max(stride[d], dilation[d]))),
               "{}: expected an output padding below stride or dilation, got {}", args.schema().name,
               shape_text(output_padding));
    sizes.push_back((x.sizes[lead + d] - 1) * stride[d] - 2 * padding[d] +
                    dilation[d] * (w.sizes[d + 2] - 1) + 1 + output_padding[d]);
  }
  return {result_meta(env, args, w.sizes[1] * args["groups"].integer(), sizes)};
}

// padding='valid' is none; padding='same' keeps the sizes, with the odd element behind.
template <size_t Count>
Vars conv_named_padding(Builder& b, const VarArgs& a) {
  const std::string& op = a.schema().name;
  const std::string& padding = a["padding"].string();
  STAX_CHECK(padding == "same" || padding == "valid", "{}: expected padding 'same' or 'valid', got '{}'", op,
             padding);
  Var x = a.tensor(0);
  const Var w = a.tensor(1);
  Exprs before(Count, Expr(0));
  if (padding == "same") {
    const Exprs stride = spatial(a, "stride", Count), dilation = spatial(a, "dilation", Count);
    STAX_CHECK(w.dim() == static_cast<int64_t>(Count) + 2, "{}: expected a weight of {}, got {}", op,
               counted(Count + 2, "dimension"), shape_text(w.sizes()));
    Exprs pad(2 * Count, Expr(0));
    bool uneven = false;
    for (size_t d = 0; d < Count; ++d) {
      STAX_CHECK(b.env().expect(eq(stride[d], 1)), "{}: padding 'same' needs a stride of 1, got {}", op,
                 shape_text(stride));
      STAX_CHECK(b.env().expect(gt(dilation[d], 0)), "{}: expected a positive dilation, got {}", op,
                 shape_text(dilation));
      const Expr total = dilation[d] * (w.size(static_cast<int64_t>(d) + 2) - 1);
      before[d] = floor_div(total, 2);
      const Expr more = total - 2 * before[d];
      uneven |= !more.is(0);
      pad[2 * (Count - 1 - d) + 1] = more;
    }
    if (uneven) x = b.call("constant_pad_nd", {x, pad, 0});
  }
  return {b.call(op, {x, w, a["bias"], a["stride"], before, a["dilation"], a["groups"]})};
}

/// Channels innermost: oneDNN's kernels keep vectors of channels.
template <size_t Count>
Exprs channels_last(const TensorMeta& t) {
  const size_t channels = t.sizes.size() - Count - 1;
  Expr positions = 1;
  for (size_t d = channels + 1; d < t.sizes.size(); ++d) positions = positions * t.sizes[d];
  if (t.dtype != DType::float32 || t.sizes[channels].is(1) || positions.is(1)) return {};
  Exprs strides(t.sizes.size(), Expr(1));
  Expr step = t.sizes[channels];
  for (size_t d = t.sizes.size(); d-- > channels + 1;) {
    strides[d] = step;
    step = step * t.sizes[d];
  }
  if (channels == 1) strides[0] = step;
  return strides;
}

graph::Op convolution(std::string_view schema, graph::MetaRule meta, graph::LayoutRule layout) {
  graph::Op row = external(schema, meta, layout);
  row.lower = lower_convolution;
  return row;
}

graph::Op transposed(std::string_view schema, graph::MetaRule meta, graph::LayoutRule layout) {
  graph::Op row = external(schema, meta, layout);
  row.lower = lower_transposed_convolution;
  return row;
}

}  // namespace

Ops convolution_rows() {
  return {
      convolution("conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
                  "int[1] dilation=1, int groups=1) -> Tensor",
                  conv_meta<1>, channels_last<1>),
      convolution("conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
                  "int[2] dilation=1, int groups=1) -> Tensor",
                  conv_meta<2>, channels_last<2>),
      convolution("conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
                  "int[3] dilation=1, int groups=1) -> Tensor",
                  conv_meta<3>, channels_last<3>),
      composite("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str "
                "padding='valid', int[1] dilation=1, int groups=1) -> Tensor",
                conv_named_padding<1>),
      composite("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str "
                "padding='valid', int[2] dilation=1, int groups=1) -> Tensor",
                conv_named_padding<2>),
      composite("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str "
                "padding='valid', int[3] dilation=1, int groups=1) -> Tensor",
                conv_named_padding<3>),
      transposed("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] "
                 "padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
                 conv_transpose_meta<1>, channels_last<1>),
      transposed("conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] "
                 "padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
                 conv_transpose_meta<2>, channels_last<2>),
      transposed("conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] "
                 "padding=0, int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
                 conv_transpose_meta<3>, channels_last<3>),
  };
}

}  // namespace stax::ops

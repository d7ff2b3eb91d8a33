// Layers of networks in ONNX: convolutions, pools, normalisations, dropout.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "frontends/onnx_ops.h"
#include "support/plural.h"

namespace stax::onnx::ops {
namespace {

using Result = std::vector<Tensor>;

/// The window of a convolution or a pool over the spatial axes.
struct Window {
  Ints kernel, strides, dilations, before, after;

  size_t rank() const { return kernel.size(); }
  bool symmetric() const { return before == after; }
  int64_t reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  /// For constant_pad_nd: from the last axis.
  Ints pads() const {
    Ints result;
    for (size_t d = rank(); d-- > 0;) {
      result.push_back(before[d]);
      result.push_back(after[d]);
    }
    return result;
  }
};

/// Numbers that divide, and whose products with each other and with lengths stay in 64 bits.
void check(const NodeCall& call, const Window& window) {
  const auto all = [&](const Ints& values, int64_t least, std::string_view what) {
    for (const int64_t v : values) {
      if (v < least || v > kLargestCount) call.refuse(fmt::format("{} of {}", what, v));
    }
  };
  all(window.kernel, 1, "a window");
  all(window.strides, 1, "a stride");
  all(window.dilations, 1, "a dilation");
  all(window.before, -kLargestCount, "a pad");
  all(window.after, -kLargestCount, "a pad");
  const Tensor& x = call.in(0);
  if (x.dim() != static_cast<int64_t>(window.rank()) + 2)
    call.refuse(
        fmt::format("an input of {} for {} spatial ones", counted(x.dim(), "dimension"), window.rank()));
}

Window window_of(const NodeCall& call, Ints kernel) {
  const size_t rank = kernel.size();
  Window window{std::move(kernel), {}, {}, {}, {}};
  window.strides = call.node().get_ints("strides", Ints(rank, 1));
  window.dilations = call.node().get_ints("dilations", Ints(rank, 1));
  const Ints pads = call.node().get_ints("pads", Ints(2 * rank, 0));
  if (window.strides.size() != rank || window.dilations.size() != rank || pads.size() != 2 * rank)
    call.refuse(fmt::format("'strides', 'dilations' or 'pads' do not fit {} spatial dimensions", rank));
  window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  check(call, window);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return window;
  const Tensor& x = call.in(0);
  for (size_t d = 0; d < rank; ++d) {
    int64_t total = 0;
    if (automatic != "VALID") {
      const Expr length = size(x, static_cast<int64_t>(d) + 2), stride = window.strides[d];
      // With a stride of 1 the length cancels; else the pads are those of this length.
      const Expr missing = (ceil_div(length, stride) - 1) * stride + window.reach(d) - length;
      total = std::max<int64_t>(0, fixed(missing));
    }
    const int64_t small = total / 2;
    window.before[d] = automatic == "SAME_LOWER" ? total - small : small;
    window.after[d] = total - window.before[d];
  }
  return window;
}

std::string with_rank(std::string_view name, size_t rank) {
  return fmt::format("{}{}d", name, rank);
}

Ints spatial_sizes(const Tensor& tensor) {
  Ints sizes;
  for (int64_t d = 2; d < tensor.dim(); ++d) sizes.push_back(tensor.size(d));
  return sizes;
}

void check_rank(const NodeCall& call, size_t rank) {
  if (rank < 1 || rank > 3) call.refuse(fmt::format("{} spatial dimensions; 1 to 3 are supported", rank));
}

Argument<Tensor> optional_input(const NodeCall& call, size_t input) {
  if (!call.has(input)) return {};
  return call.in(input);
}

Result convolution(const NodeCall& call) {
  const Tensor& weight = call.in(1);
  const Window window = window_of(call, spatial_sizes(weight));
  check_rank(call, window.rank());
  Tensor x = call.in(0);
  Ints padding = window.before;
  if (!window.symmetric()) {
    x = op("constant_pad_nd", {x, list(window.pads())});
    padding.assign(window.rank(), 0);
  }
  return {op(with_rank("conv", window.rank()),
             {x, weight, optional_input(call, 2), list(window.strides), list(padding), list(window.dilations),
              call.integer("group", 1)})};
}

Result transposed_convolution(const NodeCall& call) {
  const Tensor &x = call.in(0), &weight = call.in(1);
  Window window = window_of(call, spatial_sizes(weight));
  check_rank(call, window.rank());
  const Ints extra = call.node().get_ints("output_padding", Ints(window.rank(), 0));
  const Ints wanted = call.node().get_ints("output_shape", {});
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (extra.size() != window.rank() || (!wanted.empty() && wanted.size() < window.rank()))
    call.refuse("'output_padding' or 'output_shape' does not fit its spatial dimensions");
  for (const Ints* sizes : {&extra, &wanted}) {
    for (const int64_t v : *sizes) {
      if (v < 0 || v > kLargestCount) call.refuse(fmt::format("an output padding or size of {}", v));
    }
  }
  for (size_t d = 0; d < window.rank(); ++d) {
    if (wanted.empty() && !automatic.starts_with("SAME")) continue;
    const int64_t length = x.size(static_cast<int64_t>(d) + 2);
    const int64_t full = window.strides[d] * (length - 1) + extra[d] + window.reach(d);
    const int64_t target =
        wanted.empty() ? length * window.strides[d] : wanted[wanted.size() - window.rank() + d];
    const int64_t total = full - target, small = total >> 1;  // rounded down, also where it is negative
    window.before[d] = automatic == "SAME_UPPER" ? small : total - small;
    window.after[d] = total - window.before[d];
  }
  // Computed in full, with what pads cut off afterwards: they need not be symmetric.
  const Ints none(window.rank(), 0);
  Tensor result = op(with_rank("conv_transpose", window.rank()),
                     {x, weight, Argument<Tensor>(), list(window.strides), list(none), list(none),
                      call.integer("group", 1), list(window.dilations)});
  Ints cut;
  for (size_t d = window.rank(); d-- > 0;) {
    cut.push_back(-window.before[d]);
    cut.push_back(extra[d] - window.after[d]);
  }
  result = op("constant_pad_nd", {result, list(cut)});
  if (!call.has(2)) return {result};
  Ints shape(window.rank() + 2, 1);
  shape[1] = -1;
  return {op("add", {result, op("reshape", {call.in(2), list(shape)})})};
}

Result max_pool(const NodeCall& call) {
  const Window window = window_of(call, call.node().get_ints("kernel_shape", {}));
  check_rank(call, window.rank());
  Tensor x = call.in(0);
  const bool ceil = call.integer("ceil_mode", 0) != 0;
  const bool fits = window.symmetric() && [&] {  // pads of at most half a window are the pool's own
    for (size_t d = 0; d < window.rank(); ++d) {
      if (2 * window.before[d] > window.kernel[d]) return false;
    }
    return true;
  }();
  Ints padding = window.before;
  if (!fits) {
    if (call.output_count() > 1)
      call.refuse("indices with pads that differ at the two ends are not supported");
    Argument<Tensor> lowest = -std::numeric_limits<double>::infinity();
    if (!x.is_floating_point()) lowest = int64_t{x.dtype() == DType::uint8 ? 0 : -128};
    x = op("constant_pad_nd", {x, list(window.pads()), lowest});
    padding.assign(window.rank(), 0);
  }
  Result results =
      op_all(with_rank("max_pool", window.rank()) + "_with_indices",
             {x, list(window.kernel), list(window.strides), list(padding), list(window.dilations), ceil});
  if (call.output_count() < 2) return {results.at(0)};
  // Positions within one image there, within the whole tensor here.
  const Exprs sizes = shape_of(call.in(0));
  const Expr image = product(std::span(sizes).subspan(2));
  Exprs shape(sizes.size(), 1);
  shape[0] = sizes[0];
  shape[1] = sizes[1];
  Tensor within = results.at(1);
  if (call.integer("storage_order", 0) != 0 && sizes.size() == 4) {  // columns first
    const Tensor row = op("floor_divide", {within, sizes[3]}), column = op("remainder", {within, sizes[3]});
    within = op("add", {op("mul", {column, sizes[2]}), row});
  }
  const Tensor starts = op("reshape", {op("mul", {op("arange", {sizes[0] * sizes[1]}), image}), list(shape)});
  return {results[0], op("add", {within, starts})};
}

/// How many windows fit along axis d of the input. Rounding up adds one that hangs over the end, unless it
/// would begin in the padding there.
int64_t window_count(const Window& window, size_t d, int64_t length, bool ceil) {
  const int64_t room = length + window.before[d] + window.after[d] - window.reach(d),
                stride = window.strides[d];
  int64_t count = (ceil ? room + stride - 1 : room) / stride + 1;
  if (ceil && (count - 1) * stride >= length + window.before[d]) --count;
  return count;
}

/// The sums of all windows of a tensor that is padded already: one strided slice for each place in the
/// window.
Tensor window_sums(Tensor x, const Window& window, const Ints& counts) {
  for (size_t d = 0; d < window.rank(); ++d) {  // axis by axis
    const auto axis = static_cast<int64_t>(d) + 2;
    const int64_t span = (counts[d] - 1) * window.strides[d] + 1;
    Tensor sum;
    for (int64_t k = 0; k < window.kernel[d]; ++k) {
      const int64_t start = k * window.dilations[d];
      const Tensor part = op("slice", {x, axis, start, start + span, window.strides[d]});
      sum = sum.defined() ? op("add", {sum, part}) : part;
    }
    x = sum;
  }
  return x;
}

Result average_pool(const NodeCall& call) {
  const Window window = window_of(call, call.node().get_ints("kernel_shape", {}));
  check_rank(call, window.rank());
  const Tensor& x = call.in(0);
  const bool ceil = call.integer("ceil_mode", 0) != 0, include = call.integer("count_include_pad", 0) != 0;
  bool fits = window.symmetric();
  for (size_t d = 0; d < window.rank(); ++d)
    fits = fits && 2 * window.before[d] <= window.kernel[d] && window.dilations[d] == 1;
  if (fits) {
    return {op(with_rank("avg_pool", window.rank()),
               {x, list(window.kernel), list(window.strides), list(window.before), ceil, include})};
  }
  // Sums over explicit zeros, divided by how many elements of each window count.
  Ints counts, pads = window.pads(), overhang(pads.size(), 0);
  for (size_t d = 0; d < window.rank(); ++d) {
    const int64_t length = x.size(static_cast<int64_t>(d) + 2);
    counts.push_back(window_count(window, d, length, ceil));
    if (counts.back() < 1) call.refuse("a window that is longer than the padded input");
    const int64_t needed = (counts[d] - 1) * window.strides[d] + window.reach(d);
    const int64_t missing = std::max<int64_t>(0, needed - length - window.before[d] - window.after[d]);
    overhang[2 * (window.rank() - 1 - d) + 1] = missing;
  }
  const auto padded = [&](const Tensor& t) {
    return op("constant_pad_nd", {op("constant_pad_nd", {t, list(pads)}), list(overhang)});
  };
  const Tensor ones = op("ones_like", {x});
  const Tensor counted =
      include ? op("constant_pad_nd", {op("constant_pad_nd", {ones, list(pads), 1.0}), list(overhang)})
              : padded(ones);
  return {op("div", {window_sums(padded(x), window, counts), window_sums(counted, window, counts)})};
}

template <bool largest>
Result global_pool(const NodeCall& call) {
  const Tensor& x = call.in(0);
  return {op(largest ? "amax" : "mean", {x, list(range(2, x.dim())), true})};
}

/// [C] as [1, C, 1, ...], to go with x.
Tensor channels(const Tensor& values, const Tensor& x) {
  Ints shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = -1;
  return op("reshape", {values, list(shape)});
}

Result batch_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  if (call.integer("training_mode", 0) != 0) call.refuse("training is not supported");
  const Tensor spread = op("sqrt", {op("add", {call.in(4), call.real("epsilon", 1e-5)})});
  const Tensor centred = op("sub", {x, channels(call.in(3), x)});
  const Tensor scaled = op("mul", {op("div", {centred, channels(spread, x)}), channels(call.in(1), x)});
  return {op("to", {op("add", {scaled, channels(call.in(2), x)}), x.dtype()})};
}

struct Moments {
  Tensor mean, inverse;  // 1 / sqrt(variance + epsilon)
};

Moments moments(const Tensor& x, const Ints& axes, double epsilon) {
  const Tensor mean = op("mean", {x, list(axes), true});
  const Tensor variance = op("var", {x, list(axes), false, true});
  return {mean, op("reciprocal", {op("sqrt", {op("add", {variance, epsilon})})})};
}

Result layer_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const Ints axes = range(axis_of(call, call.integer("axis", -1), x.dim()), x.dim());
  const Tensor wide = op("to", {x, is_half(x.dtype()) ? DType::float32 : x.dtype()});
  const Moments m = moments(wide, axes, call.real("epsilon", 1e-5));
  Tensor y = op("to", {op("mul", {op("sub", {wide, m.mean}), m.inverse}), x.dtype()});
  if (call.has(1)) y = op("mul", {y, call.in(1)});
  if (call.has(2)) y = op("add", {y, call.in(2)});
  return {y, m.mean, m.inverse};
}

Result rms_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const Ints axes = range(axis_of(call, call.integer("axis", -1), x.dim()), x.dim());
  const Tensor wide = op("to", {x, is_half(x.dtype()) ? DType::float32 : x.dtype()});
  const Tensor square = op("mean", {op("mul", {wide, wide}), list(axes), true});
  const Tensor root = op("sqrt", {op("add", {square, call.real("epsilon", 1e-5)})});
  return {op("mul", {op("to", {op("div", {wide, root}), x.dtype()}), call.in(1)})};
}

Result instance_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const Moments m = moments(x, range(2, x.dim()), call.real("epsilon", 1e-5));
  const Tensor y = op("mul", {op("sub", {x, m.mean}), m.inverse});
  return {op("add", {op("mul", {y, channels(call.in(1), x)}), channels(call.in(2), x)})};
}

Result group_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const int64_t groups = call.positive("num_groups", 1);
  const Tensor flat = op("reshape", {x, list(Exprs{size(x, 0), groups, -1})});
  const Moments m = moments(flat, {2}, call.real("epsilon", 1e-5));
  const Tensor normal = op("mul", {op("sub", {flat, m.mean}), m.inverse});
  const auto apply = [&](const Tensor& y, size_t input, std::string_view name) {
    return op(name, {y, channels(call.in(input), y)});
  };
  const Exprs sizes = shape_of(x);
  if (call.opset() < 21)  // one scale a group
    return {op("reshape", {apply(apply(normal, 1, "mul"), 2, "add"), list(sizes)})};
  return {apply(apply(op("reshape", {normal, list(sizes)}), 1, "mul"), 2, "add")};
}

Result lp_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const int64_t axis = axis_of(call, call.integer("axis", -1), x.dim()), p = call.integer("p", 2);
  const Tensor absolute = op("abs", {x});
  const Tensor total = op("sum", {p == 1 ? absolute : op("mul", {x, x}), list(Ints{axis}), true});
  const Tensor norm = p == 1 ? total : op("sqrt", {total});
  return {op("where", {op("eq", {norm, 0}), op("zeros_like", {x}), op("div", {x, norm})})};
}

Result mean_variance_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const Ints axes = call.node().get_ints("axes", {0, 2, 3});
  const Tensor centred = op("sub", {x, op("mean", {x, list(axes), true})});
  const Tensor variance = op("mean", {op("mul", {centred, centred}), list(axes), true});
  return {op("div", {centred, op("add", {op("sqrt", {variance}), 1e-9})})};
}

Result local_response_normalization(const NodeCall& call) {
  const Tensor& x = call.in(0);
  if (x.dim() < 2) call.refuse("the input is to have channels");
  const int64_t size = call.positive("size", 1), before = (size - 1) / 2;
  Ints pads(static_cast<size_t>(2 * (x.dim() - 1)), 0);
  pads[pads.size() - 2] = before;
  pads[pads.size() - 1] = size - 1 - before;
  const Tensor squares = op("constant_pad_nd", {op("mul", {x, x}), list(pads)});
  const Tensor sums = op("sum", {op("unfold", {squares, 1, size, 1}), list(Ints{-1})});
  const Tensor base = op(
      "add", {op("mul", {sums, call.real("alpha", 1e-4) / static_cast<double>(size)}), call.real("bias", 1)});
  return {op("div", {x, op("pow", {base, call.real("beta", 0.75)})})};
}

Tensor negative_log_likelihood(const NodeCall& call, const Tensor& scores) {
  Argument<Tensor> weight;
  if (call.has(2)) weight = call.in(2);
  return op("nll_loss", {scores, op("to", {call.in(1), DType::int64}), weight,
                         call.integer("ignore_index", -100), call.text("reduction", "mean")});
}
Result negative_log_likelihood_loss(const NodeCall& call) {
  return {negative_log_likelihood(call, call.in(0))};
}
Result softmax_cross_entropy_loss(const NodeCall& call) {
  const Tensor scores = op("log_softmax", {call.in(0), 1});
  return {negative_log_likelihood(call, scores), scores};
}

/// As in inference: nothing is dropped.
Result dropout(const NodeCall& call) {
  if (call.has(2) && call.numbers(2).at(0) != 0 && call.number(1, 0.5) != 0)
    call.refuse("training is not supported");
  Result results{call.in(0)};
  if (call.output_count() > 1) {
    const DType mask = call.opset() < 10 ? call.in(0).dtype() : DType::boolean;
    results.push_back(op("ones_like", {call.in(0)}, {{"dtype", mask}}));
  }
  return results;
}

constexpr OpRow kNetworkRows[] = {
    {"Conv", 1, convolution},
    {"ConvTranspose", 1, transposed_convolution},
    {"MaxPool", 1, max_pool},
    {"AveragePool", 1, average_pool},
    {"GlobalMaxPool", 1, global_pool<true>},
    {"GlobalAveragePool", 1, global_pool<false>},
    {"BatchNormalization", 7, batch_normalization},
    {"LayerNormalization", 17, layer_normalization},
    {"RMSNormalization", 23, rms_normalization},
    {"InstanceNormalization", 6, instance_normalization},
    {"GroupNormalization", 18, group_normalization},
    {"LpNormalization", 1, lp_normalization},
    {"MeanVarianceNormalization", 9, mean_variance_normalization},
    {"LRN", 1, local_response_normalization},
    {"Dropout", 7, dropout},
    {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy_loss},
};

}  // namespace

std::span<const OpRow> network_rows() {
  return kNetworkRows;
}

}  // namespace stax::onnx::ops

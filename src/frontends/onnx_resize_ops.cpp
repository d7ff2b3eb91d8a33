// Resize and Upsample of ONNX, axis by axis: positions between samples, and what is picked or weighed there.
#include <fmt/core.h>

#include <cmath>

#include "frontends/onnx_ops.h"
#include "support/plural.h"

namespace stax::onnx::ops {
namespace {

/// How one axis changes: to a length, or by a factor.
struct Change {
  int64_t axis = 0;
  Expr length;                  // afterwards
  std::optional<double> scale;  // nothing: length / length before
};

/// floor(length * scale). A scale of float32 is a binary fraction, for which that is a quotient of integers.
Expr scaled(Expr length, double scale) {
  constexpr int kMostBits = 40;
  double over = scale;
  for (int bits = 0; bits <= kMostBits; ++bits, over *= 2) {
    if (over != std::floor(over)) continue;
    if (over >= 0x1p31) break;
    return floor_div(length * Expr(static_cast<int64_t>(over)), Expr(int64_t{1} << bits));
  }
  return static_cast<int64_t>(std::floor(static_cast<double>(fixed(length)) * scale));
}

/// The size as a float64 of no dimensions.
Tensor real(Expr size) {
  return op("full", {list(Exprs{}), size}, {{"dtype", DType::float64}});
}

std::vector<Change> changes_of(const NodeCall& call) {
  const Tensor& x = call.in(0);
  std::vector<Change> result;
  const Ints axes = call.node().get_ints("axes", range(0, x.dim()));
  const bool old = call.opset() < 11;
  const size_t scales_at = old ? 1 : 2;
  std::optional<Exprs> sizes;
  std::vector<double> scales;
  if (!old && call.has(3)) sizes = call.exprs(3);
  if (call.has(scales_at)) scales = call.numbers(scales_at);
  if (sizes && sizes->empty()) sizes.reset();
  if (const Attribute* given = call.node().find("scales")) {
    if (const auto* list = std::get_if<std::vector<float>>(&given->value))
      scales.assign(list->begin(), list->end());
  }
  const size_t count = sizes ? sizes->size() : scales.size();
  if (count != axes.size())
    call.refuse(fmt::format("{} or scales for {} axes", counted(count, "size"), axes.size()));
  for (size_t k = 0; k < count; ++k) {
    const int64_t axis = axis_of(call, axes[k], x.dim());
    if (sizes) {
      result.push_back({axis, (*sizes)[k], std::nullopt});
      continue;
    }
    if (!(scales[k] > 0) || scales[k] > static_cast<double>(kLargestCount))
      call.refuse(fmt::format("a scale of {}", scales[k]));
    result.push_back({axis, scaled(size(x, axis), scales[k]), scales[k]});
  }
  return result;
}

/// For each position of the result, where it lies between the samples: float64.
Tensor coordinates(const NodeCall& call, const Change& change, Expr before, const std::string& how) {
  const Tensor at = op("arange", {change.length}, {{"dtype", DType::float64}});
  const auto divided = [&](const Tensor& t) {
    if (change.scale) return op("div", {t, *change.scale});
    return op("div", {op("mul", {t, before}), change.length});
  };
  const auto half_pixel = [&] { return op("sub", {divided(op("add", {at, 0.5})), 0.5}); };
  if (how == "asymmetric") return divided(at);
  if (how == "half_pixel") return half_pixel();
  const bool single =
      (how == "pytorch_half_pixel" || how == "align_corners") && to_sym_int(change.length) == 1;
  if (single) return op("zeros_like", {at});
  if (how == "pytorch_half_pixel") return half_pixel();
  if (how == "align_corners" && change.scale) {  // the last sample lies at the scaled length, not rounded
    return op("div",
              {op("mul", {at, before - 1}), op("sub", {op("mul", {real(before), *change.scale}), 1.0})});
  }
  if (how == "align_corners") return op("div", {op("mul", {at, before - 1}), change.length - 1});
  if (how == "half_pixel_symmetric") {
    if (!change.scale) return half_pixel();
    const Tensor length = real(before);
    const Tensor adjustment = op("div", {real(change.length), op("mul", {length, *change.scale})});
    return op("add", {half_pixel(), op("mul", {op("div", {length, 2.0}), op("rsub", {adjustment, 1.0})})});
  }
  call.refuse(fmt::format("there is no way '{}' to transform coordinates", how));
}

/// The samples at positions of float64, which are whole; the nearest one where there is none.
Tensor samples(const Tensor& x, int64_t axis, const Tensor& at, Expr before) {
  const Tensor index = op("clamp", {op("to", {at, DType::int64}), 0, before - 1});
  return op("index_select", {x, axis, index});
}

Tensor nearest(const NodeCall& call, const Tensor& x, int64_t axis, const Tensor& at, Expr before) {
  const std::string how = call.text("nearest_mode", call.opset() < 11 ? "floor" : "round_prefer_floor");
  if (how == "floor") return samples(x, axis, op("floor", {at}), before);
  if (how == "ceil") return samples(x, axis, op("ceil", {at}), before);
  if (how == "round_prefer_ceil") return samples(x, axis, op("floor", {op("add", {at, 0.5})}), before);
  if (how == "round_prefer_floor") return samples(x, axis, op("ceil", {op("sub", {at, 0.5})}), before);
  call.refuse(fmt::format("there is no way '{}' to find what is nearest", how));
}

/// The weight of the sample `tap` places after the one below, by the distance `t` from that one.
Tensor cubic_weight(const Tensor& t, int64_t tap, double a) {
  // |d| <= 1: (a+2)|d|^3 - (a+3)|d|^2 + 1; |d| < 2: a|d|^3 - 5a|d|^2 + 8a|d| - 4a
  const Tensor d = op("abs", {op("sub", {t, static_cast<double>(tap)})});
  const bool inner = tap == 0 || tap == 1;
  const double c3 = inner ? a + 2 : a, c2 = inner ? -(a + 3) : -5 * a, c1 = inner ? 0 : 8 * a,
               c0 = inner ? 1 : -4 * a;
  Tensor sum = op("add", {op("mul", {d, c3}), c2});
  sum = op("add", {op("mul", {sum, d}), c1});
  return op("add", {op("mul", {sum, d}), c0});
}

Tensor weighed(const NodeCall& call, const Tensor& x, int64_t axis, const Tensor& at, Expr before,
               bool cubic) {
  const Tensor below = op("floor", {at}), t = op("sub", {at, below});
  const double a = call.real("cubic_coeff_a", -0.75);
  Exprs shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(axis)] = size(at, 0);
  Tensor sum;
  for (int64_t tap = cubic ? -1 : 0; tap <= (cubic ? 2 : 1); ++tap) {
    const Tensor weight = cubic ? cubic_weight(t, tap, a) : tap == 0 ? op("rsub", {t, 1.0}) : t;
    const Tensor sample = samples(x, axis, op("add", {below, static_cast<double>(tap)}), before);
    const Tensor part = op("mul", {sample, op("reshape", {op("to", {weight, x.dtype()}), list(shape)})});
    sum = sum.defined() ? op("add", {sum, part}) : part;
  }
  return sum;
}

std::vector<Tensor> resize(const NodeCall& call) {
  std::string mode = call.text("mode", "nearest");
  if (mode == "bilinear") mode = "linear";  // as Upsample first named it
  const std::string how =
      call.text("coordinate_transformation_mode", call.opset() < 11 ? "asymmetric" : "half_pixel");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    call.refuse(fmt::format("there is no mode '{}'", mode));
  if (call.integer("antialias", 0) != 0) call.refuse("'antialias' is not supported");
  if (call.integer("exclude_outside", 0) != 0) call.refuse("'exclude_outside' is not supported");
  if (call.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    call.refuse("'keep_aspect_ratio_policy' is not supported but for stretch");
  const DType dtype = call.in(0).dtype();
  const bool whole = mode != "nearest" && !is_floating_point(dtype);
  Tensor x = whole ? op("to", {call.in(0), DType::float32}) : call.in(0);
  for (const Change& change : changes_of(call)) {
    const Expr before = size(x, change.axis);
    if (change.scale ? *change.scale == 1 : before == change.length) continue;
    if (x.size(change.axis) == 0) call.refuse(fmt::format("axis {} has no samples", change.axis));
    const Tensor at = coordinates(call, change, before, how);
    x = mode == "nearest" ? nearest(call, x, change.axis, at, before)
                          : weighed(call, x, change.axis, at, before, mode == "cubic");
  }
  return {whole ? op("to", {x, dtype}) : x};
}

constexpr OpRow kResizeRows[] = {
    {"Resize", 10, resize},
    {"Upsample", 7, resize},
};

}  // namespace

std::span<const OpRow> resize_rows() {
  return kResizeRows;
}

}  // namespace stax::onnx::ops

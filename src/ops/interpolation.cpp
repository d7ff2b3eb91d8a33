// Resampling of the spatial dimensions, and moves between channels and space.
#include <cmath>

#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

// ---- resampling ----

// One dimension of a resampling. `scale` is the factor that the user gave, 0 where the sizes decide.
struct Axis {
  Expr in, out;
  double scale = 0;
  bool align_corners = false;
};

// A sample of the input that a result reads, and its share; no weight means all of it.
struct Tap {
  Expr index;
  V weight;
  V position;  // the index as a value, where it is computed
};

// Coordinates are computed in float32, or in float64 for float64 tensors, as PyTorch does.
DType coordinate_dtype(DType dtype) {
  return dtype == DType::float64 ? DType::float64 : DType::float32;
}

// Input samples a result sample.
V step(Lowering& lowering, const Axis& axis, DType dtype) {
  if (axis.align_corners) {
    const V last = lowering.number(num(max(axis.out - 1, 1)), dtype);
    const V span = lowering.number(num(axis.in - 1), dtype) / last;
    if (const auto n = axis.out.constant()) return *n > 1 ? span : lowering.constant(dtype, 0.0);
    return where(gt(lowering.index_value(axis.out), lowering.index_value(Expr(1))), span,
                 lowering.constant(dtype, 0.0));
  }
  if (axis.scale > 0) return lowering.constant(dtype, 1 / axis.scale);
  return lowering.number(num(axis.in), dtype) / lowering.number(num(axis.out), dtype);
}

// The coordinate in the input of result sample i: samples are points (align_corners), or cells whose centres
// correspond.
V coordinate(Lowering& lowering, const Axis& axis, Expr i, DType dtype) {
  const V at = cast(lowering.index_value(i), dtype), by = step(lowering, axis, dtype);
  return axis.align_corners ? at * by : (at + 0.5) * by - 0.5;
}

template <class T>
int64_t nearest(const Axis& axis, int64_t i, bool exact) {
  const T by = axis.scale > 0 ? static_cast<T>(1 / axis.scale)
                              : static_cast<T>(axis.in.value()) / static_cast<T>(axis.out.value());
  const T at = exact ? (static_cast<T>(i) + T(0.5)) * by : static_cast<T>(i) * by;
  return std::min(static_cast<int64_t>(std::floor(at)), axis.in.value() - 1);
}

Expr nearest_exactly(const Axis& axis, Expr i, bool exact) {
  return exact ? floor_div((2 * i + 1) * axis.in, 2 * axis.out) : floor_div(i * axis.in, axis.out);
}

// Whether the quotient of integers gives the indices that floating coordinates give.
bool is_quotient(const Axis& axis, DType dtype, bool exact) {
  if (!axis.in.is_constant() || !axis.out.is_constant()) return false;
  for (int64_t i = 0; i < axis.out.value(); ++i) {
    const int64_t floating =
        dtype == DType::float64 ? nearest<double>(axis, i, exact) : nearest<float>(axis, i, exact);
    if (nearest_exactly(axis, Expr(i), exact).value() != floating) return false;
  }
  return true;
}

std::vector<Tap> nearest_taps(Lowering& lowering, const Axis& axis, Expr i, DType dtype, bool exact) {
  if (is_quotient(axis, dtype, exact)) return {{nearest_exactly(axis, i, exact), {}}};
  V at = cast(lowering.index_value(i), dtype);
  if (exact) at = at + 0.5;
  const V index = cast(floor(at * step(lowering, axis, dtype)), DType::int64);
  return {{lowering.indirect(minimum(index, lowering.index_value(axis.in - 1))), {}}};
}

std::vector<Tap> linear_taps(Lowering& lowering, const Axis& axis, Expr i, DType dtype) {
  const V at = maximum(coordinate(lowering, axis, i, dtype), 0.0);
  const V last = lowering.index_value(axis.in - 1);
  const V first = minimum(cast(floor(at), DType::int64), last);
  const V share = minimum(at - cast(first, dtype), 1.0);
  const V next = minimum(first + lowering.index_value(Expr(1)), last);
  return {{lowering.indirect(first), 1.0 - share, first}, {lowering.indirect(next), share, next}};
}

// The cubic convolution kernel with a = -3/4 at distance x: within one sample, and between one and two.
V cubic_near(V x) {
  constexpr double a = -0.75;
  return ((a + 2) * x - (a + 3)) * x * x + 1.0;
}
V cubic_far(V x) {
  constexpr double a = -0.75;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

std::vector<Tap> cubic_taps(Lowering& lowering, const Axis& axis, Expr i, DType dtype) {
  const V at = coordinate(lowering, axis, i, dtype);
  const V base = floor(at), t = at - base;
  const V first = cast(base, DType::int64), last = lowering.index_value(axis.in - 1);
  const auto tap = [&](int offset, V weight) -> Tap {
    const V index = first + lowering.index_value(Expr(offset));
    const V position = maximum(minimum(index, last), lowering.index_value(Expr(0)));
    return {lowering.indirect(position), weight, position};
  };
  return {tap(-1, cubic_far(t + 1.0)), tap(0, cubic_near(t)), tap(1, cubic_near(1.0 - t)),
          tap(2, cubic_far(2.0 - t))};
}

// ---- resampling of uint8 ----

// Images of bytes are resampled one dimension after the other, in fixed point: the weights of a dimension are
// integers of `bits` fractional bits, and each pass rounds to uint8. `bits` is as large as weights of 16 bits
// with a sign allow, as in PyTorch.

double cubic_weight(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The largest weight of any input sample; samples beyond the edges count for the edge.
double largest_weight(const Axis& axis, bool cubic) {
  const int64_t in = axis.in.value(), out = axis.out.value();
  const double by = axis.align_corners
                        ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0)
                    : axis.scale > 0 ? 1 / axis.scale
                                     : static_cast<double>(in) / static_cast<double>(out);
  double largest = 0;
  for (int64_t i = 0; i < out; ++i) {
    double at = axis.align_corners ? static_cast<double>(i) * by : (static_cast<double>(i) + 0.5) * by - 0.5;
    if (!cubic) at = std::max(at, 0.0);
    const auto base = static_cast<int64_t>(std::floor(at));
    double sum = 0;
    for (int64_t k = base - 1; k <= base + 2; ++k) {
      const double distance = std::abs(at - static_cast<double>(k));
      const double weight = cubic ? cubic_weight(distance) : std::max(0.0, 1 - distance);
      // Taps that are moved to an edge share its weight.
      const bool moved = k > 0 && std::min(k, in - 1) == std::min(k - 1, in - 1);
      sum = (k <= 0 || moved) ? sum + weight : weight;
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

int64_t weight_bits(const Axis& axis, bool cubic) {
  constexpr int64_t kMost = 22, kWide = 14;  // kWide holds any weight below 2
  if (!axis.in.is_constant() || !axis.out.is_constant()) return kWide;
  const double largest = largest_weight(axis, cubic);
  int64_t bits = 0;
  while (bits < kMost && std::floor(0.5 + largest * std::ldexp(1.0, static_cast<int>(bits) + 1)) < 32768)
    ++bits;
  return bits;
}

// Taps at one sample become one tap, so that their weights are rounded together.
void merge_taps(std::vector<Tap>& taps) {
  for (size_t k = 0; k + 1 < taps.size(); ++k) {
    const V same = eq(taps[k].position, taps[k + 1].position), zero = like(taps[k].weight, 0);
    taps[k + 1].weight = taps[k + 1].weight + where(same, taps[k].weight, zero);
    taps[k].weight = where(same, zero, taps[k].weight);
  }
}

Metas resample_bytes_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  Exprs sizes = x.sizes;
  sizes[args["dim"].integer().value()] = args["size"].integer();
  return {graph::dense(x.dtype, sizes, x.device)};
}

Lazies lower_resample_bytes(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const int64_t dim = args["dim"].integer().value();
  // How many bits the weights have depends on the lengths.
  ShapeEnv& env = lowering.env();
  const Axis axis{env.specialize(x.sizes[dim]), env.specialize(args["size"].integer()),
                  args["scale"].floating(), args["align_corners"].boolean()};
  const bool cubic = args["mode"].string() == "cubic";
  const int64_t bits = weight_bits(axis, cubic);
  Exprs sizes = x.sizes;
  sizes[dim] = axis.out;
  const auto number = [&](int64_t n) { return lowering.constant(DType::int32, n); };
  return {lowering.pointwise(x.dtype, sizes, [&](const Index& i) {
    std::vector<Tap> taps = cubic ? cubic_taps(lowering, axis, i[dim], DType::float64)
                                  : linear_taps(lowering, axis, i[dim], DType::float64);
    merge_taps(taps);
    V sum = number(bits > 0 ? int64_t{1} << (bits - 1) : 0);
    for (const Tap& tap : taps) {
      const V fixed = tap.weight * std::ldexp(1.0, static_cast<int>(bits));
      const V half = where(lt(fixed, 0.0), like(fixed, -0.5), like(fixed, 0.5));
      Index at = i;
      at[dim] = tap.index;
      sum = sum + cast(lowering.load(x, at), DType::int32) * cast(fixed + half, DType::int32);
    }
    return cast(minimum(maximum(shift_right(sum, number(bits)), 0.0), 255.0), x.dtype);
  })};
}

std::vector<Axis> axes_of(const auto& args, const Exprs& in) {
  const Exprs& out = args["size"].integers();
  const std::vector<double>& scales = args["scales"].floats();
  std::vector<Axis> axes;
  for (size_t d = 0; d < out.size(); ++d) {
    axes.push_back({in[in.size() - out.size() + d], out[d], scales.empty() ? 0 : scales[d],
                    args["align_corners"].boolean()});
  }
  return axes;
}

Metas resample_meta(ShapeEnv&, const MetaArgs& args) {
  const TensorMeta& x = args.tensor(0);
  Exprs sizes(x.sizes.begin(), x.sizes.begin() + 2);
  for (const Axis& a : axes_of(args, x.sizes)) sizes.push_back(a.out);
  return {graph::dense(x.dtype, sizes, x.device)};
}

// The weighted sum of the samples that the taps of all dimensions from d on choose.
V weighted(Lowering& lowering, const Lazy& x, const std::vector<std::vector<Tap>>& taps, size_t d, Index& at,
           DType dtype) {
  if (d == taps.size()) {
    const V value = lowering.load(x, at);
    return taps[0][0].weight.id < 0 ? value : cast(value, dtype);
  }
  V sum;
  for (const Tap& tap : taps[d]) {
    at[d + 2] = tap.index;
    V part = weighted(lowering, x, taps, d + 1, at, dtype);
    if (tap.weight.id >= 0) part = part * tap.weight;
    sum = sum.id < 0 ? part : sum + part;
  }
  return sum;
}

Lazies lower_resample(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  const std::string& mode = args["mode"].string();
  const std::vector<Axis> axes = axes_of(args, x.sizes);
  const DType dtype = coordinate_dtype(x.dtype);
  Exprs sizes(x.sizes.begin(), x.sizes.begin() + 2);
  for (const Axis& a : axes) sizes.push_back(a.out);
  return {lowering.pointwise(x.dtype, sizes, [&](const Index& i) {
    std::vector<std::vector<Tap>> taps;
    for (size_t d = 0; d < axes.size(); ++d) {
      const Expr at = i[d + 2];
      if (mode == "linear") {
        taps.push_back(linear_taps(lowering, axes[d], at, dtype));
      } else if (mode == "cubic") {
        taps.push_back(cubic_taps(lowering, axes[d], at, dtype));
      } else {
        taps.push_back(nearest_taps(lowering, axes[d], at, dtype, mode == "nearest-exact"));
      }
    }
    Index at = i;
    V value = weighted(lowering, x, taps, 0, at, dtype);
    const bool rounds = taps[0][0].weight.id >= 0 && !is_floating_point(x.dtype);
    return rounds ? minimum(maximum(round(value), 0.0), 255.0) : value;
  })};
}

// ---- interpolate ----

struct Mode {
  std::string_view name, kind;
  int64_t spatial;  // dimensions that it takes, 0: one to three
};

constexpr Mode kModes[] = {
    {"nearest", "nearest", 0},  {"nearest-exact", "nearest-exact", 0},
    {"linear", "linear", 1},    {"bilinear", "linear", 2},
    {"trilinear", "linear", 3}, {"bicubic", "cubic", 2},
    {"area", "area", 0},
};

const Mode& find_mode(const std::string& name, int64_t spatial) {
  for (const Mode& m : kModes) {
    if (m.name != name) continue;
    STAX_CHECK(m.spatial == spatial || (m.spatial == 0 && spatial >= 1 && spatial <= 3),
               "interpolate: mode '{}' does not take {} spatial dimensions", name, spatial);
    return m;
  }
  STAX_CHECK(false,
             "interpolate: expected a mode of nearest, nearest-exact, linear, bilinear, bicubic, "
             "trilinear or area, got '{}'",
             name);
  __builtin_unreachable();
}

// floor(size * scale). A symbolic size needs a scale that is a short binary fraction.
Expr scaled_size(Expr size, double scale) {
  if (const auto n = size.constant())
    return Expr(static_cast<int64_t>(std::floor(static_cast<double>(*n) * scale)));
  constexpr double kDenominator = 1 << 16;
  const double numerator = scale * kDenominator;
  STAX_CHECK(numerator == std::floor(numerator) && numerator < 1e12,
             "interpolate: a changing size {} cannot be scaled by {} exactly; pass size instead", size.str(),
             scale);
  return floor_div(size * Expr(static_cast<int64_t>(numerator)), Expr(int64_t{1} << 16));
}

Var interpolate(Builder& b, const Var& x, const Exprs* size, std::vector<double> scales,
                const std::string& mode_name, const VarArg& align, const VarArg& recompute) {
  const int64_t spatial = x.dim() - 2;
  STAX_CHECK(spatial >= 1 && spatial <= 3,
             "interpolate: expected a batch, channels and 1 to 3 spatial dimensions, got shape {}",
             shape_text(x.sizes()));
  const Mode& mode = find_mode(mode_name, spatial);
  STAX_CHECK((size == nullptr) != scales.empty(),
             "interpolate: expected either a size or a scale factor, got {}", size ? "both" : "neither");
  const bool weighs = mode.kind == "linear" || mode.kind == "cubic";
  STAX_CHECK(weighs || align.is_none(), "interpolate: align_corners does not apply to mode '{}'", mode.name);
  const bool recomputes = !recompute.is_none() && recompute.boolean();
  STAX_CHECK(!size || !recomputes, "interpolate: recompute_scale_factor does not apply to a given size");
  const size_t given = size ? size->size() : scales.size();
  STAX_CHECK(given == static_cast<size_t>(spatial), "interpolate: expected {} or scale factors, got {}",
             counted(spatial, "size"), given);
  Exprs out;
  for (int64_t d = 0; d < spatial; ++d) {
    STAX_CHECK(b.env().expect(gt(x.size(d + 2), 0)), "interpolate: input of shape {} has no samples",
               shape_text(x.sizes()));
    out.push_back(size ? (*size)[d] : scaled_size(x.size(d + 2), scales[d]));
    STAX_CHECK(b.env().expect(gt(out.back(), 0)), "interpolate: expected a positive output size, got {}",
               out.back().str());
  }
  if (recomputes) scales.clear();
  if (mode.kind == "area") {
    static constexpr const char* kPools[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d",
                                             "adaptive_avg_pool3d"};
    return b.call(kPools[spatial - 1], {x, out});
  }
  STAX_CHECK(!weighs || is_floating_point(x.dtype()) || x.dtype() == DType::uint8,
             "interpolate: mode '{}' takes floating dtypes and uint8, got {}", mode.name, name(x.dtype()));
  if (x.dtype() == DType::uint8 && weighs && spatial == 2) {
    Var bytes = x;
    for (const int64_t d : {1, 0}) {
      if (b.env().decide(eq(x.size(d + 2), out[d]))) continue;
      bytes = b.call("_resample_bytes", {bytes, d + 2, out[d], scales.empty() ? 0.0 : scales[d],
                                         std::string(mode.kind), !align.is_none() && align.boolean()});
    }
    return bytes == x ? b.call("clone", {x}) : bytes;
  }
  return b.call("_resample", {x, out, scales, std::string(mode.kind), !align.is_none() && align.boolean()});
}

void check_antialias(const VarArgs& a) {
  STAX_CHECK(!a["antialias"].boolean(), "interpolate: antialias is not supported; pass antialias=False");
}

Vars interpolate_lists(Builder& b, const VarArgs& a) {
  check_antialias(a);
  return {interpolate(b, a.tensor(0), a[1].is_none() ? nullptr : &a[1].integers(),
                      a[2].is_none() ? std::vector<double>() : a[2].floats(), a[3].string(), a[4], a[5])};
}

// One size or scale for all spatial dimensions.
Vars interpolate_numbers(Builder& b, const VarArgs& a) {
  check_antialias(a);
  const Var x = a.tensor(0);
  const auto spatial = static_cast<size_t>(std::max<int64_t>(x.dim() - 2, 0));
  const Exprs sizes(spatial, a[1].is_none() ? Expr(0) : a[1].integer());
  const std::vector<double> scales(a[2].is_none() ? 0 : spatial, a[2].is_none() ? 0.0 : a[2].floating());
  return {interpolate(b, x, a[1].is_none() ? nullptr : &sizes, scales, a[3].string(), a[4], a[5])};
}

// The older names of interpolate.
Var upsample(Builder& b, const VarArgs& a, const char* mode, const VarArg& align) {
  const bool numbers = a[1].is_number() || a[2].is_number();
  return b.call(numbers ? "interpolate.number" : "interpolate", {a[0], a[1], a[2], mode, align});
}

Vars upsample_nearest(Builder& b, const VarArgs& a) {
  return {upsample(b, a, "nearest", VarArg())};
}

Vars upsample_bilinear(Builder& b, const VarArgs& a) {
  return {upsample(b, a, "bilinear", true)};
}

// ---- channels and space ----

// [..., c * r * r, h, w] -> [..., c, h * r, w * r].
Vars pixel_shuffle(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Expr r = a[1].integer();
  STAX_CHECK(x.dim() >= 3, "pixel_shuffle: expected at least 3 dimensions, got shape {}",
             shape_text(x.sizes()));
  STAX_CHECK(b.env().expect(gt(r, 0)) && b.env().expect(eq(mod(x.size(-3), r * r), 0)),
             "pixel_shuffle: {} channels do not divide by the square of the factor {}", x.size(-3).str(),
             r.str());
  const Expr c = floor_div(x.size(-3), r * r), h = x.size(-2), w = x.size(-1);
  const int64_t lead = x.dim() - 3;
  Exprs split(x.sizes().begin(), x.sizes().end() - 3), merged = split, order;
  for (const Expr e : {c, r, r, h, w}) split.push_back(e);
  for (const Expr e : {c, h * r, w * r}) merged.push_back(e);
  for (int64_t d = 0; d < lead; ++d) order.emplace_back(d);
  for (const int64_t d : {0, 3, 1, 4, 2}) order.emplace_back(lead + d);
  return {b.call("reshape_copy", {b.call("permute", {b.call("reshape", {x, split}), order}), merged})};
}

// [..., c, h * r, w * r] -> [..., c * r * r, h, w].
Vars pixel_unshuffle(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Expr r = a[1].integer();
  STAX_CHECK(x.dim() >= 3, "pixel_unshuffle: expected at least 3 dimensions, got shape {}",
             shape_text(x.sizes()));
  STAX_CHECK(b.env().expect(gt(r, 0)) && b.env().expect(eq(mod(x.size(-2), r), 0)) &&
                 b.env().expect(eq(mod(x.size(-1), r), 0)),
             "pixel_unshuffle: a shape {} does not divide by the factor {}", shape_text(x.sizes()), r.str());
  const Expr c = x.size(-3), h = floor_div(x.size(-2), r), w = floor_div(x.size(-1), r);
  const int64_t lead = x.dim() - 3;
  Exprs split(x.sizes().begin(), x.sizes().end() - 3), merged = split, order;
  for (const Expr e : {c, h, r, w, r}) split.push_back(e);
  for (const Expr e : {c * r * r, h, w}) merged.push_back(e);
  for (int64_t d = 0; d < lead; ++d) order.emplace_back(d);
  for (const int64_t d : {0, 2, 4, 1, 3}) order.emplace_back(lead + d);
  return {b.call("reshape_copy", {b.call("permute", {b.call("reshape", {x, split}), order}), merged})};
}

}  // namespace

Ops interpolation_rows() {
  return {
      composite(
          "interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', "
          "bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
          interpolate_lists),
      composite("interpolate.number(Tensor input, int? size=None, float? scale_factor=None, str "
                "mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool "
                "antialias=False) -> Tensor",
                interpolate_numbers),
      composite("upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
                upsample_nearest),
      composite("upsample_nearest.number(Tensor input, int? size=None, float? scale_factor=None) -> Tensor",
                upsample_nearest),
      composite("upsample_bilinear(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
                upsample_bilinear),
      composite("upsample_bilinear.number(Tensor input, int? size=None, float? scale_factor=None) -> Tensor",
                upsample_bilinear),
      graph::internal(lowered(
          "_resample(Tensor input, int[] size, float[] scales, str mode, bool align_corners) -> Tensor",
          resample_meta, lower_resample)),
      graph::internal(lowered("_resample_bytes(Tensor input, int dim, int size, float scale, str mode, bool "
                              "align_corners) -> Tensor",
                              resample_bytes_meta, lower_resample_bytes)),
      composite("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", pixel_shuffle),
      composite("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", pixel_unshuffle),
  };
}

}  // namespace stax::ops

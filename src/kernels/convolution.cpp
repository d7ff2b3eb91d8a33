// Convolutions: float32 and the half types (widened to float32) by oneDNN; float64, integers and what oneDNN
// refuses by plain loops.
#include "kernels/convolution.h"

#include <algorithm>
#include <optional>

#include "device/thread_pool.h"
#include "kernels/element.h"
#include "kernels/onednn.h"
#include "kernels/registry.h"

namespace stax::kernels {
namespace {

struct Span {
  int64_t begin, end;
};

// The positions i in [0, count) whose partner i * stride + shift lies in [0, size).
Span inside(int64_t count, int64_t stride, int64_t shift, int64_t size) {
  const auto ceil_div = [](int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; };
  const int64_t begin = std::min(ceil_div(-shift, stride), count);
  const int64_t end = std::min(ceil_div(size - shift, stride), count);
  return {begin, std::max(begin, end)};
}

// One plane of y gains one plane of x times one window. `few` is the side that steps by one (y, or x when
// transposed), `many` the other, which it reaches by stride, dilation and padding.
template <bool Transposed, class T>
void add_plane(const ConvolutionProblem& p, const T* x, const T* w, T* y) {
  const auto& few = Transposed ? p.in_sizes : p.out_sizes;
  const auto& many = Transposed ? p.out_sizes : p.in_sizes;
  const auto shift = [&](size_t d, int64_t k) { return k * p.dilation[d] - p.padding[d]; };
  for (int64_t k0 = 0; k0 < p.window[0]; ++k0) {
    const Span s0 = inside(few[0], p.stride[0], shift(0, k0), many[0]);
    for (int64_t k1 = 0; k1 < p.window[1]; ++k1) {
      const Span s1 = inside(few[1], p.stride[1], shift(1, k1), many[1]);
      for (int64_t k2 = 0; k2 < p.window[2]; ++k2) {
        const Span s2 = inside(few[2], p.stride[2], shift(2, k2), many[2]);
        const T factor = w[(k0 * p.window[1] + k1) * p.window[2] + k2];
        for (int64_t i0 = s0.begin; i0 < s0.end; ++i0) {
          for (int64_t i1 = s1.begin; i1 < s1.end; ++i1) {
            const int64_t at_few = (i0 * few[1] + i1) * few[2];
            const int64_t at_many =
                ((i0 * p.stride[0] + shift(0, k0)) * many[1] + i1 * p.stride[1] + shift(1, k1)) * many[2] +
                shift(2, k2);
            for (int64_t i2 = s2.begin; i2 < s2.end; ++i2) {
              if constexpr (Transposed) {
                y[at_many + i2 * p.stride[2]] += factor * x[at_few + i2];
              } else {
                y[at_few + i2] += factor * x[at_many + i2 * p.stride[2]];
              }
            }
          }
        }
      }
    }
  }
}

int64_t volume(const std::array<int64_t, 3>& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

template <bool Transposed, class T>
void convolve_loops(const ConvolutionProblem& p, const T* x, const T* w, const T* bias, T* y) {
  const int64_t outputs = p.groups * p.out, inputs = p.groups * p.in;
  const int64_t x_plane = volume(p.in_sizes), y_plane = volume(p.out_sizes), window = volume(p.window);
  device::ThreadPool::global().parallel_for(0, p.batch * outputs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t batch = t / outputs, c = t % outputs, group = c / p.out;
      T* plane = y + t * y_plane;
      std::fill_n(plane, y_plane, bias ? bias[c] : T(0));
      for (int64_t k = 0; k < p.in; ++k) {
        const int64_t channel = group * p.in + k;
        const int64_t at = Transposed ? channel * p.out + c % p.out : c * p.in + k;
        add_plane<Transposed>(p, x + (batch * inputs + channel) * x_plane, w + at * window, plane);
      }
    }
  });
}

// Row-major copies of what lies with its channels last: [batch, positions, channels] and back.
template <class T>
std::vector<T> channels_first(const T* x, int64_t batch, int64_t channels, int64_t positions) {
  std::vector<T> out(static_cast<size_t>(batch * channels * positions));
  for (int64_t b = 0; b < batch; ++b, x += channels * positions) {
    T* to = out.data() + b * channels * positions;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < positions; ++i) *to++ = x[i * channels + c];
    }
  }
  return out;
}

template <class T>
void convolve(const ConvolutionProblem& p, const T* x, const T* w, const T* bias, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    if (onednn::convolution(p, x, w, bias, y)) return;
  }
  std::vector<T> copy;
  if (p.x_channels_last) {
    copy = channels_first(x, p.batch, p.groups * p.in, volume(p.in_sizes));
    x = copy.data();
  }
  std::vector<T> plain;
  T* to = y;
  if (p.y_channels_last) {
    plain.resize(static_cast<size_t>(p.batch * p.groups * p.out * volume(p.out_sizes)));
    to = plain.data();
  }
  if (p.transposed) {
    convolve_loops<true>(p, x, w, bias, to);
  } else {
    convolve_loops<false>(p, x, w, bias, to);
  }
  if (!p.y_channels_last) return;
  // The other way round: channels and positions change places.
  const std::vector<T> last = channels_first(to, p.batch, volume(p.out_sizes), p.groups * p.out);
  std::copy(last.begin(), last.end(), y);
}

template <class T>
bool stores(const TensorView& t) {
  return with_element_type(t.dtype,
                           [](auto type) { return std::is_same_v<typename decltype(type)::Stored, T>; });
}

// Whether the dimensions, taken in `order` from the outermost on, lie densely.
bool dense_in(const TensorView& t, const std::vector<size_t>& order) {
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    if (t.sizes[order[k]] != 1 && t.strides[order[k]] != step) return false;
    step *= t.sizes[order[k]];
  }
  return true;
}

std::vector<size_t> row_major(const TensorView& t) {
  std::vector<size_t> order(t.sizes.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  return order;
}

// Whether the channels of [batch,] channels, positions... lie innermost, and would not in a row-major tensor.
bool lies_channels_last(const TensorView& t, size_t spatial) {
  std::vector<size_t> order = row_major(t);
  if (dense_in(t, order)) return false;
  std::rotate(order.end() - static_cast<std::ptrdiff_t>(spatial) - 1,
              order.end() - static_cast<std::ptrdiff_t>(spatial), order.end());
  return dense_in(t, order);
}

// A tensor as a dense array of T: itself where it is one, or where it lies channels last.
template <class T>
class Dense {
 public:
  explicit Dense(const TensorView& t, bool channels_last = false) : data_(static_cast<const T*>(t.data)) {
    if (stores<T>(t) && (channels_last || dense_in(t, row_major(t)))) return;
    copy_ = read_all<T>(t);
    data_ = copy_.data();
  }
  const T* data() const { return data_; }

 private:
  std::vector<T> copy_;
  const T* data_;
};

struct Lists {
  const std::vector<Expr>&stride, &padding, &dilation;
  int64_t groups;
};

// Moves the dimensions along which there is one position to the front, where they do not count: kernels work
// best along the last one.
void drop_single_positions(ConvolutionProblem& p) {
  const auto single = [&](size_t d) {
    return p.in_sizes[d] == 1 && p.out_sizes[d] == 1 && p.window[d] == 1 && p.padding[d] == 0;
  };
  size_t to = 3;
  for (size_t d = 3; d-- > 0;) {
    if (single(d)) continue;
    --to;
    for (auto* list : {&p.in_sizes, &p.out_sizes, &p.window, &p.stride, &p.padding, &p.dilation}) {
      (*list)[to] = (*list)[d];
    }
  }
  p.spatial = std::max<int32_t>(1, static_cast<int32_t>(3 - to));
  while (to-- > 0) {
    p.in_sizes[to] = p.out_sizes[to] = p.window[to] = p.stride[to] = p.dilation[to] = 1;
    p.padding[to] = 0;
  }
}

ConvolutionProblem problem_of(const TensorView& x, const TensorView& w, const TensorView& y,
                              const Lists& lists, bool bias, bool transposed) {
  ConvolutionProblem p;
  const auto spatial = static_cast<size_t>(w.dim() - 2);
  const size_t lead = x.sizes.size() - spatial;
  p.batch = lead == 2 ? x.sizes[0] : 1;
  p.groups = lists.groups;
  p.in = transposed ? w.sizes[0] / p.groups : w.sizes[1];
  p.out = transposed ? w.sizes[1] : w.sizes[0] / p.groups;
  p.bias = bias;
  p.transposed = transposed;
  p.x_channels_last = stores<float>(x) && lies_channels_last(x, spatial);
  p.y_channels_last = lies_channels_last(y, spatial);
  for (size_t d = 0; d < spatial; ++d) {
    const size_t to = 3 - spatial + d;
    const auto entry = [&](const std::vector<Expr>& list) { return list[list.size() == 1 ? 0 : d].value(); };
    p.in_sizes[to] = x.sizes[lead + d];
    p.out_sizes[to] = y.sizes[lead + d];
    p.window[to] = w.sizes[2 + d];
    p.stride[to] = entry(lists.stride);
    p.padding[to] = entry(lists.padding);
    p.dilation[to] = entry(lists.dilation);
  }
  drop_single_positions(p);
  return p;
}

template <class Stored>
using ComputeFor =
    std::conditional_t<std::is_same_v<Stored, Float16> || std::is_same_v<Stored, BFloat16>, float,
                       std::conditional_t<std::is_floating_point_v<Stored>, Stored, uint64_t>>;

void run(Arguments arguments, Results results, const Lists& lists, bool transposed, bool by_images) {
  const TensorView &x = arguments[0].tensor(), &w = arguments[1].tensor(), &y = results[0];
  const bool has_bias = !arguments[2].is_none();
  if (y.numel() == 0) return;
  ConvolutionProblem p = problem_of(x, w, y, lists, has_bias, transposed);
  p.by_images = by_images;
  with_element_type(y.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    using Compute = ComputeFor<Stored>;
    const Dense<Compute> from(x, p.x_channels_last), weight(w);
    std::vector<Compute> bias;
    if (has_bias) bias = read_all<Compute>(arguments[2].tensor());
    const Compute* offsets = has_bias ? bias.data() : nullptr;
    auto* out = static_cast<Stored*>(y.data);  // dense, in one of the two orders
    if constexpr (std::is_same_v<Stored, Compute>) {
      convolve<Compute>(p, from.data(), weight.data(), offsets, out);
    } else {
      std::vector<Compute> wide(static_cast<size_t>(y.numel()));
      convolve<Compute>(p, from.data(), weight.data(), offsets, wide.data());
      std::transform(wide.begin(), wide.end(), out, [](Compute v) { return narrow<Stored>(v); });
    }
  });
}

Lists lists_of(Arguments arguments, bool transposed) {
  return {arguments[3].integers(), arguments[4].integers(), arguments[transposed ? 7 : 5].integers(),
          arguments[6].integer().value()};
}

// A convolution of float32 with constant weights.
class PackedCall final : public PreparedExternal {
 public:
  static Prepared make(Arguments arguments, Results results, bool transposed) {
    const TensorView &x = arguments[0].tensor(), &w = arguments[1].tensor(), &y = results[0];
    const bool bias = !arguments[2].is_none();
    if (w.data == nullptr || x.dtype != DType::float32 || y.numel() == 0) return nullptr;
    const ConvolutionProblem problem = problem_of(x, w, y, lists_of(arguments, transposed), bias, transposed);
    auto call = std::make_unique<PackedCall>();
    call->channels_last_ = problem.x_channels_last;
    call->weight_ = std::make_unique<const Dense<float>>(w);
    call->convolution_ = onednn::PackedConvolution::make(problem, call->weight_->data());
    if (!call->convolution_) return nullptr;
    return call;
  }

  void run(Arguments arguments, Results results) const override {
    const Dense<float> x(arguments[0].tensor(), channels_last_);
    std::optional<Dense<float>> bias;
    if (!arguments[2].is_none()) bias.emplace(arguments[2].tensor());
    convolution_->run(x.data(), bias ? bias->data() : nullptr, static_cast<float*>(results[0].data));
  }

 private:
  bool channels_last_ = false;
  std::unique_ptr<const Dense<float>> weight_;
  std::unique_ptr<const onednn::PackedConvolution> convolution_;
};

}  // namespace

void convolution(Arguments arguments, Results results) {
  run(arguments, results, lists_of(arguments, false), false, false);
}

void convolution_transposed(Arguments arguments, Results results) {
  run(arguments, results, lists_of(arguments, true), true, false);
}

void convolution_by_images(Arguments arguments, Results results) {
  run(arguments, results, lists_of(arguments, false), false, true);
}

void convolution_transposed_by_images(Arguments arguments, Results results) {
  run(arguments, results, lists_of(arguments, true), true, true);
}

Prepared prepare_convolution(Arguments arguments, Results results) {
  return PackedCall::make(arguments, results, false);
}

Prepared prepare_convolution_transposed(Arguments arguments, Results results) {
  return PackedCall::make(arguments, results, true);
}

}  // namespace stax::kernels

// Convolutions and products as they are called, and made ready for constant weights: against sums in float64
// over whole numbers, which float32 computes exactly in any order.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "kernels/external.h"
#include "support/run_ops.h"

namespace stax::kernels {
namespace {

using stax::testing::Array;
using stax::testing::dense_strides;
using stax::testing::empty_array;
using stax::testing::strided_array;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

Values whole_numbers(int64_t count, int64_t factor) {
  Values out;
  for (int64_t k = 0; k < count; ++k) out.push_back(static_cast<double>(factor * k % 11 - 5));
  return out;
}

int64_t product(const Ints& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// Strides of [batch, channels, positions...] with the channels innermost.
Ints channels_last(const Ints& sizes) {
  Ints strides(sizes.size(), 1);
  int64_t step = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) {
    strides[d] = step;
    step *= sizes[d];
  }
  strides[0] = step;
  return strides;
}

struct Case {
  Ints x, w, stride, padding, dilation;
  int64_t groups = 1;
  bool bias = false;
};

/// By definition, three spatial dimensions at most; fewer have leading ones.
Values convolved(const Case& c, const Ints& y, const Values& x, const Values& w, const Values& bias) {
  const size_t spatial = c.w.size() - 2;
  const auto three = [&](Ints list, int64_t fill) {
    list.insert(list.begin(), 3 - list.size(), fill);
    return list;
  };
  const auto tail = [&](const Ints& list) { return three(Ints(list.end() - spatial, list.end()), 1); };
  const Ints in = tail(c.x), out = tail(y), window = tail(c.w);
  const Ints stride = three(c.stride, 1), padding = three(c.padding, 0), dilation = three(c.dilation, 1);
  const int64_t each_in = c.w[1], each_out = c.w[0] / c.groups;
  Values result;
  for (int64_t b = 0; b < y[0]; ++b)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t p = 0; p < product(out); ++p) {
        const Ints at = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
        double sum = bias.empty() ? 0 : bias[o];
        for (int64_t i = 0; i < each_in; ++i)
          for (int64_t k = 0; k < product(window); ++k) {
            const Ints tap = {k / (window[1] * window[2]), k / window[2] % window[1], k % window[2]};
            int64_t from = 0;
            bool inside = true;
            for (size_t d = 0; d < 3; ++d) {
              const int64_t q = at[d] * stride[d] - padding[d] + tap[d] * dilation[d];
              inside = inside && q >= 0 && q < in[d];
              from = from * in[d] + q;
            }
            const int64_t channel = o / each_out * each_in + i;
            if (inside)
              sum +=
                  x[(b * c.x[1] + channel) * product(in) + from] * w[(o * each_in + i) * product(window) + k];
          }
        result.push_back(sum);
      }
  return result;
}

std::vector<Expr> exprs(const Ints& list) {
  return {list.begin(), list.end()};
}

/// Calls the function as it is, or made ready for its second and third argument.
void call(const std::string& name, std::vector<Argument<TensorView>> arguments,
          std::vector<TensorView> results, bool ready) {
  if (!ready) return find_external(name)(arguments, results);
  auto known = arguments;
  std::get<TensorView>(known[0].value).data = nullptr;
  auto unknown_results = results;
  for (TensorView& r : unknown_results) r.data = nullptr;
  const auto prepared = find_prepare(name)(known, unknown_results);
  ASSERT_NE(prepared, nullptr);
  for (int again = 0; again < 2; ++again) prepared->run(arguments, results);
}

void check(const Case& c) {
  const size_t spatial = c.w.size() - 2;
  Ints y = {c.x[0], c.w[0]};
  for (size_t d = 0; d < spatial; ++d)
    y.push_back((c.x[d + 2] + 2 * c.padding[d] - c.dilation[d] * (c.w[d + 2] - 1) - 1) / c.stride[d] + 1);
  const Values x = whole_numbers(product(c.x), 7), w = whole_numbers(product(c.w), 5),
               bias = c.bias ? whole_numbers(c.w[0], 3) : Values();
  const Values expected = convolved(c, y, x, w, bias);
  const Array weight = strided_array(DType::float32, c.w, dense_strides(c.w), w);
  const Array offsets = strided_array(DType::float32, {c.w[0]}, {1}, c.bias ? bias : Values(c.w[0]));
  for (const bool x_last : {false, true})
    for (const bool y_last : {false, true})
      for (const bool ready : {false, true}) {
        const Array from =
            strided_array(DType::float32, c.x, x_last ? channels_last(c.x) : dense_strides(c.x), x);
        Array to = empty_array(DType::float32, y, y_last ? channels_last(y) : dense_strides(y));
        const Argument<TensorView> given = c.bias ? Argument<TensorView>(offsets.view()) : NoneType();
        call(fmt::format("conv{}d", spatial),
             {from.view(), weight.view(), given, exprs(c.stride), exprs(c.padding), exprs(c.dilation),
              c.groups},
             {to.view()}, ready);
        ASSERT_EQ(to.values(), expected) << "channels last: " << x_last << y_last << ", ready: " << ready;
      }
}

TEST(ConstantWeights, ConvolveRows) {
  check({{1, 40, 70}, {48, 40, 5}, {1}, {0}, {1}});
  check({{1, 40, 71}, {48, 40, 5}, {2}, {3}, {2}, 1, true});  // rows shared out between threads
  check({{9, 3, 20}, {5, 3, 4}, {1}, {2}, {1}, 1, true});
  check({{3, 8, 33}, {16, 2, 3}, {1}, {1}, {1}, 4});
}

TEST(ConstantWeights, ConvolveImages) {
  check({{1, 32, 40, 9}, {32, 32, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true});
  check({{2, 4, 11, 7}, {6, 4, 3, 2}, {2, 1}, {1, 0}, {2, 3}});
  check({{5, 24, 8, 8}, {24, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 24, true});
  check({{2, 5, 6, 7}, {4, 5, 1, 1}, {1, 1}, {0, 0}, {1, 1}});
}

TEST(ConstantWeights, ConvolveAlongOneOfTwoDimensions) {
  check({{1, 48, 90, 1}, {32, 48, 5, 1}, {1, 1}, {0, 0}, {1, 1}});
  check({{3, 6, 1, 20}, {4, 6, 1, 3}, {1, 2}, {0, 1}, {1, 1}, 1, true});
  check({{2, 6, 1, 1}, {4, 6, 1, 1}, {1, 1}, {0, 0}, {1, 1}});
  check({{2, 6, 1, 9}, {4, 6, 3, 3}, {1, 1}, {1, 1}, {1, 1}});  // one position, but padding around it
}

TEST(ConstantWeights, ConvolveVolumes) {
  check({{1, 16, 9, 6, 5}, {16, 16, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1, true});
  check({{2, 3, 5, 1, 4}, {4, 3, 3, 1, 2}, {2, 1, 1}, {1, 0, 1}, {1, 1, 1}});
}

TEST(ConstantWeights, PreparationIsForFloat32AndKnownWeights) {
  const Array x = strided_array(DType::float64, {1, 2, 4}, {8, 4, 1}, whole_numbers(8, 7));
  const Array w = strided_array(DType::float64, {1, 2, 2}, {4, 2, 1}, whole_numbers(4, 5));
  const Array y = empty_array(DType::float64, {1, 1, 3}, {3, 3, 1});
  const std::vector<Expr> one = {1}, zero = {0};
  std::vector<Argument<TensorView>> arguments = {x.view(), w.view(), NoneType(), one, zero, one, 1};
  const std::vector<TensorView> results = {y.view()};
  EXPECT_EQ(find_prepare("conv1d")(arguments, results), nullptr);
  EXPECT_EQ(find_prepare("sort.stable"), nullptr);
  std::get<TensorView>(arguments[1].value).data = nullptr;
  EXPECT_EQ(find_prepare("conv1d")(arguments, results), nullptr);
}

void check_product(int64_t m, int64_t n, int64_t k, bool by_columns) {
  const Values a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5);
  Values expected;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < k; ++t) sum += a[i * k + t] * b[t * n + j];
      expected.push_back(sum);
    }
  const Array left = strided_array(DType::float32, {m, k}, {k, 1}, a);
  const Array right = strided_array(DType::float32, {k, n}, by_columns ? Ints{1, k} : Ints{n, 1}, b);
  for (const bool ready : {false, true}) {
    Array c = empty_array(DType::float32, {m, n}, {n, 1});
    call("mm", {left.view(), right.view()}, {c.view()}, ready);
    ASSERT_EQ(c.values(), expected) << m << " x " << n << " x " << k << ", ready: " << ready;
  }
}

TEST(ConstantWeights, Multiply) {
  for (const bool by_columns : {false, true}) {
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 214, 512},
                                                                     {1, 1, 3},
                                                                     {3, 4001, 300},  // columns shared out
                                                                     {7, 65, 33},
                                                                     {8, 1500, 130},
                                                                     {64, 214, 512},
                                                                     {1001, 37, 64},  // rows shared out
                                                                     {300, 300, 5}}) {
      check_product(m, n, k, by_columns);
    }
  }
}

}  // namespace
}  // namespace stax::kernels
